"""How this very program is started by others: by the system, at a login."""

import gc
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil


def find_program() -> tuple[str, ...]:
    """Return the words that start the program, the first one an absolute path.

    It is the command of the installation or the bundle that this program belongs to or, without
    one, the interpreter.
    """
    interpreter = Path(sys.executable).absolute()
    command = interpreter.with_name("mydata-like.exe" if os.name == "nt" else "mydata-like")
    if command.exists():
        return (str(command),)
    return (str(interpreter), "-m", "mydata_like")


def find_window() -> tuple[str, ...]:
    """Return the words that open the window: on Windows, of the program without a console."""
    program = find_program()
    silent = Path(program[0]).with_name("mydata-like-gui.exe")
    return (str(silent),) if silent.exists() else (*program, "gui")


logger = logging.getLogger(__name__)

NICENESS: Final = 10  # a tenth of the processor's time where somebody else wants all of it


def lower_priority() -> None:
    """Give this process a low priority for processor and disk, for good.

    Must be called before threads are started: on Linux both belong to the thread. A system
    that forbids it is let be.
    """
    try:
        if sys.platform == "win32":
            _lower_on_windows()
        else:
            _lower_on_unix()
    except (OSError, psutil.Error) as error:
        logger.debug("The priority stays as it is: %s", error)


if sys.platform == "win32":

    def _lower_on_windows() -> None:
        # Windows' background mode would also cap the working set at 32 MiB.
        process = psutil.Process()
        process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        process.ionice(psutil.IOPRIO_LOW)

else:

    def _lower_on_unix() -> None:
        current = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, 0, max(current, NICENESS))
        if sys.platform == "linux":
            process = psutil.Process()
            if process.ionice().ioclass != psutil.IOPRIO_CLASS_IDLE:
                process.ionice(psutil.IOPRIO_CLASS_BE, 7)


SELDOM: Final = (50_000, 20, 50)  # new values until the young, the older, all are looked at


@contextmanager
def imported_for_good() -> Iterator[None]:
    """Look for no garbage while this lasts, and never again at what it leaves.

    Modules stay until the end; walking through them again and again while they are imported
    takes a fifth of the start of a run.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def collect_seldom() -> None:
    """Look seldom for values that keep each other alive, from now on.

    A run makes named tuples by the million, none of which does; but with Python's own
    thresholds it walks through those under way again and again, which took half its time.
    """
    gc.set_threshold(*SELDOM)
