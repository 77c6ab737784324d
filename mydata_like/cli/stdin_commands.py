"""Signals and requests that stop a command, and commands that it reads from standard input."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from mydata_like.app.logging_setup import open_log
from mydata_like.app.run_request import RunObserver, ignore
from mydata_like.cli.output import Shape
from mydata_like.core.commands import LONGEST
from mydata_like.core.ports import Emit
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.instances import stopped_by_request
from mydata_like.settings.schema import Settings

logger = logging.getLogger(__name__)

_PIECE = 64 * 1024  # bytes read at once
# The last one is Ctrl+Break on Windows, and the end of the console's window.
_STOPPING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)
]


def follow_standard_input(
    obey: Callable[[bytes], None], ended: Callable[[], None] | None = None
) -> None:
    """Pass on each line that comes, from a thread that never keeps the process from ending.

    The end of the input does not stop the command, but `ended` is called, since the program that
    gave commands may be gone. A terminal is not read, since that would stop a process in its
    background.
    """
    try:
        descriptor = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return  # there is none, as in a windowed program
    if os.isatty(descriptor):
        return

    # Work-around: Python 3.11 aborts at its end while a daemon thread holds the lock of a standard
    # stream, so the thread does not read `sys.stdin` but its descriptor.
    # https://github.com/python/cpython/issues/129536. Remove when that is fixed.
    def follow() -> None:
        try:
            for line in split_lines(lambda: os.read(descriptor, _PIECE)):
                obey(line)
        except OSError as error:  # of the input, or of the output that answers go to
            logger.info("No further commands are read: %s", error)
        if ended:
            ended()

    threading.Thread(target=follow, name="commands", daemon=True).start()


def split_lines(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Yield lines that are not blank; of one that is too long, enough to see that it is."""
    line = bytearray()
    while piece := read():
        for part in piece.splitlines(keepends=True):
            line += part[: LONGEST + 1 - len(line)]
            if part.endswith(b"\n"):
                if line.strip():
                    yield bytes(line)
                line.clear()
    if line.strip():
        yield bytes(line)


def follow_commands(
    shape: Shape, obey: Callable[[bytes], None], ended: Callable[[], None] | None = None
) -> None:
    """Execute the commands of a program that reads the events; users have signals instead.

    `ended` is called when the program has gone.
    """
    if shape in (Shape.EVENTS, Shape.BRIEF):
        follow_standard_input(obey, ended)


@contextmanager
def stopped_by_signals(cancel: CancelFlag) -> Iterator[None]:
    """Turn signals to stop into a request to stop; a second one ends the program at once.

    On Windows, the installer asks as well, before an upgrade.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        if cancel.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        cancel.set(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in _STOPPING}
    try:
        with stopped_by_request(lambda: cancel.set("the installer")):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def observing(
    settings: Settings, config: Path | None, emit: Emit = ignore
) -> Iterator[RunObserver]:
    """Yield an observer that signals cancel, and log what happens without any secrets."""
    cancel = CancelFlag()
    with open_log(settings, config) as redaction, stopped_by_signals(cancel):
        yield RunObserver(emit=emit, cancel=cancel, hide=redaction.add)
