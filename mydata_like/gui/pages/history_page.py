"""The page History: all runs, and the files of one."""

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from datetime import date, timedelta
from functools import partial
from pathlib import Path

from PySide6.QtCore import (
    QCoreApplication,
    QDate,
    QEvent,
    QLocale,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Slot,
)
from PySide6.QtGui import QFont, QHelpEvent, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import (
    QSizePolicy,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolTip,
    QWidget,
)

from mydata_like.core.errors import UploaderError
from mydata_like.core.queries import RunRow, Table, View
from mydata_like.gui.base import AppContext, Page, PageTitle, page_layout
from mydata_like.gui.ledger_query import LedgerQuery, open_listing
from mydata_like.gui.table_model import Index
from mydata_like.gui.tables import table_panel
from mydata_like.gui.tables.columns import file_columns, run_columns, sent_bytes
from mydata_like.gui.tables.table_panel import FilesPanel, TablePanel, action_button, export_rows
from mydata_like.gui.tables.table_view import TableView, WindowedModel
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import status_colour
from mydata_like.gui.theme.layouts import vbox
from mydata_like.gui.theme.metrics import SPACE
from mydata_like.gui.theme.style import CELL_MARGIN
from mydata_like.gui.theme.widgets import PlainLabel, action, choose_target
from mydata_like.gui.window_state import KeptSplitter
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Settings

translate = QCoreApplication.translate

MESSAGE_DURATION = 15_000  # milliseconds
DAYS = 30  # in the chart
MAX_RUNS = 10_000  # the latest, of which the chart is made
NEAR = 50  # rows, more than are in view


def sum_days(settings: Settings, config: Path | None) -> Mapping[date, int]:
    """Return the bytes that the runs of each local day sent; raises `UploaderError`."""
    listing = open_listing(settings, config, View(table=Table.RUNS))
    sent: Counter[date] = Counter()
    if listing is not None:
        with closing(listing):
            for row in listing.first(MAX_RUNS):
                if isinstance(row, RunRow) and row.started:
                    sent[row.started.astimezone().date()] += round(sent_bytes(row))
    return sent


