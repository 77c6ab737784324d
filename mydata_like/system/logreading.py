"""Reads a log as it grows, from the files that are put aside to the one that is written."""

import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from mydata_like.core.errors import SettingsError
from mydata_like.core.log_line import LogLine
from mydata_like.settings.atomic_write import require_plain
from mydata_like.system.logs import FILES

MOST_AT_ONCE: Final = 4_000_000  # bytes that are read at once of what has come
_LINE: Final = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} (DEBUG|INFO|WARNING|ERROR|CRITICAL) +"
    r"(?:.*?) ([\w.]+): (.*)"
)


class _Position(NamedTuple):
    """How far a file has been read, and which file that is, whatever it is called by now."""

    inode: int
    offset: int


class LogFollower:
    """Follows one log; each call of `read` returns what has come since the last one.

    Where the log was put aside meanwhile, the rest of the old file comes first. A log that is
    not there, or cannot be read, has no lines.
    """

    def __init__(self, folder: Path, name: str, most: int) -> None:
        self._file = folder / f"{name}.log"
        self._most = most
        self._position: _Position | None = None
        self._level = "INFO"

    def read(self) -> list[LogLine]:
        """Return new lines, the first time all that there are, at most as many as wanted."""
        if self._position is None:
            files = [self._older(number) for number in range(FILES - 1, 0, -1)]
            lines: deque[LogLine] = deque(maxlen=self._most)
            for file in files:
                lines.extend(self._parse(self._read(file, 0, -1)))
            lines.extend(self._go_on(self._file))
            return list(lines)
        return list(self._catch_up())

    def _catch_up(self) -> Iterator[LogLine]:
        before = self._position
        if before is not None and _inode_of(self._file) != before.inode:
            aside = self._older(1)
            if _inode_of(aside) == before.inode:
                yield from self._parse(self._read(aside, before.offset, -1))
            self._position = None
        yield from self._go_on(self._file)

    def _go_on(self, file: Path) -> Iterator[LogLine]:
        """Read the file that is written, as far as its lines are whole."""
        inode, offset = _inode_of(file), self._position.offset if self._position else 0
        content = self._read(file, offset, MOST_AT_ONCE if self._position else -1)
        whole = content[: content.rfind(b"\n") + 1]
        if inode is not None:
            self._position = _Position(inode, offset + len(whole))
        yield from self._parse(whole)

    def _older(self, number: int) -> Path:
        return self._file.with_name(f"{self._file.name}.{number}")

    def _read(self, file: Path, offset: int, most: int) -> bytes:
        try:
            require_plain(file)
            with file.open("rb") as opened:
                return _read_from(opened, offset, most)
        except (OSError, SettingsError):
            return b""

    def _parse(self, content: bytes) -> Iterator[LogLine]:
        for text in content.decode("utf-8", "backslashreplace").splitlines():
            line = parse_line(text, self._level)
            self._level = line.level
            yield line


def parse_line(text: str, level: str) -> LogLine:
    """Return a line of the log; one that continues a message has the level of that."""
    found = _LINE.fullmatch(text)
    return LogLine(*found.groups()) if found else LogLine("", level, "", text)


def read_end(file: Path, most: int) -> str:
    """Return the last lines of a log, at most so many bytes; empty where there is none."""
    try:
        require_plain(file)
        with file.open("rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            content = _read_from(opened, max(0, size - most), most)
    except (OSError, SettingsError):
        return ""
    first = content.find(b"\n") + 1 if size > most else 0
    return content[first:].decode("utf-8", "backslashreplace")


def _read_from(opened: BinaryIO, offset: int, most: int) -> bytes:
    opened.seek(offset)
    return opened.read(most)


def _inode_of(file: Path) -> int | None:
    try:
        return file.stat().st_ino
    except OSError:
        return None
