"""The conservation bar: found = verified + open + waiting + skipped + failed, to the file."""

from typing import NamedTuple

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.palette import Status, quiet, status_colour
from mydata_like.gui.overview.counts import Parts

NARROWEST = 12.0  # pixels of a part that is there at all


class _Kind(NamedTuple):
    name: str
    status: Status
    icon: str


KINDS = (
    _Kind("verified", "good", "check"),
    _Kind("open", "working", "working"),
    _Kind("waiting", "waiting", "waiting"),
    _Kind("skipped", "skipped", "skipped"),
    _Kind("failed", "problem", "error"),
)


class ConservationBar(QWidget):
    """All files that were found, as one bar, and each part of it as a button."""

    chosen = Signal(object)  # the name of a part

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bar = _Bar(self)
        self._buttons = {kind.name: self._make_button(kind) for kind in KINDS}
        row = QHBoxLayout()
        for button in self._buttons.values():
            row.addWidget(button)
        row.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._bar)
        layout.addLayout(row)

    def show_parts(self, parts: Parts) -> None:
        """Show these numbers."""
        self._bar.show_parts(parts)
        for kind in KINDS:
            number = getattr(parts, kind.name)
            button = self._buttons[kind.name]
            button.setText(self._name_part(kind.name).replace("%1", words.count(number)))
            button.setEnabled(number > 0)

    def _make_button(self, kind: _Kind) -> QToolButton:
        button = QToolButton(self)
        button.setIcon(icon(kind.icon, kind.status))
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setAutoRaise(True)
        button.setObjectName(kind.name)
        button.clicked.connect(self._choose)
        return button

    def _choose(self) -> None:
        self.chosen.emit(self.sender().objectName())

    def _name_part(self, name: str) -> str:
        return {
            "verified": self.tr("%1 verified"),
            "open": self.tr("%1 under way"),
            "waiting": self.tr("%1 waiting"),
            "skipped": self.tr("%1 skipped"),
            "failed": self.tr("%1 failed"),
        }[name]


class _Bar(QWidget):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._parts = Parts(0, 0, 0, 0, 0, 0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(200, self.fontMetrics().height())

    def show_parts(self, parts: Parts) -> None:
        if parts != self._parts:
            self._parts = parts
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(self.rect())
        outline = QPainterPath()
        outline.addRoundedRect(whole, whole.height() / 3, whole.height() / 3)
        painter.setClipPath(outline)
        empty = quiet()
        empty.setAlphaF(0.25)
        painter.fillRect(whole, empty)
        left = 0.0
        for kind, width in zip(KINDS, self._widths(whole.width()), strict=True):
            painter.fillRect(QRectF(left, 0, width, whole.height()), status_colour(kind.status))
            left += width

    def _widths(self, whole: float) -> list[float]:
        """Return each part's share; a single file among a million can still be seen."""
        numbers = [getattr(self._parts, kind.name) for kind in KINDS]
        total = sum(numbers)
        if not total:
            return [0.0] * len(numbers)
        widths = [max(NARROWEST, whole * number / total) if number else 0.0 for number in numbers]
        return [width * whole / sum(widths) for width in widths]
