"""The chart of the throughput: megabytes a second by channel, or files a second."""

from collections.abc import Iterator, Sequence
from math import floor, log10
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QWidget

from mydata_like.gui.run_state import ChannelRates
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import accent, quiet

MAX_SPAN = 120.0  # seconds
MIN_SPAN = 30.0  # seconds
SMOOTHED = 3.0  # seconds over which each point is averaged
TICK = 10  # seconds between marks; also how far back sizes are looked at
MAX_BANDS = 8  # further channels share the last one
MEGABYTE = 1e6
TINY = 50_000  # bytes; files that are smaller on average are counted
_MAX_LINES = 5  # at most, across the chart
_MARGIN = 6.0  # pixels between a label and its neighbour


class Stack(NamedTuple):
    """The stacked throughput of the channels: each layer includes those below it.

    `channels` are the numbers of the layers; there is only one layer, of no channel, if files are
    counted.
    """

    span: float  # seconds that are shown
    ages: list[float]  # seconds since each sample
    layers: list[list[float]]  # megabytes a second, or files a second
    channels: list[int]

    @property
    def top(self) -> float:
        """The height of the chart."""
        highest = max(self.layers[-1]) if self.layers else 0.0
        return max(1.0, highest) * 1.1

    @property
    def latest(self) -> float:
        """The current height."""
        return self.layers[-1][-1] if self.layers else 0.0

    @property
    def counts_files(self) -> bool:
        """Whether the heights are files a second."""
        return bool(self.layers) and not self.channels


def stack_samples(samples: Sequence[ChannelRates]) -> Stack:
    """Return the stack to draw for these samples; the latest sample is now."""
    if not samples:
        return Stack(MIN_SPAN, [], [], [])
    now = samples[-1].at
    recent = [sample for sample in samples if now - sample.at <= MAX_SPAN]
    ages = [now - sample.at for sample in recent]
    span = min(MAX_SPAN, max(MIN_SPAN, now - samples[0].at))
    latest = [sample for sample in recent if now - sample.at <= TICK]
    size = sum(sum(sample.rates.values()) for sample in latest)
    if are_tiny(sum(sample.files for sample in latest), size):
        return Stack(span, ages, [_smooth(ages, [sample.files for sample in recent])], [])
    numbers = sorted({number for sample in recent for number in sample.rates})[:MAX_BANDS]
    heights = [0.0] * len(recent)
    layers = []
    for number in numbers:
        last = number == numbers[-1] and len(numbers) == MAX_BANDS
        heights = [
            height + _rate(sample, number, onwards=last) / MEGABYTE
            for height, sample in zip(heights, recent, strict=True)
        ]
        layers.append(_smooth(ages, heights))
    return Stack(span, ages, layers, numbers)


def are_tiny(files: float, size: float) -> bool:
    """Return whether files of this total size are so small that they are counted."""
    return size < TINY * files


def _smooth(ages: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Return the average of each point and those of the seconds before it."""
    smoothed: list[float] = []
    first, total = 0, 0.0
    for age, height in zip(ages, heights, strict=True):
        total += height
        while ages[first] - age >= SMOOTHED:
            total -= heights[first]
            first += 1
        smoothed.append(max(0.0, total) / (len(smoothed) + 1 - first))
    return smoothed


def choose_step(top: float) -> float:
    """Return a round distance between grid lines that keeps them few enough to read."""
    power: float = 10.0 ** floor(log10(top / _MAX_LINES))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= top / _MAX_LINES)


class ThroughputChart(QWidget):
    """A chart of the recent throughput, with its current value."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._stack = stack_samples(())
        self.setAccessibleName(self.tr("Throughput of the last two minutes"))
        self.setMinimumHeight(self.fontMetrics().height() * 9)

    def show_samples(self, samples: Sequence[ChannelRates]) -> None:
        """Draw the recent throughput of the channels."""
        self._stack = stack_samples(samples)
        self.setAccessibleDescription(self._describe_latest())
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.palette().base())
        if self._stack.ages:
            self._draw(painter, self._find_area())

    def _describe_latest(self) -> str:
        latest = self._stack.latest
        if self._stack.counts_files:
            return self.tr("%1 files/s").replace("%1", texts.count(round(latest)))
        return texts.rate(latest * MEGABYTE)

    def _find_area(self) -> QRectF:
        """Return the area of the bands; labels take the rest."""
        metrics = self.fontMetrics()
        widest = max(metrics.horizontalAdvance(label) for _, label in self._heights())
        line = metrics.height()
        area = QRectF(self.rect())
        return area.adjusted(
            widest + 3 * _MARGIN, line + 4 * _MARGIN, -4 * _MARGIN, -2 * line - 2 * _MARGIN
        )

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
        line = self.fontMetrics().height()
        below = QRectF(area.left(), self.height() - line - _MARGIN, area.width(), line)
        painter.drawText(below, Qt.AlignmentFlag.AlignHCenter, self.tr("seconds ago"))
        self._draw_head(painter, QRectF(2 * _MARGIN, _MARGIN, area.right() - 2 * _MARGIN, line))

    def _draw_head(self, painter: QPainter, head: QRectF) -> None:
        """Draw what is shown, the legend, and the current value."""
        files = self._stack.counts_files
        title = self.tr("Files a second") if files else self.tr("MB/s by channel:")
        painter.setPen(self.palette().windowText().color())
        painter.drawText(head, Qt.AlignmentFlag.AlignLeft, title)
        metrics = self.fontMetrics()
        x, side = head.left() + metrics.horizontalAdvance(title) + 2 * _MARGIN, metrics.ascent()
        for number, channel in enumerate(self._stack.channels):
            painter.fillRect(QRectF(x, head.top() + side / 4, side, side), _colour(number))
            shared = number == MAX_BANDS - 1
            label = texts.count(channel) + (self.tr(" and more") if shared else "")
            x += side + _MARGIN
            painter.drawText(QPointF(x, head.top() + metrics.ascent()), label)
            x += metrics.horizontalAdvance(label) + 2 * _MARGIN
        font = QFont(self.font())
        font.setBold(True)
        painter.setFont(font)
        painter.drawText(head, Qt.AlignmentFlag.AlignRight, self._describe_latest())

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
