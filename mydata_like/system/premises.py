"""The data directory as a place where files may be deleted: exactly those that were looked at.

Every folder on the way is opened from the one above it and no link is followed, so nothing that
is renamed or replaced meanwhile leads elsewhere. A file gets a name of its own before it goes:
what another program has put in its place in that very moment is noticed, and put back.
"""

import errno
import hashlib
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NamedTuple, Self

from mydata_like.core.errors import Cancelled, FileChangedError, Problem, RunError, SettingsError
from mydata_like.core.format import format_path
from mydata_like.core.freeing import Found
from mydata_like.core.model import Entry
from mydata_like.core.ports import Cancel

ASIDE: Final = b".mydata-like-"  # how a file is called in its last moment; no run takes it
_CHUNK: Final = 1024 * 1024
_LAG_NS: Final = 20_000_000  # by so much time stamps may lag behind the clock,
_COARSE_LAG_NS: Final = 2_000_000_000  # or by so much where they keep whole seconds
_SECOND_NS: Final = 1_000_000_000

_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_FILE: Final = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_LINK = Problem(
    "free.link",
    "This is a symbolic link, or lies behind one.",
    "Links are left alone, and so is what they lead to.",
)
_SPECIAL = Problem(
    "free.special", "This is no regular file.", "Only regular files are uploaded, and deleted."
)


class Premises:
    """A data directory, held open: what it is called meanwhile does not matter."""

    def __init__(self, path: bytes) -> None:
        if not _NO_LINK or os.unlink not in os.supports_dir_fd:
            raise RunError(
                "This system offers no way to delete a file of which one can be sure.",
                hint="Delete files by hand; `mydata-like where` tells which are safe.",
                code="free.unsupported",
            )
        try:
            self._top = os.open(path, _FOLDER)
        except OSError as error:
            raise SettingsError(
                f"The data directory {format_path(path)} is not available: {error.strerror}.",
                hint="Check data.directory, and that its drive is connected.",
                code="data.unavailable",
            ) from error

    def find(self, key: bytes) -> Iterator[Found]:
        """Yield a file, or all that is in a folder and below it (of all with an empty key)."""
        folder, _, name = key.rpartition(b"/")
        try:
            with self._folder(folder) as above:
                if name:
                    yield from _look(above, name, folder)
                else:
                    yield from _walk(above, b"")
        except FileChangedError as error:
            yield Found(key, 0, error.problem)

    @contextmanager
    def hold(self, entry: Entry) -> Iterator["HeldFile"]:
        """Open the file that a row of the ledger speaks of.

        Raises `FileChangedError` where it is another one, or a link.
        """
        folder, _, name = entry.key.rpartition(b"/")
        with ExitStack() as stack:
            above = stack.enter_context(self._folder(folder))
            with _told(entry.key):
                descriptor = os.open(name, _FILE, dir_fd=above)
            stack.callback(os.close, descriptor)
            yield HeldFile(above, entry, descriptor)

    def close(self) -> None:
        os.close(self._top)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _folder(self, key: bytes) -> Iterator[int]:
        """Open a folder, from the top down; raises `FileChangedError` for a link on the way."""
        with ExitStack() as stack:
            here = self._top
            for part in filter(None, key.split(b"/")):
                with _told(key):
                    here = os.open(part, _FOLDER | _NO_LINK, dir_fd=here)
                stack.callback(os.close, here)
            yield here


