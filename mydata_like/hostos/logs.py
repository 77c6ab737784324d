"""The log file, with rotation and with secrets redacted."""

import json
import logging
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from time import monotonic
from typing import BinaryIO, Final, NamedTuple
from urllib.parse import quote

from mydata_like.core.errors import SettingsError
from mydata_like.core.file_access import open_shared_text
from mydata_like.core.formatting import format_lines, format_text
from mydata_like.core.frozen import frozen
from mydata_like.core.log_line import LogLine
from mydata_like.settings.atomic_write import PRIVATE_FILE, make_private_file, require_plain

logger = logging.getLogger(__name__)

FILES = 5
_RENAME_AGAIN: Final = 60.0  # seconds after which a full log that could not be renamed is tried
HIDDEN = "***"
SHORTEST_SECRET = 4  # hiding anything shorter would redact too much

PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)", re.S),
        HIDDEN,
    ),
    (re.compile(r"(?i)(authorization['\"]?\s*[:=]\s*b?['\"]?)[^'\"\r\n]+"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)(\bapikey\s+)[^\s'\",]+"), rf"\1{HIDDEN}"),
    (
        re.compile(
            r"(?i)((?:api_?key|password|passwd|secret|token)['\"]?\s*[:=]\s*b?['\"]?)[^\s'\"&,;)}]+"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(://)[^/\s:@'\"]+:[^/\s@'\"]+@"), rf"\1{HIDDEN}@"),
)


class Redaction:
    """Hides secrets in texts: those that were added, and everything that looks like one."""

    def __init__(self) -> None:
        self._secrets: tuple[str, ...] = ()

    def add(self, secret: str) -> None:
        """Hide this text from now on, also in its URL-encoded and quoted forms."""
        if len(secret) < SHORTEST_SECRET:
            return
        forms = {secret, quote(secret, safe=""), repr(secret)[1:-1], json.dumps(secret)[1:-1]}
        # The longest first, so that no part of a longer one remains.
        self._secrets = tuple(sorted({*self._secrets, *forms}, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        for pattern, replacement in PATTERNS:
            text = pattern.sub(replacement, text)
        return text


@frozen(kw_only=True)
class LogStyle:
    """The name, level and size of a log."""

    name: str = "mydata-like"
    level: str = "INFO"
    file_bytes: int = 5_000_000


@contextmanager
def logging_to(folder: Path, redact: Redaction, style: LogStyle) -> Iterator[None]:
    """Log to a file in `folder`, or to standard error if that cannot be written.

    Several processes may log to one file. Errors that end a thread are logged as well.
    """
    file, problem = folder / f"{style.name}.log", None
    handler: logging.Handler
    try:
        handler = _SharedHandler(
            file, maxBytes=style.file_bytes, encoding="utf-8", errors="backslashreplace"
        )
    except (OSError, SettingsError) as error:
        handler, problem = logging.StreamHandler(sys.stderr), error
    handler.setFormatter(_PlainFormatter(redact))
    root = logging.getLogger()
    level, hook = root.level, threading.excepthook
    root.addHandler(handler)
    root.setLevel(style.level)
    threading.excepthook = _log_thread_error
    if problem:
        logger.warning("The log cannot be written to %s: %s", folder, problem)
    try:
        yield
    finally:
        threading.excepthook = hook
        root.setLevel(level)
        root.removeHandler(handler)
        handler.close()


class _SharedHandler(RotatingFileHandler):
    """A file that several processes add to, and that only its owner may read.

    When it is full, one of them renames it and the older ones, and the others follow. If a file
    cannot be renamed, as on Windows while a program such as an editor has it open, the current one
    grows on, and it is tried again later.
    """

    _rests_until = 0.0  # on the monotonic clock

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802 - logging's name
        if self.stream and not self._is_current(self.stream):
            self.stream.close()
            self.stream = self._open()
        return monotonic() >= self._rests_until and bool(super().shouldRollover(record))

    def doRollover(self) -> None:  # noqa: N802 - logging's name
        from filelock import FileLock, Timeout  # here, since a log is seldom full

        lock = Path(self.baseFilename).with_suffix(".lock")
        try:
            with FileLock(lock, timeout=0, mode=PRIVATE_FILE):
                if self.stream and self._is_current(self.stream):
                    self.stream.close()
                    self._rename_all()
        except Timeout:
            pass  # another process is renaming them
        except OSError:
            self._rests_until = monotonic() + _RENAME_AGAIN
        if self.stream:
            self.stream.close()
        self.stream = self._open()

    def _rename_all(self) -> None:
        """Rename only as many as make room; if all names are taken, the oldest is replaced."""
        files = [Path(f"{self.baseFilename}{'.' * bool(n)}{n or ''}") for n in range(FILES)]
        room = next((n for n, file in enumerate(files) if not file.exists()), FILES - 1)
        for number in range(room, 0, -1):
            files[number - 1].replace(files[number])

    def _open(self) -> TextIOWrapper:
        make_private_file(Path(self.baseFilename))
        return open(
            self.baseFilename,
            "a",
            encoding=self.encoding,
            errors=self.errors,
            opener=open_shared_text,
        )

    def _is_current(self, stream: TextIOWrapper) -> bool:
        """Return whether the open file still has its name."""
        try:
            return os.path.samestat(os.fstat(stream.fileno()), Path(self.baseFilename).stat())
        except OSError:
            return False


def _log_thread_error(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is None or isinstance(ended.exc_value, SystemExit):
        return
    name = ended.thread.name if ended.thread else "unknown"
    logger.critical("The thread %s ended with an error", name, exc_info=ended.exc_value)


class _PlainFormatter(logging.Formatter):
    """Formats plain text; the redaction is applied to the whole text, including tracebacks.

    A message is always one line; only a traceback has several.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__("%(asctime)s %(levelname)-8s %(threadName)s %(name)s: %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        line, *trace = self._redact(super().format(record)).split("\n")
        # Log lines begin with a date. Indent other lines that do, so that they cannot be mistaken.
        rest = (f"  {text}" if text[:1].isdigit() else text for text in trace)
        return format_lines("\n".join((line, *rest)))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = format_text(self._redact(record.message))
        return super().formatMessage(record)


MOST_AT_ONCE: Final = 4_000_000  # bytes of new text that are read at once
_LINE: Final = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} (DEBUG|INFO|WARNING|ERROR|CRITICAL) +"
    r"(?:.*?) ([\w.]+): (.*)"
)


class _Position(NamedTuple):
    """The read position in a file, which is identified independent of its current name."""

    inode: int
    offset: int


class LogFollower:
    """Follows one log; each call of `read` returns the lines since the last call.

    If the log was rotated in the meantime, the rest of the old file comes first. A log that does
    not exist or cannot be read has no lines.
    """

    def __init__(self, folder: Path, name: str, most: int) -> None:
        self._file = folder / f"{name}.log"
        self._most = most
        self._position: _Position | None = None
        self._level = "INFO"

    def read(self) -> list[LogLine]:
        """Return the new lines (all lines in the first call), but at most the configured number."""
        before = self._position
        lines: deque[LogLine] = deque(maxlen=None if before else self._most)
        if before is None:
            for number in range(FILES - 1, 0, -1):
                lines.extend(self._parse(self._read(self._older(number), 0, -1)))
        elif _inode_of(self._file) != before.inode:
            if _inode_of(self._older(1)) == before.inode:
                lines.extend(self._parse(self._read(self._older(1), before.offset, -1)))
            self._position = None
        inode, offset = _inode_of(self._file), self._position.offset if self._position else 0
        content = self._read(self._file, offset, MOST_AT_ONCE if self._position else -1)
        whole = content[: content.rfind(b"\n") + 1]
        if inode is not None:
            self._position = _Position(inode, offset + len(whole))
        lines.extend(self._parse(whole))
        return list(lines)

    def _older(self, number: int) -> Path:
        return self._file.with_name(f"{self._file.name}.{number}")

    def _read(self, file: Path, offset: int, most: int) -> bytes:
        try:
            require_plain(file)
            with open(file, "rb", opener=open_shared_text) as opened:
                return _read_from(opened, offset, most)
        except (OSError, SettingsError):
            return b""

    def _parse(self, content: bytes) -> Iterator[LogLine]:
        for text in content.decode("utf-8", "backslashreplace").splitlines():
            line = parse_line(text, self._level)
            self._level = line.level
            yield line


def parse_line(text: str, level: str) -> LogLine:
    """Return a parsed line of the log; a continuation line has the level of its message."""
    found = _LINE.fullmatch(text)
    return LogLine(*found.groups()) if found else LogLine("", level, "", text)


def read_end(file: Path, most: int) -> str:
    """Return the last lines of a log, at most `most` bytes; empty if there is no log."""
    try:
        require_plain(file)
        with open(file, "rb", opener=open_shared_text) as opened:
            size = os.fstat(opened.fileno()).st_size
            content = _read_from(opened, max(0, size - most), most)
    except (OSError, SettingsError):
        return ""
    first = content.find(b"\n") + 1 if size > most else 0
    return content[first:].decode("utf-8", "backslashreplace").replace(os.linesep, "\n")


def _read_from(opened: BinaryIO, offset: int, most: int) -> bytes:
    opened.seek(offset)
    return opened.read(most)


def _inode_of(file: Path) -> int | None:
    try:
        return file.stat().st_ino
    except OSError:
        return None
