"""How fast each stage would be alone, as bars on a logarithmic scale."""

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QFont, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QStyle, QStyleOptionFocusRect, QWidget

from mydata_like.gui.look import words
from mydata_like.gui.look.palette import accent, quiet, status_colour
from mydata_like.gui.speed_test.report import STAGES, Report
from mydata_like.gui.speed_test.terms import files_a_second, rate_of, stage_title

_MARGIN = 8.0  # pixels between a bar and what is beside it
_ROW = 2.0  # times the height of text
_HATCH = Qt.BrushStyle.BDiagPattern
_LEAST = 0.5  # of the lowest rate is where the scale begins


class Bar(NamedTuple):
    """One stage: its rate by the scale, and as a person reads it; `earlier` of another test."""

    title: str
    rate: float
    text: str
    is_limit: bool = False
    earlier: float | None = None
    earlier_text: str = ""


class Scale(NamedTuple):
    """A logarithmic scale, from one round number to beyond the highest rate."""

    low: float
    high: float

    def place(self, rate: float) -> float:
        """Return where a rate is, from 0 at the left end to 1 at the right end."""
        span = log10(self.high) - log10(self.low)
        return min(1.0, max(0.0, (log10(rate) - log10(self.low)) / span))

    def decades(self) -> list[float]:
        """Return the powers of ten on the scale."""
        return [10.0**power for power in range(ceil(log10(self.low)), floor(log10(self.high)) + 1)]


def choose_scale(rates: Sequence[float]) -> Scale:
    """Return a scale on which even the lowest rate has a bar that can be seen."""
    low = 10.0 ** floor(log10(min(rates) * _LEAST))
    return Scale(low, max(max(rates) * 1.2, low * 10))


def bars_of(report: Report, workload: str, earlier: Report | None) -> list[Bar]:
    """Return the stages that count for such files, in the order in which bytes pass them."""
    return [
        _bar(stage, workload, report, earlier)
        for stage in STAGES
        if workload in report.forecasts and stage in report.forecasts[workload].rates
    ]


def _bar(stage: str, workload: str, report: Report, earlier: Report | None) -> Bar:
    forecast = report.forecasts[workload]
    rate = forecast.rates[stage]
    bar = Bar(
        stage_title(stage),
        _count(workload, rate, forecast.files / forecast.rate),
        rate_of(workload, forecast, rate),
        stage == forecast.limit,
    )
    before = earlier.forecasts.get(workload) if earlier else None
    if before is None or stage not in before.rates:
        return bar
    was = before.rates[stage]
    height = _count(workload, was, before.files / before.rate)
    return bar._replace(earlier=height, earlier_text=rate_of(workload, before, was))


def _count(workload: str, rate: float, files_of_a_byte: float) -> float:
    """Return a rate in bytes a second, or in files where these are tiny."""
    return rate * files_of_a_byte if workload == "tiny" else rate


