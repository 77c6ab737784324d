"""Runs the connection test and shows each step."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialogButtonBox, QProgressBar, QStyle, QWidget

from mydata_like.app.settings_service import Secret
from mydata_like.core.errors import UploaderError
from mydata_like.gui.tasks import BackgroundTask, Tasks
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.layouts import Dialog, vbox
from mydata_like.gui.theme.metrics import SECTION
from mydata_like.gui.theme.widgets import Note, NoteList, PlainLabel
from mydata_like.settings.pending_changes import SecretChange, SecretKind
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mydata_like.app.connection_test import TestStep
    from mydata_like.engine.pipeline import CancelFlag

_STATUS: dict[str, Status] = {
    "ok": "good",
    "unproven": "waiting",
    "failed": "problem",
}  # best first


class ConnectionTest(NoteList):
    """Uploads a small file, and lists the result of each step."""

    ended = Signal(str)  # the worst result: ok, unproven or failed

    def __init__(self, name: str, tasks: Tasks, parent: QWidget) -> None:
        super().__init__(name, parent)
        self._tasks = tasks
        self._task = BackgroundTask()
        self.results: list[str] = []
        side = self.style().pixelMetric(QStyle.PixelMetric.PM_SmallIconSize)
        self.setIconSize(QSize(side, side))

    def start(
        self, config: Path | None, settings: Settings, entered: Sequence[SecretChange] = ()
    ) -> None:
        """Test the connection with these settings and the entered secrets, stored or not."""
        self.stop()
        self.show_notes(())
        self.results.clear()
        self._task = self._tasks.run(
            partial(_test, config, settings, entered),
            self._finish,
            self._fail,
            progress=self._show_step,
            cancel=True,
        )

    def stop(self) -> None:
        """Cancel the test and show no more results."""
        self._task.cancel()

    def _show_step(self, step: TestStep) -> None:
        self._add(step.result.value, texts.problem_text(step))

    def _finish(self, _nothing: None) -> None:
        self.ended.emit(max(self.results, key=list(_STATUS).index, default="ok"))

    def _fail(self, error: UploaderError) -> None:
        """Show that the test itself failed."""
        self._add("failed", texts.problem_text(error))
        self._finish(None)

    def _add(self, result: str, text: str) -> None:
        names = {
            "ok": self.tr("Good"),
            "unproven": self.tr("Not verified"),
            "failed": self.tr("Failed"),
        }
        self.results.append(result)
        note = Note(_STATUS[result], f"{names[result]}: {texts.plain(text)}")
        self.show_notes([*self.notes, note])
        self.scrollToBottom()


class ConnectionTestDialog(Dialog):
    """Tests the connection with settings that may not be saved yet; closing it ends the test."""

    def __init__(self, tasks: Tasks, parent: QWidget | None = None) -> None:
        super().__init__(self.tr("Connection test"), parent, 80, 24)
        self.test = ConnectionTest(self.tr("Steps of the test"), tasks, self)
        title = self.tr("Testing the connection to the server")
        self.head = PlainLabel(title, self, wrap=True, heading=SECTION)
        self._bar = QProgressBar(self)
        self._bar.setRange(0, 0)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(title)
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        copy = self._buttons.addButton(
            self.tr("Copy as &text"), QDialogButtonBox.ButtonRole.ActionRole
        )
        copy.setAutoDefault(False)
        vbox(self.head, self._bar, (self.test, 1), self._buttons, inside=self)

        self.test.ended.connect(self._finish)
        self._buttons.rejected.connect(self.reject)
        copy.clicked.connect(self._copy_text)

    def done(self, code: int) -> None:
        self.test.stop()
        super().done(code)

    @Slot(str)
    def _finish(self, worst: str) -> None:
        conclusions = {
            "ok": self.tr("The connection works"),
            "unproven": self.tr("Nothing failed, but not every step could be verified"),
            "failed": self.tr("The test failed"),
        }
        self.head.setText(conclusions[worst])
        self._bar.hide()
        self._buttons.setStandardButtons(QDialogButtonBox.StandardButton.Close)

    @Slot()
    def _copy_text(self) -> None:
        lines = (note.text for note in self.test.notes)
        QGuiApplication.clipboard().setText("\n".join((self.head.text(), *lines)))


def _test(
    config: Path | None,
    settings: Settings,
    entered: Sequence[SecretChange],
    report: Callable[[TestStep], None],
    cancel: CancelFlag,
) -> None:
    """Report the steps of a test with the entered secrets, or else the stored ones."""
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app.connection_test import run_connection_test
    from mydata_like.app.run_request import RunObserver, RunRequest

    secrets = {change.kind: Secret(change.text) for change in entered if change.text}
    request = RunRequest(
        settings=settings,
        config=config,
        dry_run=True,
        api_key=secrets.get(SecretKind.API_KEY),
        s3_secret=secrets.get(SecretKind.S3_SECRET),
    )
    for step in run_connection_test(request, RunObserver(cancel=cancel)):
        report(step)
