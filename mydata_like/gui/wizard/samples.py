"""The first dataset folders as a table: what each of them would become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from mydata_like.gui.look import words

if TYPE_CHECKING:
    from mydata_like.app.onboarding import LayoutSample

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()
FILES, SIZE = 3, 4  # the columns that hold numbers


class SampleModel(QAbstractTableModel):
    """Dataset folders, in the order in which they were found."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._samples: list[LayoutSample] = []

    def clear(self) -> None:
        self.beginResetModel()
        self._samples.clear()
        self.endResetModel()

    def append(self, sample: LayoutSample) -> None:
        row = len(self._samples)
        self.beginInsertRows(QModelIndex(), row, row)
        self._samples.append(sample)
        self.endInsertRows()

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._samples)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._headings())

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self._headings()[section]
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        sample = self._samples[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return self._texts(sample)[index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return words.tip(words.plain(sample.path))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        return None

    def _headings(self) -> tuple[str, ...]:
        return (
            self.tr("Owner"),
            self.tr("Experiment"),
            self.tr("Dataset"),
            self.tr("Files"),
            self.tr("Size"),
        )

    def _texts(self, sample: LayoutSample) -> tuple[str, ...]:
        more = "+" if sample.more else ""
        return (
            words.plain(sample.owner),
            words.plain(sample.experiment),
            words.plain(sample.dataset),
            words.count(sample.files) + more,
            words.size(sample.size) + more,
        )


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column >= FILES else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
