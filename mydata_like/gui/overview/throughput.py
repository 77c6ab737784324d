"""The throughput of the last minutes, a band for each channel."""

from collections.abc import Iterator, Sequence
from math import floor, log10
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPolygonF, QTransform
from PySide6.QtWidgets import QWidget

from mydata_like.gui.live_run import ChannelRates
from mydata_like.gui.look import words
from mydata_like.gui.look.palette import accent, quiet

SHOWN = 120.0  # seconds
SHORTEST = 30.0  # seconds
TICK = 10  # seconds
MOST_BANDS = 8  # further channels share the last one
MEGABYTE = 1e6
_LINES = 5  # at most, across the chart
_MARGIN = 6.0  # pixels between a label and what is beside it


class Stack(NamedTuple):
    """What the channels carried: each layer is the sum of its channel and those below."""

    span: float  # seconds that are shown
    ages: list[float]  # seconds since each sample
    layers: list[list[float]]  # megabytes a second

    @property
    def top(self) -> float:
        """The height of the chart, in megabytes a second."""
        highest = max(self.layers[-1]) if self.layers else 0.0
        return max(1.0, highest) * 1.1


def stack_samples(samples: Sequence[ChannelRates]) -> Stack:
    """Return what is to be drawn of these samples, the latest of which is now."""
    if not samples:
        return Stack(SHORTEST, [], [])
    now = samples[-1].at
    recent = [sample for sample in samples if now - sample.at <= SHOWN]
    numbers = sorted({number for sample in recent for number in sample.rates})[:MOST_BANDS]
    heights = [0.0] * len(recent)
    layers = []
    for number in numbers:
        last = number == numbers[-1] and len(numbers) == MOST_BANDS
        heights = [
            height + _rate(sample, number, onwards=last) / MEGABYTE
            for height, sample in zip(heights, recent, strict=True)
        ]
        layers.append(heights)
    span = min(SHOWN, max(SHORTEST, now - samples[0].at))
    return Stack(span, [now - sample.at for sample in recent], layers)


def choose_step(top: float) -> float:
    """Return the distance of lines that are round numbers, and few enough to be read."""
    power: float = 10.0 ** floor(log10(top / _LINES))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= top / _LINES)


class ThroughputChart(QWidget):
    """Draws samples."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._stack = stack_samples(())
        self.setAccessibleName(self.tr("Throughput of the last two minutes"))
        self.setMinimumHeight(self.fontMetrics().height() * 8)

    def show_samples(self, samples: Sequence[ChannelRates]) -> None:
        """Draw what the channels carried of late."""
        self._stack = stack_samples(samples)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.palette().base())
        if self._stack.ages:
            self._draw(painter, self._find_area())

    def _find_area(self) -> QRectF:
        """Return where the bands go: the rest are labels."""
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
        for number in reversed(range(len(layers))):  # the upper ones lie behind the lower ones
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
        for ago in range(0, int(self._stack.span) + 1, TICK):
            label = words.count(ago)
            x = area.right() - ago / self._stack.span * area.width()
            left = x - metrics.horizontalAdvance(label) / 2
            painter.drawText(QPointF(left, area.bottom() + metrics.ascent() + _MARGIN), label)

    def _draw_names(self, painter: QPainter, area: QRectF) -> None:
        """Say what the axes are."""
        centre = Qt.AlignmentFlag.AlignHCenter
        line = self.fontMetrics().height()
        below = QRectF(area.left(), self.height() - line - _MARGIN, area.width(), line)
        painter.drawText(below, centre, self.tr("seconds ago"))
        painter.setTransform(QTransform(0, -1, 1, 0, _MARGIN, area.bottom()))  # a quarter turn
        painter.drawText(QRectF(0, 0, area.height(), line), centre, self.tr("MB/s"))

    def _heights(self) -> Iterator[tuple[float, str]]:
        """Yield where lines go across the chart, and what they are called."""
        step = choose_step(self._stack.top)
        for number in range(int(self._stack.top / step) + 1):
            yield number * step, words.decimal(number * step)

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
    """Return a shade of the accent for a band; neighbours differ."""
    return accent().lighter(100 + 18 * (number % 4))
