"""Local files that other programs have open, to write to them as far as the system tells.

Linux lists the open files of each process in `/proc`, those of other accounts only to the
administrator. It refuses a read lease (`F_SETLEASE` of fcntl(2)) for a file that any process has
open for writing, but grants one only to the owner of the file. Windows has the Restart Manager
(https://learn.microsoft.com/windows/win32/rstmgr/restart-manager-portal), which does not open the
files, and does not tell readers from writers.
"""

import ctypes
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple, Self

import psutil

from mydata_like.core.file_access import verbatim
from mydata_like.core.formatting import format_text
from mydata_like.core.local_files import LocalFile
from mydata_like.core.openat import NO_LINK
from mydata_like.hostos.lock import is_local

logger = logging.getLogger(__name__)

READ_ONLY: Final = (
    os.O_RDONLY | NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
)
UNNAMED: Final = "Another program"
_FRESH: Final = 1.0  # seconds for which a list of open files is used
_AT_ONCE: Final = 500  # files that Windows is asked about together


class OpenPath(NamedTuple):
    """A file that a process has open; `process` is 0 if it is not known."""

    path: bytes
    process: int


def find_each(
    paths: Sequence[bytes], ask: Callable[[Sequence[bytes]], Sequence[int] | None]
) -> Iterator[OpenPath]:
    """Yield each path that a process has open.

    `ask` returns the processes that have any of the given paths open, not which path, or None if
    the system does not tell because of one of them.
    """
    processes = ask(paths) if paths else ()
    if processes and len(paths) == 1:
        yield OpenPath(paths[0], processes[0])
    elif (processes or processes is None) and len(paths) > 1:
        middle = len(paths) // 2
        yield from find_each(paths[:middle], ask)
        yield from find_each(paths[middle:], ask)


def name_process(process: int) -> str:
    """Return the name of a running program, without control characters."""
    try:
        name = psutil.Process(process).name() if process else ""
    except (psutil.Error, OSError):
        name = ""
    return format_text(name.removesuffix(".exe")) or UNNAMED


class FileUse(Enum):
    """Whether other programs may write to a file, according to the system."""

    NONE = "none"  # by no known program
    OPEN = "open"
    LOCKED = "locked"
    UNKNOWN = "unknown"  # the system does not tell this account


