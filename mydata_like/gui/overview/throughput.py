"""The throughput of the last minutes, a band for each channel."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QEvent
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QVBoxLayout, QWidget

from mydata_like.gui.background import Background
from mydata_like.gui.live import Sample
from mydata_like.gui.look import words
from mydata_like.gui.look.palette import accent, quiet

SHOWN = 120.0  # seconds
SHORTEST = 30.0  # seconds
TICK = 10  # seconds
MOST_BANDS = 8  # further channels share the last one
MEGABYTE = 1e6


class ThroughputChart(QWidget):
    """Draws samples; the drawing library is loaded beside the GUI thread when first shown."""

    def __init__(self, background: Background, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._background = background
        self._library: Any = None
        self._plot: Any = None
        self._bands: list[Any] = []
        self._asked = False
        self.setAccessibleName(self.tr("Throughput of the last two minutes"))
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    def show_samples(self, samples: Sequence[Sample]) -> None:
        """Draw what the channels carried of late."""
        if not self._asked:
            self._asked = True
            self._background.run(_load, self._begin)
        if self._plot is not None and samples:
            self._draw(samples)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._plot is not None:
            self._dress()

    def _begin(self, library: Any) -> None:
        self._library = library
        self._plot = library.PlotWidget(self)
        self._plot.setMouseEnabled(x=False, y=False)
        self._plot.setMenuEnabled(False)
        self._plot.hideButtons()
        self._plot.setAccessibleName(self.accessibleName())
        self._plot.getPlotItem().layout.setContentsMargins(4, 12, 12, 4)
        self._plot.setLabel("left", self.tr("MB/s"))
        self._plot.setLabel("bottom", self.tr("seconds ago"))
        ticks = [(-float(ago), words.count(ago)) for ago in range(0, int(SHOWN) + 1, TICK)]
        self._plot.getAxis("bottom").setTicks([ticks])
        self._layout.addWidget(self._plot)
        self._dress()

    def _dress(self) -> None:
        """Take the colours of the moment."""
        palette = self.palette()
        self._plot.setBackground(palette.base().color())
        for side in ("left", "bottom"):
            axis = self._plot.getAxis(side)
            axis.setPen(quiet())
            axis.setTextPen(quiet())
        for number, band in enumerate(self._bands):
            band.setBrush(_colour(number))

    def _draw(self, samples: Sequence[Sample]) -> None:
        now = samples[-1].at
        span = min(SHOWN, max(SHORTEST, now - samples[0].at))
        recent = [sample for sample in samples if now - sample.at <= SHOWN]
        numbers = sorted({number for sample in recent for number in sample.rates})[:MOST_BANDS]
        times = [sample.at - now for sample in recent]
        heights = [0.0] * len(recent)
        layers = []
        for number in numbers:
            last = number == numbers[-1] and len(numbers) == MOST_BANDS
            heights = [
                height + _rate(sample, number, onwards=last) / MEGABYTE
                for height, sample in zip(heights, recent, strict=True)
            ]
            layers.append(heights)
        self._ensure(len(layers))
        for band, layer in zip(self._bands, reversed(layers), strict=False):
            band.setData(times, layer)
        for band in self._bands[len(layers) :]:
            band.setData([], [])
        self._plot.setXRange(-span, 0, padding=0)
        self._plot.setYRange(0, max([1.0, *heights]) * 1.1, padding=0)

    def _ensure(self, number: int) -> None:
        """Have so many bands; the upper ones lie behind the lower ones."""
        while len(self._bands) < number:
            colour = _colour(len(self._bands))
            band = self._plot.plot([], [], fillLevel=0, brush=colour, pen=None)
            band.setZValue(len(self._bands))
            self._bands.append(band)


def _rate(sample: Sample, number: int, *, onwards: bool) -> float:
    if onwards:
        return sum(rate for other, rate in sample.rates.items() if other >= number)
    return sample.rates.get(number, 0.0)


def _colour(number: int) -> QColor:
    """Return a shade of the accent for a band; neighbours differ."""
    return accent().lighter(100 + 18 * (number % 4))


def _load() -> Any:
    import pyqtgraph

    return pyqtgraph
