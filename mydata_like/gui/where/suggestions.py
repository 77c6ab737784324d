"""The files and folders that a search has found, as a table."""

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QTableView, QWidget

from mydata_like.core.file_status import Suggestion
from mydata_like.core.parsing import moment_of
from mydata_like.gui.table_model import Column, RowsModel, set_up_table
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import RowIcon, mark_of

_MARKED = ("verified", "failed", "skipped")  # states with marks of their own


class SuggestionsModel(RowsModel[Suggestion]):
    """The files and folders whose paths contain the search text, with what tells them apart."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        columns = (
            Column("name", self.tr("Name"), lambda it: _part(it, 2), width=28, mark=_find_mark),
            Column("folder", self.tr("Folder"), lambda it: _part(it, 0), width=40),
            Column("state", self.tr("State"), self._describe_state, width=18),
            Column("changed", self.tr("Changed"), _describe_time, width=20),
            Column("size", self.tr("Size"), lambda it: texts.size(it.size)),
        )
        self.columns = tuple(
            column._replace(tip=lambda it: texts.plain(it.key)) for column in columns
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
        set_up_table(self, model, self.tr("Files and folders of this name"))
        self.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.setTextElideMode(Qt.TextElideMode.ElideLeft)
        self.horizontalHeader().setStretchLastSection(True)


def _part(found: Suggestion, number: int) -> str:
    """Return the folder or the name of a path."""
    return texts.plain(found.key.rpartition(b"/")[number])


def _find_mark(found: Suggestion) -> RowIcon | None:
    if found.folder:
        return RowIcon("", "folder")
    return mark_of(found.state if found.state in _MARKED else "waiting")


def _describe_time(found: Suggestion) -> str:
    modified = moment_of(found.modified_ns // 10**9) if found.modified_ns else None
    return texts.moment(modified) if modified else ""
