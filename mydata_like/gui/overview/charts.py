"""The charts of the Overview: status of all files, stages and throughput."""

from collections import deque
from collections.abc import Iterator, Sequence
from math import floor, log10
from time import monotonic
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPen, QPolygonF, QTransform
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QProgressBar,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.events import RunProgressed, StagesMeasured
from mydata_like.gui.run_state import ChannelRates, PastRunState
from mydata_like.gui.status_text import limit_sentence
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status, accent, quiet, status_colour
from mydata_like.gui.theme.widgets import LARGE, SMALL, IconLabel, PlainLabel, icon


class StatusCounts(NamedTuple):
    """Numbers of files by outcome: found = verified + open + waiting + skipped + failed."""

    found: int
    verified: int
    open: int
    waiting: int
    skipped: int
    failed: int


class StageCount(NamedTuple):
    """One stage of the pipeline: files that have passed it, and files that wait for it."""

    name: str
    done: int
    queue: int


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


def count_stages(sums: RunProgressed) -> list[StageCount]:
    """Return the stages in order."""
    already_stored = max(0, sums.checked - sums.wanted - sums.waiting - sums.skipped)
    verified = max(0, sums.verified - already_stored)
    registered = max(sums.registered, verified)  # the HTTP fallback registers as it sends
    sent = max(sums.sent, registered)
    return [
        StageCount("scan", sums.found, 0),
        StageCount("check", sums.checked, max(0, sums.found - sums.checked)),
        StageCount("send", sent, max(0, sums.wanted - sent)),
        StageCount("register", registered, sent - registered),
        StageCount("verify", verified, registered - verified),
    ]


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
    """A bar of all files that were found, with each part as a button."""

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

    def show_parts(self, parts: StatusCounts) -> None:
        """Show these numbers."""
        self._bar.show_parts(parts)
        for kind in KINDS:
            number = getattr(parts, kind.name)
            button = self._buttons[kind.name]
            button.setText(self._part_text(kind.name).replace("%1", texts.count(number)))
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
        """Return the width of each part; a single file among a million stays visible."""
        numbers = [getattr(self._parts, kind.name) for kind in KINDS]
        total = sum(numbers)
        if not total:
            return [0.0] * len(numbers)
        widths = [max(MIN_WIDTH, whole * number / total) if number else 0.0 for number in numbers]
        return [width * whole / sum(widths) for width in widths]


