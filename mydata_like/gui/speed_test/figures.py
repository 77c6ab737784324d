"""The table of everything that a speed test measured."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QHeaderView, QTableView, QWidget

from mydata_like.gui.speed_test.report import Figure
from mydata_like.gui.speed_test.terms import (
    figure_spread,
    figure_title,
    figure_value,
    stage_title,
)

Index = QModelIndex | QPersistentModelIndex
ROOT = QModelIndex()
STAGE, WHAT, VALUE, SPREAD = range(4)
LETTERS = {STAGE: 30, VALUE: 18, SPREAD: 30}  # for which a column has room


class FigureModel(QAbstractTableModel):
    """Figures in the order in which they were measured."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[tuple[str, ...]] = []
        self._titles = {
            STAGE: self.tr("Stage"),
            WHAT: self.tr("What was measured"),
            VALUE: self.tr("Figure"),
            SPREAD: self.tr("Where it varied"),
        }

    def show_figures(self, figures: Sequence[Figure]) -> None:
        """Show these and no others."""
        self.beginResetModel()
        self._rows = [_cells(figure) for figure in figures]
        self.endResetModel()

    def add(self, figure: Figure) -> None:
        """Show one more."""
        self.beginInsertRows(ROOT, len(self._rows), len(self._rows))
        self._rows.append(_cells(figure))
        self.endInsertRows()

    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self._titles)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        across = orientation is Qt.Orientation.Horizontal
        return self._titles[section] if across and role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() == VALUE:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return self._rows[index.row()][index.column()]


class FigureTable(QTableView):
    """Shows figures, and the latest of them while they come."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.figures = FigureModel(self)
        self.setModel(self.figures)
        self.setAccessibleName(self.tr("All figures"))
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setAlternatingRowColors(True)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(round(self.fontMetrics().height() * 1.5))
        header = self.horizontalHeader()
        width = self.fontMetrics().averageCharWidth()
        for column, letters in LETTERS.items():
            header.resizeSection(column, width * letters)
        header.setSectionResizeMode(WHAT, QHeaderView.ResizeMode.Stretch)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.figures.rowsInserted.connect(self.scrollToBottom)


def _cells(figure: Figure) -> tuple[str, ...]:
    return (
        stage_title(figure.stage),
        figure_title(figure),
        figure_value(figure),
        figure_spread(figure),
    )
