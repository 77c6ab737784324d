"""Sends a test file, and tells step by step how far it came."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QStyle,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.errors import UploaderError
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.pages.page import Desk
from mydata_like.gui.wizard import asking
from mydata_like.gui.wizard.courier import Courier, Parcel
from mydata_like.gui.wizard.question import Question
from mydata_like.gui.wizard.verdict import Verdict
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from mydata_like import bootstrap
    from mydata_like.gui.look.palette import Status

_SIGNS: dict[str, tuple[str, Status]] = {
    "ok": ("check", "good"),
    "unproven": ("info", "skipped"),
    "failed": ("error", "problem"),
}


class TrialPanel(QWidget):
    """A button that proves the whole way, and below it what each step showed."""

    ended = Signal()

    def __init__(self, desk: Desk, parent: QWidget) -> None:
        super().__init__(parent)
        self.proved = False
        self._config: Path | None = desk.controller.config
        self._settings = Settings()
        self._question = Question(desk.tasks, self)
        self._courier = Courier()
        self.send = QPushButton(icon("start"), self.tr("&Send a test file"), self)
        self.steps = QListWidget(self)
        self.steps.setAccessibleName(self.tr("How far the test file came"))
        self.steps.setWordWrap(True)
        self.steps.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        side = self.style().pixelMetric(QStyle.PixelMetric.PM_SmallIconSize)
        self.steps.setIconSize(QSize(side, side))
        self.steps.setMinimumHeight(self.fontMetrics().height() * 14)
        self.verdict = Verdict(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.send, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.verdict)
        column.addWidget(self.steps)
        self.hide()
        self._connect()

    def offer(self, settings: Settings) -> None:
        """Offer to send the file to the server of these settings."""
        self._settings = settings
        self.proved = False
        self.steps.clear()
        self.steps.hide()
        self.verdict.show_note(
            self.tr("A small file goes the whole way, is compared there and removed again.")
        )
        self.show()
        self.send.setEnabled(True)
        self.send.setFocus()

    def _connect(self) -> None:
        self.send.clicked.connect(self._send)
        self._courier.arrived.connect(self._show_step, Qt.ConnectionType.QueuedConnection)
        self._question.answered.connect(self._conclude)
        self._question.failed.connect(self._show_failure)

    @Slot()
    def _send(self) -> None:
        self.send.setEnabled(False)
        self.steps.clear()
        self.steps.show()
        self.verdict.show_checking(self.tr("A small file is on its way…"))
        bring = self._courier.leave()
        self._question.ask(partial(asking.try_out, self._config, self._settings, bring))

    @Slot(object)
    def _show_step(self, parcel: Parcel) -> None:
        if not self._courier.is_awaited(parcel):
            return
        step: bootstrap.Step = parcel.content
        name, status = _SIGNS[step.result]
        text = " ".join(filter(None, (step.message, step.hint)))
        self.steps.addItem(QListWidgetItem(icon(name, status), words.plain(text)))
        self.steps.scrollToBottom()

    @Slot(object)
    def _conclude(self, steps: tuple[bootstrap.Step, ...]) -> None:
        results = {str(step.result) for step in steps}
        self.proved = "failed" not in results
        if not self.proved:
            self.verdict.show_wrong(self.tr("The test file did not arrive; see the last line."))
        elif "unproven" in results:
            self.verdict.show_good(self.tr("Nothing failed, though not all could be proved."))
        else:
            self.verdict.show_good(self.tr("The whole way is open. You can finish now."))
        self._offer_again()

    @Slot(object)
    def _show_failure(self, error: UploaderError) -> None:
        self.verdict.show_problem(error.problem)
        self._offer_again()

    def _offer_again(self) -> None:
        self.send.setText(self.tr("&Send it again"))
        self.send.setEnabled(True)
        self.ended.emit()
