"""Local files as byte sources: read once, in order, without filling the page cache.

A file that is not what the scan saw, or that changes while it is read, raises
`FileChangedError`; nothing here ever yields less than was promised and calls it success.
"""

import errno
import hashlib
import io
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from mydata_like.core.errors import FileChangedError
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import LocalFile, Reading, bounded_ns
from mydata_like.core.openat import NO_LINK, FolderCache
from mydata_like.transfer.sparse import Extent, find_extents, zeros
from mydata_like.transfer.worker_messages import Member

if sys.platform == "darwin":
    import fcntl
elif sys.platform == "linux":
    import resource

LARGE: Final = 8 * 1024 * 1024  # smaller files leave too little to care about


class PageCacheTrail:
    """The pages of one open file behind the place up to which we have read it.

    To be made just before the first read: asking what is there already leaves traces.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._dropped = 0
        if size < LARGE:
            self._ours = False
            return
        self._ours = not _is_cached(descriptor, size)
        if sys.platform == "darwin":
            with suppress(OSError):  # it is advice: what is in memory already is used, and stays
                fcntl.fcntl(descriptor, fcntl.F_NOCACHE, 1)
        _advise(descriptor, 0, 0, "POSIX_FADV_SEQUENTIAL")

    def drop(self, position: int, *, end: bool) -> None:
        """Let go of what lies behind a position, now and then and at the end."""
        length = position - self._dropped
        if self._ours and (length >= LARGE or end):
            _advise(self._descriptor, self._dropped, length, "POSIX_FADV_DONTNEED")
            self._dropped = position


def count_fetched() -> int:
    """Return how many blocks a disk had to read for this thread so far; 0 where nobody counts."""
    if sys.platform == "linux":
        return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock
    return 0


def fetch(descriptor: int) -> None:
    """Have the system fetch a small file, without waiting for it."""
    _advise(descriptor, 0, 0, "POSIX_FADV_WILLNEED")


def _is_cached(descriptor: int, size: int) -> bool:
    """Return whether a file is in memory, as its begin, middle and end show.

    Asking for a page makes the system fetch it. Of a file that is not there, which is the
    common case, that is the begin, to be read next anyway: no disk has to seek for our question.
    """
    return all(_is_there(descriptor, offset) for offset in (0, size // 2, size - 1))


def _is_there(descriptor: int, offset: int) -> bool:
    """Return whether a byte can be read without waiting; False where the system cannot tell."""
    if sys.platform != "linux" or not hasattr(os, "RWF_NOWAIT"):  # Python built on an old system
        return False
    try:
        return os.preadv(descriptor, [bytearray(1)], offset, os.RWF_NOWAIT) == 1
    except OSError:  # BlockingIOError where it is not, others from file systems that do not know
        return False


def _advise(descriptor: int, offset: int, length: int, advice: str) -> None:
    """Tell the system how a file is read; nothing where it cannot be told, or does not listen."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, offset, length, getattr(os, advice))


CHUNK: Final = 1024 * 1024
_BEAT: Final = 64  # megabytes of zeros hashed between two signs of life

_FLAGS: Final = (
    os.O_RDONLY
    | NO_LINK
    | getattr(os, "O_NONBLOCK", 0)  # a fifo must not make us wait
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
    | getattr(os, "O_SEQUENTIAL", 0)
)
_VANISHED: Final = (errno.ENOENT, errno.ENOTDIR)
_REPLACED: Final = (errno.ELOOP, errno.ENXIO, errno.EISDIR)  # a symlink, a socket, a directory

# Time stamps lag behind the clock: Linux takes them from its tick (up to 10 ms), FAT keeps two
# seconds. A write within that lag of an earlier one leaves the stamp as it was.
_FINE: Final = 20_000_000
_COARSE: Final = 2_000_000_000
_SECOND: Final = 1_000_000_000

Seen = LocalFile | Member  # a file as the scan saw it


