"""The lines of a log as a table of bounded length."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from mydata_like.app import logging_setup
from mydata_like.core.log_line import LogLine
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.widgets import icon

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class Follower(Protocol):
    """Reads a log as it grows."""

    def read(self) -> list[LogLine]: ...


class LogFilter(NamedTuple):
    """The filter of the lines: a minimum level and a text."""

    level: int = 0  # an index in LEVELS
    text: str = ""

    def passes(self, line: LogLine) -> bool:
        """Return whether a line passes the filter."""
        if self.level and LEVELS.index(line.level) < self.level:
            return False
        return not self.text or self.text in line.text.lower() or self.text in line.origin.lower()


class NewLines(NamedTuple):
    """New lines of a log, and the follower that reads the next ones."""

    name: str
    follower: Follower
    lines: Sequence[LogLine]


class FilteredLines(NamedTuple):
    """Lines, and those of them that pass a filter."""

    lines: Sequence[LogLine]
    line_filter: LogFilter
    passing: Sequence[LogLine]


def read(config: Path | None, name: str, most: int, follower: Follower | None) -> NewLines:
    """Return the new lines of a log; without a follower, its last `most` lines."""
    follower = follower or logging_setup.follow_log(config, name, most)
    return NewLines(name, follower, follower.read())


def filter_lines(lines: Sequence[LogLine], line_filter: LogFilter) -> FilteredLines:
    """Return the lines that pass a filter."""
    return FilteredLines(lines, line_filter, [line for line in lines if line_filter.passes(line)])


def join(lines: Sequence[LogLine]) -> str:
    """Return lines as text, in the format of the log."""
    return "\n".join(" ".join(filter(None, line)) if line.at else line.text for line in lines)


Index = QModelIndex | QPersistentModelIndex
NO_PARENT = QModelIndex()

MAX_LINES = 200_000  # in memory
AT, LEVEL, TEXT, ORIGIN = range(4)
_ICONS: dict[str, tuple[str, Status]] = {
    "DEBUG": ("info", "skipped"),
    "INFO": ("info", "skipped"),
    "WARNING": ("warning", "waiting"),
    "ERROR": ("error", "problem"),
    "CRITICAL": ("error", "problem"),
}


class LogModel(QAbstractTableModel):
    """The lines that pass a filter, the latest last; surplus old lines are dropped."""

    def __init__(self, parent: QObject | None = None, most: int = MAX_LINES) -> None:
        super().__init__(parent)
        self.line_filter = LogFilter()
        self._most = most
        self._lines: list[LogLine] = []
        self._shown: list[LogLine] = []

    @property
    def lines(self) -> Sequence[LogLine]:
        """All lines, including those that do not pass the filter."""
        return self._lines

    def shown(self, first: int, last: int) -> Sequence[LogLine]:
        """Return the displayed lines from the first to the last row."""
        return self._shown[first : last + 1]

    def show(self, filtered: FilteredLines) -> None:
        """Replace the lines and the filter."""
        self.beginResetModel()
        self.line_filter = filtered.line_filter
        self._lines, self._shown = list(filtered.lines), list(filtered.passing)
        self.endResetModel()

    def append(self, lines: Sequence[LogLine]) -> None:
        """Add lines at the end."""
        self._lines += lines
        new = filter_lines(lines, self.line_filter).passing
        if new:
            first = len(self._shown)
            self.beginInsertRows(NO_PARENT, first, first + len(new) - 1)
            self._shown += new
            self.endInsertRows()
        excess = len(self._lines) - self._most
        if excess > 0:
            self._drop(excess)

    def _drop(self, count: int) -> None:
        removed = len(filter_lines(self._lines[:count], self.line_filter).passing)
        del self._lines[:count]
        if removed:
            self.beginRemoveRows(NO_PARENT, 0, removed - 1)
            del self._shown[:removed]
            self.endRemoveRows()

    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else 4

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is Qt.Orientation.Vertical or role != Qt.ItemDataRole.DisplayRole:
            return None
        titles = (self.tr("Time"), self.tr("Level"), self.tr("Message"), self.tr("Source"))
        return titles[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        line, column = self._shown[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self._cell_text(line, column)
        if role == Qt.ItemDataRole.DecorationRole and column == LEVEL and line.at:
            return icon(*_ICONS[line.level])
        return None

    def _cell_text(self, line: LogLine, column: int) -> str:
        if column == TEXT:
            return texts.plain(line.text)
        if not line.at:
            return ""
        return (line.at, self._level_text(line.level), "", line.origin)[column]

    def _level_text(self, level: str) -> str:
        return {
            "DEBUG": self.tr("Detail"),
            "INFO": self.tr("Information"),
            "WARNING": self.tr("Warning"),
            "ERROR": self.tr("Error"),
            "CRITICAL": self.tr("Error"),
        }[level]
