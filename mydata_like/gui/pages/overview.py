"""The first page: is my data safe, what goes on, what is to be done."""

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from mydata_like.gui.look.labels import LARGE, PlainLabel
from mydata_like.gui.look.sentences import overview_sentence
from mydata_like.gui.pages.page import Desk, Page
from mydata_like.gui.state import RunState


class OverviewPage(Page):
    """One sentence, the conservation bar, the pipeline, the throughput, the data at risk."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = desk.controller
        self._sentence = PlainLabel("", self)
        self._sentence.setWordWrap(True)
        self._sentence.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._sentence.scale(LARGE, bold=True)
        layout = QVBoxLayout(self)
        layout.addWidget(self._sentence)
        layout.addStretch(1)
        self._connect()
        self._show_state(self._controller.state)

    def _connect(self) -> None:
        self._controller.run_changed.connect(self._show_state)

    @Slot(object)
    def _show_state(self, state: RunState) -> None:
        self._sentence.setText(overview_sentence(state))
