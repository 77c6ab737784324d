"""Local files as byte sources: read once, in order, without filling the page cache.

A file that differs from the scan, or that changes while it is read, raises `FileChangedError`. A
source never ends successfully with fewer bytes than announced.
"""

import errno
import io
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from mydata_like.core import hashing
from mydata_like.core.checksums import Algorithm
from mydata_like.core.errors import FileChangedError
from mydata_like.core.file_access import is_in_use, stat_open, system_path
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import LocalFile, Reading, bounded_ns
from mydata_like.core.openat import NO_LINK, FolderCache
from mydata_like.transfer.sparse import Extent, find_extents, zeros
from mydata_like.transfer.worker_messages import Member

if sys.platform == "darwin":
    import fcntl
elif sys.platform == "linux":
    import resource

LARGE: Final = 8 * 1024 * 1024  # bytes; smaller files take too little of the page cache


class PageCacheTrail:
    """The page cache of one open file up to the position that was read.

    Create it just before the first read, since checking the cache already changes it.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._dropped = 0
        if size < LARGE:
            self._ours = False
            return
        self._ours = not _is_cached(descriptor, size)
        if sys.platform == "darwin":
            with suppress(OSError):  # only advice: pages that are cached already are used and kept
                fcntl.fcntl(descriptor, fcntl.F_NOCACHE, 1)
        advise(descriptor, 0, 0, "POSIX_FADV_SEQUENTIAL")

    def drop(self, position: int, *, end: bool) -> None:
        """Drop the cached pages before `position`, in large steps and at the end."""
        length = position - self._dropped
        if self._ours and (length >= LARGE or end):
            advise(self._descriptor, self._dropped, length, "POSIX_FADV_DONTNEED")
            self._dropped = position


def count_fetched() -> int:
    """Return the number of blocks read from a disk for this thread; 0 if it is not counted."""
    if sys.platform == "linux":
        return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock
    return 0


def fetch(descriptor: int) -> None:
    """Start fetching a small file into the page cache without waiting."""
    advise(descriptor, 0, 0, "POSIX_FADV_WILLNEED")


def _is_cached(descriptor: int, size: int) -> bool:
    """Return whether a file is cached, judged by its first, middle and last byte.

    Checking a page makes the system fetch it. If the file is not cached, the common case, only the
    first page is checked, which is read next anyway, so the disk does not seek for this.
    """
    return all(_is_there(descriptor, offset) for offset in (0, size // 2, size - 1))


def _is_there(descriptor: int, offset: int) -> bool:
    """Return whether a byte can be read without waiting; False if the system cannot tell."""
    if sys.platform != "linux" or not hasattr(os, "RWF_NOWAIT"):  # Python built on an old system
        return False
    try:
        return os.preadv(descriptor, [bytearray(1)], offset, os.RWF_NOWAIT) == 1
    except OSError:  # BlockingIOError if not cached, others if not supported
        return False


def advise(descriptor: int, offset: int, length: int, advice: str) -> None:
    """Advise the system how a file is read; errors and missing support are ignored."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, offset, length, getattr(os, advice))


CHUNK: Final = 1024 * 1024
_REPORT_STEP: Final = 64  # megabytes of zeros hashed between two progress reports

_FLAGS: Final = (
    os.O_RDONLY
    | NO_LINK
    | getattr(os, "O_NONBLOCK", 0)  # do not block on a FIFO
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
    | getattr(os, "O_SEQUENTIAL", 0)
)
_VANISHED: Final = (errno.ENOENT, errno.ENOTDIR)
_REPLACED: Final = (errno.ELOOP, errno.ENXIO, errno.EISDIR)  # a symlink, a socket, a directory

# Time stamps lag behind the clock: Linux takes them from its tick (up to 10 ms), FAT has a
# resolution of two seconds. A write within that lag of an earlier one may leave the time stamp
# unchanged.
_FINE: Final = 20_000_000
_COARSE: Final = 2_000_000_000
_SECOND: Final = 1_000_000_000

Seen = LocalFile | Member  # a file as the scan saw it