class FileSource:
    """An open local file that is still what the scan saw; yields its bytes once."""

    inside: tuple[Reading, ...] = ()  # what an archive has and a file has not

    def __init__(self, path: bytes, descriptor: int, before: os.stat_result, started: int) -> None:
        self.path = path
        self.size = before.st_size
        self.remaining = before.st_size  # bytes that have not been accounted for yet
        self._file = io.FileIO(descriptor)
        self._before = before
        self._started = started
        self._checksum = hashlib.md5(usedforsecurity=False)
        self._finished = ""

    @property
    def may_have_holes(self) -> bool:
        """Whether the file occupies less of the disk than its size."""
        blocks: int | None = getattr(self._before, "st_blocks", None)
        return blocks is not None and blocks * 512 < self.size

    def fileno(self) -> int:
        return self._file.fileno()

    def find_extents(self) -> list[Extent]:
        """Return where the file system says that data lies; nothing counts as read for it."""
        with _file_errors(self.path):
            return find_extents(self.fileno(), self.size)

    def peek(self, offset: int, view: memoryview) -> memoryview:
        """Return what lies at a place, up to the file's end; nothing counts as read for it."""
        wanted = min(len(view), self.size - offset)
        with _file_errors(self.path):
            self._file.seek(offset)
            taken = 0
            while taken < wanted and (count := self._file.readinto(view[taken:wanted])):
                taken += count
        if taken < wanted:
            raise changed(self.path)
        return view[:wanted]

    def chunks(
        self, buffer: bytearray | memoryview, extents: Sequence[Extent] | None = None
    ) -> Iterator[memoryview]:
        """Yield the bytes of the file as views of `buffer`, each valid until the next.

        With `extents`, only theirs are read and yielded; the rest counts as zeros. Hashing
        zeros costs no reading but as much computing as data does, so an empty view comes now
        and then as a sign of life. Call it once.
        """
        view = memoryview(buffer)
        trail = PageCacheTrail(self.fileno(), self.size)
        for offset, length in [(0, self.size)] if extents is None else extents:
            yield from self._pass_hole(offset - (self.size - self.remaining))
            for chunk in self._read(offset, length, view):
                yield chunk
                trail.drop(self.size - self.remaining, end=not self.remaining)
        yield from self._pass_hole(self.remaining)

    def finish(self) -> str:
        """Return the checksum, once all is read and the file has stayed as it was.

        That is looked at once; what happens to the file later is of no concern.
        """
        if self._finished:
            return self._finished
        with _file_errors(self.path):
            self._file.seek(self.size)
            grown = bool(self._file.read(1))
            after = os.fstat(self.fileno())
        if self.remaining or grown:
            raise changed(self.path)
        check_unchanged(self.path, self._before, after, self._started)
        self._finished = self._checksum.hexdigest()
        return self._finished

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self, offset: int, length: int, view: memoryview) -> Iterator[memoryview]:
        with _file_errors(self.path):
            self._file.seek(offset)
        while length:
            with _file_errors(self.path):
                count = self._file.readinto(view[:length])
            if not count:
                raise changed(self.path)
            chunk = view[:count]
            self._checksum.update(chunk)
            length -= count
            self.remaining -= count
            yield chunk

    def _pass_hole(self, length: int) -> Iterator[memoryview]:
        for number, chunk in enumerate(zeros(length)):
            self._checksum.update(chunk)
            self.remaining -= len(chunk)
            if number % _BEAT == _BEAT - 1:
                yield chunk[:0]


class _file_errors:  # noqa: N801 - reads as the statement it is used in
    """Turn what the system raises into `FileChangedError` (a class: cheaper than a generator)."""

    def __init__(self, path: bytes) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            raise translated(self._path, error) from error


def open_source(seen: Seen) -> FileSource:
    """Open a local file as the scan saw it; 0 as device or inode means that it is unknown."""
    started = time.time_ns()
    with FolderCache() as folders:
        descriptor, before = open_seen(seen, folders)
    return FileSource(seen.path, descriptor, before, started)


def read_checksum(file: LocalFile, heed: Callable[[], None]) -> str:
    """Return the MD5 of a file that is as the scan saw it; holes are not read.

    `heed` is called before each piece, and may raise. Raises `FileChangedError`.
    """
    heed()
    with open_source(file) as source:
        extents = source.find_extents() if source.may_have_holes else None
        for _ in source.chunks(bytearray(min(CHUNK, max(1, file.size))), extents):
            heed()
        return source.finish()


def open_seen(seen: Seen, folders: FolderCache) -> tuple[int, os.stat_result]:
    """Open a file by its folders and make sure that it is the one that was seen."""
    try:
        descriptor = folders.open(seen.path, seen.top, _FLAGS)
    except OSError as error:
        raise translated(seen.path, error) from error
    try:
        before = os.fstat(descriptor)
        _check_seen(seen, before)
    except OSError as error:
        os.close(descriptor)
        raise translated(seen.path, error) from error
    except FileChangedError:
        os.close(descriptor)
        raise
    return descriptor, before


def _check_seen(seen: Seen, now: os.stat_result) -> None:
    same_device = not seen.device or seen.device == now.st_dev
    same_inode = not seen.inode or seen.inode == now.st_ino
    if not (stat.S_ISREG(now.st_mode) and same_device and same_inode):
        raise _replaced(seen.path)
    if now.st_size != seen.size or bounded_ns(now.st_mtime_ns) != seen.modified_ns:
        raise changed(seen.path)


def check_unchanged(
    path: bytes, before: os.stat_result, after: os.stat_result, started: int
) -> None:
    """Raise unless the file stayed the same, and could not have changed without a trace."""
    if (
        after.st_size != before.st_size
        or after.st_mtime_ns != before.st_mtime_ns
        or after.st_ctime_ns != before.st_ctime_ns
    ):
        raise changed(path)
    settled = started - _COARSE
    if after.st_mtime_ns < settled and after.st_ctime_ns < settled:
        return
    finished = time.time_ns()
    for stamp in (after.st_mtime_ns, after.st_ctime_ns):
        lag = _FINE if stamp % _SECOND else _COARSE
        if started - lag <= stamp <= finished + lag:
            raise changed(path)


def changed(path: bytes) -> FileChangedError:
    """Return the error for a file that did not stay what it was."""
    return FileChangedError(
        f"{format_path(path)} changed while it was being read.",
        hint="It is sent when no program writes to it any more.",
        code="file.changed",
    )


def _replaced(path: bytes) -> FileChangedError:
    return FileChangedError(
        f"{format_path(path)} is not the file that was found there.",
        hint="The next run checks it again.",
        code="file.replaced",
    )


def translated(path: bytes, error: OSError) -> FileChangedError:
    """Return in our words what the system said of a file."""
    if error.errno in _VANISHED:
        return FileChangedError(
            f"{format_path(path)} is no longer there.",
            hint="If it was moved, the next run finds it in its new place.",
            code="file.vanished",
        )
    if error.errno in _REPLACED:
        return _replaced(path)
    return FileChangedError(
        f"{format_path(path)} cannot be read: {error.strerror or error}.",
        hint="Check its permissions, and that its disk works and no other program locks it.",
        code="file.unreadable",
    )
