"""The lines of a log as a table of bounded length."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from PySide6.QtCore import QObject

from mydata_like.app import logging_setup
from mydata_like.core.log_line import LogLine
from mydata_like.gui.table_model import NO_PARENT, Column, RowsModel
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.widgets import RowIcon

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


MAX_LINES = 200_000  # in memory
AT, LEVEL, TEXT, ORIGIN = range(4)
_MARKS: dict[str, tuple[str, Status]] = {
    "DEBUG": ("info", "skipped"),
    "INFO": ("info", "skipped"),
    "WARNING": ("warning", "waiting"),
    "ERROR": ("error", "problem"),
    "CRITICAL": ("error", "problem"),
}


class LogModel(RowsModel[LogLine]):
    """The lines that pass a filter, the latest last; surplus old lines are dropped.

    A further line of a message has only a text.
    """

    def __init__(self, parent: QObject | None = None, most: int = MAX_LINES) -> None:
        super().__init__(parent)
        self.line_filter = LogFilter()
        self.lines: list[LogLine] = []  # also those that do not pass the filter
        self._most = most
        self.columns = (
            Column("at", self.tr("Time"), lambda line: line.at, width=22),
            Column("level", self.tr("Level"), self._level_text, width=16, mark=_find_mark),
            Column("text", self.tr("Message"), lambda line: texts.plain(line.text)),
            Column("origin", self.tr("Source"), _origin, width=27),
        )

    def show_lines(self, filtered: FilteredLines) -> None:
        """Replace the lines and the filter."""
        self.line_filter = filtered.line_filter
        self.lines = list(filtered.lines)
        self.show(filtered.passing)

    def add(self, lines: Sequence[LogLine]) -> None:
        """Add lines at the end."""
        self.lines += lines
        self.append(filter_lines(lines, self.line_filter).passing)
        excess = max(0, len(self.lines) - self._most)
        removed = len(filter_lines(self.lines[:excess], self.line_filter).passing)
        del self.lines[:excess]
        if removed:
            self.beginRemoveRows(NO_PARENT, 0, removed - 1)
            del self.rows[:removed]
            self.endRemoveRows()

    def _level_text(self, line: LogLine) -> str:
        words = {
            "DEBUG": self.tr("Detail"),
            "INFO": self.tr("Information"),
            "WARNING": self.tr("Warning"),
            "ERROR": self.tr("Error"),
            "CRITICAL": self.tr("Error"),
        }
        return words[line.level] if line.at else ""


def _find_mark(line: LogLine) -> RowIcon | None:
    return RowIcon("", *_MARKS[line.level]) if line.at else None


def _origin(line: LogLine) -> str:
    return line.origin if line.at else ""
