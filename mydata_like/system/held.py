"""One local file, held open until it is certain that it may go, and then deleted: it and no other.

A file gets a name of its own before it goes: what another program has put in its place in that
very moment is noticed, and put back.
"""

import errno
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, Self

from mydata_like.core.errors import Cancelled, FileChangedError, Problem
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import bounded_ns
from mydata_like.core.model import Entry
from mydata_like.core.openat import NO_LINK
from mydata_like.core.ports import CancelSignal
from mydata_like.system.writers import Use, WriteGuard

ASIDE: Final = b".mydata-like-"  # how a file is called in its last moment; no run takes it
_CHUNK: Final = 1024 * 1024
_LAG_NS: Final = 20_000_000  # by so much time stamps may lag behind the clock,
_COARSE_LAG_NS: Final = 2_000_000_000  # or by so much where they keep whole seconds
_SECOND_NS: Final = 1_000_000_000
_LAST_MOMENT: Final = 0.001  # seconds for which a program may be about to open what it looked up

LINK = Problem(
    "free.link",
    "This is a symbolic link, or lies behind one.",
    "Links are left alone, and so is what they lead to.",
)


class _Stamp(NamedTuple):
    """What tells a file, and a state of it, from all others."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        return cls(status.st_dev, status.st_ino, status.st_size, bounded_ns(status.st_mtime_ns))


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

    def measure(self, cancel: CancelSignal) -> str:
        """Read it to its end, return its checksum; raises `FileChangedError` where it changed."""
        started = time.time_ns()
        checksum = hashlib.md5(usedforsecurity=False)
        with told(self._entry.key):
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
        """Delete exactly this file, unless it has changed since; raises `FileChangedError`.

        Other programs are kept from opening it to write from before the last look at it until
        it is gone. One that waits to do so gets the file back, with its name.
        """
        with WriteGuard(self._descriptor) as guard:
            self._check_unused(guard)
            self._check_unchanged()
            aside = ASIDE + secrets.token_hex(8).encode()
            with told(self._entry.key):
                os.rename(self._name, aside, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            try:
                self._check_aside(aside, guard)
                with told(self._entry.key):
                    os.unlink(aside, dir_fd=self._folder)
            except BaseException:
                self._put_back(aside)
                raise

    def _check_unused(self, guard: WriteGuard) -> None:
        use = guard.look()
        if use is Use.OPEN:
            raise self._changed("free.open", "is open in a program that may write to it")
        if use is Use.LOCKED:
            raise self._changed("free.open", "is locked by a program that may write to it")
        if use is Use.UNKNOWN:
            raise self._changed(
                "free.other-account",
                "belongs to another account, so the system does not say whether a program is "
                "writing to it",
                "The file was kept. Free space as the account that owns it, or as administrator.",
            )

    def _check_aside(self, aside: bytes, guard: WriteGuard) -> None:
        """See that what was renamed is our file, and that nobody has changed or opened it since.

        A program that had looked the old name up before is about to open the file: it is given
        a moment to appear.
        """
        first = self._find_states(aside)
        same = all(_Stamp.of(state) == self._stamp for state in first)
        if not same or first[0].st_ctime_ns != first[1].st_ctime_ns:
            raise self._changed("free.changed", "was replaced or changed by another program")
        self._check_unused(guard)
        time.sleep(_LAST_MOMENT)
        self._check_unused(guard)
        for before, after in zip(first, self._find_states(aside), strict=True):
            if (_Stamp.of(before), before.st_ctime_ns) != (_Stamp.of(after), after.st_ctime_ns):
                raise self._changed("free.changed", "was changed by another program")

    def _find_states(self, name: bytes) -> tuple[os.stat_result, os.stat_result]:
        """Return the state of what is open, and of what has a name now."""
        with told(self._entry.key):
            named = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
            return os.fstat(self._descriptor), named

    def _check_unchanged(self) -> None:
        after, named = self._find_states(self._name)
        same = _Stamp.of(after) == _Stamp.of(named) == self._stamp
        if not same or after.st_ctime_ns != self._before.st_ctime_ns:
            raise self._changed("free.changed", "changed or was replaced meanwhile")

    def _put_back(self, aside: bytes) -> None:
        """Give what was renamed its name again; a file that has the name by now keeps it."""
        here = {"src_dir_fd": self._folder, "dst_dir_fd": self._folder}
        try:
            found = os.stat(aside, dir_fd=self._folder, follow_symlinks=False)
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
            with told(self._entry.key):
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

    def _changed(
        self, code: str, how: str, hint: str = "The file was kept. The next run looks at it again."
    ) -> FileChangedError:
        return FileChangedError(f"{format_path(self._entry.key)} {how}.", hint=hint, code=code)


@contextmanager
def told(key: bytes) -> Iterator[None]:
    """Tell in our words what the system says of a file."""
    try:
        yield
    except OSError as error:
        raise _translated(key, error) from error


def _translated(key: bytes, error: OSError) -> FileChangedError:
    if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and NO_LINK):
        return FileChangedError(LINK.message, hint=LINK.hint, code=LINK.code)
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
