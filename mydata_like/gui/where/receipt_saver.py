"""Saves the receipt of a folder or file, and shows it."""

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from mydata_like.core.errors import UploaderError
from mydata_like.gui.base import AppContext
from mydata_like.gui.theme.widgets import choose_target
from mydata_like.settings.schema import Settings


def save_receipt(settings: Settings, config: Path | None, path: Path, file: Path) -> Path:
    """Write the receipt of a path, as text if the file's name ends so; raises `UploaderError`."""
    # Imported here, in the background, since few starts need it.
    from mydata_like.app.receipt_service import make_receipt, write_receipt

    page = file.suffix.lower() != ".txt"
    write_receipt(make_receipt(settings, config, [path]), file, page=page)
    return file


class ReceiptSaver(QObject):
    """Asks for the file, writes it in the background, and opens it."""

    def __init__(self, context: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        self._widget = parent
        self._controller, self._tasks = context.controller, context.tasks
        self._path = Path()

    def ask(self, path: Path) -> None:
        """Ask where to save the receipt of a folder or file."""
        self._path = path
        kinds = [self.tr("Web page (*.html)"), self.tr("Text for md5sum -c (*.txt)")]
        name = self.tr("Receipt of %1").replace("%1", path.name)
        choose_target(
            self._widget, self.tr("Save a receipt"), self._save, name=f"{name}.html", kinds=kinds
        )

    @Slot(str)
    def _save(self, name: str) -> None:
        save = partial(save_receipt, *self._controller.place, self._path, Path(name))
        self._tasks.run(save, self._controller.open_path, self._fail, writes=True)

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        self._controller.command_refused.emit(error.problem)
