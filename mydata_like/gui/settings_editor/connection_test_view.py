"""Runs the connection test and shows each step."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QListView,
    QListWidget,
    QListWidgetItem,
    QProgressBar,
    QStyle,
    QVBoxLayout,
    QWidget,
)

from mydata_like.app.settings_service import Secret
from mydata_like.core.errors import UploaderError
from mydata_like.gui.settings_editor.form import fit_to_screen
from mydata_like.gui.tasks import BackgroundTask, Tasks
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.metrics import SECTION
from mydata_like.gui.theme.widgets import PlainLabel, icon
from mydata_like.settings.pending_changes import SecretChange, SecretKind
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mydata_like.app.transports.connection_steps import TestStep
    from mydata_like.engine.pipeline import CancelFlag

WIDE, HIGH = 80, 24  # in characters and lines
_ICONS: dict[str, tuple[str, Status]] = {  # best first
    "ok": ("check", "good"),
    "unproven": ("waiting", "waiting"),
    "failed": ("problems", "problem"),
}


class ConnectionTest(QListWidget):
    """Uploads a small file, and lists the result of each step."""

    ended = Signal(str)  # the worst result: ok, unproven or failed
    failed = Signal(object)  # an UploaderError: the test itself failed

    def __init__(self, tasks: Tasks, parent: QWidget) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._task = BackgroundTask()
        self._results: list[str] = []
        self.setWordWrap(True)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        side = self.style().pixelMetric(QStyle.PixelMetric.PM_SmallIconSize)
        self.setIconSize(QSize(side, side))

    @property
    def results(self) -> tuple[str, ...]:
        """The results of the steps, in order."""
        return tuple(self._results)

    @property
    def lines(self) -> list[str]:
        """The text of the list."""
        return [self.item(row).text() for row in range(self.count())]

    def start(
        self, config: Path | None, settings: Settings, entered: Sequence[SecretChange] = ()
    ) -> None:
        """Test the connection with these settings and the entered secrets, stored or not."""
        self.stop()
        self.clear()
        self._results.clear()
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

    def add(self, result: str, text: str) -> None:
        """Add a line to the list."""
        said = f"{self._name_result(result)}: {texts.plain(text)}"
        self.addItem(QListWidgetItem(icon(*_ICONS[result]), said))
        self.scrollToBottom()

    @Slot(object)
    def _show_step(self, step: TestStep) -> None:
        self._results.append(step.result.value)
        self.add(step.result.value, texts.problem_text(step))

    @Slot(object)
    def _finish(self, _nothing: None) -> None:
        self.ended.emit(max(self._results, key=list(_ICONS).index, default="ok"))

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        self.failed.emit(error)

    def _name_result(self, result: str) -> str:
        return {
            "ok": self.tr("Good"),
            "unproven": self.tr("Not verified"),
            "failed": self.tr("Failed"),
        }[result]


class ConnectionTestDialog(QDialog):
    """Tests the connection with settings that may not be saved yet; closing it ends the test."""

    def __init__(self, tasks: Tasks, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Connection test"))
        self.test = ConnectionTest(tasks, self)
        self._head = PlainLabel(self.tr("Testing the connection to the server"), self)
        self._head.setWordWrap(True)
        self._head.scale(SECTION, bold=True)
        self._bar = QProgressBar(self)
        self._bar.setRange(0, 0)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self._head.text())
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self._copy = self._buttons.addButton(
            self.tr("Copy as &text"), QDialogButtonBox.ButtonRole.ActionRole
        )
        self._copy.setAutoDefault(False)

        self.test.setAccessibleName(self.tr("Steps of the test"))
        layout = QVBoxLayout(self)
        layout.addWidget(self._head)
        layout.addWidget(self._bar)
        layout.addWidget(self.test, 1)
        layout.addWidget(self._buttons)
        fit_to_screen(self, WIDE, HIGH)

        self.test.ended.connect(self._finish)
        self.test.failed.connect(self._fail)
        self._buttons.rejected.connect(self.reject)
        self._copy.clicked.connect(self._copy_text)

    @property
    def conclusion(self) -> str:
        """The overall result."""
        return self._head.text()

    def done(self, code: int) -> None:
        self.test.stop()
        super().done(code)

    @Slot(str)
    def _finish(self, worst: str) -> None:
        self._conclude(
            {
                "ok": self.tr("The connection works"),
                "unproven": self.tr("Nothing failed, but not every step could be verified"),
                "failed": self.tr("The test failed"),
            }[worst]
        )

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        self.test.add("failed", texts.problem_text(error))
        self._conclude(self.tr("The test failed"))

    def _conclude(self, sentence: str) -> None:
        self._head.setText(sentence)
        self._bar.hide()
        self._buttons.setStandardButtons(QDialogButtonBox.StandardButton.Close)

    @Slot()
    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText("\n".join((self.conclusion, *self.test.lines)))


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
