"""The log: a file that never grows large and never holds a secret."""

import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from urllib.parse import quote

from mydata_like.core.errors import SettingsError
from mydata_like.core.formatting import format_json, format_lines, format_text
from mydata_like.settings.atomic_write import make_private_file

logger = logging.getLogger(__name__)

FILES = 5
HIDDEN = "***"
SHORTEST_SECRET = 4  # hiding anything shorter would blacken the log

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
    """Hides secrets in texts: those it was told, and whatever looks like one."""

    def __init__(self) -> None:
        self._secrets: tuple[str, ...] = ()

    def add(self, secret: str) -> None:
        """Hide this text from now on, also as it stands in addresses and in quotes."""
        if len(secret) < SHORTEST_SECRET:
            return
        forms = {secret, quote(secret, safe=""), repr(secret)[1:-1], json.dumps(secret)[1:-1]}
        # The longest first, so that none leaves a rest of another.
        self._secrets = tuple(sorted({*self._secrets, *forms}, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        for pattern, replacement in PATTERNS:
            text = pattern.sub(replacement, text)
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStyle:
    """How much is logged, under which name, as plain text or as one JSON document a line."""

    name: str = "mydata-like"
    level: str = "INFO"
    json_lines: bool = False
    file_bytes: int = 5_000_000


@contextmanager
def logging_to(folder: Path, redact: Redaction, style: LogStyle) -> Iterator[None]:
    """Log to a file below `folder`, or to standard error where that cannot be written.

    Each process needs a name of its own, since files are renamed when they are full. Errors
    that end a thread are logged, too.
    """
    handler, problem = _open_handler(folder, style)
    handler.setFormatter(_JsonFormatter(redact) if style.json_lines else _PlainFormatter(redact))
    root = logging.getLogger()
    level, hook = root.level, threading.excepthook
    root.addHandler(handler)
    root.setLevel(style.level)
    threading.excepthook = _log_end_of_thread
    if problem:
        logger.warning("The log cannot be written to %s: %s", folder, problem)
    try:
        yield
    finally:
        threading.excepthook = hook
        root.setLevel(level)
        root.removeHandler(handler)
        handler.close()


def _open_handler(folder: Path, style: LogStyle) -> tuple[logging.Handler, Exception | None]:
    file = folder / f"{style.name}.log"
    try:
        handler = _PrivateHandler(
            file,
            maxBytes=style.file_bytes,
            backupCount=FILES - 1,
            encoding="utf-8",
            errors="backslashreplace",
        )
    except (OSError, SettingsError) as error:
        return logging.StreamHandler(sys.stderr), error
    return handler, None


class _PrivateHandler(RotatingFileHandler):
    """Makes each file readable by its owner only, also the one that follows a full one."""

    def _open(self) -> TextIOWrapper:
        make_private_file(Path(self.baseFilename))
        return super()._open()


def _log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is None or isinstance(ended.exc_value, SystemExit):
        return
    name = ended.thread.name if ended.thread else "unknown"
    logger.critical("The thread %s ended by an error", name, exc_info=ended.exc_value)


class _PlainFormatter(logging.Formatter):
    """Lines for people; the redaction sees the whole text, tracebacks included.

    A message is one line, whatever it holds; only a traceback has several.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__("%(asctime)s %(levelname)-8s %(threadName)s %(name)s: %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        line, *trace = self._redact(super().format(record)).split("\n")
        # No line of an error's message passes for one of the log, which begins with a date.
        rest = (f"  {text}" if text[:1].isdigit() else text for text in trace)
        return format_lines("\n".join((line, *rest)))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = format_text(self._redact(record.message))
        return super().formatMessage(record)


class _JsonFormatter(logging.Formatter):
    """One document a line, for machines."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        document = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "thread": record.threadName,
            "message": self._redact(record.getMessage()),
        }
        if record.exc_info:
            document["error"] = self._redact(self.formatException(record.exc_info))
        return format_json(document)
