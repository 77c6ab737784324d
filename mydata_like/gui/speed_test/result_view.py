"""The result of a speed test: chart, bottleneck and recommendations."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from PySide6.QtCore import QObject, QPointF, QRectF, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QBrush, QFont, QFontMetricsF, QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QHeaderView,
    QLabel,
    QRadioButton,
    QSizePolicy,
    QStyle,
    QStyleOptionFocusRect,
    QTableView,
    QWidget,
)

from mydata_like.gui.speed_test import speedtest_texts
from mydata_like.gui.speed_test.speedtest_process import (
    STAGES,
    TOGETHER,
    WORKLOADS,
    ReportedValue,
    SpeedTestReport,
)
from mydata_like.gui.speed_test.speedtest_texts import NOTHING, files_a_second, stage_title
from mydata_like.gui.table_model import Column, RowsModel, column_width, style_table
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import accent, quiet, status_colour
from mydata_like.gui.theme.layouts import frameless, hbox, vbox
from mydata_like.gui.theme.metrics import SPACE
from mydata_like.gui.theme.widgets import FoldButton, PlainLabel, push_button
from mydata_like.settings.schema import Settings

_MARGIN = 8.0  # pixels between a bar and its label
_ROW = 2.0  # times the height of text
_HATCH = Qt.BrushStyle.BDiagPattern
_LEAST = 0.5  # the scale starts at this share of the lowest rate


class Bar(NamedTuple):
    """One part, or their sum: its rate, and that of an earlier test."""

    title: str
    rate: float
    is_limit: bool = False  # the slowest part
    is_sum: bool = False  # all parts together
    earlier: float | None = None


class Scale(NamedTuple):
    """A logarithmic scale, from one round number to beyond the highest rate."""

    low: float
    high: float

    def place(self, rate: float) -> float:
        """Return the position of a rate, from 0 at the left end to 1 at the right end."""
        span = log10(self.high) - log10(self.low)
        return min(1.0, max(0.0, (log10(rate) - log10(self.low)) / span))

    def decades(self) -> list[float]:
        """Return the powers of ten on the scale."""
        return [10.0**power for power in range(ceil(log10(self.low)), floor(log10(self.high)) + 1)]


def choose_scale(rates: Sequence[float]) -> Scale:
    """Return a scale on which even the lowest rate has a visible bar."""
    low = 10.0 ** floor(log10(min(rates) * _LEAST))
    return Scale(low, max(max(rates) * 1.2, low * 10))


def bars_of(report: SpeedTestReport, workload: str, earlier: SpeedTestReport | None) -> list[Bar]:
    """Return a bar for each part in the order in which bytes pass them, and for all together."""
    speed = report.speeds.get(workload, NOTHING)
    before = (earlier.speeds.get(workload, NOTHING) if earlier else NOTHING).rates
    return [
        Bar(
            stage_title(stage),
            speed.rates[stage],
            is_limit=stage == speed.limit,
            is_sum=stage == TOGETHER,
            earlier=before.get(stage),
        )
        for stage in (*STAGES, TOGETHER)
        if stage in speed.rates
    ]


class BarChart(QWidget):
    """A bar chart of parts; the slowest one has another colour, a hatching and a label.

    The accessible description has the same content, with a line for each bar.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bars: Sequence[Bar] = ()
        self._unit: Callable[[float], str] = texts.rate
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(self.tr("Speed of each part alone, and of all together"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_bars(self, bars: Sequence[Bar], *, tiny: bool) -> None:
        """Draw these bars; `tiny` says that their rates are files a second."""
        self._bars = bars
        self._unit = files_a_second if tiny else texts.rate
        self.setAccessibleDescription("\n".join(self._describe(bar) for bar in bars))
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
        """Return the area of the bars, between titles at the left and figures at the right."""
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
        painter.setFont(self._bold() if bar.is_limit or bar.is_sum else self.font())
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
        if bar.is_sum:
            colour = self.palette().text().color()
        shape = QRectF(place.left(), top, width, thick)
        painter.fillRect(shape, colour)
        if bar.is_limit:
            painter.fillRect(shape, QBrush(self.palette().base().color(), _HATCH))
            painter.setPen(colour)
        mark, metrics = self._mark(bar), QFontMetricsF(painter.font())
        figure = QRectF(0, 0, metrics.horizontalAdvance(mark) + _MARGIN, metrics.height())
        figure.moveCenter(place.center())
        figure.moveLeft(place.left() + width + _MARGIN)
        painter.fillRect(figure, self.palette().window())  # keep grid lines off the figure
        painter.drawText(figure, middle | Qt.AlignmentFlag.AlignLeft, mark)

    def _mark(self, bar: Bar) -> str:
        """Return the label of a bar: its figure, the earlier one, and whether it is the limit."""
        text = self._unit(bar.rate)
        if bar.earlier is not None:
            both = self.tr("%1 (%2)", "a rate, and an earlier one")
            text = both.replace("%1", text).replace("%2", self._unit(bar.earlier))
        return self.tr("%1, the slowest").replace("%1", text) if bar.is_limit else text

    def _describe(self, bar: Bar) -> str:
        """Return a bar as text for screen readers."""
        text = self.tr("%1: %2", "a stage and its rate")
        text = text.replace("%1", bar.title).replace("%2", self._unit(bar.rate))
        if bar.earlier is not None:
            text += self.tr("; earlier %1").replace("%1", self._unit(bar.earlier))
        return text + self.tr("; this is the slowest") if bar.is_limit else text

    def _bold(self) -> QFont:
        font = QFont(self.font())
        font.setBold(True)
        return font


STAGE, WHAT, VALUE, SPREAD = range(4)
LETTERS = {STAGE: 28, VALUE: 16, SPREAD: 28}  # the width of a column in characters


class ResultsModel(RowsModel[ReportedValue]):
    """Figures in the order in which they were measured."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns = (
            Column("stage", self.tr("Stage"), lambda figure: stage_title(figure.stage)),
            Column(
                "what",
                self.tr("What was measured"),
                speedtest_texts.figure_title,
            ),
            Column("value", self.tr("Figure"), speedtest_texts.figure_value, number=True),
            Column("spread", self.tr("Range"), speedtest_texts.figure_spread),
        )


class ResultsTable(QTableView):
    """A table of figures that scrolls to each new one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.figures = ResultsModel(self)
        style_table(self)
        self.setModel(self.figures)
        self.setAccessibleName(self.tr("All figures"))
        header = self.horizontalHeader()
        for column, letters in LETTERS.items():
            header.resizeSection(column, column_width(self, letters))
        header.setSectionResizeMode(WHAT, QHeaderView.ResizeMode.Stretch)
        self.figures.rowsInserted.connect(self.scrollToBottom)


ROWS_SHOWN = 12  # of all figures


class ResultView(QWidget):
    """The result of one of several tests, optionally compared with another one."""

    apply_requested = Signal()
    undo_requested = Signal(object)  # an AppliedAdvice
    report_chosen = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._reports: Sequence[SpeedTestReport] = ()
        self._settings = Settings()
        self._locks: Mapping[str, str] = {}
        # What to do comes first, also for the keyboard.
        self._advice = PlainLabel("", self, wrap=True, selectable=True)
        self._apply = push_button(self, self.tr("&Apply"), self.apply_requested, "check")
        self._undo = push_button(self, self.tr("&Undo"), self._want_undo, "undo")
        self._workloads = QButtonGroup(self)  # the ids are indexes in `WORKLOADS`
        for number, workload in enumerate(WORKLOADS):
            button = QRadioButton(speedtest_texts.workload_title(workload), self)
            button.setChecked(number == 0)
            self._workloads.addButton(button, number)
        self._shown = QComboBox(self)
        shown = QLabel(self.tr("T&est:"), self)
        shown.setBuddy(self._shown)
        self._earlier = QComboBox(self)
        self._earlier.setObjectName("earlier")
        earlier = QLabel(self.tr("Compare &with:"), self)
        earlier.setBuddy(self._earlier)
        self._chart = BarChart(self)
        self._tried = PlainLabel("", self, wrap=True, selectable=True)
        self._unknown = PlainLabel("", self, wrap=True, selectable=True)
        self._copy = push_button(self, self.tr("&Copy as text"), self._copy_text, "copy")
        more = FoldButton(self.tr("Details"), self)
        self._figures = ResultsTable(self)
        self._figures.setMinimumHeight(self.fontMetrics().height() * ROWS_SHOWN)
        details = QWidget(self)
        frameless(vbox(self._tried, self._unknown, self._figures, inside=details))
        details.hide()
        layout = vbox(
            hbox((self._advice, 1), self._apply, self._undo),
            hbox(*self._workloads.buttons(), 1, shown, self._shown, earlier, self._earlier),
            self._chart,
            hbox(self._copy, more, 1),
            details,
            1,
            inside=self,
        )
        frameless(layout).insertSpacing(3, SPACE)

        self._workloads.idClicked.connect(self._show)
        self._shown.currentIndexChanged.connect(self._choose_report)
        self._earlier.currentIndexChanged.connect(self._show)
        more.toggled.connect(details.setVisible)

    @property
    def report(self) -> SpeedTestReport | None:
        """The test that is shown, if any."""
        number = self._shown.currentIndex()
        return self._reports[number] if 0 <= number < len(self._reports) else None

    def show_reports(self, reports: Sequence[SpeedTestReport]) -> None:
        """Offer these tests, the latest first, and show the latest if the list has changed."""
        if reports == self._reports:
            return
        self._reports = reports
        with QSignalBlocker(self._shown):
            self._shown.clear()
            self._shown.addItems([speedtest_texts.report_name(report) for report in reports])
        self._choose_report()

    def show_settings(self, settings: Settings, locks: Mapping[str, str]) -> None:
        """Update which recommendations can be applied or undone with these settings."""
        self._settings, self._locks = settings, locks
        self._show()

    def rest(self, *, resting: bool) -> None:
        """Enable buttons that start a process only while no other one is running."""
        self._apply.setEnabled(resting)
        self._undo.setEnabled(resting)

    @Slot()
    def _choose_report(self) -> None:
        """Show the chosen test, and offer all others for comparison."""
        with QSignalBlocker(self._earlier):
            self._earlier.clear()
            self._earlier.addItem(self.tr("no other"), None)
            for report in self._reports:
                if report is not self.report:
                    self._earlier.addItem(speedtest_texts.report_name(report), report)
        self._earlier.setEnabled(self._earlier.count() > 1)
        self._show()
        self.report_chosen.emit()

    @Slot()
    def _show(self) -> None:
        report = self.report
        if report is None:
            return
        workload = WORKLOADS[self._workloads.checkedId()]
        bars = bars_of(report, workload, self._earlier.currentData())
        self._chart.show_bars(bars, tiny=workload == "tiny")
        advice = speedtest_texts.advice_lines(report, self._locks)
        _show_lines(self._advice, self.tr("Recommendations, faster twice:"), advice)
        tried = speedtest_texts.tried_lines(report)
        if tried and not advice:
            self._advice.setText(self.tr("No other setting that was tried was faster twice."))
            self._advice.show()
        _show_lines(self._tried, self.tr("Tried, not faster twice:"), tried)
        unknown = speedtest_texts.unknown_lines(report)
        _show_lines(self._unknown, self.tr("Not measured:"), unknown)
        # Settings that are locked or have the recommended value already cannot be applied.
        applicable = [
            key
            for key, value in report.changes.items()
            if key not in self._locks and not self._is_set(key, value)
        ]
        self._apply.setVisible(report is self._reports[0] and bool(applicable))
        changed = report.proof.changes.items() if report.proof else ()
        self._undo.setVisible(
            bool(changed) and all(self._is_set(key, value) for key, value in changed)
        )
        self._figures.figures.show(report.figures)

    def _is_set(self, key: str, value: object) -> bool:
        now = self._settings.value(key)
        return (list(now) if isinstance(now, tuple) else now) == value

    @Slot()
    def _want_undo(self) -> None:
        if self.report and self.report.proof:
            self.undo_requested.emit(self.report.proof)

    @Slot()
    def _copy_text(self) -> None:
        if self.report:
            QGuiApplication.clipboard().setText(speedtest_texts.report_text(self.report))


def _show_lines(label: PlainLabel, title: str, lines: Sequence[str]) -> None:
    """Show lines below a title; hide the label if there are none."""
    label.setText("\n".join((title, *(f"• {line}" for line in lines))) if lines else "")
    label.setVisible(bool(lines))
