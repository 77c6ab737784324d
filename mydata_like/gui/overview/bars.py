"""The bars of the Overview: the outcomes of all files, and shares of a whole."""

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QProgressBar, QSizePolicy, QToolButton, QWidget

from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import RunState
from mydata_like.gui.status_text import amount_sentence
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status, current_shades, status_colour
from mydata_like.gui.theme.layouts import frameless, hbox, vbox
from mydata_like.gui.theme.widgets import icon


class StatusCounts(NamedTuple):
    """Numbers of files by outcome: found = verified + open + waiting + skipped + failed."""

    found: int
    verified: int
    open: int
    waiting: int
    skipped: int
    failed: int


def count_files(state: RunState) -> StatusCounts:
    """Return the parts of the active run, or else of the newest one.

    Unfinished files of a run that has ended or was interrupted count as waiting. Files at risk are
    waiting, skipped or failed; those beyond what an interrupted run has counted were found and wait
    as well.
    """
    sums, past = state.sums, state.interrupted or state.last
    if state.at_work or past is None:
        finished = sums.verified + sums.waiting + sums.skipped + sums.failed
        unfinished = max(0, sums.found - finished)
        outcomes = (sums.waiting, sums.skipped, sums.failed)
        return StatusCounts(sums.found, sums.verified, unfinished, *outcomes)
    waiting = max(past.waiting, past.unsafe - past.failed)
    counted = waiting + past.skipped + past.failed
    more = max(0, state.at_risk.files - counted) if past.finished is None else 0
    found = past.verified + counted + more
    return StatusCounts(found, past.verified, 0, waiting + more, past.skipped, past.failed)


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


# The page of each part, and what it shows there.
PAGE_OF_PART = {
    "verified": ("transfers", "verified"),
    "open": ("transfers", ""),
    "waiting": ("problems", "waiting"),
    "skipped": ("problems", "skipped"),
    "failed": ("problems", "failed"),
}


class StatusBreakdownBar(QWidget):
    """A bar of all files that were found, and a button for each part that is not empty."""

    def __init__(self, controller: WindowController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._bar = _Bar(self)
        self._buttons = {kind.name: QToolButton(self) for kind in KINDS}
        for kind, button in zip(KINDS, self._buttons.values(), strict=True):
            button.setIcon(icon(kind.icon, kind.status))
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            button.setAutoRaise(True)
            button.setObjectName(kind.name)
            button.clicked.connect(self._open_part)
        frameless(vbox(self._bar, hbox(*self._buttons.values(), 1), inside=self))

    def show_parts(self, parts: StatusCounts, *, counts_only: bool = False) -> None:
        """Show these numbers, without the bar where another one has the bytes."""
        self._bar.show_parts(parts)
        self._bar.setHidden(counts_only)
        words = {
            "verified": self.tr("%1 verified"),
            "open": self.tr("%1 in progress"),
            "waiting": self.tr("%1 waiting"),
            "skipped": self.tr("%1 skipped"),
            "failed": self.tr("%1 failed"),
        }
        for name, button in self._buttons.items():
            number = getattr(parts, name)
            button.setText(words[name].replace("%1", texts.count(number)))
            button.setVisible(number > 0 or name == "verified")

    @Slot()
    def _open_part(self) -> None:
        self._controller.open_page(*PAGE_OF_PART[self.sender().objectName()])


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
        """Draw the parts; a single file among a million stays visible."""
        numbers = [getattr(self._parts, kind.name) for kind in KINDS]
        whole, total = self.width(), max(1, sum(numbers))
        widths = [max(MIN_WIDTH, whole * number / total) if number else 0.0 for number in numbers]
        scale = whole / (sum(widths) or 1.0)
        parts = [(width * scale, it.status) for it, width in zip(KINDS, widths, strict=True)]
        _draw_parts(self, self.height() / 3, parts)


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