class DayBars(QWidget):
    """A bar for each of the last days, today's at the right; its height is what was sent."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._days: list[tuple[date, int]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(0, self.fontMetrics().height() * 6)

    @Slot(object)
    def show_days(self, sent: Mapping[date, int]) -> None:
        """Show these bytes; hidden if there are none."""
        today = SystemClock().now().astimezone().date()
        days = (today - timedelta(days=before) for before in reversed(range(DAYS)))
        self._days = [(day, sent.get(day, 0)) for day in days]
        total = sum(size for _, size in self._days)
        text = self.tr("Sent in the last %1 days: %2")
        self.setAccessibleName(texts.filled(text, texts.count(DAYS), texts.size(total)))
        self.setVisible(bool(total))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, line = QPainter(self), self.fontMetrics().height()
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignTop, self.accessibleName())
        most = max((size for _, size in self._days), default=0) or 1
        room = self.height() - line * 1.5
        for number, (_, size) in enumerate(self._days):
            height, left = room * size / most, number * self._width()
            place = QRectF(left, self.height() - height, self._width() * 0.8, height)
            painter.fillRect(place, status_colour("working"))
        painter.fillRect(0, self.height() - 1, self.width(), 1, self.palette().mid())

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and self._days:
            day, size = self._days[min(DAYS - 1, int(event.x() / self._width()))]
            shown = QLocale().toString(QDate(day.year, day.month, day.day))
            QToolTip.showText(event.globalPos(), f"{shown}: {texts.size(size)}", self)
            return True
        return super().event(event)

    def _width(self) -> float:
        return max(1.0, self.width() / DAYS)


class DayDelegate(QStyledItemDelegate):
    """Paints a heading above the first run of each day while the runs are ordered by time.

    Below a heading, the time of day is enough. The first visible row has its date if the heading
    is not visible.
    """

    def __init__(self, table: TableView, model: WindowedModel) -> None:
        super().__init__(table)
        self._table, self._model = table, model
        table.setItemDelegate(self)
        table.verticalScrollBar().valueChanged.connect(table.viewport().update)
        table.verticalScrollBar().valueChanged.connect(self._fit_rows)
        model.modelReset.connect(self._fit_rows)
        model.dataChanged.connect(self._fit_rows)

    def heading(self, number: int) -> str:
        """Return the day that begins with a row; empty if none does."""
        day, before = self._day(number), self._day(number - 1) if number else None
        if day is None or day == before or self._model.view.order != "at":
            return ""
        return texts.day(day, SystemClock().now().astimezone().date())

    def _day(self, number: int) -> date | None:
        row = self._model.row(number)
        return row.started.astimezone().date() if isinstance(row, RunRow) and row.started else None

    @Slot()
    def _fit_rows(self) -> None:
        """Make room for the headings in view and near it; any number of others stay as they are."""
        plain, top = self._plain_height(), self._table.verticalScrollBar().value()
        for number in range(max(0, top - NEAR), min(top + 2 * NEAR, self._model.rowCount())):
            height = plain * 9 // 4 if self.heading(number) else plain
            if height != self._table.rowHeight(number):
                self._table.setRowHeight(number, height)

    def _plain_height(self) -> int:
        return self._table.verticalHeader().defaultSectionSize()

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        super().initStyleOption(option, index)
        if index.column() or self._model.view.order != "at":
            return
        row, number = self._model.row(index.row()), index.row()
        headed = self.heading(number) or number != self._table.rowAt(0)
        if headed and isinstance(row, RunRow) and row.started:
            option.text = texts.clock(row.started)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        run = QStyleOptionViewItem(option)
        if heading := self.heading(index.row()):
            run.rect.setTop(option.rect.bottom() + 1 - self._plain_height())
            area = option.rect.adjusted(0, 0, 0, -run.rect.height())
            font = QFont(option.font)
            font.setBold(True)
            painter.save()
            painter.setClipRect(area)  # each cell paints its part of the heading
            painter.fillRect(area, option.palette.base())
            painter.setFont(font)
            painter.setPen(option.palette.color(QPalette.ColorRole.Text))
            area.setLeft(CELL_MARGIN - self._table.horizontalHeader().offset())
            painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, heading)
            painter.restore()
        super().paint(painter, run, index)


class HistoryPage(Page):
    """A list of runs, the latest first, and below it the files that the selected run changed."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._controller = context.controller
        self._bars = DayBars(self)
        self._bars.hide()
        self._days = LedgerQuery(context, self, sum_days)
        runs = WindowedModel(run_columns(self._is_under_way), context.tasks, self)
        files = WindowedModel(file_columns(), context.tasks, self)
        self._runs = TablePanel(context, "history", runs, self)
        self._file_area = QWidget(self)
        self._files = FilesPanel(context, "history-files", files, self._file_area)
        self._title, self._message = PlainLabel("", self._file_area), PlainLabel("", self)
        self._export = action(self, "export", self.tr("Export…"), self._choose_file)
        self._timer = QTimer(self, singleShot=True, interval=MESSAGE_DURATION)
        DayDelegate(self._runs.table, self._runs.model)
        self._runs.table.setAccessibleName(self.tr("Runs"))
        self._runs.empty_text = self.tr("There are no runs yet.")
        self._runs.offer_start()
        self._runs.field.hide()  # runs have no names
        self._runs.show_view(View(table=Table.RUNS))
        self._files.table.setAccessibleName(self.tr("Files of the run"))
        self._files.empty_text = self.tr("This run did not change the status of any file.")

        export = action_button(self._export, self)
        self._runs.add_top_widgets(self._message, export)
        vbox(self._title, (self._files, 1), inside=self._file_area, margins=(0, SPACE, 0, 0))
        self._file_area.setVisible(False)
        halves = KeptSplitter("history", context.memory, (self._runs, self._file_area), self)
        title = PageTitle(translate("pages", "History"), self)
        page_layout(self, title, self._bars, (halves, 1))

        self._days.answered.connect(self._bars.show_days)
        self._runs.selected.connect(self._open_run)
        self._timer.timeout.connect(self._message.clear)

    def export(self, path: Path) -> None:
        """Write all runs to a file, in the displayed order."""
        write = partial(
            export_rows,
            path,
            self.tr("Runs of mydata-like"),
            run_columns(self._is_under_way),
            table_panel.opener(self._controller),
            self._runs.model.view,
        )
        self._context.tasks.run(write, self._on_written, self._on_failed, writes=True)

    def _is_under_way(self, run: str) -> bool:
        return self._controller.state.is_under_way(run)

    @Slot()
    def _open_run(self) -> None:
        """Show the files that changed during the selected run."""
        runs = [row for row in self._runs.table.rows() if isinstance(row, RunRow)]
        run = runs[0] if len(runs) == 1 else None
        if run is not None and run.started is not None:
            until = int(run.finished.timestamp()) + 1 if run.finished else None
            title = self.tr("Files of the run of %1")
            self._title.setText(title.replace("%1", texts.moment(run.started)))
            self._files.switch_view(View(since=int(run.started.timestamp()), until=until))
        self._file_area.setVisible(run is not None)

    @Slot()
    def _choose_file(self) -> None:
        kinds = [self.tr("Table (*.csv)"), self.tr("Web page (*.html)"), self.tr("JSON (*.json)")]
        choose_target(self, self.tr("Export runs"), self._export_to, name="runs.csv", kinds=kinds)

    @Slot(str)
    def _export_to(self, name: str) -> None:
        self.export(Path(name))

    @Slot(object)
    def _on_written(self, path: Path) -> None:
        self._show_message(self.tr("Written to %1").replace("%1", texts.plain(str(path))))

    @Slot(object)
    def _on_failed(self, error: UploaderError) -> None:
        self._show_message(texts.problem_text(error))

    def _show_message(self, text: str) -> None:
        self._message.setText(text)
        self._timer.start()
