"""Runs the connection test and shows each step."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QStyle,
    QWidget,
)

from mydata_like.app.settings_service import Secret
from mydata_like.core.errors import UploaderError
from mydata_like.gui.tasks import BackgroundTask, Tasks
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.layouts import Dialog, frameless, hbox, vbox
from mydata_like.gui.theme.metrics import SECTION
from mydata_like.gui.theme.widgets import Note, NoteList, PlainLabel, push_button
from mydata_like.settings.pending_changes import SecretChange, SecretKind
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mydata_like.app.transports.connection_steps import TestStep
    from mydata_like.engine.pipeline import CancelFlag

_STATUS: dict[str, Status] = {
    "ok": "good",
    "unproven": "waiting",
    "failed": "problem",
}  # best first


KEY_UNKNOWN, KEY_REFUSED = "host-key.unknown", "ssh.key-refused"  # codes of problems


class UnknownKey(NamedTuple):
    """A host whose key the user has not confirmed yet."""

    host: str
    fingerprint: str


class ConnectionTest(NoteList):
    """Tries the destination, and lists the result of each step."""

    started = Signal()
    ended = Signal(str)  # the worst result: ok, unproven or failed
    key_unknown = Signal(str, str)  # a host, and the fingerprint of its key
    key_refused = Signal(str)  # the line of our public key for the host

    def __init__(self, name: str, tasks: Tasks, parent: QWidget) -> None:
        super().__init__(name, parent)
        self._tasks = tasks
        self._task = BackgroundTask()
        self._tested: tuple[Path | None, Settings, Sequence[SecretChange]]
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
        self._tested = config, settings, entered
        self._task = self._tasks.run(
            partial(_test, config, settings, entered),
            self._finish,
            self._fail,
            progress=self._show_step,
            cancel=True,
        )
        self.started.emit()

    @property
    def running(self) -> bool:
        return self._task.running

    @Slot(str)
    def trust(self, fingerprint: str) -> None:
        """Test again with a host key that the user has confirmed, which is stored then."""
        config, settings, entered = self._tested
        keys = (*settings.transfer.host_keys, fingerprint)
        transfer = settings.transfer.with_values(host_keys=keys)
        self.start(config, settings.with_values(transfer=transfer), entered)

    def stop(self) -> None:
        """Cancel the test and show no more results."""
        self._task.cancel()

    def _show_step(self, step: TestStep | UnknownKey) -> None:
        if isinstance(step, UnknownKey):
            self.key_unknown.emit(*step)
            return
        asked = step.code in (KEY_UNKNOWN, KEY_REFUSED)  # the hint is for the command line
        text = texts.engine_text(step.message) if asked else texts.problem_text(step)
        self._add(step.result.value, text)
        if step.code == KEY_REFUSED:
            self.key_refused.emit(step.hint.rpartition(": ")[2])

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


class ConnectionRemedy(QWidget):
    """What helps against a login that failed: trust in the host's key, or ours for the host."""

    def __init__(self, test: ConnectionTest, parent: QWidget) -> None:
        super().__init__(parent)
        self._sentence = PlainLabel("", self, wrap=True)
        self.text = QLineEdit(self)
        self.text.setReadOnly(True)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.trust = push_button(self, self.tr("T&rust this host"), self._trust, "padlock")
        self.copy = push_button(self, self.tr("&Copy"), self._copy, "copy")
        row = hbox((self.text, 1), self.trust, self.copy)
        frameless(vbox(self._sentence, row, inside=self))
        self.hide()
        self._test = test
        test.started.connect(self.hide)
        test.key_unknown.connect(self._ask)
        test.key_refused.connect(self._offer)

    @Slot(str, str)
    def _ask(self, host: str, fingerprint: str) -> None:
        text = self.tr(
            "This is the first connection to %1. Compare the fingerprint of its key with the one "
            "that its administrator names:"
        )
        self._show(text.replace("%1", texts.plain(host)), fingerprint, self.trust)

    @Slot(str)
    def _offer(self, line: str) -> None:
        text = self.tr(
            "Add this line to the file .ssh/authorized_keys of that account, or send it to the "
            "administrator; then test again:"
        )
        self._show(text, line, self.copy)

    def _show(self, sentence: str, text: str, button: QPushButton) -> None:
        self._sentence.setText(sentence)
        self.text.setAccessibleName(sentence)
        self.text.setText(text)
        self.text.setCursorPosition(0)
        for it in (self.trust, self.copy):
            it.setVisible(it is button)
        self.show()

    @Slot()
    def _trust(self) -> None:
        self._test.trust(self.text.text())

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.text())


class ConnectionTestDialog(Dialog):
    """Tests the connection with settings that may not be saved yet; closing it ends the test."""

    def __init__(self, tasks: Tasks, parent: QWidget | None = None) -> None:
        super().__init__(self.tr("Connection test"), parent, 80, 24)
        self.test = ConnectionTest(self.tr("Steps of the test"), tasks, self)
        title = self.tr("Testing the connection")
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
        remedy = ConnectionRemedy(self.test, self)
        vbox(self.head, self._bar, (self.test, 1), remedy, self._buttons, inside=self)

        self.test.started.connect(self._show_running)
        self.test.ended.connect(self._finish)
        self._buttons.rejected.connect(self.reject)
        copy.clicked.connect(self._copy_text)

    def done(self, code: int) -> None:
        self.test.stop()
        super().done(code)

    @Slot()
    def _show_running(self) -> None:
        self.head.setText(self._bar.accessibleName())
        self._bar.show()

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
    report: Callable[[TestStep | UnknownKey], None],
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

    def ask(host: str, fingerprint: str, _kind: str) -> bool:
        """Leave the answer to the user, who tests again then."""
        report(UnknownKey(host, fingerprint))
        return False

    for step in run_connection_test(request, RunObserver(cancel=cancel), ask):
        report(step)