class _Stamp(NamedTuple):
    """What tells a file, and a state of it, from all others."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class HeldFile:
    """One regular file, open to be read, and the folder that it is in."""

    def __init__(self, folder: int, entry: Entry, descriptor: int) -> None:
        self._folder = folder
        self._entry = entry
        self._name = entry.key.rpartition(b"/")[2]
        self._descriptor = descriptor
        self._before = os.fstat(descriptor)
        self._stamp = _Stamp.of(self._before)
        if not stat.S_ISREG(self._before.st_mode):
            raise self._changed("free.special", "is no regular file")
        if (entry.size, entry.modified_ns) != self._stamp[2:]:
            raise self._changed("free.changed", "is no longer the file that was sent")

    def measure(self, cancel: Cancel) -> str:
        """Read it to its end, return its checksum; raises `FileChangedError` where it changed."""
        started = time.time_ns()
        checksum = hashlib.md5(usedforsecurity=False)
        with _told(self._entry.key):
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            while chunk := os.read(self._descriptor, _CHUNK):
                if cancel.is_set():
                    raise Cancelled
                checksum.update(chunk)
        self._check_unchanged()
        # A write right before the reading began would not show in the times.
        for moment in (self._before.st_mtime_ns, self._before.st_ctime_ns):
            if moment >= started - (_LAG_NS if moment % _SECOND_NS else _COARSE_LAG_NS):
                raise self._changed("free.settling", "changed a moment ago")
        return checksum.hexdigest()

    def delete(self) -> None:
        """Delete exactly this file, unless it has changed since; raises `FileChangedError`."""
        self._check_unchanged()
        if _is_written(self._descriptor):
            raise self._changed("free.open", "is open in a program that may write to it")
        aside = ASIDE + secrets.token_hex(8).encode()
        with _told(self._entry.key):
            os.rename(self._name, aside, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            found = os.stat(aside, dir_fd=self._folder, follow_symlinks=False)
        if _Stamp.of(found) != self._stamp:
            self._put_back(aside, found)
            raise self._changed("free.changed", "was replaced or changed by another program")
        try:
            os.unlink(aside, dir_fd=self._folder)
        except OSError as error:
            self._put_back(aside, found)
            raise _translated(self._entry.key, error) from error

    def _check_unchanged(self) -> None:
        with _told(self._entry.key):
            after = os.fstat(self._descriptor)
            named = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        same = _Stamp.of(after) == _Stamp.of(named) == self._stamp
        if not same or after.st_ctime_ns != self._before.st_ctime_ns:
            raise self._changed("free.changed", "changed or was replaced meanwhile")

    def _put_back(self, aside: bytes, found: os.stat_result) -> None:
        """Give a file that is not ours its name again; one that has the name by now keeps it."""
        here = {"src_dir_fd": self._folder, "dst_dir_fd": self._folder}
        try:
            if stat.S_ISDIR(found.st_mode):
                os.rename(aside, self._name, **here)
                return
            os.link(aside, self._name, **here, follow_symlinks=False)
            os.unlink(aside, dir_fd=self._folder)
        except FileExistsError as error:
            raise self._lost(aside) from error
        except OSError as error:  # a disk that gives a file one name only
            if self._is_taken():
                raise self._lost(aside) from error
            os.rename(aside, self._name, **here)

    def _is_taken(self) -> bool:
        try:
            os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _lost(self, aside: bytes) -> FileChangedError:
        name = aside.decode()
        how = f"was replaced twice by another program; what came first is now called {name}"
        return self._changed("free.aside", how)

    def _changed(self, code: str, how: str) -> FileChangedError:
        return FileChangedError(
            f"{format_path(self._entry.key)} {how}.",
            hint="The file was kept. The next run looks at it anew.",
            code=code,
        )


def _look(above: int, name: bytes, folder: bytes) -> Iterator[Found]:
    """Yield a file of an open folder, or all that is in a folder of it."""
    key = folder + b"/" + name if folder else name
    with _told(key):
        status = os.stat(name, dir_fd=above, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        with _told(key):
            below = os.open(name, _FOLDER | _NO_LINK, dir_fd=above)
        try:
            yield from _walk(below, key)
        finally:
            os.close(below)
    elif stat.S_ISREG(status.st_mode):
        yield Found(key, status.st_size)
    else:
        yield Found(key, 0, _LINK if stat.S_ISLNK(status.st_mode) else _SPECIAL)


def _walk(folder: int, key: bytes) -> Iterator[Found]:
    """Yield what is in an open folder and below it, in the order of the names.

    The names of one folder are held in memory: files are deleted while we go through them.
    """
    with _told(key):
        names = sorted(map(os.fsencode, os.listdir(folder)))
    for name in names:
        try:
            yield from _look(folder, name, key)
        except FileChangedError as error:
            yield Found(key + b"/" + name if key else name, 0, error.problem)


def _is_written(descriptor: int) -> bool:
    """Return whether any program has the file open to write to it, as far as the system tells."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        # Who opens it to write while we have the lease makes the system send us a signal: one
        # that is ignored unless somebody asks for it.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, _signal_number())
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    with suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _signal_number() -> int:
    import signal

    return int(signal.SIGURG)


@contextmanager
def _told(key: bytes) -> Iterator[None]:
    """Tell in our words what the system says of a file."""
    try:
        yield
    except OSError as error:
        raise _translated(key, error) from error


def _translated(key: bytes, error: OSError) -> FileChangedError:
    if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and _NO_LINK):
        return FileChangedError(_LINK.message, hint=_LINK.hint, code=_LINK.code)
    if error.errno == errno.ENOENT:
        return FileChangedError(
            f"{format_path(key)} is no longer there.",
            hint="Nothing needs to be done.",
            code="free.gone",
        )
    return FileChangedError(
        f"{format_path(key)} cannot be read or deleted: {error.strerror or error}.",
        hint="Check its permissions, and those of its folder.",
        code="free.denied",
    )
