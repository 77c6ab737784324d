"""The files and folders that a search has found, as a table."""

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QTableView, QWidget

from mydata_like.core.file_status import Suggestion
from mydata_like.core.parsing import moment_of
from mydata_like.gui.tables.table_view import style_table
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.widgets import icon

Index = QModelIndex | QPersistentModelIndex
NO_PARENT = QModelIndex()
WIDTHS = (30, 48, 14, 20)  # characters of the columns; the last column takes the rest

_ICONS: dict[str, tuple[str, Status]] = {
    "verified": ("check", "good"),
    "failed": ("error", "problem"),
    "skipped": ("skipped", "skipped"),
}


class SuggestionsModel(QAbstractTableModel):
    """The files and folders whose paths contain the search text, with what tells them apart."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.suggestions: Sequence[Suggestion] = ()
        self._columns: list[tuple[str, Callable[[Suggestion], str]]] = [
            (self.tr("Name"), lambda found: texts.plain(found.key.rpartition(b"/")[2])),
            (self.tr("Folder"), lambda found: texts.plain(found.key.rpartition(b"/")[0])),
            (self.tr("State"), self._describe_state),
            (self.tr("Changed"), _describe_time),
            (self.tr("Size"), lambda found: texts.size(found.size)),
        ]

    def show(self, suggestions: Sequence[Suggestion]) -> None:
        """Replace the displayed suggestions."""
        self.beginResetModel()
        self.suggestions = suggestions
        self.endResetModel()

    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.suggestions)

    def columnCount(self, parent: Index = NO_PARENT) -> int:
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
        found, column = self.suggestions[index.row()], index.column()
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self._columns[column][1](found)
        if role == Qt.ItemDataRole.DecorationRole and column == 0:
            return _icon_of(found)
        if role == Qt.ItemDataRole.ToolTipRole:
            return texts.tip(texts.plain(found.key))
        return None

    def _describe_state(self, found: Suggestion) -> str:
        if found.folder:
            return self.tr("folder")
        words = {
            "verified": self.tr("safe"),
            "failed": self.tr("failed"),
            "skipped": self.tr("left out"),
        }
        return words.get(found.state, self.tr("not safe yet"))


class SuggestionsTable(QTableView):
    """The table of what was found; paths are elided at the left, where they are most alike."""

    def __init__(self, model: SuggestionsModel, parent: QWidget) -> None:
        super().__init__(parent)
        style_table(self)
        self.setModel(model)
        self.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.setTextElideMode(Qt.TextElideMode.ElideLeft)
        self.setAccessibleName(self.tr("Files and folders of this name"))
        width = self.fontMetrics().averageCharWidth()
        for number, characters in enumerate(WIDTHS):
            self.setColumnWidth(number, width * characters)
        self.horizontalHeader().setStretchLastSection(True)


def _icon_of(found: Suggestion) -> QIcon:
    if found.folder:
        return icon("folder")
    return icon(*_ICONS.get(found.state, ("waiting", "waiting")))


def _describe_time(found: Suggestion) -> str:
    modified = moment_of(found.modified_ns // 10**9) if found.modified_ns else None
    return texts.moment(modified) if modified else ""
