"""The other processes of this installation: asked to stop for an upgrade, and started again.

On Windows, a process that can be asked to stop has an event with its process ID in the name. The
other systems have the signal SIGTERM.
"""

import ctypes
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import psutil

if sys.platform == "win32":
    from ctypes import wintypes

logger = logging.getLogger(__name__)

STOP_PATIENCE: Final = 30.0  # seconds until a process that was asked to stop is killed
_KILL_PATIENCE: Final = 10.0  # seconds
_PROGRAMS: Final = ("mydata-like", "mydata-like-gui")


class StartedCommand(NamedTuple):
    """The command line of a process, beginning with the path of its executable."""

    words: tuple[str, ...]
    own: bool = True  # it belongs to the account of this process
    scheduled: bool = False  # the Task Scheduler of Windows has started it

    @property
    def opens_window(self) -> bool:
        """Whether the process is the window."""
        return (self._silent and not self.watches) or self.words[1:2] in ((), ("gui",))

    @property
    def _silent(self) -> bool:
        """Whether it is the program without a console, which opens the window or watches."""
        return Path(self.words[0]).stem == "mydata-like-gui"

    @property
    def watches(self) -> bool:
        """Whether the process is a watch that does not belong to a window."""
        return self.words[1:2] == ("watch",) and "--attended" not in self.words

    def in_background(self) -> "StartedCommand":
        """Return the command without files to upload; a window starts in the tray."""
        if not self.opens_window:
            return self
        place = self.words.index("--config") if "--config" in self.words else len(self.words)
        start = self.words[:1] if self._silent else (self.words[0], "gui")
        return self._replace(words=(*start, *self.words[place : place + 2], "--hidden"))


def list_others(folder: Path) -> list[psutil.Process]:
    """Return the other processes whose executable is the program's in this folder."""
    place = os.path.normcase(os.path.realpath(folder))
    found = []
    for process in psutil.process_iter():
        program = _find_program(process)
        same = os.path.normcase(os.path.realpath(program.parent)) == place
        if same and program.stem.lower() in _PROGRAMS and process.pid != os.getpid():
            found.append(process)
    return found


def _find_program(process: psutil.Process) -> Path:
    """Return the path of the executable; a name alone if it is not known."""
    try:
        return Path(process.exe() or "-")
    except psutil.Error:
        return Path("-")
    except OSError as error:
        # Work-around: Wine 8 does not have what psutil 7 asks for (SystemProcessIdInformation). The
        # first word of the command is the path if it was started by a path.
        # No report known; see test_a_command_begins_with_the_path_of_its_program.
        # Remove when the rig has a Wine that does.
        logger.debug("The executable of process %d is not known: %s", process.pid, error)
        return _first_word(process)


def _first_word(process: psutil.Process) -> Path:
    try:
        return Path(next(iter(process.cmdline()), "-"))
    except (OSError, psutil.Error):
        return Path("-")


def describe_commands(processes: Sequence[psutil.Process]) -> list[StartedCommand]:
    """Return the commands of those processes that are still running and readable."""
    account, commands = psutil.Process().username(), []
    for process in processes:
        try:
            words = (str(_find_program(process)), *process.cmdline()[1:])
            own, scheduled = process.username() == account, _is_scheduled(process)
            commands.append(StartedCommand(words, own, scheduled))
        except psutil.Error:
            continue
    return commands


def stop_processes(
    processes: Sequence[psutil.Process], patience: float = STOP_PATIENCE
) -> list[psutil.Process]:
    """Ask processes to stop, kill those that are left after the patience; return what remains.

    Processes that cannot be asked, like channel workers, end when those that started them do.
    """
    for process in processes:
        ask_to_stop(process)
    _, left = psutil.wait_procs(processes, patience)
    for process in left:
        try:
            process.kill()
        except psutil.Error:  # it has ended, or belongs to an account with more rights
            continue
    return list(psutil.wait_procs(left, _KILL_PATIENCE)[1])


def start_again(commands: Sequence[StartedCommand]) -> Iterator[subprocess.Popen[bytes] | None]:
    """Start windows and watches again; yield the process of each that was started.

    It is None for a watch that the Task Scheduler has started.
    """
    # Only an upgrade needs it; what writes XML is slow to import.
    from mydata_like.hostos.service import START_TASK, run_commands

    for command in commands:
        scheduled = command.watches and command.scheduled
        if scheduled and not next(run_commands([START_TASK])).problem:
            yield None
        elif command.own and (command.watches or command.opens_window):
            yield _start_detached(command.in_background().words)


