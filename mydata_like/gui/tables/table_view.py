"""A table of any length that keeps only the visible rows in memory."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from threading import Lock
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QObject,
    QPoint,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtGui import QAction, QFont, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QMenu, QTableView, QWidget

from mydata_like.core.errors import Cancelled, Problem, UploaderError
from mydata_like.core.queries import Row, View
from mydata_like.gui.table_model import (
    NO_PARENT,
    ROLES,
    Column,
    ColumnsModel,
    Index,
    column_width,
    open_menu,
    style_table,
)
from mydata_like.gui.tasks import BackgroundTask, Tasks
from mydata_like.gui.theme.widgets import action
from mydata_like.gui.window_state import KeptColumns, WindowState

if TYPE_CHECKING:
    from mydata_like.app.ledger_status import RowQuery


Open = Callable[[View], "RowQuery | None"]  # such as `ledger_query.open_listing`


class SortedRows(NamedTuple):
    """What is known of all rows once they are sorted; without a ledger there are none."""

    length: int = 0
    found: Mapping[object, int] = MappingProxyType({})  # the row numbers of the anchors
    pages: Mapping[int, Sequence[Row]] = MappingProxyType({})


class TableQuery:
    """Sorts and reads the rows of a view; all methods except `interrupt` are for background tasks.

    They run one at a time, and raise `UploaderError`, or `Cancelled` if they are interrupted.
    """

    def __init__(self, open_listing: Open, view: View) -> None:
        self._open_listing = open_listing
        self._view = view
        self._listing: RowQuery | None = None
        self._lock = Lock()
        self._interrupted = False

    def read_first(self, count: int) -> Sequence[Row]:
        """Return the first rows, before all are sorted."""
        with self._opened() as listing:
            return listing.first(count) if listing else ()

    def sort(self, anchors: Sequence[object], pages: Sequence[int], size: int) -> SortedRows:
        """Sort all rows, find the anchors, and read these pages of this many rows."""
        with self._opened() as listing:
            if listing is None:
                return SortedRows()
            length, found = listing.build(), listing.find(anchors)
            rows = {page: listing.rows(page * size, size) for page in pages}
            return SortedRows(length, found, rows)

    def read_ranges(self, ranges: Iterable[range]) -> list[Sequence[Row]]:
        """Return the current rows of each range; none once the query has ended, or on an error."""
        found = []
        for rows in ranges:
            try:
                with self._lock:
                    listing = self._listing
                    found.append(listing.rows(rows.start, len(rows)) if listing else ())
            except (Cancelled, UploaderError):
                found.append(())
        return found

    def interrupt(self) -> None:
        """Interrupt the active step; callable from any thread."""
        self._interrupted = True
        if self._listing is not None:
            self._listing.interrupt()

    def close(self) -> None:
        """Close the ledger."""
        with self._lock:
            self._close()

    @contextmanager
    def _opened(self) -> Iterator["RowQuery | None"]:
        """Open the ledger if there is one, and close it on any error."""
        with self._lock:
            try:
                if self._listing is None and not self._interrupted:
                    self._listing = self._open_listing(self._view)
                yield None if self._interrupted else self._listing
            except (Cancelled, UploaderError):
                self._close()
                raise

    def _close(self) -> None:
        if self._listing is not None:
            self._listing.close()
            self._listing = None


PAGE = 100  # rows that are read at once
FIRST_ROWS = 200  # rows that are shown before all rows are sorted
MAX_CACHED_PAGES = 60
MAX_REQUESTED_PAGES = 4  # older requests are for pages that the user has scrolled past
REFRESH_AFTER = 1.0  # minimum seconds between two reads of the whole ledger,
REFRESH_FACTOR = 10  # and this many times the duration of the last read
ELLIPSIS = "…"


class Heading(NamedTuple):
    """A line between rows: the title of those below it, or a link."""

    text: str
    link: bool = False

    def data(self, column: int, role: int) -> Any:
        """Return the value of a cell for this role."""
        palette, font = QGuiApplication.palette(), QFont()
        font.setBold(not self.link)
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return "" if column else self.text
            case Qt.ItemDataRole.FontRole:
                return font
            case Qt.ItemDataRole.ForegroundRole:
                return palette.link() if self.link else palette.text()
            case Qt.ItemDataRole.BackgroundRole:
                return palette.base()
            case _:
                return None


class WindowedModel(ColumnsModel):
    """A model of rows of the ledger; a row that has not been read yet shows an ellipsis.

    Rows keep their places until `refresh` has read the ledger again. `relocated` then reports the
    new rows of the keys in `anchors()`, before anything is painted. A subclass may have rows of its
    own above them.
    """

    ordered = Signal()  # all rows are sorted
    status_changed = Signal()  # `problem` or the number of rows has changed
    relocating = Signal()  # rows are about to move
    relocated = Signal(object)  # the new rows of the anchors, by their keys

    def __init__(
        self, columns: Sequence[Column], tasks: Tasks, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.columns = tuple(columns)
        self.view = View()
        self.above: list[Any] = []  # rows that are not of the ledger
        self.problem: Problem | None = None
        self.complete = False  # all rows are sorted
        self.anchors: Callable[[], Sequence[object]] = tuple
        self._tasks = tasks
        self._open: Open | None = None
        self._query: TableQuery | None = None  # the query of the displayed rows
        self._next_query: TableQuery | None = None  # the query of the next rows
        self._step = BackgroundTask()  # the active step of `_next_query`
        self._started_at = 0.0
        self._pages: OrderedDict[int, Sequence[Row]] = OrderedDict()
        self._requested: OrderedDict[int, None] = OrderedDict()
        self._reading = False
        self._stale = False  # the ledger has changed since the last read
        self._count = 0
        self._refresh_timer = QTimer(self, singleShot=True)
        self._read_timer = QTimer(self, singleShot=True, interval=0)
        self._refresh_timer.timeout.connect(self._refresh)
        self._read_timer.timeout.connect(self._read)

    def show(self, open_listing: Open, view: View) -> None:
        """Show the rows of a view: the first ones immediately, the rest when all are sorted."""
        self._open, self.view = open_listing, view
        self._cancel_pending()
        self._refresh_timer.stop()
        self._stale = False
        self._next_query = TableQuery(open_listing, view)
        self._started_at = monotonic()
        read = partial(self._next_query.read_first, FIRST_ROWS)
        self._step = self._tasks.run(read, self._take_first, self._fail_first)

    def refresh(self) -> None:
        """Read the ledger again, but spend at most a tenth of the time on it."""
        self._stale = True
        if not self._refresh_timer.isActive():
            self._refresh()

    def rest(self) -> None:
        """Leave changes of the ledger to the next `refresh`, because the rows are not visible."""
        self._stale = False

    def close(self) -> None:
        """Close the ledger."""
        self._cancel_pending()
        self._refresh_timer.stop()
        self._read_timer.stop()
        self._close_in_background(self._query)
        self._query = None

    @property
    def top(self) -> int:
        """The number of the first row of the ledger."""
        return len(self.above)

    def row(self, number: int) -> Any:
        """Return a row if it has been read."""
        if number < self.top:
            return self.above[number]
        number -= self.top
        page = self._pages.get(number // PAGE)
        if page is None or number % PAGE >= len(page):
            return None
        return page[number % PAGE]

    def read_rows(self, ranges: Iterable[range], done: Callable[[Any], object]) -> None:
        """Read any number of rows in the background, and pass them to `done`."""
        if self._query is not None:
            numbers, top = list(ranges), self.top
            above = [row for rows in numbers for row in self.above[rows.start : rows.stop]]
            below = [range(max(0, it.start - top), max(0, it.stop - top)) for it in numbers]
            read = partial(self._query.read_ranges, below)
            self._tasks.run(read, partial(self._pass_on, done, above))

    def _pass_on(
        self, done: Callable[[Any], object], above: list[Any], parts: list[Sequence[Row]]
    ) -> None:
        rows = chain(above, *parts)
        done([row for row in rows if not isinstance(row, Heading)])

    @property
    def busy(self) -> bool:
        """Whether rows are still being read."""
        return self._next_query is not None or self._reading

    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else self.top + self._count

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role not in ROLES or not index.isValid() or index.row() >= self.rowCount():
            return None
        column = self.columns[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return column.alignment
        row, page = self.row(index.row()), (index.row() - self.top) // PAGE
        if row is None:
            self._request(page)
            return ELLIPSIS if role == Qt.ItemDataRole.DisplayRole and not index.column() else None
        if page >= 0:
            self._pages.move_to_end(page)
        return column.data(row, role)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort the rows by another column, in the ledger."""
        name = self.columns[column].order if 0 <= column < len(self.columns) else ""
        descending = order == Qt.SortOrder.DescendingOrder
        view = self.view.ordered(name, descending=descending) if name else self.view
        if self._open is not None and view != self.view:
            self.show(self._open, view)

    def _request(self, page: int) -> None:
        self._requested[page] = None
        self._requested.move_to_end(page)
        while len(self._requested) > MAX_REQUESTED_PAGES:
            self._requested.popitem(last=False)
        if not self._read_timer.isActive():
            self._read_timer.start()

    @Slot()
    def _read(self) -> None:
        """Read the requested rows, one request at a time."""
        if self._reading or self._query is None or not self.complete or not self._requested:
            return
        pages = list(reversed(self._requested))
        self._requested.clear()
        self._reading = True
        read = partial(self._query.read_ranges, [range(it * PAGE, (it + 1) * PAGE) for it in pages])
        self._tasks.run(read, partial(self._take_pages, self._query, pages))

    def _take_pages(
        self, query: TableQuery, pages: Sequence[int], rows: Sequence[Sequence[Row]]
    ) -> None:
        self._reading = False
        if query is self._query:
            self._cache(dict(zip(pages, rows, strict=True)))
            self._emit_changed(pages)
        self._read()

    @Slot(object)
    def _take_first(self, rows: Sequence[Row]) -> None:
        self._show_first(rows, None)

    @Slot(object)
    def _fail_first(self, error: UploaderError) -> None:
        self._show_first((), error.problem)

    def _show_first(self, rows: Sequence[Row], problem: Problem | None) -> None:
        """Show the first rows; if there are more, sort all."""
        assert self._next_query is not None
        self.beginResetModel()
        self._close_in_background(self._query)
        self._query = self._next_query
        self._pages.clear()
        self._requested.clear()
        self._cache({at // PAGE: rows[at : at + PAGE] for at in range(0, len(rows), PAGE)})
        self._count = len(rows)
        self.problem = problem
        self.complete = len(rows) < FIRST_ROWS
        self.endResetModel()
        self.status_changed.emit()
        if self.complete:
            self._finish_query()
        else:
            self._sort(self._query)

    @Slot()
    def _refresh(self) -> None:
        if self._stale and self._next_query is None and self._open is not None:
            self._stale = False
            self._next_query = TableQuery(self._open, self.view)
            self._sort(self._next_query)

    def _sort(self, query: TableQuery) -> None:
        self._started_at = monotonic()
        pages = list(reversed(self._pages))[:MAX_REQUESTED_PAGES]
        step = partial(query.sort, list(self.anchors()), pages, PAGE)
        self._step = self._tasks.run(step, self._take_sorted, self._fail)

    @Slot(object)
    def _take_sorted(self, result: SortedRows) -> None:
        self.problem = None
        self.relocating.emit()
        if self._query is not self._next_query:
            self._close_in_background(self._query)
        self._query, self.complete = self._next_query, True
        self._resize(result.length)
        self._pages.clear()
        self._cache(result.pages)
        self._emit_changed(range(self._count // PAGE + 1))
        self.relocated.emit({key: self.top + number for key, number in result.found.items()})
        self.status_changed.emit()
        self._finish_query()
        self._read()

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        """Report the problem; the displayed rows stay."""
        self.problem = error.problem
        self.status_changed.emit()
        self._finish_query()

    def _finish_query(self) -> None:
        """Delay the next read of the whole ledger in proportion to the duration of the last."""
        self._next_query = None
        delay = max(REFRESH_AFTER, REFRESH_FACTOR * (monotonic() - self._started_at))
        self._refresh_timer.start(round(delay * 1000))
        self.ordered.emit()

    def _resize(self, count: int) -> None:
        """Set the number of the ledger's rows by adding or removing rows at the end."""
        before, after = self.rowCount(), self.top + count
        if after > before:
            self.beginInsertRows(NO_PARENT, before, after - 1)
            self._count = count
            self.endInsertRows()
        elif after < before:
            self.beginRemoveRows(NO_PARENT, after, before - 1)
            self._count = count
            self.endRemoveRows()

    def _cache(self, pages: Mapping[int, Sequence[Row]]) -> None:
        self._pages.update(pages)
        while len(self._pages) > MAX_CACHED_PAGES:
            self._pages.popitem(last=False)

    def _emit_changed(self, pages: Iterable[int]) -> None:
        numbers = list(pages)
        if numbers and self._count:
            first = self.index(self.top + min(numbers) * PAGE, 0)
            last = self.top + min(max(numbers) * PAGE + PAGE, self._count) - 1
            self.dataChanged.emit(first, self.index(last, len(self.columns) - 1))

    def _cancel_pending(self) -> None:
        """Cancel pending queries; the displayed rows stay until newer ones arrive."""
        self._step.cancel()
        if self._next_query is not None:
            self._next_query.interrupt()
            self._close_in_background(self._next_query)
            self._next_query = None

    def _close_in_background(self, query: TableQuery | None) -> None:
        """Close a query in the background."""
        if query is not None:
            self._tasks.run(query.close)


MAX_ANCHORS = 1000  # selected rows that are found again after the rows have moved
MAX_COPIED = 100_000  # rows
ASCENDING, DESCENDING = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder


class TableView(QTableView):
    """A table of the ledger that saves the user's columns and sort order."""

    chosen = Signal(object)  # the row that was double-clicked, or selected with Enter

    def __init__(
        self, name: str, model: WindowedModel, memory: WindowState, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._name = name
        self._model = model
        self._memory = memory
        self.row_actions: Sequence[QAction] = ()  # on `rows()`, of the menu
        self._places = _ColumnPlaces((), None, None)
        self._top = 0  # as of the model
        self.setModel(model)
        style_table(self, 2 if any(column.below for column in model.columns) else 1)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header = self.horizontalHeader()
        header.setSectionsMovable(True)
        header.setStretchLastSection(True)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        # With the table's own selection, a header would check every row for each of its sections.
        header.setSelectionModel(QItemSelectionModel(model, header))
        self._kept = KeptColumns(name, header, memory)
        copy = QKeySequence.StandardKey.Copy
        self._copy = action(self, "", self.tr("Copy rows"), self.copy_rows, keys=copy)
        self._copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self.addAction(self._copy)
        model.anchors = self._anchors
        self._restore()

        self.setSortingEnabled(True)
        header.sortIndicatorChanged.connect(self._save_order)
        header.customContextMenuRequested.connect(self._choose_columns)
        self.customContextMenuRequested.connect(self._show_menu)
        self.activated.connect(self._choose)
        self._model.relocating.connect(self._save_places)
        self._model.relocated.connect(self._relocate)
        self._model.rowsInserted.connect(self._follow)
        self._model.rowsRemoved.connect(self._follow)

    def rows(self) -> list[Any]:
        """Return the selected rows that have been read."""
        found = map(self._model.row, self._numbers())
        return [row for row in found if row is not None and not isinstance(row, Heading)]

    def _numbers(self) -> list[int]:
        """Return the numbers of the selected rows, of each range the first ones."""
        return sorted({number for rows in self._ranges() for number in rows[:MAX_ANCHORS]})

    @Slot()
    def copy_rows(self) -> None:
        """Copy the selected rows, one per line, with tabs between the visible columns."""
        left, ranges = MAX_COPIED, []
        for rows in self._ranges():
            ranges.append(rows[:left])
            left -= len(ranges[-1])
        self._model.read_rows(ranges, self._take_copied)

    def selectAll(self) -> None:
        """Select as many rows as can be copied."""
        last = min(self._model.rowCount(), MAX_COPIED) - 1
        if last >= 0:
            everything = QItemSelection(self._model.index(0, 0), self._model.index(last, 0))
            self.selectionModel().select(everything, _ROWS)

    def _restore(self) -> None:
        """Restore the columns and the sort order of the last session."""
        model = self._model
        if not self._kept.restore():
            for at, column in enumerate(model.columns):
                self.setColumnWidth(at, column_width(self, column.width))
                self.setColumnHidden(at, column.hidden)
                if column.name == "state":  # read last
                    self.horizontalHeader().moveSection(at, len(model.columns) - 1)
        self._order = number, direction = self._load_order()
        if number >= 0:
            order = model.columns[number].order
            model.view = model.view.ordered(order, descending=direction == DESCENDING)
        self.horizontalHeader().setSortIndicator(number, direction)

    def _load_order(self) -> tuple[int, Qt.SortOrder]:
        """Return the sort column, -1 for none, and the sort direction."""
        kept = str(self._memory.value(f"{self._name}/order", ""))
        descending, view = kept.startswith("-"), self._model.view
        columns = list(enumerate(self._model.columns))
        chosen = [at for at, it in columns if it.order and it.name == kept.removeprefix("-")]
        if not chosen:
            descending = view.descending
            chosen = [at for at, it in columns if it.order == view.order]
        return next(iter(chosen), -1), DESCENDING if descending else ASCENDING

    @Slot(int, Qt.SortOrder)
    def _save_order(self, number: int, direction: Qt.SortOrder) -> None:
        """Save the sort order; a column that cannot be sorted gets no sort indicator."""
        column = self._model.columns[number]
        if not column.order:
            self.horizontalHeader().setSortIndicator(*self._order)
            return
        self._order = number, direction
        sign = "-" if direction == DESCENDING else ""
        self._memory.setValue(f"{self._name}/order", f"{sign}{column.name}")

    @Slot(QPoint)
    def _choose_columns(self, place: QPoint) -> None:
        self.column_menu().popup(self.horizontalHeader().mapToGlobal(place))

    def column_menu(self) -> QMenu:
        """Return the menu that shows and hides columns; the first one always stays."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for number, column in enumerate(self._model.columns[1:], 1):
            choice = menu.addAction(column.title)
            choice.setCheckable(True)
            choice.setChecked(not self.isColumnHidden(number))
            choice.setData(number)
        menu.triggered.connect(self._show_column)
        return menu

    @Slot(QAction)
    def _show_column(self, choice: QAction) -> None:
        self.setColumnHidden(choice.data(), not choice.isChecked())
        self._kept.save()

    @Slot(QPoint)
    def _show_menu(self, place: QPoint) -> None:
        if self.rows():
            open_menu(self, place, (*self.row_actions, None, self._copy))

    @Slot()
    def _choose(self) -> None:
        row = self._model.row(self.currentIndex().row())
        if row is not None:
            self.chosen.emit(row)

    def _ranges(self) -> list[range]:
        selection = self.selectionModel().selection()
        parts = [selection.at(number) for number in range(selection.size())]
        ranges = [range(part.top(), part.bottom() + 1) for part in parts]
        return sorted(ranges, key=lambda rows: rows.start)

    def _find_places(self) -> "_ColumnPlaces":
        """Return the keys of the selected, the current and the top row."""
        top = self.verticalScrollBar().value()
        selected = (self._key(number) for number in self._numbers())
        return _ColumnPlaces(
            tuple(key for key in selected if key is not None)[:MAX_ANCHORS],
            self._key(self.currentIndex().row()),
            self._key(top) if top else None,  # a view that is scrolled to the top stays there
        )

    def _key(self, number: int) -> object:
        row = self._model.row(number) if number >= self._model.top else None
        return row.key if row is not None else None

    def _anchors(self) -> Sequence[object]:
        """Return the keys of the rows to find again."""
        places = self._find_places()
        return [*places.selected, *filter(None, (places.current, places.top))]

    @Slot()
    def _save_places(self) -> None:
        self._places = self._find_places()

    @Slot(object)
    def _relocate(self, found: dict[object, int]) -> None:
        """Move the selection and the scroll position to the new rows."""
        places, model, selection = self._places, self._model, self.selectionModel()
        if sum(map(len, self._ranges())) <= MAX_ANCHORS:
            rows = QItemSelection()
            above = {number for number in self._numbers() if number < model.top}
            moved = {found[key] for key in places.selected if key in found}
            for number in sorted(above | moved):
                rows.select(model.index(number, 0), model.index(number, 0))
            selection.select(rows, _ROWS)
        if places.current in found:
            current = model.index(found[places.current], max(0, self.currentIndex().column()))
            selection.setCurrentIndex(current, QItemSelectionModel.SelectionFlag.NoUpdate)
        if places.top in found:
            self.verticalScrollBar().setValue(found[places.top])

    @Slot()
    def _follow(self) -> None:
        """Keep rows of the ledger where they are when those above them come and go."""
        before, self._top = self._top, self._model.top
        bar = self.verticalScrollBar()
        if bar.value() > before:
            bar.setValue(bar.value() + self._top - before)

    @Slot(object)
    def _take_copied(self, rows: list[Row]) -> None:
        known = self._model.columns
        shown = [it for number, it in enumerate(known) if not self.isColumnHidden(number)]
        below = [it.below.name for it in shown if it.below]
        columns = [it for it in known if it in shown or it.name in below]
        lines = ["\t".join(column.title for column in columns)]
        lines += ["\t".join(column.text(row) for column in columns) for row in rows]
        QGuiApplication.clipboard().setText("\n".join(lines) + "\n")


_ROWS = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows


class _ColumnPlaces(NamedTuple):
    """The keys of the rows that are selected, current, and at the top."""

    selected: tuple[object, ...]
    current: object
    top: object
