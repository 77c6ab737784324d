"""The lines of a log as a table of bounded length."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from PySide6.QtCore import QObject

from mydata_like.app import logging_setup
from mydata_like.core.log_line import LogLine
from mydata_like.core.parsing import parse_moment
from mydata_like.gui.table_model import NO_PARENT, Column, RowsModel
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import RowIcon

# The fields of an event, and the sentence of its problem; see `cli.output.log_line`.
_FIELD = re.compile(r'(\w+)=("[^"]*"|\S+)')
_PROBLEM = re.compile(r"problem=\S+ \((.*?[.!?])\)( \w+=|$)")
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


class LogModel(RowsModel[LogLine]):
    """The lines that pass a filter, the latest last; surplus old lines are dropped."""

    def __init__(self, parent: QObject | None = None, most: int = MAX_LINES) -> None:
        super().__init__(parent)
        self.line_filter = LogFilter()
        self.lines: list[LogLine] = []  # also those that do not pass the filter
        self._most = most
        self._levels = {
            "DEBUG": RowIcon(self.tr("Detail"), "info", "skipped"),
            "INFO": RowIcon(self.tr("Information"), "info", "skipped"),
            "WARNING": RowIcon(self.tr("Warning"), "warning", "waiting"),
            "ERROR": RowIcon(self.tr("Error"), "error", "problem"),
            "CRITICAL": RowIcon(self.tr("Error"), "error", "problem"),
        }
        self._commands = {
            "start": self.tr("Start was chosen."),
            "pause": self.tr("Pause was chosen."),
            "resume": self.tr("Resume was chosen."),
            "stop": self.tr("Stop was chosen."),
            "stop_run": self.tr("Stop was chosen."),
            "cancel": self.tr("Files were held back."),
            "cancel_transfer": self.tr("Files were held back."),
            "retry": self.tr("Try again was chosen."),
            "retry_transfer": self.tr("Try again was chosen."),
            "send_next": self.tr("Send next was chosen."),
            "set_channels": self.tr("The number of channels was set."),
            "set_bandwidth": self.tr("The bandwidth limit was set."),
            "add_source": self.tr("Folders or files were added."),
        }
        self.columns = (
            Column("at", self.tr("Time"), lambda line: line.at),
            Column("level", self.tr("Level"), self._name_level, mark=self._mark_level),
            Column("text", self.tr("Message"), self._describe, tip=lambda line: line.text),
            Column("origin", self.tr("Source"), lambda line: line.origin if line.at else ""),
        )

    def show_filtered(self, filtered: FilteredLines) -> None:
        """Replace the lines and the filter."""
        self.line_filter, self.lines = filtered.line_filter, list(filtered.lines)
        self.show(filtered.passing)

    def append(self, rows: Sequence[LogLine]) -> None:
        """Add lines at the end."""
        self.lines += rows
        super().append(filter_lines(rows, self.line_filter).passing)
        excess = self.lines[: max(0, len(self.lines) - self._most)]
        del self.lines[: len(excess)]
        removed = len(filter_lines(excess, self.line_filter).passing)
        if removed:
            self.beginRemoveRows(NO_PARENT, 0, removed - 1)
            del self.rows[:removed]
            self.endRemoveRows()

    def _describe(self, line: LogLine) -> str:
        with suppress(ValueError):  # a damaged line
            return self._word(line)
        return self._plain(line)

    def _plain(self, line: LogLine) -> str:
        """Return the text of a line; a sentence of the program gets its full stop."""
        ends = line.at and line.text[:1].isupper() and line.text[-1].isalnum()
        return texts.plain(line.text) + ("." if ends else "")

    def _word(self, line: LogLine) -> str:
        """Return an event of the engine as a sentence; other lines are sentences."""
        name, _, rest = line.text.partition(" ")
        fields = {key: value.strip('"') for key, value in _FIELD.findall(rest)}
        channel, host = (texts.plain(fields.get(key, "")) for key in ("channel", "host"))
        match name, fields:
            case ("run_started", _):
                return self.tr("A run has started.")
            case ("run_finished", {"found": found}):
                text = self.tr("The run has ended: %1 of %2 files are verified.")
                counts = (texts.count(int(fields.get("verified", 0))), texts.count(int(found)))
                return texts.filled(text, *counts)
            case ("run_resumed", _):
                return self.tr("The run goes on.")
            case ("channel_changed", {"state": "open"}):
                return texts.filled(self.tr("Channel %1 to %2 is open."), channel, host)
            case ("channel_changed", {"state": "lost"}):
                return texts.filled(self.tr("Channel %1 to %2 was lost."), channel, host)
            case ("limits_changed", {"channels": most}):
                return self.tr("At most %Ln channel(s) are used.", "", int(most))
            case ("run_scheduled", {"at": at}):
                when = texts.moment(parse_moment(at))
                return self.tr("The next run is planned for %1.").replace("%1", when)
            case ("run_scheduled", _):
                return self.tr("No run is planned.")
            case ("command_done", {"command": command}) if command in self._commands:
                return self._commands[command]
            case _:
                found, path = _PROBLEM.search(rest), texts.plain(fields.get("path", ""))
                said = texts.engine_text(found[1]) if found else ""
                return ": ".join(filter(None, (path, said))) if said else self._plain(line)

    def _mark_level(self, line: LogLine) -> RowIcon | None:
        return self._levels[line.level] if line.at else None

    def _name_level(self, line: LogLine) -> str:
        return self._levels[line.level].word if line.at else ""