if sys.platform == "linux":
    import errno
    import fcntl
    import signal

    # Errors of file systems without leases: EINVAL for most, ENOLCK for some network file systems.
    _NO_LEASES: Final = (errno.EINVAL, errno.ENOLCK)
    _PROCESSES: Final = Path("/proc")
    _LOCKS: Final = _PROCESSES / "locks"

    class WriteGuard:
        """Blocks other programs from opening a file for writing, and detects those that try.

        The file must be open read-only. Without leases, it only detects writers.
        """

        def __init__(self, descriptor: int) -> None:
            self._descriptor = descriptor
            self._inode = os.fstat(descriptor).st_ino
            self._leased = False
            self.refusal = self._take_lease()

        def find_use(self) -> FileUse:
            """Return whether a program has the file open for writing, waits to, or locks it."""
            if self.refusal is not FileUse.NONE:
                return self.refusal
            if self._leased and fcntl.fcntl(self._descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK:
                return FileUse.OPEN
            if not self._leased and _is_open_to_write(self._descriptor):
                return FileUse.OPEN
            return FileUse.LOCKED if _is_locked(self._inode) else FileUse.NONE

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            if self._leased:
                with suppress(OSError):
                    fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)

        def _take_lease(self) -> FileUse:
            try:
                # The system sends us a signal when a program opens the file: choose one that is
                # ignored by default.
                fcntl.fcntl(self._descriptor, fcntl.F_SETSIG, signal.SIGURG)
                fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            except OSError as error:
                if error.errno == errno.EAGAIN:
                    return FileUse.OPEN
                # EACCES: the file belongs to another account, which says nothing about writers.
                return FileUse.NONE if error.errno in _NO_LEASES else FileUse.UNKNOWN
            self._leased = True
            return FileUse.NONE

    def _is_locked(inode: int) -> bool:
        """Return whether a program holds a write lock (flock, POSIX) on a file.

        The device is not compared: some file systems (btrfs, overlay) show a different one there.
        """
        try:
            lines = _LOCKS.read_text("ascii").splitlines()
        except OSError:
            return False
        # "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF", see proc_locks(5)
        fields = (line.replace("->", "").split() for line in lines)
        return any(
            field[1] != "LEASE" and field[3] == "WRITE" and field[5].endswith(f":{inode}")
            for field in fields
            if len(field) > 5
        )

    def _is_open_to_write(descriptor: int) -> bool:
        """Return whether a process whose descriptors we may read has a file open for writing."""
        file = os.fstat(descriptor)
        identity = file.st_dev, file.st_ino
        return any(_may_write(number, identity) for number in _list_descriptors())

    def _list_descriptors() -> Iterator[Path]:
        for process in _PROCESSES.iterdir():
            if process.name.isdecimal():
                with suppress(OSError):  # it has ended, or belongs to another account
                    yield from (process / "fd").iterdir()

    def _may_write(number: Path, identity: tuple[int, int]) -> bool:
        """Return whether a descriptor of a process refers to a file and is open for writing."""
        try:
            status = number.stat()
            if (status.st_dev, status.st_ino) != identity:
                return False
            lines = (number.parent.with_name("fdinfo") / number.name).read_text("ascii")
        except OSError:  # it has been closed
            return False
        flags = next(line for line in lines.splitlines() if line.startswith("flags:"))
        return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY

    class FileWriters:
        """Finds the programs that have files open for writing; safe to call from any thread."""

        def __init__(self) -> None:
            self._lock = Lock()
            self._read_at = float("-inf")
            self._open: dict[bytes, list[Path]] = {}
            self._local: dict[int, bool] = {}  # by device

        def __call__(self, files: Sequence[LocalFile]) -> Mapping[bytes, str]:
            """Return by key those of the files that a program has open, and its name."""
            with self._lock:
                if time.monotonic() - self._read_at >= _FRESH:
                    self._open, self._read_at = _list_by_name(), time.monotonic()
                found = ((file.key, self._find_writer(file)) for file in files)
                return {key: name for key, name in found if name}

        def _find_writer(self, file: LocalFile) -> str:
            identity = file.device, file.inode
            for number in self._open.get(os.path.basename(file.path), ()):  # noqa: PTH119 - bytes
                if _may_write(number, identity):
                    return name_process(int(number.parent.parent.name))
            # The writer may belong to another account, or may have mapped the file and closed it.
            return UNNAMED if self._is_on_this_computer(file) and _is_refused(file) else ""

        def _is_on_this_computer(self, file: LocalFile) -> bool:
            """Return whether a refused lease means a writer: NFS and SMB refuse most."""
            if file.device not in self._local:
                self._local[file.device] = is_local(file.path)
            return self._local[file.device]

    def _list_by_name() -> dict[bytes, list[Path]]:
        """Return all open files by their last name.

        Their status is read later, and of few: on a share that does not answer that takes forever.
        """
        found: dict[bytes, list[Path]] = {}
        for number in _list_descriptors():
            with suppress(OSError):
                name = os.fsencode(os.readlink(number)).rpartition(b"/")[2]  # noqa: PTH115 - bytes
                found.setdefault(name, []).append(number)
        return found

    def _is_refused(file: LocalFile) -> bool:
        """Return whether the system refuses a lease on our file because a program writes to it."""
        try:
            descriptor = os.open(file.path, READ_ONLY)
        except OSError:
            return False
        try:
            status = os.fstat(descriptor)
            if (status.st_dev, status.st_ino) != (file.device, file.inode):
                return False
            with WriteGuard(descriptor) as guard:
                return guard.refusal is FileUse.OPEN
        finally:
            os.close(descriptor)

