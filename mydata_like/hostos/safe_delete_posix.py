"""Safe deletion where folders can be held open: Linux and macOS.

A file is renamed before it is deleted, so that a file that another program has put in its place at
that moment is noticed and restored.
"""

import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from typing import Final, Self

from mydata_like.core.deletion import CleanupCandidate
from mydata_like.core.errors import FileChangedError
from mydata_like.core.model import Entry
from mydata_like.core.openat import FOLDER, NO_LINK, open_at
from mydata_like.hostos.file_to_delete import (
    FileToDelete,
    Stamp,
    candidate,
    directory_opened,
    errors_translated,
)


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
    from contextlib import suppress
    from pathlib import Path

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
            self._refusal = self._take_lease()

        def find_use(self) -> FileUse:
            """Return whether a program has the file open for writing, waits to, or locks it."""
            if self._refusal is not FileUse.NONE:
                return self._refusal
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
        return any(_may_write(number, file) for number in _list_descriptors())

    def _list_descriptors() -> Iterator[Path]:
        for process in _PROCESSES.iterdir():
            if process.name.isdecimal():
                with suppress(OSError):  # it has ended, or belongs to another account
                    yield from (process / "fd").iterdir()

    def _may_write(number: Path, file: os.stat_result) -> bool:
        """Return whether a descriptor of a process refers to a file and is open for writing."""
        try:
            if not os.path.samestat(number.stat(), file):
                return False
            lines = (number.parent.with_name("fdinfo") / number.name).read_text("ascii")
        except OSError:  # it has been closed
            return False
        flags = next(line for line in lines.splitlines() if line.startswith("flags:"))
        return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY

else:

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


_ASIDE: Final = b".mydata-like-"  # begins the name of a file to delete; runs skip it
_OPEN_DELAY: Final = 0.001  # seconds in which a program may open a file that it has looked up
_FILE: Final = os.O_RDONLY | NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class _FileInFolder(FileToDelete):
    """A file and its folder, which stays open."""

    def __init__(self, folder: int, entry: Entry, descriptor: int) -> None:
        super().__init__(entry, descriptor)
        self._folder = folder
        self._name = entry.key.rpartition(b"/")[2]
        self.aside = (_ASIDE + secrets.token_hex(8).encode()).decode()

    def delete(self) -> None:
        """Delete exactly this file; raises `FileChangedError` if it has changed.

        From before the last check until the deletion, other programs cannot open it for writing.
        If one is waiting to do so, the file is restored under its name.
        """
        with WriteGuard(self.descriptor) as guard:
            self._check_unused(guard)
            self.check_unchanged(self.find_named())
            aside = self.aside.encode()
            with errors_translated(self.entry.key):
                os.rename(self._name, aside, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            try:
                self._check_aside(aside, guard)
                with errors_translated(self.entry.key):
                    os.unlink(aside, dir_fd=self._folder)
            except BaseException:
                if not _restore(self._folder, aside, self._name, self.entry.key):
                    name = aside.decode()
                    how = f"was replaced twice by another program; the first is now named {name}"
                    raise self.changed("free.aside", how) from None
                raise

    def _check_unused(self, guard: WriteGuard) -> None:
        use = guard.find_use()
        if use is FileUse.OPEN:
            raise self.changed("free.open", "is open in a program that may write to it")
        if use is FileUse.LOCKED:
            raise self.changed("free.open", "is locked by a program that may write to it")
        if use is FileUse.UNKNOWN:
            raise self.changed(
                "free.other-account",
                "belongs to another account, so the system does not say whether a program is "
                "writing to it",
                "The file was kept. Free space as the account that owns it, or as administrator.",
            )

    def _check_aside(self, aside: bytes, guard: WriteGuard) -> None:
        """Check that the renamed file is ours, and that no program has changed or opened it.

        A program that looked up the old name may be about to open the file, so wait a moment
        for it.
        """
        first = self._find_states(aside)
        same = all(Stamp.of(state) == self.stamp for state in first)
        if not same or first[0].st_ctime_ns != first[1].st_ctime_ns:
            raise self.changed("free.changed", "was replaced or changed by another program")
        self._check_unused(guard)
        time.sleep(_OPEN_DELAY)
        self._check_unused(guard)
        for before, after in zip(first, self._find_states(aside), strict=True):
            if (Stamp.of(before), before.st_ctime_ns) != (Stamp.of(after), after.st_ctime_ns):
                raise self.changed("free.changed", "was changed by another program")

    def _find_states(self, name: bytes) -> tuple[os.stat_result, os.stat_result]:
        """Return the state of the open file, and of the file with this name now."""
        with errors_translated(self.entry.key):
            named = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
            return os.fstat(self.descriptor), named

    def find_named(self) -> os.stat_result:
        with errors_translated(self.entry.key):
            return os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)


