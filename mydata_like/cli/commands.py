"""Reads commands from standard input, line by line, beside whatever else goes on."""

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator

from mydata_like.core.commands import LONGEST

logger = logging.getLogger(__name__)

_PIECE = 64 * 1024  # bytes read at once


def follow_standard_input(
    obey: Callable[[bytes], None], ended: Callable[[], None] | None = None
) -> None:
    """Pass on each line that comes, from a thread that never keeps the process from ending.

    The end of the input ends nothing else, but `ended` is told of it: whoever gave the commands
    may be gone. A terminal is left alone, since a process in its background would be stopped
    for reading from it.
    """
    try:
        descriptor = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return  # there is none, as in a windowed program
    if os.isatty(descriptor):
        return
    # Not by `sys.stdin`: a thread that waits in its lock makes the interpreter's end fatal.
    follow = threading.Thread(
        target=_follow,
        args=(lambda: os.read(descriptor, _PIECE), obey, ended),
        name="commands",
    )
    follow.daemon = True
    follow.start()


def _follow(
    read: Callable[[], bytes], obey: Callable[[bytes], None], ended: Callable[[], None] | None
) -> None:
    try:
        for line in split_lines(read):
            obey(line)
    except OSError as error:  # of the input, or of the output that answers go to
        logger.info("No further commands are read: %s", error)
    if ended:
        ended()


def split_lines(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Yield lines that are not blank; of one that is too long, enough to see that it is."""
    line = bytearray()
    while piece := read():
        for part in piece.splitlines(keepends=True):
            line += part[: LONGEST + 1 - len(line)]
            if part.endswith(b"\n"):
                yield from _unless_blank(line)
                line.clear()
    yield from _unless_blank(line)


def _unless_blank(line: bytearray) -> Iterator[bytes]:
    if line.strip():
        yield bytes(line)