class BarChart(QWidget):
    """Draws bars; the limit has another colour, a hatching and a word.

    What it shows is its accessible description, too, a line for each bar.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bars: Sequence[Bar] = ()
        self._unit: Callable[[float], str] = words.rate
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(self.tr("How fast each stage would be alone"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_bars(self, bars: Sequence[Bar], *, tiny: bool) -> None:
        """Draw these; rates of tiny ones are files a second."""
        self._bars = bars
        self._unit = files_a_second if tiny else words.rate
        self.setAccessibleDescription("\n".join(self._tell(bar) for bar in bars))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        line = self.fontMetrics().height()
        return QSize(line * 30, round(len(self._bars) * line * _ROW + line * 1.8))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._bars:
            self._draw(painter)
        if self.hasFocus():
            option = QStyleOptionFocusRect()
            option.initFrom(self)
            self.style().drawPrimitive(
                QStyle.PrimitiveElement.PE_FrameFocusRect, option, painter, self
            )

    def _draw(self, painter: QPainter) -> None:
        rates = [rate for bar in self._bars for rate in (bar.rate, bar.earlier) if rate]
        scale = choose_scale(rates)
        area = self._find_area()
        self._draw_lines(painter, area, scale)
        row = self.fontMetrics().height() * _ROW
        for number, bar in enumerate(self._bars):
            place = QRectF(area.left(), area.top() + number * row, area.width(), row)
            self._draw_bar(painter, place, bar, scale)
        painter.setPen(quiet())
        painter.drawLine(area.topLeft(), area.bottomLeft())

    def _find_area(self) -> QRectF:
        """Return where the bars go: titles are at the left, figures at the right."""
        bold = QFontMetricsF(self._bold())
        titles = max(bold.horizontalAdvance(bar.title) for bar in self._bars)
        figures = max(bold.horizontalAdvance(self._mark(bar)) for bar in self._bars)
        line = self.fontMetrics().height()
        return QRectF(self.rect()).adjusted(
            titles + 2 * _MARGIN, 0, -figures - 2 * _MARGIN, -line * 1.8
        )

    def _draw_lines(self, painter: QPainter, area: QRectF, scale: Scale) -> None:
        metrics = QFontMetricsF(self.font())
        for rate in scale.decades():
            x = area.left() + scale.place(rate) * area.width()
            painter.setPen(self.palette().mid().color())
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            painter.setPen(quiet())
            label = self._unit(rate)
            left = x - metrics.horizontalAdvance(label) / 2
            painter.drawText(QPointF(left, area.bottom() + metrics.ascent() + _MARGIN / 2), label)

    def _draw_bar(self, painter: QPainter, place: QRectF, bar: Bar, scale: Scale) -> None:
        painter.setFont(self._bold() if bar.is_limit else self.font())
        painter.setPen(self.palette().text().color())
        middle = Qt.AlignmentFlag.AlignVCenter
        titles = QRectF(0, place.top(), place.left() - _MARGIN, place.height())
        painter.drawText(titles, middle | Qt.AlignmentFlag.AlignRight, bar.title)
        thick = place.height() * 0.45
        top = place.center().y() - thick / 2
        if bar.earlier:
            top -= thick * 0.2
            width = scale.place(bar.earlier) * place.width()
            painter.fillRect(QRectF(place.left(), top + thick, width, thick * 0.4), quiet())
        width = scale.place(bar.rate) * place.width()
        colour = status_colour("waiting") if bar.is_limit else accent()
        shape = QRectF(place.left(), top, width, thick)
        painter.fillRect(shape, colour)
        if bar.is_limit:
            painter.fillRect(shape, QBrush(self.palette().base().color(), _HATCH))
            painter.setPen(colour)
        mark, metrics = self._mark(bar), QFontMetricsF(painter.font())
        figure = QRectF(0, 0, metrics.horizontalAdvance(mark) + _MARGIN, metrics.height())
        figure.moveCenter(place.center())
        figure.moveLeft(place.left() + width + _MARGIN)
        painter.fillRect(figure, self.palette().window())  # no line goes through a figure
        painter.drawText(figure, middle | Qt.AlignmentFlag.AlignLeft, mark)

    def _mark(self, bar: Bar) -> str:
        """Return what stands beside a bar: its figure, that of the earlier test, the limit."""
        text = bar.text
        if bar.earlier_text:
            text = self.tr("%1 (%2)", "a rate, and an earlier one")
            text = text.replace("%1", bar.text).replace("%2", bar.earlier_text)
        return self.tr("%1, the limit").replace("%1", text) if bar.is_limit else text

    def _tell(self, bar: Bar) -> str:
        """Return a bar in words, for those who do not see it."""
        text = self.tr("%1: %2", "a stage and its rate")
        text = text.replace("%1", bar.title).replace("%2", bar.text)
        if bar.earlier_text:
            text += self.tr("; earlier %1").replace("%1", bar.earlier_text)
        return text + self.tr("; this is the limit") if bar.is_limit else text

    def _bold(self) -> QFont:
        font = QFont(self.font())
        font.setBold(True)
        return font
