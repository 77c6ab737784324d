"""The bars of the Overview: the outcomes of all files, and shares of a whole."""

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QProgressBar,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.events import RunProgressed
from mydata_like.gui.run_state import PastRunState, RunState
from mydata_like.gui.status_text import amount_sentence
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status, current_shades, status_colour
from mydata_like.gui.theme.widgets import icon


class StatusCounts(NamedTuple):
    """Numbers of files by outcome: found = verified + open + waiting + skipped + failed."""

    found: int
    verified: int
    open: int
    waiting: int
    skipped: int
    failed: int


def count_active_run(sums: RunProgressed) -> StatusCounts:
    """Return the parts of an active run."""
    finished = sums.verified + sums.waiting + sums.skipped + sums.failed
    return StatusCounts(
        sums.found,
        sums.verified,
        max(0, sums.found - finished),
        sums.waiting,
        sums.skipped,
        sums.failed,
    )


def count_past_run(past: PastRunState, at_risk: int = 0) -> StatusCounts:
    """Return the parts of a run that has ended or was interrupted.

    Unfinished files count as waiting. A run that was interrupted may have counted fewer files than
    the ledger has as `at_risk`.
    """
    waiting = max(past.waiting, past.unsafe - past.failed)
    if past.finished is None:
        waiting = max(waiting, at_risk - past.failed)
    return StatusCounts(past.found, past.verified, 0, waiting, past.skipped, past.failed)


GAP = 2  # pixels between two parts
MIN_WIDTH = 12.0  # minimum width in pixels of a part that is not empty


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


class StatusBreakdownBar(QWidget):
    """A bar of all files that were found, and a button for each part that is not empty."""

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

    def show_parts(self, parts: StatusCounts, *, counts_only: bool = False) -> None:
        """Show these numbers, without the bar where another one has the bytes."""
        self._bar.show_parts(parts)
        self._bar.setHidden(counts_only)
        for kind in KINDS:
            number = getattr(parts, kind.name)
            button = self._buttons[kind.name]
            button.setText(self._part_text(kind.name).replace("%1", texts.count(number)))
            button.setVisible(number > 0 or kind.name == "verified")

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

    def _part_text(self, name: str) -> str:
        return {
            "verified": self.tr("%1 verified"),
            "open": self.tr("%1 in progress"),
            "waiting": self.tr("%1 waiting"),
            "skipped": self.tr("%1 skipped"),
            "failed": self.tr("%1 failed"),
        }[name]


class _Bar(QWidget):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._parts = StatusCounts(0, 0, 0, 0, 0, 0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(200, self.fontMetrics().height())

    def show_parts(self, parts: StatusCounts) -> None:
        if parts != self._parts:
            self._parts = parts
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        widths = self._widths(self.width())
        parts = [(width, kind.status) for kind, width in zip(KINDS, widths, strict=True)]
        _draw_parts(self, self.height() / 3, parts)

    def _widths(self, whole: float) -> list[float]:
        """Return the width of each part; a single file among a million stays visible."""
        numbers = [getattr(self._parts, kind.name) for kind in KINDS]
        total = sum(numbers)
        if not total:
            return [0.0] * len(numbers)
        widths = [max(MIN_WIDTH, whole * number / total) if number else 0.0 for number in numbers]
        return [width * whole / sum(widths) for width in widths]


class ShareBar(QProgressBar):
    """A flat bar of shares of a whole, each in the colour of a status."""

    PARTS = 1000

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._shares: tuple[tuple[float, Status], ...] = ()
        self.setTextVisible(False)
        self.setRange(0, self.PARTS)
        self.setFixedHeight(self.fontMetrics().height() // 2)
        self.setAccessibleName(name)

    def show_shares(self, *shares: tuple[float, Status]) -> None:
        """Show these shares, side by side; each is a number from 0 to 1."""
        if shares != self._shares:
            self._shares = shares
            self.setValue(int(self.PARTS * min(1.0, sum(share for share, _ in shares))))
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        parts = [(share * self.width(), status) for share, status in self._shares]
        _draw_parts(self, self.height() / 2, parts)


class SentBar(ShareBar):
    """The share of a run's bytes that were sent; hidden while nothing is to be sent."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(self.tr("Sent"), parent)

    def show_state(self, state: RunState) -> None:
        """Show the share of the active run."""
        sent, wanted = state.sums.transferred_bytes, state.sums.wanted_bytes
        self.setVisible(state.at_work and wanted > 0)
        self.show_shares((min(1.0, sent / max(1, wanted)), "working"))
        self.setAccessibleDescription(amount_sentence(state))


def _draw_parts(bar: QWidget, radius: float, parts: Sequence[tuple[float, Status]]) -> None:
    """Draw an empty bar with an edge and round ends, and in it parts of these widths.

    The parts do not touch: the contrast between their colours is low.
    """
    painter = QPainter(bar)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    whole, shades = QRectF(bar.rect()), current_shades()
    painter.setPen(QColor(shades.edge))
    painter.setBrush(QColor(shades.base))
    painter.drawRoundedRect(whole.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
    outline = QPainterPath()
    outline.addRoundedRect(whole, radius, radius)
    painter.setClipPath(outline)
    left = 0.0
    for width, status in parts:
        if not width:
            continue
        painter.fillRect(QRectF(left, 0, width, whole.height()), status_colour(status))
        if left:
            gap = QRectF(round(left) - GAP, 0, GAP, whole.height())
            painter.fillRect(gap, QColor(shades.base))
        left += width
