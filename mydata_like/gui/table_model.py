"""Tables that are described by columns: their models and their style."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    Qt,
)
from PySide6.QtGui import QAction, QPainter, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from mydata_like.gui.theme import texts
from mydata_like.gui.theme.style import CELL_MARGIN, row_height
from mydata_like.gui.theme.widgets import RowIcon

Index = QModelIndex | QPersistentModelIndex
NO_PARENT = QModelIndex()
Row = TypeVar("Row")

# The roles for which a column has values.
BELOW = Qt.ItemDataRole.UserRole + 3  # the text of a second line
ROLES = frozenset(
    {
        BELOW,
        Qt.ItemDataRole.AccessibleTextRole,
        Qt.ItemDataRole.DisplayRole,
        Qt.ItemDataRole.DecorationRole,
        Qt.ItemDataRole.ToolTipRole,
        Qt.ItemDataRole.TextAlignmentRole,
    }
)


class Column(NamedTuple):
    """One column: its internal name, its title, and a function that returns its text for a row.

    `order` is the name of the sort order in a view, empty if the column cannot be sorted. `width`
    is in characters. `tip` returns the tool tip. The text of the column `below` is a second line.
    """

    name: str
    title: str
    text: Callable[[Any], str]
    order: str = ""
    width: int = 12
    number: bool = False  # aligned to the right
    mark: Callable[[Any], RowIcon | None] | None = None
    tip: Callable[[Any], str] | None = None
    hidden: bool = False  # until the user shows it
    below: "Column | None" = None

    @property
    def alignment(self) -> Qt.AlignmentFlag:
        side = Qt.AlignmentFlag.AlignRight if self.number else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter

    def data(self, row: object, role: int) -> Any:
        """Return the value of a cell for this role."""
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(row)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self.alignment
        if self.below and role == BELOW:
            return self.below.text(row)
        if self.below and role == Qt.ItemDataRole.AccessibleTextRole:
            return ", ".join(filter(None, (self.text(row), self.below.text(row))))
        if role == Qt.ItemDataRole.DecorationRole and self.mark:
            mark = self.mark(row)
            return mark.icon if mark else None
        if role == Qt.ItemDataRole.ToolTipRole and self.tip:
            return texts.tip(self.tip(row)) or None
        return None


def header_of(
    columns: Sequence[Column], section: int, orientation: Qt.Orientation, role: int
) -> Any:
    """Return what the header of a model with these columns shows."""
    if orientation is Qt.Orientation.Vertical or not 0 <= section < len(columns):
        return None
    if role == Qt.ItemDataRole.DisplayRole:
        return columns[section].title
    return columns[section].alignment if role == Qt.ItemDataRole.TextAlignmentRole else None


class ColumnsModel(QAbstractTableModel):
    """A table model with titled columns."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns: tuple[Column, ...] = ()

    def columnCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        return header_of(self.columns, section, orientation, role)


class RowsModel(ColumnsModel, Generic[Row]):
    """A table of rows in memory; a subclass sets its columns."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.rows: list[Row] = []

    def show(self, rows: Sequence[Row]) -> None:
        """Replace the displayed rows."""
        self.beginResetModel()
        self.rows = list(rows)
        self.endResetModel()

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows at the end."""
        if rows:
            first = len(self.rows)
            self.beginInsertRows(NO_PARENT, first, first + len(rows) - 1)
            self.rows += rows
            self.endInsertRows()

    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        return self.columns[index.column()].data(self.rows[index.row()], role)


def column_width(view: QWidget, characters: int) -> int:
    """Return the width of a column with room for this many average characters, in pixels."""
    return view.fontMetrics().averageCharWidth() * characters + 2 * CELL_MARGIN


def open_menu(view: QAbstractItemView, place: QPoint, actions: Sequence[QAction | None]) -> None:
    """Open a menu of these actions at a place in a view; None is a line between two of them."""
    menu = QMenu(view)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    for one in actions:
        if one is None:
            menu.addSeparator()
        else:
            menu.addAction(one)
    menu.popup(view.viewport().mapToGlobal(place))


def set_up_table(table: QTableView, model: RowsModel[Any], name: str = "") -> QTableView:
    """Show rows in memory, with the columns' widths; `name` is for accessibility."""
    style_table(table, 2 if any(column.below for column in model.columns) else 1)
    table.setModel(model)
    table.setAccessibleName(name)
    for number, column in enumerate(model.columns):
        table.setColumnWidth(number, column_width(table, column.width))
    return table


class TwoLineDelegate(QStyledItemDelegate):
    """Paints the text of a cell, and below it a quiet second line if there is one."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        below = index.data(BELOW)
        if not below:
            super().paint(painter, option, index)
            return
        painter.save()
        self.initStyleOption(option, index)
        text, option.text = option.text, ""
        style, widget = option.widget.style(), option.widget
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, widget)
        area = option.rect.adjusted(CELL_MARGIN, 0, -CELL_MARGIN, 0)
        if not option.icon.isNull():
            area.setLeft(area.left() + option.decorationSize.width() + CELL_MARGIN)
        line, roles = option.fontMetrics.height(), QPalette.ColorRole
        chosen = option.state & QStyle.StateFlag.State_Selected
        area.setTop(area.center().y() - line)
        for shown, role in ((text, roles.Text), (below, roles.PlaceholderText)):
            fits = option.fontMetrics.elidedText(shown, option.textElideMode, area.width())
            painter.setPen(option.palette.color(roles.HighlightedText if chosen else role))
            painter.drawText(area, Qt.AlignmentFlag.AlignTop, fits)
            area.moveTop(area.top() + line)
        painter.restore()


def style_table(table: QTableView, lines: int = 1) -> None:
    """Style a table: rows of equal height, with this many lines, selected as a whole."""
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
    extra = (lines - 1) * table.fontMetrics().height()
    rows.setDefaultSectionSize(row_height(table.fontMetrics()) + extra)
    if lines > 1:
        table.setItemDelegate(TwoLineDelegate(table))
    header = table.horizontalHeader()
    header.setHighlightSections(False)
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
