"""Lists of files: what was found for a name, and what became of each."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
)

from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.core.file_status import Suggestion
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.palette import Status
from mydata_like.gui.where.sentences import tell_fate

Index = QModelIndex | QPersistentModelIndex
NOWHERE = QModelIndex()
NAME, SIZE, WHY = range(3)

_PICTURES: dict[str, tuple[str, Status]] = {
    "verified": ("check", "good"),
    "failed": ("error", "problem"),
    "skipped": ("skipped", "skipped"),
}


class SuggestionsModel(QAbstractListModel):
    """Files and folders whose names have what was typed, with how they stand."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.suggestions: Sequence[Suggestion] = ()

    def show(self, suggestions: Sequence[Suggestion]) -> None:
        """Show these in place of those before."""
        self.beginResetModel()
        self.suggestions = suggestions
        self.endResetModel()

    def rowCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else len(self.suggestions)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        found = self.suggestions[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            folder, _, name = found.key.rpartition(b"/")
            return f"{words.plain(name)}  ·  {words.plain(folder)}" if folder else words.plain(name)
        if role == Qt.ItemDataRole.DecorationRole:
            return _picture_of(found)
        path = words.plain(found.key)
        told: dict[int, str] = {
            Qt.ItemDataRole.AccessibleTextRole: path,
            Qt.ItemDataRole.ToolTipRole: f"{path}, {words.size(found.size)}",
        }
        if role not in told:
            return None
        text = f"{told[role]}, {self._tell_state(found)}"
        return words.tip(text) if role == Qt.ItemDataRole.ToolTipRole else text

    def _tell_state(self, found: Suggestion) -> str:
        if found.folder:
            return self.tr("folder")
        told = {
            "verified": self.tr("safe"),
            "failed": self.tr("failed"),
            "skipped": self.tr("left out"),
        }
        return told.get(found.state, self.tr("not safe yet"))


def _picture_of(found: Suggestion) -> object:
    if found.folder:
        return icon("folder")
    return icon(*_PICTURES.get(found.state, ("waiting", "waiting")))


class FatesModel(QAbstractTableModel):
    """Files with their sizes; of those that stay, why."""

    def __init__(self, *, reasons: bool, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._reasons = reasons
        self._fates: Sequence[DeletedFile | KeptFile] = ()

    def show(self, fates: Sequence[DeletedFile | KeptFile]) -> None:
        """Show these in place of those before."""
        self.beginResetModel()
        self._fates = fates
        self.endResetModel()

    def rowCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._fates)

    def columnCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else (3 if self._reasons else 2)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is Qt.Orientation.Vertical or role != Qt.ItemDataRole.DisplayRole:
            return None
        return (self.tr("File"), self.tr("Size"), self.tr("Why it stays"))[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        fate = self._fates[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _tell(fate, index.column())
        if role == Qt.ItemDataRole.ToolTipRole and index.column() != SIZE:
            return words.tip(_tell(fate, index.column()))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        aligned = role == Qt.ItemDataRole.TextAlignmentRole and index.column() == SIZE
        return right if aligned else None


def _tell(fate: DeletedFile | KeptFile, column: int) -> str:
    """Return what a column says of a file."""
    if column == NAME:
        return words.plain(fate.key)
    return words.size(fate.size) if column == SIZE else tell_fate(fate)