def _is_scheduled(process: psutil.Process) -> bool:
    """Return whether a process is a child of a service host, as all tasks are."""
    try:
        parent = process.parent()
        return parent is not None and parent.name().lower() == "svchost.exe"
    except (OSError, psutil.Error):
        return False


def _start_detached(words: Sequence[str]) -> subprocess.Popen[bytes]:
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
    return subprocess.Popen(  # noqa: S603 - the command of a process that has run
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=flags,
    )


if sys.platform == "win32":
    _ACCESS: Final = "D:(A;;GA;;;OW)(A;;GA;;;SY)(A;;GA;;;BA)"  # owner, system, administrators
    _SDDL_REVISION: Final = 1
    _EVENT_MODIFY_STATE: Final = 0x2
    _INFINITE: Final = 0xFFFFFFFF
    _ALREADY_EXISTS: Final = 183

    class _SecurityAttributes(ctypes.Structure):
        _fields_ = (
            ("length", wintypes.DWORD),
            ("descriptor", wintypes.LPVOID),
            ("inherit", wintypes.BOOL),
        )

    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    _convert = ctypes.WinDLL("advapi32").ConvertStringSecurityDescriptorToSecurityDescriptorW
    _convert.argtypes = (
        wintypes.LPCWSTR,
        wintypes.DWORD,
        ctypes.POINTER(wintypes.LPVOID),
        wintypes.LPVOID,
    )
    _kernel.CreateEventW.restype = wintypes.HANDLE
    _kernel.CreateEventW.argtypes = (
        ctypes.POINTER(_SecurityAttributes),
        wintypes.BOOL,
        wintypes.BOOL,
        wintypes.LPCWSTR,
    )
    _kernel.OpenEventW.restype = wintypes.HANDLE
    _kernel.OpenEventW.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.LPCWSTR)
    _kernel.SetEvent.argtypes = (wintypes.HANDLE,)
    _kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
    _kernel.LocalFree.argtypes = (wintypes.LPVOID,)
    _kernel.WaitForSingleObject.argtypes = (wintypes.HANDLE, wintypes.DWORD)

    def _event_name(pid: int) -> str:
        # Global: an installer for all users runs in another session.
        return rf"Global\mydata-like-stop-{pid}"

    def _create_event() -> int | None:
        """Create the event of this process; None if that fails, or another program has it."""
        descriptor = wintypes.LPVOID()
        if not _convert(_ACCESS, _SDDL_REVISION, ctypes.byref(descriptor), None):
            return None
        access = _SecurityAttributes(ctypes.sizeof(_SecurityAttributes), descriptor, 0)
        name = _event_name(os.getpid())
        event: int | None = _kernel.CreateEventW(ctypes.byref(access), 1, 0, name)
        known = ctypes.get_last_error() == _ALREADY_EXISTS
        _kernel.LocalFree(descriptor)
        if event and known:
            _kernel.CloseHandle(event)
            return None
        return event

    @contextmanager
    def stopped_by_request(stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop`, from another thread, when this process is asked to stop."""
        event = _create_event()
        if not event:
            yield
            return
        over = threading.Event()

        def wait() -> None:
            _kernel.WaitForSingleObject(event, _INFINITE)
            if not over.is_set():
                stop()

        waiting = threading.Thread(target=wait, name="stop request", daemon=True)
        waiting.start()
        try:
            yield
        finally:
            over.set()
            _kernel.SetEvent(event)
            waiting.join()
            _kernel.CloseHandle(event)

    def ask_to_stop(process: psutil.Process) -> bool:
        """Ask a process to stop; return whether it can be asked."""
        event = _kernel.OpenEventW(_EVENT_MODIFY_STATE, 0, _event_name(process.pid))
        if not event:
            return False
        try:
            return bool(_kernel.SetEvent(event))
        finally:
            _kernel.CloseHandle(event)

else:

    @contextmanager
    def stopped_by_request(stop: Callable[[], None]) -> Iterator[None]:
        """Do nothing: the request is a signal."""
        yield

    def ask_to_stop(process: psutil.Process) -> bool:
        """Ask a process to stop; return whether it can be asked."""
        try:
            process.terminate()
        except psutil.Error:
            return False
        return True
