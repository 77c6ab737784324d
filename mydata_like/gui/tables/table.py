"""The widget that shows a windowed table: it can be sorted, copied and arranged."""

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QPoint,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QMenu, QTableView, QWidget

from mydata_like.core.queries import Row
from mydata_like.gui.memory import KeptColumns, Memory
from mydata_like.gui.tables.model import WindowedModel

MOST_ANCHORS = 1000  # selected rows that are found again when the rows have new places
MOST_COPIED = 100_000  # rows
ASCENDING, DESCENDING = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder


class Table(QTableView):
    """A table over the ledger. What a person chose of its columns and its order is remembered."""

    chosen = Signal(object)  # the row that was double-clicked, or entered
    menu_wanted = Signal(object)  # the QMenu to which may be added what can be done with `rows()`

    def __init__(
        self, name: str, model: WindowedModel, memory: Memory, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._name = name
        self._model = model
        self._memory = memory
        self._places = _Places((), None, None)
        self.setModel(model)
        set_looks(self)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._set_header()
        self._kept = KeptColumns(name, self.horizontalHeader(), memory)
        self._copy = QAction(self.tr("Copy rows"), self)
        self._copy.setShortcut(QKeySequence.StandardKey.Copy)
        self._copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self.addAction(self._copy)
        model.anchors = self._anchors
        self._restore()
        self._connect()

    def rows(self) -> list[Row]:
        """Return the selected rows, as far as they have been read."""
        numbers = sorted({number for rows in self._ranges() for number in rows[:MOST_ANCHORS]})
        return [row for number in numbers if (row := self._model.row(number)) is not None]

    def copy_rows(self) -> None:
        """Copy the selected rows, a line each, with tabs between the columns that are shown."""
        left, ranges = MOST_COPIED, []
        for rows in self._ranges():
            ranges.append(rows[:left])
            left -= len(ranges[-1])
        self._model.read_rows(ranges, self._take_copied)

    def selectAll(self) -> None:
        """Select as many rows as can be copied."""
        last = min(self._model.rowCount(), MOST_COPIED) - 1
        if last >= 0:
            everything = QItemSelection(self._model.index(0, 0), self._model.index(last, 0))
            self.selectionModel().select(everything, _ROWS)

    def _set_header(self) -> None:
        header = self.horizontalHeader()
        header.setSectionsMovable(True)
        header.setStretchLastSection(True)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        # By the table's own selection a header would look at every row for each of its sections.
        header.setSelectionModel(QItemSelectionModel(self._model, header))

    def _connect(self) -> None:
        header = self.horizontalHeader()
        self.setSortingEnabled(True)
        header.sortIndicatorChanged.connect(self._keep_order)
        header.customContextMenuRequested.connect(self._choose_columns)
        self.customContextMenuRequested.connect(self._show_menu)
        self.activated.connect(self._choose)
        self._copy.triggered.connect(self.copy_rows)
        self._model.relocating.connect(self._keep_places)
        self._model.relocated.connect(self._relocate)

    def _arrange(self) -> None:
        """Give the columns the widths that they are made for."""
        width = self.fontMetrics().averageCharWidth()
        for number, column in enumerate(self._model.columns):
            self.setColumnWidth(number, width * column.width)
            self.setColumnHidden(number, column.hidden)

    def _restore(self) -> None:
        """Arrange the columns, and the rows by one of them, as the person left them."""
        if not self._kept.restore():
            self._arrange()
        model = self._model
        self._order = number, way = self._recall_order()
        if number >= 0:
            order = model.columns[number].order
            model.view = model.view.ordered(order, descending=way == DESCENDING)
        self.horizontalHeader().setSortIndicator(number, way)

    def _recall_order(self) -> tuple[int, Qt.SortOrder]:
        """Return the column that orders the rows, -1 for none, and which way."""
        kept = str(self._memory.value(f"{self._name}/order", ""))
        descending, view = kept.startswith("-"), self._model.view
        columns = list(enumerate(self._model.columns))
        chosen = [at for at, it in columns if it.order and it.name == kept.removeprefix("-")]
        if not chosen:
            descending = view.descending
            chosen = [at for at, it in columns if it.order == view.order]
        return next(iter(chosen), -1), DESCENDING if descending else ASCENDING

    @Slot(int, Qt.SortOrder)
    def _keep_order(self, number: int, way: Qt.SortOrder) -> None:
        """Remember the order; a column that makes none is not marked as if it did."""
        column = self._model.columns[number]
        if not column.order:
            self.horizontalHeader().setSortIndicator(*self._order)
            return
        self._order = number, way
        sign = "-" if way == DESCENDING else ""
        self._memory.setValue(f"{self._name}/order", f"{sign}{column.name}")

    @Slot(QPoint)
    def _choose_columns(self, place: QPoint) -> None:
        self.column_menu().popup(self.horizontalHeader().mapToGlobal(place))

    def column_menu(self) -> QMenu:
        """Return the menu that shows and hides columns; the first one always stays."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for number, column in enumerate(self._model.columns[1:], 1):
            action = menu.addAction(column.title)
            action.setCheckable(True)
            action.setChecked(not self.isColumnHidden(number))
            action.setData(number)
        menu.triggered.connect(self._show_column)
        return menu

    @Slot(QAction)
    def _show_column(self, action: QAction) -> None:
        self.setColumnHidden(action.data(), not action.isChecked())
        self._kept.save()

    @Slot(QPoint)
    def _show_menu(self, place: QPoint) -> None:
        if self.rows():
            menu = QMenu(self)
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            self.menu_wanted.emit(menu)
            menu.addSeparator()
            menu.addAction(self._copy)
            menu.popup(self.viewport().mapToGlobal(place))

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

    def _look_at_places(self) -> "_Places":
        """Return what of the rows is to stay where the person has it."""
        top = self.verticalScrollBar().value()
        return _Places(
            tuple(row.key for row in self.rows()[:MOST_ANCHORS]),
            self._key(self.currentIndex().row()),
            self._key(top) if top else None,  # who looks at the first row wants the new first one
        )

    def _key(self, number: int) -> object:
        row = self._model.row(number) if number >= 0 else None
        return row.key if row is not None else None

    def _anchors(self) -> Sequence[object]:
        """Return the keys of the rows that are to be found again."""
        places = self._look_at_places()
        return [*places.selected, *filter(None, (places.current, places.top))]

    @Slot()
    def _keep_places(self) -> None:
        self._places = self._look_at_places()

    @Slot(object)
    def _relocate(self, found: dict[object, int]) -> None:
        """Let the selection and the place that is looked at follow their rows."""
        places, model, selection = self._places, self._model, self.selectionModel()
        if sum(map(len, self._ranges())) <= MOST_ANCHORS:
            rows = QItemSelection()
            for number in sorted({found[key] for key in places.selected if key in found}):
                rows.select(model.index(number, 0), model.index(number, 0))
            selection.select(rows, _ROWS)
        if places.current in found:
            current = model.index(found[places.current], max(0, self.currentIndex().column()))
            selection.setCurrentIndex(current, QItemSelectionModel.SelectionFlag.NoUpdate)
        if places.top in found:
            self.verticalScrollBar().setValue(found[places.top])

    @Slot(object)
    def _take_copied(self, rows: list[Row]) -> None:
        columns = [
            column
            for number, column in enumerate(self._model.columns)
            if not self.isColumnHidden(number)
        ]
        lines = ["\t".join(column.title for column in columns)]
        lines += ["\t".join(column.text(row) for column in columns) for row in rows]
        QGuiApplication.clipboard().setText("\n".join(lines) + "\n")


_ROWS = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows


def set_looks(table: QTableView) -> None:
    """Dress a table of ours: rows of one height, which are selected as a whole."""
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
    table.setWordWrap(False)
    table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
    table.setAlternatingRowColors(True)
    table.setShowGrid(False)
    table.setTabKeyNavigation(False)
    table.setCornerButtonEnabled(False)
    rows = table.verticalHeader()
    rows.hide()
    rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    rows.setMinimumSectionSize(1)
    rows.setDefaultSectionSize(round(table.fontMetrics().height() * 1.7))
    header = table.horizontalHeader()
    header.setHighlightSections(False)
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)


class _Places(NamedTuple):
    """The keys of the rows that are selected, current, and at the top."""

    selected: tuple[object, ...]
    current: object
    top: object