elif sys.platform == "win32":
    from ctypes import wintypes

    _REFUSED: Final = 5  # ERROR_ACCESS_DENIED: one of the files is a folder
    _MORE: Final = 234  # ERROR_MORE_DATA
    _LISTINGS: Final = 5  # attempts to list all processes while more come
    _SESSION_KEY: Final = 33  # CCH_RM_SESSION_KEY and its end
    _LONGEST: Final = 259  # characters of a path; the Restart Manager takes no longer ones

    class _Application(ctypes.Structure):
        """RM_PROCESS_INFO."""

        _fields_ = (
            ("process", wintypes.DWORD),
            ("started", wintypes.FILETIME),
            ("name", wintypes.WCHAR * 256),
            ("service", wintypes.WCHAR * 64),
            ("kind", ctypes.c_int),
            ("status", wintypes.ULONG),
            ("session", wintypes.DWORD),
            ("restartable", wintypes.BOOL),
        )

    class FileWriters:
        """Finds the programs that have files open; safe to call from any thread.

        `library` is the Restart Manager, if not that of the system. Where it does not work, no
        program is known to have a file open.
        """

        def __init__(self, library: Any = None) -> None:
            self._lock = Lock()
            self._library = library or _load_library()

        def __call__(self, files: Sequence[LocalFile]) -> Mapping[bytes, str]:
            """Return by key those of the files that a program has open, and its name."""
            keys = {verbatim(file.path): file.key for file in files}
            paths = [path for path in keys if len(_plain(path)) <= _LONGEST]
            found: dict[bytes, str] = {}
            with self._lock:
                for start in range(0, len(paths) if self._library else 0, _AT_ONCE):
                    for path, process in find_each(paths[start : start + _AT_ONCE], self._ask):
                        found[keys[path]] = name_process(process)
            return found

        def _ask(self, paths: Sequence[bytes]) -> list[int] | None:
            """Return the other processes that have any of these files open.

            None if one of them is a folder now, as then the Restart Manager tells of none.
            """
            library, session = self._library, wintypes.DWORD()
            if library is None or library.RmStartSession(
                ctypes.byref(session), 0, ctypes.create_unicode_buffer(_SESSION_KEY)
            ):
                return []
            try:
                names = (wintypes.LPCWSTR * len(paths))(*map(_plain, paths))
                if library.RmRegisterResources(session, len(paths), names, 0, None, 0, None):
                    return []
                processes = _list_processes(library, session)
                return processes and [it for it in processes if not _is_ours(it)]
            finally:
                library.RmEndSession(session)

    def _load_library() -> ctypes.WinDLL | None:
        try:
            library = ctypes.WinDLL("rstrtmgr")
        except OSError as error:
            logger.info("The system does not tell which files are open: %s", error)
            return None
        number, text = wintypes.DWORD, wintypes.LPWSTR
        names, numbers = ctypes.POINTER(wintypes.LPCWSTR), ctypes.POINTER(wintypes.UINT)
        library.RmStartSession.argtypes = ctypes.POINTER(number), number, text
        library.RmRegisterResources.argtypes = (
            *(number, wintypes.UINT, names),
            *(wintypes.UINT, wintypes.LPVOID, wintypes.UINT, names),
        )
        library.RmGetList.argtypes = (
            *(number, numbers, numbers),
            *(wintypes.LPVOID, ctypes.POINTER(number)),
        )
        library.RmEndSession.argtypes = (number,)
        return library

    def _list_processes(library: ctypes.WinDLL, session: wintypes.DWORD) -> list[int] | None:
        """Return the processes of a session, or None as `_ask` does.

        More may come while they are listed.
        """
        needed, reasons = wintypes.UINT(), wintypes.DWORD()
        for _ in range(_LISTINGS):
            count = wintypes.UINT(needed.value)
            found = (_Application * needed.value)()
            error = library.RmGetList(
                session, ctypes.byref(needed), ctypes.byref(count), found, ctypes.byref(reasons)
            )
            if error == _REFUSED:
                return None
            if error != _MORE:
                return [] if error else [it.process for it in found[: count.value]]
        return []

    def _plain(path: bytes) -> str:
        """Return a path in the form that the Restart Manager takes."""
        name = os.fsdecode(path).removeprefix("\\\\?\\")
        return "\\\\" + name.removeprefix("UNC\\") if name.startswith("UNC\\") else name

    def _is_ours(process: int) -> bool:
        """Return whether a process is this one, or one that it has started."""
        if process == os.getpid():
            return True
        try:
            return os.getpid() in {above.pid for above in psutil.Process(process).parents()}
        except (psutil.Error, OSError):
            return False

else:

    class FileWriters:
        """Finds nothing, as the system does not tell."""

        def __call__(self, files: Sequence[LocalFile]) -> Mapping[bytes, str]:
            """Return that no program is known to write to the files."""
            del files
            return {}


if sys.platform != "linux":

    class WriteGuard:
        """Detects no other programs, as the system does not report them."""

        def __init__(self, descriptor: int) -> None:
            del descriptor

        def find_use(self) -> FileUse:
            """Return that no program is known to write to the file."""
            return FileUse.NONE

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...
