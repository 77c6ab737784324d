"""What the server's settings decide otherwise than those of this computer, while they do."""

import re
from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QVBoxLayout, QWidget

from mydata_like.gui.look import words
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.state import RunState
from mydata_like.settings.layers import ServerDecision
from mydata_like.settings.schema import CONTEXT

LONGEST = 200  # characters of a value

look_up = QCoreApplication.translate  # for the schema's texts: see settings/schema.py


class SetByServer(QFrame):
    """Lists the settings that the server decides; hidden where there are none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._decisions: Sequence[ServerDecision] = ()
        title = PlainLabel(self.tr("The server decides some settings"), self)
        title.scale(1, bold=True)
        self._lines = PlainLabel("", self)
        advice = PlainLabel(
            self.tr(
                "Ask the facility's administrator whether that is meant. What you save in the "
                "settings counts instead, until the server's settings are changed again."
            ),
            self,
        )
        advice.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        layout = QVBoxLayout(self)
        for label in (title, self._lines, advice):
            label.setWordWrap(True)
            layout.addWidget(label)
        self.hide()

    def show_state(self, state: RunState) -> None:
        """Show what the server decides."""
        if state.set_by_server != self._decisions:
            self._decisions = state.set_by_server
            self._lines.setText("\n".join(map(self._describe, self._decisions)))
        self.setVisible(bool(self._decisions))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self.palette().mid().color())
        painter.setBrush(self.palette().base())
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 6, 6)

    def _describe(self, decision: ServerDecision) -> str:
        label = look_up(CONTEXT, decision.setting.about.label)
        parts = label, self._shorten(decision.value), self._shorten(decision.instead_of)
        text = self.tr("%1: %2 instead of %3")
        return re.sub("%([123])", lambda mark: parts[int(mark[1]) - 1], text)

    def _shorten(self, text: str) -> str:
        shown = words.plain(text) or self.tr("(empty)")
        return shown if len(shown) <= LONGEST else shown[:LONGEST] + "…"
