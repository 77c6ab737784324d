"""The dialog that shows what would be imported from MyData."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QFont, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QCheckBox, QDialogButtonBox, QPushButton, QWidget

from mydata_like.app import mydata_import, onboarding
from mydata_like.app.mydata_import import MyDataImport, Paragraph
from mydata_like.app.onboarding import SetupState
from mydata_like.core.errors import UploaderError
from mydata_like.gui.base import AppContext
from mydata_like.gui.settings_editor.secret_row import NO_KEYRING
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import Dialog, vbox
from mydata_like.gui.theme.widgets import TextArea
from mydata_like.gui.wizard.step_base import CheckLabel
from mydata_like.settings.pending_changes import KeyStore


class MyDataImportDialog(Dialog):
    """Shows what each setting of MyData becomes; one click imports all of them."""

    carried_over = Signal(object)  # a Beginning

    def __init__(self, context: AppContext, source: Path | None, parent: QWidget) -> None:
        super().__init__(self.tr("Import from MyData"), parent, 90, 26)
        self._config = context.controller.config
        self._takeover: MyDataImport | None = None
        self._tasks = context.tasks
        self.report = TextArea(self)
        self.report.setReadOnly(True)
        self.report.setTabChangesFocus(True)
        self.report.setAccessibleName(self.tr("Settings to import"))
        self.verdict = CheckLabel(self)
        self.into_file = QCheckBox(
            self.tr("Keep the API key in a &file that only you can read (not encrypted)"), self
        )
        self.into_file.hide()
        self.take_over = QPushButton(self.tr("&Import"), self)
        self.take_over.setEnabled(False)
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self._buttons.addButton(self.take_over, QDialogButtonBox.ButtonRole.AcceptRole)

        vbox(self.verdict, (self.report, 1), self.into_file, self._buttons, inside=self)

        self._buttons.accepted.connect(self._import)
        self._buttons.rejected.connect(self.reject)

        self.verdict.show_checking(self.tr("Reading MyData's settings…"))
        plan = partial(plan_mydata_import, source, self._config)
        self._task = self._tasks.run(plan, self._show_plan, self._show_failure)

    def done(self, result: int) -> None:
        self._task.cancel()
        super().done(result)

    def _show_plan(self, plan: tuple[MyDataImport, Iterable[Paragraph]]) -> None:
        self._takeover, paragraphs = plan
        path = texts.plain(str(self._takeover.file.path))
        self.verdict.show_good(self.tr("Nothing is changed yet. From %1:").replace("%1", path))
        plain, bold = QTextCharFormat(), QTextCharFormat()
        bold.setFontWeight(QFont.Weight.Bold)
        cursor = self.report.textCursor()
        for paragraph in paragraphs:
            cursor.insertText(texts.engine_text(paragraph.heading) + "\n", bold)
            for line in paragraph.lines:
                said = texts.with_labels(_translate(line))
                cursor.insertText(f"    {said}\n", plain)
            cursor.insertText("\n", plain)
        key = self.tr("The API key is imported as well.")
        if self._takeover.secret is None:
            key = texts.engine_text(self._takeover.secret_problem)
        cursor.insertText(key, plain)
        self.report.moveCursor(QTextCursor.MoveOperation.Start)
        self.take_over.setEnabled(True)
        self.take_over.setDefault(True)

    @Slot()
    def _import(self) -> None:
        assert self._takeover is not None
        self.take_over.setEnabled(False)
        store: KeyStore = "file" if self.into_file.isChecked() else "keyring"
        carry = partial(import_mydata, self._config, self._takeover, store)
        self._task = self._tasks.run(carry, self._finish, self._show_failure, writes=True)

    def _finish(self, beginning: SetupState) -> None:
        self.carried_over.emit(beginning)
        self.accept()

    def _show_failure(self, error: UploaderError) -> None:
        self.take_over.setEnabled(self._takeover is not None)
        self.into_file.setVisible(error.problem_code == NO_KEYRING)
        if error.problem_code != NO_KEYRING:
            self.verdict.show_problem(error.problem)
            return
        advice = self.tr("Nothing was changed. Unlock it, or keep the key in a file.")
        self.verdict.show_wrong(f"{texts.engine_text(error.message)} {advice}")


def _translate(line: str) -> str:
    """Return a line of the report in the language of the window: a sentence, or keys and why."""
    said = texts.engine_text(line)
    keys, colon, why = line.partition(": ")
    if colon and said == texts.plain(line):
        return f"{texts.plain(keys)}: {texts.engine_text(why)}"
    return said


def plan_mydata_import(
    source: Path | None, config: Path | None
) -> tuple[MyDataImport, tuple[Paragraph, ...]]:
    """Return what importing MyData's settings would change, and a description of it."""
    plan = mydata_import.plan_takeover(source, config)
    return plan, tuple(mydata_import.describe_takeover(plan))


def import_mydata(config: Path | None, plan: MyDataImport, store: KeyStore) -> SetupState:
    """Import MyData's settings and its API key; return the resulting state of the set-up."""
    mydata_import.carry_over(plan, config, store)
    return onboarding.find_setup_state(config)
