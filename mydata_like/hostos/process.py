"""This process and its executable: account, start command, priority and garbage collection."""

import gc
import getpass
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Final


def read_account() -> str:
    """Return the name of the account of this process; empty if it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""  # an account without a name, as in some containers


def find_program() -> tuple[str, ...]:
    """Return the command line that starts the program, beginning with an absolute path.

    That is the executable of the installation or bundle, or without one, the interpreter.
    """
    interpreter = Path(sys.executable).absolute()
    command = interpreter.with_name("mydata-like.exe" if os.name == "nt" else "mydata-like")
    if command.exists():
        return (str(command),)
    return (str(interpreter), "-m", "mydata_like")


def find_window() -> tuple[str, ...]:
    """Return the command line that opens the window: on Windows, without a console."""
    program = find_program()
    silent = Path(program[0]).with_name("mydata-like-gui.exe")
    return (str(silent),) if silent.exists() else (*program, "gui")


def find_background_program() -> tuple[str, ...]:
    """Return the command line that starts the program: on Windows, without a console.

    The window's executable carries out `watch` as well.
    """
    program = find_program()
    silent = Path(program[0]).with_name("mydata-like-gui.exe")
    if silent.exists():
        return (str(silent),)
    interpreter = Path(program[0]).with_name("pythonw.exe")
    return (str(interpreter), "-m", "mydata_like") if interpreter.exists() else program


logger = logging.getLogger(__name__)

NICENESS: Final = 10  # a tenth of the processor's time if another process wants all of it


def lower_priority() -> None:
    """Set a low processor and disk priority for this process, permanently.

    Must be called before threads are started: on Linux both are per thread. Errors are ignored.
    """
    # Every command imports this module before it does anything, and few need this library.
    import psutil

    try:
        process = psutil.Process()
        if sys.platform == "win32":
            # Work-around: Windows 10 limits the working set to 32 MiB in the background mode, so
            # both priorities are set instead. https://github.com/osquery/osquery/issues/8149
            # Remove when Windows has a background mode without this limit.
            process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
            process.ionice(psutil.IOPRIO_LOW)
        else:
            current = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, 0, max(current, NICENESS))
        if sys.platform == "linux" and process.ionice().ioclass != psutil.IOPRIO_CLASS_IDLE:
            process.ionice(psutil.IOPRIO_CLASS_BE, 7)
    except (OSError, psutil.Error) as error:
        logger.debug("The priority cannot be lowered: %s", error)


SELDOM: Final = (50_000, 20, 50)  # thresholds of the three generations; see `gc.set_threshold`


@contextmanager
def gc_disabled_for_imports() -> Iterator[None]:
    """Disable garbage collection in this context, and exclude its objects from later ones.

    Imported modules are never freed. Scanning them repeatedly during the import takes a fifth of a
    run's start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


# Work-around: CPython 3.11 keeps the frames of a thread in chunks of 16 KiB. A loop whose calls
# cross the end of a chunk maps and unmaps memory each time: the nested imports of a run did so
# 5,800 times. A chunk is as large as its first frame needs, so a large frame makes a large chunk.
# https://github.com/python/cpython/issues/142183. Remove when 3.13 is the oldest supported version.
def call_with_large_stack(function: Callable[[], object]) -> None:
    """Call a function with room for about 9,000 variables and operands in the frames below it."""
    function()


_STACK_SIZE = 7200  # with 1,000 that stay free, just above 8,192, so the chunk has 16,384
call_with_large_stack.__code__ = call_with_large_stack.__code__.replace(co_stacksize=_STACK_SIZE)


_SWITCH: Final = 0.0005  # seconds for which imports may block a thread whose host has answered


def import_ahead(module: str) -> None:
    """Start to import a module that will be needed, while this thread waits for something else."""

    def work() -> None:
        with gc_disabled_for_imports():
            call_with_large_stack(lambda: import_module(module))

    sys.setswitchinterval(_SWITCH)
    Thread(target=work, name="import").start()


def collect_less_often() -> None:
    """Collect cyclic garbage less often from now on.

    A run creates millions of named tuples without cycles. With Python's default thresholds they
    are scanned repeatedly, which took half of a run's time.
    """
    gc.set_threshold(*SELDOM)
