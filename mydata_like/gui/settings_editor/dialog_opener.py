"""Opens the settings dialog once at a time, and keeps unsaved changes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from mydata_like.gui.base import AppContext

if TYPE_CHECKING:
    from mydata_like.gui.settings_editor.settings_dialog import SettingsDialog


class SettingsDialogOpener(QObject):
    """Opens the settings dialog for all parts of the window."""

    left_unsaved = Signal()

    def __init__(self, context: AppContext, window: QWidget) -> None:
        super().__init__(window)
        self._context = context
        self._window = window
        self._dialog: SettingsDialog | None = None
        self._unsaved: Mapping[str, object] = {}

    @property
    def dialog(self) -> "SettingsDialog | None":
        """The dialog, while it is open."""
        return self._dialog if self._dialog and isValid(self._dialog) else None

    @Slot(object)
    def open(self, key: str) -> None:
        """Show the settings, and the one with this key."""
        dialog = self.dialog or self._make()
        dialog.show_key(key, self._unsaved)
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()

    def _make(self) -> "SettingsDialog":
        from mydata_like.gui.settings_editor.settings_dialog import (
            SettingsDialog,  # imported late, as few starts need it
        )

        self._dialog = SettingsDialog(self._context, self._window)
        self._dialog.left_unsaved.connect(self._keep)
        self._dialog.settled.connect(self._forget)
        return self._dialog

    @Slot(object)
    def _keep(self, changes: Mapping[str, object]) -> None:
        self._unsaved = changes
        self.left_unsaved.emit()

    @Slot()
    def _forget(self) -> None:
        """Discard the unsaved changes: they were restored, or others were saved."""
        self._unsaved = {}
