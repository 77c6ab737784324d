"""A local file that is open to be read and then deleted, whatever the system; see `safe_delete`."""

import errno
import os
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, Self

from mydata_like.core.checksums import Algorithm
from mydata_like.core.deletion import CleanupCandidate
from mydata_like.core.errors import Cancelled, FileChangedError, Problem, SettingsError
from mydata_like.core.file_access import is_in_use, stat_open
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import bounded_ns
from mydata_like.core.model import Entry
from mydata_like.core.openat import NO_LINK, is_link
from mydata_like.core.ports import CancelSignal

_CHUNK: Final = 1024 * 1024
_LAG_NS: Final = 20_000_000  # time stamps may lag behind the clock by this,
_COARSE_LAG_NS: Final = 2_000_000_000  # or by this if they have whole seconds only
_SECOND_NS: Final = 1_000_000_000

_LINK = Problem(
    "free.link",
    "This is a symbolic link, or is reached through one.",
    "Links and their targets are never deleted.",
)
_SPECIAL = Problem(
    "free.special", "This is not a regular file.", "Only regular files are uploaded and deleted."
)


class Stamp(NamedTuple):
    """The attributes that identify a file and its state."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        return cls(status.st_dev, status.st_ino, status.st_size, bounded_ns(status.st_mtime_ns))


class FileToDelete(ABC):
    """One regular file, open for reading; `aside` is as in `DeletedFile`."""

    aside = ""

    def __init__(self, entry: Entry, descriptor: int) -> None:
        self.entry = entry
        self.descriptor = descriptor
        self._before = stat_open(descriptor)
        self.stamp = Stamp.of(self._before)
        if not stat.S_ISREG(self._before.st_mode):
            raise self.changed("free.special", "is not a regular file")
        if (entry.size, entry.modified_ns) != self.stamp[2:]:
            raise self.changed("free.changed", "is no longer the file that was sent")

    def measure(self, cancel: CancelSignal) -> str:
        """Read the whole file and return its checksum; raises `FileChangedError` if it changed."""
        started = time.time_ns()
        checksum = Algorithm.of(self.entry.checksum).hash()
        with errors_translated(self.entry.key):
            os.lseek(self.descriptor, 0, os.SEEK_SET)
            while chunk := os.read(self.descriptor, _CHUNK):
                if cancel.is_set():
                    raise Cancelled
                checksum.update(chunk)
        self.check_unchanged(self.find_named())
        # A write just before the reading started would not be visible in the times.
        for moment in (self._before.st_mtime_ns, self._before.st_ctime_ns):
            if moment >= started - (_LAG_NS if moment % _SECOND_NS else _COARSE_LAG_NS):
                raise self.changed("free.settling", "changed a moment ago")
        return checksum.hexdigest()

    @abstractmethod
    def check_unused(self) -> None:
        """Raise `FileChangedError` if another program may write to the file."""

    @abstractmethod
    def delete(self, confirm: Callable[[], None]) -> None:
        """Delete exactly this file, as `OpenFile` says."""

    @abstractmethod
    def find_named(self) -> os.stat_result:
        """Return the status of what has the file's name now; raises `FileChangedError`."""

    def check_unchanged(self, named: os.stat_result) -> None:
        """Raise `FileChangedError` if the file has changed, or another one has its name now."""
        with errors_translated(self.entry.key):
            after = stat_open(self.descriptor)
        same = Stamp.of(after) == Stamp.of(named) == self.stamp
        if not same or after.st_ctime_ns != self._before.st_ctime_ns:
            raise self.changed("free.changed", "has been changed or replaced")

    def changed(
        self, code: str, how: str, hint: str = "The file was kept. The next run checks it again."
    ) -> FileChangedError:
        """Return the error that says how this file is not what it was."""
        return FileChangedError(f"{format_path(self.entry.key)} {how}.", hint=hint, code=code)


@contextmanager
def errors_translated(key: bytes) -> Iterator[None]:
    """Translate the system's errors for a file into ours."""
    try:
        yield
    except OSError as error:
        raise _translated(key, error) from error


def _translated(key: bytes, error: OSError) -> FileChangedError:
    if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and NO_LINK):
        return FileChangedError(_LINK.message, hint=_LINK.hint, code=_LINK.code)
    if is_in_use(error):
        return FileChangedError(
            f"{format_path(key)} is open in another program.",
            hint="The file was kept. Close the program, and try again.",
            code="free.open",
        )
    if error.errno == errno.ENOENT:
        return FileChangedError(
            f"{format_path(key)} no longer exists.",
            hint="Nothing needs to be done.",
            code="free.gone",
        )
    return FileChangedError(
        f"{format_path(key)} cannot be read or deleted: {error.strerror or error}.",
        hint="Check its permissions, and those of its folder.",
        code="free.denied",
    )


@contextmanager
def directory_opened(path: bytes) -> Iterator[None]:
    """Translate the system's error for a data directory into a `SettingsError`."""
    try:
        yield
    except OSError as error:
        raise SettingsError(
            f"The data directory {format_path(path)} is not available: {error.strerror}.",
            hint="Check data.directory, and that its drive is connected.",
            code="data.unavailable",
        ) from error


def candidate(key: bytes, status: os.stat_result) -> CleanupCandidate:
    """Return what may be deleted; anything but a regular file has a problem."""
    if is_link(status):
        return CleanupCandidate(key, 0, _LINK)
    if stat.S_ISREG(status.st_mode):
        return CleanupCandidate(key, status.st_size)
    return CleanupCandidate(key, 0, _SPECIAL)
