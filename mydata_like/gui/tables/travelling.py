"""What the channels carry at this moment, as a small table."""

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from mydata_like.engine.progress import ActiveTransfer
from mydata_like.gui.look import words
from mydata_like.gui.tables.bars import FRACTION, STATUS

Index = QModelIndex | QPersistentModelIndex
NOWHERE = QModelIndex()
PROGRESS = 1  # the number of the column with the bar


class TravellingModel(QAbstractTableModel):
    """The transfers under way; a row stays where it is until its transfer has ended."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.transfers: list[ActiveTransfer] = []
        self._columns: list[tuple[str, Callable[[ActiveTransfer], str]]] = [
            (self.tr("Name"), self._name),
            (self.tr("Progress"), self._progress),
            (self.tr("Size"), lambda transfer: words.size(transfer.size)),
            (self.tr("Speed"), lambda transfer: words.rate(transfer.rate)),
            (self.tr("Channel"), lambda transfer: words.count(transfer.channel)),
            (self.tr("Attempt"), lambda transfer: words.count(transfer.attempt)),
            (self.tr("Message"), self._message),
        ]

    def show(self, transfers: tuple[ActiveTransfer, ...]) -> None:
        """Show these, which are in the order of their numbers."""
        coming = {transfer.number: transfer for transfer in transfers}
        for at in reversed(range(len(self.transfers))):
            if self.transfers[at].number not in coming:
                self.beginRemoveRows(QModelIndex(), at, at)
                del self.transfers[at]
                self.endRemoveRows()
        self.transfers[:] = [coming.pop(transfer.number) for transfer in self.transfers]
        if self.transfers:
            last = self.index(len(self.transfers) - 1, len(self._columns) - 1)
            self.dataChanged.emit(self.index(0, 0), last)
        if coming:
            count = len(self.transfers)
            self.beginInsertRows(QModelIndex(), count, count + len(coming) - 1)
            self.transfers.extend(coming.values())
            self.endInsertRows()

    def rowCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else len(self.transfers)

    def columnCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._columns)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self._columns[section][0]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        transfer, column = self.transfers[index.row()], index.column()
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self._columns[column][1](transfer)
        if column == PROGRESS and role == FRACTION:
            return _fraction(transfer)
        if column == PROGRESS and role == STATUS:
            return "waiting" if transfer.problem else "working"
        return None

    def _name(self, transfer: ActiveTransfer) -> str:
        name = words.plain(transfer.name)
        if transfer.files <= 1:
            return name
        more = self.tr("%1 and %Ln more", "files in a batch", transfer.files - 1)
        return more.replace("%1", name)

    def _progress(self, transfer: ActiveTransfer) -> str:
        return self.tr("%1 %").replace("%1", words.count(int(_fraction(transfer) * 100)))

    def _message(self, transfer: ActiveTransfer) -> str:
        return words.plain(transfer.problem.message) if transfer.problem else ""


def _fraction(transfer: ActiveTransfer) -> float:
    return transfer.done / transfer.size if transfer.size else 1.0
