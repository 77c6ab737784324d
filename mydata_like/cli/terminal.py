"""Standard output and error that print control characters as visible escapes.

Names of files and texts of a server are escaped where lines are made, by `core.format`. What was
forgotten there is escaped here, the last place before a terminal: a name could otherwise move
the cursor, set the title, answer as if from the keyboard, or turn the direction of a line.
"""

import errno
import io
import os
import re
import sys
from pathlib import Path
from typing import Any, Final, TextIO, cast

from mydata_like.core.formatting import format_lines

_COLOUR: Final = re.compile(r"(\x1b\[[0-9;]*m)")  # SGR: colours and weight, as help texts have

if sys.platform == "win32":
    import ctypes
    import msvcrt

    def _has_console_mode(descriptor: int) -> bool:
        handle, mode = msvcrt.get_osfhandle(descriptor), ctypes.c_ulong()
        ask = ctypes.WinDLL("kernel32").GetConsoleMode
        ask.argtypes = (ctypes.c_void_p, ctypes.POINTER(ctypes.c_ulong))
        return bool(ask(handle, ctypes.byref(mode)))


class GuardedStream:
    r"""A text stream that writes control characters, but for line breaks, as `\x1b` and the like.

    On a terminal, colours pass. Everything else is the stream's own; `stream` is there for what
    draws on a terminal, and escapes all texts itself.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._coloured = stream.isatty()

    def write(self, text: str) -> int:
        """Write a text; returns its length, as streams do."""
        try:
            self.stream.write(self._escape(text))
        except OSError as error:
            _raise_if_closed(error)
            raise
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        try:
            self.stream.flush()
        except OSError as error:
            _raise_if_closed(error)
            raise

    def writelines(self, lines: list[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def _escape(self, text: str) -> str:
        if not self._coloured:
            return format_lines(text)
        parts = _COLOUR.split(text)
        return "".join(part if at % 2 else format_lines(part) for at, part in enumerate(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _raise_if_closed(error: OSError) -> None:
    """Raise `BrokenPipeError` if the error means that the reader of a pipe has gone.

    Work-around: Python 3.11 raises OSError with EINVAL on Windows.
    https://github.com/python/cpython/issues/79935. Remove when that is fixed.
    """
    if os.name == "nt" and error.errno == errno.EINVAL:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from error


def guard_streams() -> None:
    """Guard standard output and error of this process; without a console, discard both.

    They are UTF-8 in pipes and files, whatever the system's encoding, since programs read them. A
    terminal keeps its own. What cannot be encoded is written as an escape.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # a service of Windows has none
            nothing = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - stays open
            setattr(sys, name, nothing)
            continue
        if isinstance(stream, io.TextIOWrapper):
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
        setattr(sys, name, cast(TextIO, GuardedStream(stream)))


def stdin_is_terminal() -> bool:
    """Return whether standard input is a terminal, where a user can answer.

    On Windows `isatty` is also true of the null device, which has no console's mode.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    return sys.platform != "win32" or _has_console_mode(sys.stdin.fileno())


def drawing_stream(stream: TextIO) -> TextIO:
    """Return the stream itself, for what moves the cursor and escapes all texts that it draws."""
    return stream.stream if isinstance(stream, GuardedStream) else stream
