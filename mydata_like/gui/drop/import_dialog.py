"""The dialog for a dropped settings file: what it would change."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QDialogButtonBox, QWidget

from mydata_like.app import mydata_import, settings_service
from mydata_like.app.mydata_import import SettingsImport
from mydata_like.core.errors import UploaderError
from mydata_like.gui import setting_labels
from mydata_like.gui.base import AppContext
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import Dialog, vbox
from mydata_like.gui.theme.metrics import TITLE
from mydata_like.gui.theme.widgets import Note, NoteList, PlainLabel
from mydata_like.settings.fields import format_value
from mydata_like.settings.schema import settings_by_key


class ImportDialog(Dialog):
    """Shows what another settings file would change; one click imports it."""

    def __init__(self, context: AppContext, source: Path, parent: QWidget | None = None) -> None:
        super().__init__(self.tr("Import settings"), parent, 80, 22)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self._context = context
        self._source = source
        self._copying: SettingsImport | None = None
        title = PlainLabel(self.tr("Import settings"), self, heading=TITLE)
        reading = self.tr("Reading %1…").replace("%1", self._name())
        self._summary = PlainLabel(reading, self, wrap=True)
        self.notes = NoteList(self.tr("What would change"), self)
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self.take_over = self._buttons.addButton(
            self.tr("&Import"), QDialogButtonBox.ButtonRole.AcceptRole
        )
        self.take_over.setEnabled(False)
        self.take_over.setDefault(True)
        vbox(title, self._summary, (self.notes, 1), self._buttons, inside=self)

        self._buttons.accepted.connect(self._take_over)
        self._buttons.rejected.connect(self.reject)

        context.tasks.run(
            partial(mydata_import.plan_copying, source, context.controller.config),
            self._show_plan,
            self._show_failure,
        )

    def _name(self) -> str:
        return texts.plain(str(self._source))

    def _show_plan(self, copying: SettingsImport) -> None:
        self._copying = copying
        changes, kept = copying.changes, copying.kept
        text = self.tr("%Ln setting(s) would change. From %1:", "", len(changes))
        if not changes:
            text = self.tr("Nothing would change: %1 has the current settings.")
        self._summary.setText(text.replace("%1", self._name()))
        locked = self.tr("%1 is locked and is not changed.")
        names = (texts.with_labels(entry.key) for entry in kept)
        lines = [self._describe(key, value) for key, value in changes.items()]
        self.notes.show_notes(
            [
                *(Note("good", line) for line in lines),
                *(Note("skipped", locked.replace("%1", name)) for name in names),
            ]
        )
        self.take_over.setEnabled(bool(changes))

    @staticmethod
    def _describe(key: str, value: object) -> str:
        setting = settings_by_key()[key]
        return texts.plain(f"{setting_labels.label_of(setting)}: {format_value(setting, value)}")

    @Slot()
    def _take_over(self) -> None:
        assert self._copying is not None
        self.take_over.setEnabled(False)
        config, changes = self._context.controller.config, self._copying.changes
        keep = partial(settings_service.save_settings, config, changes)
        self._context.tasks.run(keep, self._finish, self._show_failure, writes=True)

    def _finish(self, _nothing: object) -> None:
        self._context.controller.reload_settings()
        self.accept()

    def _show_failure(self, error: UploaderError) -> None:
        self._summary.setText(texts.engine_text(error.message))
        hint = [Note("waiting", texts.engine_text(error.hint))] if error.hint else []
        self.notes.show_notes([Note("problem", texts.engine_text(error.message)), *hint])
