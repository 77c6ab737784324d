"""Opens the matching dialog for dropped files: upload or import of settings."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QDialog, QWidget

from mydata_like.gui.base import AppContext
from mydata_like.gui.theme.widgets import DropZone, choose_folder

SETTINGS_ENDINGS = (b".cfg", b".toml")


class DropTarget(QObject):
    """Accepts files and folders dropped anywhere on a window, or chosen in a file dialog."""

    opened = Signal(object)  # the sheet
    added = Signal(object)  # the paths that a run will upload

    def __init__(self, context: AppContext, window: QWidget) -> None:
        super().__init__(window)
        self._context = context
        self._window = window
        DropZone(window).dropped.connect(self.take)

    @Slot(object)
    def take(self, paths: Sequence[bytes]) -> None:
        """Open the drop dialog for folders and files; a single settings file is imported."""
        if len(paths) == 1 and paths[0].lower().endswith(SETTINGS_ENDINGS):
            path = Path(os.fsdecode(paths[0]))
            find, done = partial(find_settings_kind, path), partial(self._take_file, path)
            self._context.tasks.run(find, done)
        else:
            self._open_drop(paths)

    @Slot()
    def choose(self) -> None:
        """Let the user choose a folder to upload."""
        choose_folder(self._window, self.tr("Choose a folder to upload"), self._take_name)

    def _take_name(self, name: str) -> None:
        self.take([os.fsencode(name)])

    def _take_file(self, path: Path, kind: str) -> None:
        match kind:
            case "mydata":
                # Imported here, as few users need it.
                from mydata_like.gui.wizard.mydata_import_dialog import MyDataImportDialog

                sheet = MyDataImportDialog(self._context, path, self._window)
                sheet.carried_over.connect(self._context.controller.reload_settings)
                self._open(sheet)
            case "ours":
                # Imported here, as few users need it.
                from mydata_like.gui.drop.import_dialog import ImportDialog

                self._open(ImportDialog(self._context, path, self._window))
            case _:
                self._open_drop([os.fsencode(path)])

    def _open_drop(self, paths: Sequence[bytes]) -> None:
        # Imported here, as few users need it.
        from mydata_like.gui.drop.drop_dialog import DropDialog

        sheet = DropDialog(self._context, paths, self._window)
        sheet.added.connect(self.added)
        self._open(sheet)

    def _open(self, sheet: QDialog) -> None:
        sheet.open()
        self.opened.emit(sheet)


def find_settings_kind(path: Path) -> str:
    """Return "mydata" or "ours" for a settings file, empty for anything else."""
    # Imported here, in the background, as few users need it.
    from mydata_like.app import mydata_import

    return mydata_import.find_settings_kind(path)
