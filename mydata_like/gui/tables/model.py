"""A table of any length of which only those rows are in memory that are looked at."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    QTimer,
    Signal,
    Slot,
)

from mydata_like.core.errors import Problem, UploaderError
from mydata_like.core.queries import Row, View
from mydata_like.gui.tables.columns import ROLES, Column
from mydata_like.gui.tables.table_query import Open, QueryResult, TableQuery
from mydata_like.gui.tasks import BackgroundTask, Tasks

Index = QModelIndex | QPersistentModelIndex
NOWHERE = QModelIndex()

PAGE = 100  # rows that are read at once
FIRST = 200  # rows that are shown before the order of all is known
PAGES_KEPT = 60
PAGES_WANTED = 4  # that are asked for at once; who scrolls past a page no longer needs it
RENEW_AFTER = 1.0  # seconds between two looks at the whole ledger, at least,
RENEW_SHARE = 10  # and so many times as long as the last one took
DOTS = "…"


class WindowedModel(QAbstractTableModel):
    """Rows of the ledger; those that have not been read yet show dots.

    The rows keep their places until `renew` has looked at the ledger again. Where the rows of
    the keys in `anchors()` are then is told by `relocated`, before anything is painted.
    """

    ordered = Signal()  # all rows have their places
    told = Signal()  # `problem`, `absent` or the number of rows has changed
    relocating = Signal()  # rows will have other places
    relocated = Signal(object)  # the new rows of the anchors, by their keys

    def __init__(
        self, columns: Sequence[Column], tasks: Tasks, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.columns = tuple(columns)
        self.view = View()
        self.problem: Problem | None = None
        self.absent = False
        self.complete = False  # all rows have their places
        self.anchors: Callable[[], Sequence[object]] = tuple
        self._tasks = tasks
        self._open: Open | None = None
        self._shown: TableQuery | None = None  # whose rows these are
        self._coming: TableQuery | None = None  # whose rows come next
        self._step = BackgroundTask()  # of the latter
        self._begun = 0.0
        self._pages: OrderedDict[int, Sequence[Row]] = OrderedDict()
        self._wanted: OrderedDict[int, None] = OrderedDict()
        self._reading = False
        self._stale = False  # the ledger has changed since
        self._count = 0
        self._renew_timer = QTimer(self, singleShot=True)
        self._read_timer = QTimer(self, singleShot=True, interval=0)
        self._renew_timer.timeout.connect(self._renew)
        self._read_timer.timeout.connect(self._read)

    def show(self, open_listing: Open, view: View) -> None:
        """Show these rows; the first appear at once, the rest when all have their places."""
        self._open, self.view = open_listing, view
        self._give_up()
        self._renew_timer.stop()
        self._stale = False
        self._coming = TableQuery(open_listing, view)
        read = partial(self._coming.read_first, FIRST)
        self._run(read, self._take_first, self._fail_first)

    def renew(self) -> None:
        """Look at the ledger again, as soon as that costs no more than a tenth of the time."""
        self._stale = True
        if self._coming is None and self._open is not None and not self._renew_timer.isActive():
            self._renew()

    def close(self) -> None:
        """Let the ledger go."""
        self._give_up()
        self._renew_timer.stop()
        self._read_timer.stop()
        self._leave(self._shown)
        self._shown = None

    def row(self, number: int) -> Row | None:
        """Return a row, where it has been read."""
        page = self._pages.get(number // PAGE)
        if page is None or number % PAGE >= len(page):
            return None
        return page[number % PAGE]

    def read_rows(self, ranges: Iterable[range], done: Callable[[Any], object]) -> None:
        """Read these rows, however many, and tell them all to `done`."""
        shown, wanted = self._shown, list(ranges)
        if shown is not None:
            self._tasks.run(partial(shown.read_ranges, wanted), done)

    @property
    def busy(self) -> bool:
        """Whether rows are still looked for."""
        return self._coming is not None or self._reading

    def rowCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else self._count

    def columnCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is Qt.Orientation.Vertical or not 0 <= section < len(self.columns):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.columns[section].title
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self.columns[section].alignment
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role not in ROLES or not index.isValid() or index.row() >= self._count:
            return None
        column = self.columns[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return column.alignment
        row = self.row(index.row())
        if row is None:
            self._want(index.row() // PAGE)
            return DOTS if role == Qt.ItemDataRole.DisplayRole and not index.column() else None
        self._pages.move_to_end(index.row() // PAGE)
        return column.tell(row, role)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Show the rows in another order, which the ledger makes."""
        name = self.columns[column].order if 0 <= column < len(self.columns) else ""
        descending = order == Qt.SortOrder.DescendingOrder
        view = self.view.ordered(name, descending=descending) if name else self.view
        if self._open is not None and view != self.view:
            self.show(self._open, view)

    def _want(self, page: int) -> None:
        self._wanted[page] = None
        self._wanted.move_to_end(page)
        while len(self._wanted) > PAGES_WANTED:
            self._wanted.popitem(last=False)
        if not self._read_timer.isActive():
            self._read_timer.start()

    @Slot()
    def _read(self) -> None:
        """Read what is wanted, one reading at a time."""
        if self._reading or self._shown is None or not self.complete or not self._wanted:
            return
        pages = list(reversed(self._wanted))
        self._wanted.clear()
        self._reading = True
        take = partial(self._take_pages, self._shown)
        self._tasks.run(partial(self._shown.read_pages, pages, PAGE), take)

    def _take_pages(self, query: TableQuery, pages: dict[int, Sequence[Row]]) -> None:
        self._reading = False
        if query is self._shown:
            self._keep(pages)
            self._tell_changed(pages)
        self._read()

    def _run(
        self,
        step: Callable[[], QueryResult],
        done: Callable[[QueryResult], None],
        failed: Callable[[UploaderError], None],
    ) -> None:
        self._begun = monotonic()
        self._step = self._tasks.run(step, done, failed)

    @Slot(object)
    def _take_first(self, result: QueryResult) -> None:
        self._show_first(result, None)

    @Slot(object)
    def _fail_first(self, error: UploaderError) -> None:
        self._show_first(QueryResult(), error.problem)

    def _show_first(self, result: QueryResult, problem: Problem | None) -> None:
        assert self._coming is not None
        self.beginResetModel()
        self._leave(self._shown)
        self._shown = self._coming
        self._pages.clear()
        self._wanted.clear()
        rows = result.rows
        self._keep({at // PAGE: rows[at : at + PAGE] for at in range(0, len(rows), PAGE)})
        self._count = len(rows)
        self.problem, self.absent = problem, result.absent
        self.complete = len(rows) < FIRST
        self.endResetModel()
        self.told.emit()
        if self.complete:
            self._arrive()
        else:
            self._run(self._shown.order, self._take_order, self._fail_order)

    @Slot(object)
    def _take_order(self, result: QueryResult) -> None:
        self.problem, self.absent, self.complete = None, result.absent, True
        self._resize(result.length)
        self.told.emit()
        self._arrive()
        self._read()

    @Slot(object)
    def _fail_order(self, error: UploaderError) -> None:
        self.complete = False
        self._fail(error)

    @Slot()
    def _renew(self) -> None:
        if not self._stale or self._coming is not None or self._open is None:
            return
        self._stale = False
        self._coming = TableQuery(self._open, self.view)
        pages = list(reversed(self._pages))[:PAGES_WANTED]
        step = partial(self._coming.renew, list(self.anchors()), pages, PAGE)
        self._run(step, self._take_renewed, self._fail)

    @Slot(object)
    def _take_renewed(self, result: QueryResult) -> None:
        self.problem, self.absent = None, result.absent
        self.relocating.emit()
        self._leave(self._shown)
        self._shown, self.complete = self._coming, True
        self._resize(result.length)
        self._pages.clear()
        self._keep(result.pages)
        self._tell_changed(range(self._count // PAGE + 1))
        self.relocated.emit(result.found)
        self.told.emit()
        self._arrive()

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        """Report the problem; the rows that are shown stay."""
        self.problem, self.absent = error.problem, False
        self.told.emit()
        self._arrive()

    def _arrive(self) -> None:
        """Rest from looking at the whole ledger, the longer the more it cost."""
        self._coming = None
        rest = max(RENEW_AFTER, RENEW_SHARE * (monotonic() - self._begun))
        self._renew_timer.start(round(rest * 1000))
        self.ordered.emit()

    def _resize(self, count: int) -> None:
        """Have so many rows: what is more or less is so at the end."""
        if count > self._count:
            self.beginInsertRows(QModelIndex(), self._count, count - 1)
            self._count = count
            self.endInsertRows()
        elif count < self._count:
            self.beginRemoveRows(QModelIndex(), count, self._count - 1)
            self._count = count
            self.endRemoveRows()

    def _keep(self, pages: Mapping[int, Sequence[Row]]) -> None:
        self._pages.update(pages)
        while len(self._pages) > PAGES_KEPT:
            self._pages.popitem(last=False)

    def _tell_changed(self, pages: Iterable[int]) -> None:
        numbers = list(pages)
        if numbers and self._count:
            top = self.index(min(numbers) * PAGE, 0)
            last = min(max(numbers) * PAGE + PAGE, self._count) - 1
            self.dataChanged.emit(top, self.index(last, len(self.columns) - 1))

    def _give_up(self) -> None:
        """Cancel what is on its way; what is shown stays until there is something newer."""
        self._step.cancel()
        if self._coming is not None:
            self._coming.end()
            self._leave(self._coming)
            self._coming = None

    def _leave(self, query: TableQuery | None) -> None:
        """Close a query in the background."""
        if query is not None:
            self._tasks.run(query.close)