class FileSource:
    """An open local file that matches the scan; yields its bytes once."""

    inside: tuple[Reading, ...] = ()  # only archives have readings

    def __init__(
        self,
        path: bytes,
        descriptor: int,
        before: os.stat_result,
        started: int,
        algorithm: Algorithm,
    ) -> None:
        self.path = path
        self.size = before.st_size
        self.remaining = before.st_size  # bytes that were neither read nor passed as holes
        self._file = io.FileIO(descriptor)
        self._before = before
        self._started = started
        self.checksum = hashing.new(algorithm)
        self._trail: PageCacheTrail | None = None
        self._finished = ""

    @property
    def may_have_holes(self) -> bool:
        """Whether the file occupies less space on the disk than its size."""
        blocks: int | None = getattr(self._before, "st_blocks", None)
        return blocks is not None and blocks * 512 < self.size

    def fileno(self) -> int:
        return self._file.fileno()

    def find_extents(self) -> list[Extent]:
        """Return the extents that the file system reports as data, without reading them."""
        with _file_errors(self.path):
            return find_extents(self.fileno(), self.size)

    def peek(self, offset: int, view: memoryview) -> memoryview:
        """Return the bytes at an offset, up to the end of the file; they do not count as read."""
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
        """Yield the rest of the bytes as views of `buffer`, each valid until the next.

        With `extents`, only these are read and yielded; the rest counts as zeros. Hashing zeros
        takes as much processor time as hashing data, so an empty view is yielded from time to time
        as a progress report. Call it once.
        """
        view = memoryview(buffer)
        self._begin()
        rest = (self.size - self.remaining, self.remaining)
        for offset, length in [rest] if extents is None else extents:
            yield from self._pass_hole(offset - (self.size - self.remaining))
            for chunk in self._read(offset, length, view):
                yield chunk
                self._drop_pages()
        yield from self._pass_hole(self.remaining)

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; the caller adds them to `checksum`."""
        self._begin()
        with _file_errors(self.path):
            data = os.read(self.fileno(), min(size, self.remaining))
        if not data:
            raise changed(self.path)
        self.remaining -= len(data)
        self._drop_pages()
        return data

    def read_into(self, view: memoryview) -> int:
        """Read the next bytes; return how many. The caller adds them to `checksum`."""
        self._begin()
        with _file_errors(self.path):
            count = self._file.readinto(view)
        if not count:
            raise changed(self.path)
        self.remaining -= count
        self._drop_pages()
        return count

    def finish(self) -> str:
        """Return the checksum after all bytes were read and the file was found unchanged.

        The file is checked once; later changes have no effect on the result.
        """
        if self._finished:
            return self._finished
        with _file_errors(self.path):
            self._file.seek(self.size)
            grown = bool(self._file.read(1))
        if self.remaining or grown:
            raise changed(self.path)
        self.check_unchanged()
        self._finished = self.checksum.hexdigest()
        return self._finished

    def check_unchanged(self) -> None:
        """Raise `FileChangedError` if the file changed since it was opened."""
        with _file_errors(self.path):
            after = stat_open(self.fileno())
        check_unchanged(self.path, self._before, after, self._started)

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

    def _begin(self) -> None:
        if self._trail is None:
            self._trail = PageCacheTrail(self.fileno(), self.size)

    def _drop_pages(self) -> None:
        if self._trail is not None:
            self._trail.drop(self.size - self.remaining, end=not self.remaining)

    def _read(self, offset: int, length: int, view: memoryview) -> Iterator[memoryview]:
        with _file_errors(self.path):
            self._file.seek(offset)
        while length:
            with _file_errors(self.path):
                count = self._file.readinto(view[:length])
            if not count:
                raise changed(self.path)
            chunk = view[:count]
            self.checksum.update(chunk)
            length -= count
            self.remaining -= count
            yield chunk

    def _pass_hole(self, length: int) -> Iterator[memoryview]:
        for number, chunk in enumerate(zeros(length)):
            self.checksum.update(chunk)
            self.remaining -= len(chunk)
            if number % _REPORT_STEP == _REPORT_STEP - 1:
                yield chunk[:0]


class _file_errors:  # noqa: N801 - reads as the statement it is used in
    """Convert OSError to `FileChangedError` (a class: cheaper than a generator)."""

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


def open_source(seen: Seen, algorithm: Algorithm = Algorithm.MD5) -> FileSource:
    """Open a local file as the scan saw it; a device or inode of 0 means unknown."""
    started = time.time_ns()
    with FolderCache() as folders:
        descriptor, before = open_seen(seen, folders)
    return FileSource(seen.path, descriptor, before, started, algorithm)


def read_checksum(
    file: Seen,
    checkpoint: Callable[[], None],
    size: int | None = None,
    algorithm: Algorithm = Algorithm.MD5,
) -> str:
    """Return the checksum of a file that matches the scan, or of its first `size` bytes.

    The holes of a whole file are not read. `checkpoint` is called before each piece, and may raise.
    Raises `FileChangedError`.
    """
    checkpoint()
    with open_source(file, algorithm) as source:
        if size is not None:
            return _read_beginning(source, size, checkpoint)
        extents = source.find_extents() if source.may_have_holes else None
        for _ in source.chunks(bytearray(min(CHUNK, max(1, file.size))), extents):
            checkpoint()
        return source.finish()


def _read_beginning(source: FileSource, size: int, checkpoint: Callable[[], None]) -> str:
    left = size
    while left:
        data = source.read(min(CHUNK, left))
        source.checksum.update(data)
        left -= len(data)
        checkpoint()
    source.check_unchanged()
    return source.checksum.hexdigest()


def open_seen(seen: Seen, folders: FolderCache) -> tuple[int, os.stat_result]:
    """Open a file folder by folder and check that it is the one the scan saw."""
    try:
        descriptor = folders.open(seen.path, seen.top, _FLAGS)
    except OSError as error:
        raise translated(seen.path, error) from error
    try:
        before = stat_open(descriptor)
        _check_seen(seen, before)
    except OSError as error:
        os.close(descriptor)
        raise translated(seen.path, error) from error
    except FileChangedError:
        os.close(descriptor)
        raise
    return descriptor, before


def may_have_grown(seen: Seen) -> bool:
    """Return whether what the scan saw of a file that has changed may be its beginning now."""
    try:
        now = os.lstat(system_path(seen.path))
    except OSError:
        return False
    return now.st_ino == seen.inode and now.st_size >= seen.size


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
    """Raise `FileChangedError` if the file changed or may have changed unnoticed."""
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
    """Return the error for a file that changed while it was read."""
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
    """Return the `FileChangedError` for a system error."""
    if error.errno in _VANISHED:
        return FileChangedError(
            f"{format_path(path)} no longer exists.",
            hint="If it was moved, the next run finds it at its new path.",
            code="file.vanished",
        )
    if error.errno in _REPLACED:
        return _replaced(path)
    if is_in_use(error):
        return FileChangedError(
            f"{format_path(path)} is in use by another program, which lets no other read it.",
            hint="It is sent once that program has closed it.",
            code="file.in-use",
        )
    return FileChangedError(
        f"{format_path(path)} cannot be read: {error.strerror or error}.",
        hint="Check its permissions, and that its disk works and no other program locks it.",
        code="file.unreadable",
    )
