"""The lines of a log as a table of bounded length."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from mydata_like.core.log_line import LogLine
from mydata_like.gui import services
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.widgets import icon

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class Follower(Protocol):
    """What reads a log as it grows."""

    def read(self) -> list[LogLine]: ...


class LogFilter(NamedTuple):
    """The filter of the lines: a minimum level and a text."""

    level: int = 0  # the place in LEVELS
    text: str = ""

    def passes(self, line: LogLine) -> bool:
        """Return whether a line is wanted."""
        if self.level and LEVELS.index(line.level) < self.level:
            return False
        return not self.text or self.text in line.text.lower() or self.text in line.origin.lower()


class NewLines(NamedTuple):
    """What has come of a log, and what reads on from there."""

    name: str
    follower: Follower
    lines: Sequence[LogLine]


class FilteredLines(NamedTuple):
    """Lines, and which of them are wanted."""

    lines: Sequence[LogLine]
    sieve: LogFilter
    wanted: Sequence[LogLine]


def read(config: Path | None, name: str, most: int, follower: Follower | None) -> NewLines:
    """Return what has come of a log: all of it where nothing follows it yet."""
    follower = follower or services.follow_log(config, name, most)
    return NewLines(name, follower, follower.read())


def sift(lines: Sequence[LogLine], sieve: LogFilter) -> FilteredLines:
    """Return which lines are wanted."""
    return FilteredLines(lines, sieve, [line for line in lines if sieve.passes(line)])


def join(lines: Sequence[LogLine]) -> str:
    """Return lines as the log has them."""
    return "\n".join(" ".join(filter(None, line)) if line.at else line.text for line in lines)


Index = QModelIndex | QPersistentModelIndex
NOWHERE = QModelIndex()

MOST = 200_000  # lines that are kept in memory
AT, LEVEL, TEXT, ORIGIN = range(4)
_PICTURES: dict[str, tuple[str, Status]] = {
    "DEBUG": ("info", "skipped"),
    "INFO": ("info", "skipped"),
    "WARNING": ("warning", "waiting"),
    "ERROR": ("error", "problem"),
    "CRITICAL": ("error", "problem"),
}


class LogModel(QAbstractTableModel):
    """The lines that pass a sieve, the latest last; the oldest go when there are too many."""

    def __init__(self, parent: QObject | None = None, most: int = MOST) -> None:
        super().__init__(parent)
        self.sieve = LogFilter()
        self._most = most
        self._lines: list[LogLine] = []
        self._shown: list[LogLine] = []

    @property
    def lines(self) -> Sequence[LogLine]:
        """All lines, those as well that the sieve keeps back."""
        return self._lines

    def shown(self, first: int, last: int) -> Sequence[LogLine]:
        """Return lines that are shown, from one row to another."""
        return self._shown[first : last + 1]

    def show(self, sifted: FilteredLines) -> None:
        """Show other lines, by another sieve."""
        self.beginResetModel()
        self.sieve = sifted.sieve
        self._lines, self._shown = list(sifted.lines), list(sifted.wanted)
        self.endResetModel()

    def append(self, lines: Sequence[LogLine]) -> None:
        """Add lines at the end."""
        self._lines += lines
        fresh = sift(lines, self.sieve).wanted
        if fresh:
            first = len(self._shown)
            self.beginInsertRows(NOWHERE, first, first + len(fresh) - 1)
            self._shown += fresh
            self.endInsertRows()
        surplus = len(self._lines) - self._most
        if surplus > 0:
            self._drop(surplus)

    def _drop(self, count: int) -> None:
        gone = len(sift(self._lines[:count], self.sieve).wanted)
        del self._lines[:count]
        if gone:
            self.beginRemoveRows(NOWHERE, 0, gone - 1)
            del self._shown[:gone]
            self.endRemoveRows()

    def rowCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else 4

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is Qt.Orientation.Vertical or role != Qt.ItemDataRole.DisplayRole:
            return None
        titles = (self.tr("Time"), self.tr("Level"), self.tr("Message"), self.tr("Written by"))
        return titles[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        line, column = self._shown[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self._tell(line, column)
        if role == Qt.ItemDataRole.DecorationRole and column == LEVEL and line.at:
            return icon(*_PICTURES[line.level])
        return None

    def _tell(self, line: LogLine, column: int) -> str:
        if column == TEXT:
            return texts.plain(line.text)
        if not line.at:
            return ""
        return (line.at, self._tell_level(line.level), "", line.origin)[column]

    def _tell_level(self, level: str) -> str:
        return {
            "DEBUG": self.tr("Detail"),
            "INFO": self.tr("Information"),
            "WARNING": self.tr("Warning"),
            "ERROR": self.tr("Error"),
            "CRITICAL": self.tr("Error"),
        }[level]
