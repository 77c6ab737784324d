"""The files and folders that a search has found, as a table."""

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QTableView, QWidget

from mydata_like.core.file_status import Suggestion
from mydata_like.core.parsing import moment_of
from mydata_like.gui.table_model import Column, RowsModel, column_width, style_table
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import RowIcon, mark_of

WIDTHS = (28, 40, 18, 20)  # characters of the columns; the last column takes the rest
_MARKED = ("verified", "failed", "skipped")  # states with marks of their own


class SuggestionsModel(RowsModel[Suggestion]):
    """The files and folders whose paths contain the search text, with what tells them apart."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns = (
            Column("name", self.tr("Name"), _name, mark=_find_mark, tip=_describe_path),
            Column("folder", self.tr("Folder"), _folder, tip=_describe_path),
            Column("state", self.tr("State"), self._describe_state, tip=_describe_path),
            Column("changed", self.tr("Changed"), _describe_time, tip=_describe_path),
            Column("size", self.tr("Size"), _describe_size, tip=_describe_path),
        )

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
        for number, characters in enumerate(WIDTHS):
            self.setColumnWidth(number, column_width(self, characters))
        self.horizontalHeader().setStretchLastSection(True)


def _name(found: Suggestion) -> str:
    return texts.plain(found.key.rpartition(b"/")[2])


def _folder(found: Suggestion) -> str:
    return texts.plain(found.key.rpartition(b"/")[0])


def _describe_path(found: Suggestion) -> str:
    return texts.plain(found.key)


def _describe_size(found: Suggestion) -> str:
    return texts.size(found.size)


def _find_mark(found: Suggestion) -> RowIcon | None:
    if found.folder:
        return RowIcon("", "folder")
    return mark_of(found.state if found.state in _MARKED else "waiting")


def _describe_time(found: Suggestion) -> str:
    modified = moment_of(found.modified_ns // 10**9) if found.modified_ns else None
    return texts.moment(modified) if modified else ""