def _restore(folder: int, aside: bytes, name: bytes, key: bytes) -> bool:
    """Restore the name of a renamed file; return false if another file has the name by now."""
    here = {"src_dir_fd": folder, "dst_dir_fd": folder}
    try:
        found = os.stat(aside, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            os.rename(aside, name, **here)
            return True
        os.link(aside, name, **here, follow_symlinks=False)
        os.unlink(aside, dir_fd=folder)
    except FileExistsError:
        return False
    except OSError:  # the file system has no hard links
        if _is_taken(folder, name):
            return False
        with errors_translated(key):
            os.rename(aside, name, **here)
    return True


def _is_taken(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


class SafeDirectory:
    """A data directory, held open so that renaming it makes no difference.

    For an extra source, `prefix` is the beginning of the keys of its files.
    """

    def __init__(self, path: bytes, prefix: bytes = b"") -> None:
        self.prefix = prefix
        with directory_opened(path):
            self._top = os.open(path, FOLDER & ~NO_LINK)

    def find(self, key: bytes) -> Iterator[CleanupCandidate]:
        """Yield a file, or all files in and below a folder; for our own key, all files."""
        local = key.removeprefix(self.prefix) if key != self.prefix.rstrip(b"/") else b""
        folder, _, name = local.rpartition(b"/")
        try:
            with self._folder(folder) as above:
                for found in _find_below(above, name, folder) if name else _walk(above, b""):
                    yield found._replace(key=self.prefix + found.key)
        except FileChangedError as error:
            yield CleanupCandidate(key, 0, error.problem)

    @contextmanager
    def hold(self, entry: Entry) -> Iterator[FileToDelete]:
        """Open the file that a ledger entry describes.

        Raises `FileChangedError` if it is another file, or a link.
        """
        folder, _, name = entry.key.removeprefix(self.prefix).rpartition(b"/")
        with ExitStack() as stack:
            above = stack.enter_context(self._folder(folder))
            with errors_translated(entry.key):
                descriptor = os.open(name, _FILE, dir_fd=above)
            stack.callback(os.close, descriptor)
            yield _FileInFolder(above, entry, descriptor)

    def restore(self, key: bytes, aside: bytes) -> bool:
        """Restore the name of a file that a killed process had renamed; return whether it did."""
        folder, _, name = key.removeprefix(self.prefix).rpartition(b"/")
        with self._folder(folder) as above:
            return _is_taken(above, aside) and _restore(above, aside, name, key)

    def close(self) -> None:
        os.close(self._top)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _folder(self, key: bytes) -> Iterator[int]:
        """Open a folder, from the top down; raises `FileChangedError` for a link on its path."""
        with ExitStack() as stack:
            here = self._top
            for part in filter(None, key.split(b"/")):
                with errors_translated(key):
                    here = open_at(here, part, FOLDER)
                stack.callback(os.close, here)
            yield here


def _find_below(above: int, name: bytes, folder: bytes) -> Iterator[CleanupCandidate]:
    """Yield a file in an open folder, or all files in one of its folders."""
    key = folder + b"/" + name if folder else name
    with errors_translated(key):
        status = os.stat(name, dir_fd=above, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        with errors_translated(key):
            below = open_at(above, name, FOLDER)
        try:
            yield from _walk(below, key)
        finally:
            os.close(below)
    else:
        yield candidate(key, status)


def _walk(folder: int, key: bytes) -> Iterator[CleanupCandidate]:
    """Yield the files in and below an open folder, sorted by name.

    The names of one folder are held in memory, since files are deleted during the iteration.
    """
    with errors_translated(key):
        names = sorted(map(os.fsencode, os.listdir(folder)))
    for name in names:
        try:
            yield from _find_below(folder, name, key)
        except FileChangedError as error:
            yield CleanupCandidate(key + b"/" + name if key else name, 0, error.problem)