class SentBar(QProgressBar):
    """A flat bar of the share of the bytes that were sent."""

    PARTS = 1000

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setTextVisible(False)
        self.setRange(0, self.PARTS)
        self.setFixedHeight(self.fontMetrics().height() // 2)
        self.setAccessibleName(self.tr("Sent"))

    def show_amount(self, sent: int, wanted: int) -> None:
        """Show the share of two numbers of bytes."""
        self.setValue(self.PARTS * min(sent, wanted) // wanted if wanted else 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(self.rect())
        outline = QPainterPath()
        outline.addRoundedRect(whole, whole.height() / 2, whole.height() / 2)
        painter.setClipPath(outline)
        empty = quiet()
        empty.setAlphaF(0.25)
        painter.fillRect(whole, empty)
        whole.setWidth(whole.width() * self.value() / self.PARTS)
        painter.fillRect(whole, status_colour("working"))


MAX_SPAN = 120.0  # seconds
MIN_SPAN = 30.0  # seconds
TICK = 10  # seconds
MAX_BANDS = 8  # further channels share the last one
MEGABYTE = 1e6
_MAX_LINES = 5  # at most, across the chart
_MARGIN = 6.0  # pixels between a label and its neighbour


class Stack(NamedTuple):
    """The stacked throughput of the channels: each layer includes those below it."""

    span: float  # seconds that are shown
    ages: list[float]  # seconds since each sample
    layers: list[list[float]]  # megabytes a second

    @property
    def top(self) -> float:
        """The height of the chart, in megabytes a second."""
        highest = max(self.layers[-1]) if self.layers else 0.0
        return max(1.0, highest) * 1.1


def stack_samples(samples: Sequence[ChannelRates]) -> Stack:
    """Return the stack to draw for these samples; the latest sample is now."""
    if not samples:
        return Stack(MIN_SPAN, [], [])
    now = samples[-1].at
    recent = [sample for sample in samples if now - sample.at <= MAX_SPAN]
    numbers = sorted({number for sample in recent for number in sample.rates})[:MAX_BANDS]
    heights = [0.0] * len(recent)
    layers = []
    for number in numbers:
        last = number == numbers[-1] and len(numbers) == MAX_BANDS
        heights = [
            height + _rate(sample, number, onwards=last) / MEGABYTE
            for height, sample in zip(heights, recent, strict=True)
        ]
        layers.append(heights)
    span = min(MAX_SPAN, max(MIN_SPAN, now - samples[0].at))
    return Stack(span, [now - sample.at for sample in recent], layers)


def choose_step(top: float) -> float:
    """Return a round distance between grid lines that keeps them few enough to read."""
    power: float = 10.0 ** floor(log10(top / _MAX_LINES))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= top / _MAX_LINES)


class ThroughputChart(QWidget):
    """A chart of the throughput of each channel."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._stack = stack_samples(())
        self.setAccessibleName(self.tr("Throughput of the last two minutes"))
        self.setMinimumHeight(self.fontMetrics().height() * 8)

    def show_samples(self, samples: Sequence[ChannelRates]) -> None:
        """Draw the recent throughput of the channels."""
        self._stack = stack_samples(samples)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.palette().base())
        if self._stack.ages:
            self._draw(painter, self._find_area())

    def _find_area(self) -> QRectF:
        """Return the area of the bands; labels take the rest."""
        metrics = self.fontMetrics()
        widest = max(metrics.horizontalAdvance(label) for _, label in self._heights())
        side = widest + metrics.height() + 3 * _MARGIN
        below = 2 * metrics.height() + 2 * _MARGIN
        return QRectF(self.rect()).adjusted(side, 2 * _MARGIN, -4 * _MARGIN, -below)

    def _draw(self, painter: QPainter, area: QRectF) -> None:
        self._draw_lines(painter, area)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        layers = self._stack.layers
        for number in reversed(range(len(layers))):  # draw the upper bands behind the lower ones
            painter.setBrush(_colour(number))
            painter.drawPolygon(self._outline(area, layers[number]))
        painter.setPen(quiet())
        painter.drawLine(area.topLeft(), area.bottomLeft())
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        self._draw_names(painter, area)

    def _draw_lines(self, painter: QPainter, area: QRectF) -> None:
        metrics = self.fontMetrics()
        for height, label in self._heights():
            y = area.bottom() - height / self._stack.top * area.height()
            painter.setPen(self.palette().mid().color())
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(quiet())
            x = area.left() - _MARGIN - metrics.horizontalAdvance(label)
            painter.drawText(QPointF(x, y + metrics.ascent() / 2), label)
        for age in range(0, int(self._stack.span) + 1, TICK):
            label = texts.count(age)
            x = area.right() - age / self._stack.span * area.width()
            left = x - metrics.horizontalAdvance(label) / 2
            painter.drawText(QPointF(left, area.bottom() + metrics.ascent() + _MARGIN), label)

    def _draw_names(self, painter: QPainter, area: QRectF) -> None:
        """Draw the names of the axes."""
        centre = Qt.AlignmentFlag.AlignHCenter
        line = self.fontMetrics().height()
        below = QRectF(area.left(), self.height() - line - _MARGIN, area.width(), line)
        painter.drawText(below, centre, self.tr("seconds ago"))
        painter.setTransform(QTransform(0, -1, 1, 0, _MARGIN, area.bottom()))  # a quarter turn
        painter.drawText(QRectF(0, 0, area.height(), line), centre, self.tr("MB/s"))

    def _heights(self) -> Iterator[tuple[float, str]]:
        """Yield the height and the label of each grid line."""
        step = choose_step(self._stack.top)
        for number in range(int(self._stack.top / step) + 1):
            yield number * step, texts.decimal(number * step)

    def _outline(self, area: QRectF, layer: list[float]) -> QPolygonF:
        across, up = area.width() / self._stack.span, area.height() / self._stack.top
        points = [
            QPointF(area.right() - age * across, area.bottom() - height * up)
            for age, height in zip(self._stack.ages, layer, strict=True)
            if age <= self._stack.span
        ]
        corners = (points[-1].x(), points[0].x())
        return QPolygonF([*points, *(QPointF(x, area.bottom()) for x in corners)])


def _rate(sample: ChannelRates, number: int, *, onwards: bool) -> float:
    if onwards:
        return sum(rate for other, rate in sample.rates.items() if other >= number)
    return sample.rates.get(number, 0.0)


def _colour(number: int) -> QColor:
    """Return a shade of the accent colour for a band; neighbours differ."""
    return accent().lighter(100 + 18 * (number % 4))


RECENT = 5.0  # seconds over which rates are measured


class PipelineStrip(QWidget):
    """Five stages side by side, and a text that names the bottleneck."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cards = {
            "scan": StageCard(self.tr("Scan"), "where", self),
            "check": StageCard(self.tr("Check"), "server", self),
            "send": StageCard(self.tr("Send"), "transfers", self),
            "register": StageCard(self.tr("Register"), "dataset", self),
            "verify": StageCard(self.tr("Verify"), "check", self),
        }
        self._limit_label = PlainLabel("", self)
        row = QHBoxLayout()
        for card in self._cards.values():
            row.addWidget(card, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(row)
        layout.addWidget(self._limit_label)

    def show_sums(self, sums: RunProgressed, measured: StagesMeasured | None) -> None:
        """Show the progress of a run and its bottleneck."""
        limit = measured.stage if measured else ""
        for stage in count_stages(sums):
            self._cards[stage.name].show_stage(stage, limit=stage.name == limit)
        # A label that appears and disappears would move the page.
        self._limit_label.setText(limit_sentence(measured) or " ")


class StageCard(QFrame):
    """One stage: its count, its rate, and the files that wait for it."""

    def __init__(self, title: str, icon_name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._is_limit = False
        self._samples: deque[tuple[float, int]] = deque()
        self._icon = IconLabel(1.0, self)
        self._icon.show_icon(icon(icon_name))
        self._title = PlainLabel(title, self)
        self._count = PlainLabel("", self)
        self._count.scale(LARGE, bold=True)
        self._rate = PlainLabel("", self)
        self._queue = PlainLabel("", self)
        self._queue.scale(SMALL)
        top = QHBoxLayout()
        top.addWidget(self._icon)
        top.addWidget(self._title, 1)
        layout = QVBoxLayout(self)
        layout.addLayout(top)
        for label in (self._count, self._rate, self._queue):
            layout.addWidget(label)

    def show_stage(self, stage: StageCount, *, limit: bool) -> None:
        """Show these numbers; a word and a frame mark the bottleneck."""
        self._count.setText(texts.count(stage.done))
        rate = self._measure_rate(stage.done)
        self._rate.setText(self.tr("%1 files/s").replace("%1", texts.count(round(rate))))
        queue = self.tr("%Ln waiting", None, stage.queue) if stage.queue else " "
        if limit:
            queue = (
                self.tr("The limit: %1").replace("%1", queue)
                if stage.queue
                else self.tr("The limit")
            )
        self._queue.setText(queue)
        if limit != self._is_limit:
            self._is_limit = limit
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette = self.palette()
        edge = QPen(accent(), 2.0) if self._is_limit else QPen(palette.mid().color(), 1.0)
        painter.setPen(edge)
        painter.setBrush(palette.base())
        painter.drawRoundedRect(self.rect().adjusted(1, 1, -2, -2), 6, 6)

    def _measure_rate(self, done: int) -> float:
        """Return the recent rate in files per second."""
        now = monotonic()
        if self._samples and done < self._samples[-1][1]:
            self._samples.clear()  # another run
        self._samples.append((now, done))
        while now - self._samples[0][0] > RECENT:
            self._samples.popleft()
        elapsed = now - self._samples[0][0]
        return (done - self._samples[0][1]) / elapsed if elapsed > 0 else 0.0
