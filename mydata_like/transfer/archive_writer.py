"""Writes archives: many small files, read ahead, as one plain tar with an index at its end.

The layout of an archive follows from the names and sizes of its members, so its size is known
before the first byte is read. Checksums in the index have a fixed width. The index comes last
because each file is read only once, while it is sent. A member that changes while it is read is
padded with zeros and has no checksum in the index.
"""

import json
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import repeat
from types import TracebackType
from typing import Final, NamedTuple, Self

from mydata_like.core import hashing
from mydata_like.core.checksums import Algorithm
from mydata_like.core.errors import FileChangedError, Problem
from mydata_like.core.file_access import stat_open
from mydata_like.core.local_files import ArchiveMember, LocalFile, Reading
from mydata_like.core.openat import FolderCache
from mydata_like.transfer import file_source, tar
from mydata_like.transfer.file_source import (
    FileSource,
    Seen,
    changed,
    check_unchanged,
    open_seen,
    open_source,
    translated,
)
from mydata_like.transfer.sparse import zeros
from mydata_like.transfer.worker_messages import Member

TINY: Final = 64 * 1024  # bytes; `read_tiny` is for whole files of up to this size

_MAX_OPEN: Final = 32  # the maximum of tiny files that are open at once


class PrefetchedFile(NamedTuple):
    """A tiny file that was opened in advance; the caller closes it."""

    descriptor: int
    before: os.stat_result
    started: int


def fetch_ahead(
    files: Sequence[Seen],
    folders: FolderCache,
    count_fetched: Callable[[], int] = file_source.count_fetched,
) -> Generator[PrefetchedFile | None, None, None]:
    """Yield an open file for `read_tiny`, or None if `read_tiny` has to open it.

    If the first file of a group came from a disk, the others are fetched together. This takes a
    fraction of the time, even on a disk without moving parts.
    """
    for begin in range(0, len(files), _MAX_OPEN):
        before = count_fetched()
        yield None
        waited = count_fetched() > before
        others = files[begin + 1 : begin + _MAX_OPEN]
        yield from _fetch_all(others, folders) if waited else repeat(None, len(others))


def _fetch_all(files: Sequence[Seen], folders: FolderCache) -> Iterator[PrefetchedFile | None]:
    fetched = deque(_fetch(seen, folders) for seen in files)
    try:
        while fetched:
            yield fetched.popleft()
    finally:
        for left in filter(None, fetched):
            os.close(left.descriptor)


def _fetch(seen: Seen, folders: FolderCache) -> PrefetchedFile | None:
    """Open a tiny file and have the system fetch it; None if it cannot be opened."""
    if seen.size > TINY:
        return None
    started = time.time_ns()
    try:
        descriptor, before = open_seen(seen, folders)
    except FileChangedError:  # reported when its turn comes
        return None
    file_source.fetch(descriptor)
    return PrefetchedFile(descriptor, before, started)


def read_tiny(
    seen: Seen,
    folders: FolderCache,
    fetched: PrefetchedFile | None = None,
    read: Callable[[int, int], bytes] = os.read,
    algorithm: Algorithm = Algorithm.MD5,
) -> tuple[bytes, str]:
    """Return the bytes and the checksum of a small file, with the checks of a `FileSource`.

    `read` reads from a descriptor like `os.read`: at most `count` bytes, none at the end.
    """
    if fetched:
        descriptor, before, started = fetched
    else:
        started = time.time_ns()
        descriptor, before = open_seen(seen, folders)
    try:
        content = read(descriptor, seen.size + 1)
        if len(content) < seen.size:
            content = _read_on(descriptor, seen.size, content, read)
        after = stat_open(descriptor)
    except OSError as error:
        raise translated(seen.path, error) from error
    finally:
        os.close(descriptor)
    if len(content) != seen.size:
        raise changed(seen.path)
    check_unchanged(seen.path, before, after, started)
    return content, algorithm.hash(content).hexdigest()


def _read_on(
    descriptor: int, size: int, content: bytes, read: Callable[[int, int], bytes]
) -> bytes:
    """Return a whole file after a short read; the next read raises the error behind it.

    Before a bad sector, the system returns what it could read, and raises the error afterwards.
    """
    while len(content) < size and (more := read(descriptor, size + 1 - len(content))):
        content += more
    return content


FORMAT: Final = "mydata-like archive 1"
ENDING: Final = b".tar"
INDEX_ENDING: Final = b".index.json"

# Each line between head and tail is one member, in the order of the headers.
INDEX_HEAD: Final = b'{"format": "%b", "members": [\n' % FORMAT.encode()
INDEX_TAIL: Final = b"\n]}\n"
_UNKNOWN: Final = "0" * 32
_CHUNK: Final = 256 * 1024

Piece = bytes | memoryview


class IndexLine(NamedTuple):
    """The checksum of a whole payload, and the readings of the files in an archive."""

    checksum: str
    inside: tuple[Reading, ...] = ()

    @classmethod
    def of(cls, source: "FileSource | ArchiveSource") -> Self:
        """Return the line of a source that was read; raises `FileChangedError`."""
        return cls(source.finish(), source.inside)


def index_name(archive: bytes) -> bytes:
    """Return the name of the index in an archive of this name."""
    return archive.removesuffix(ENDING) + INDEX_ENDING


def measure_archive(name: bytes, members: Sequence[ArchiveMember]) -> int:
    """Return the size of an archive in bytes."""
    return _Layout(name, members).size


def open_content(member: Member) -> "FileSource | ArchiveSource":
    """Open the content of a member: a local file as the scan saw it, or an archive."""
    if not member.inside:
        return open_source(member, member.algorithm)
    name = member.remote.rpartition(b"/")[2]
    return ArchiveSource(name, member.modified_ns, member.inside, member.algorithm)


class ArchiveSource:
    """An archive as a source of bytes, with the interface of `FileSource`.

    `inside` has the reading of each member after all bytes were read.
    """

    may_have_holes = False

    def __init__(
        self,
        name: bytes,
        modified_ns: int,
        members: Sequence[ArchiveMember],
        algorithm: Algorithm = Algorithm.MD5,
    ) -> None:
        self._layout = _Layout(name, members)
        self._members = members
        self._modified = _seconds(modified_ns)
        self.checksum = hashing.new(algorithm)
        self._unread = self._pieces()
        self._rest = memoryview(b"")
        self._readings: list[Reading] = []
        self._folders = FolderCache()
        self.size = self._layout.size
        self.remaining = self.size

    @property
    def inside(self) -> tuple[Reading, ...]:
        return tuple(self._readings)

    def chunks(self, buffer: bytearray | memoryview) -> Iterator[memoryview]:
        """Yield the rest of the bytes as views of `buffer`, each valid until the next."""
        view = memoryview(buffer)
        while self.remaining:
            count = self._fill(view[: self.remaining])
            self.checksum.update(view[:count])
            yield view[:count]

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; the caller adds them to `checksum`."""
        buffer = bytearray(min(size, self.remaining))
        self._fill(memoryview(buffer))
        return bytes(buffer)

    def finish(self) -> str:
        """Return the checksum; raises `FileChangedError` if no member could be read unchanged."""
        assert not self.remaining
        problems = [reading.problem for reading in self._readings if reading.problem]
        if problems and len(problems) == len(self._readings):
            code, message, hint = problems[0]
            raise FileChangedError(message, hint=hint, code=code)
        return self.checksum.hexdigest()

    def close(self) -> None:
        self._folders.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _fill(self, view: memoryview) -> int:
        """Fill a view with the next bytes, of which there are enough; return its size."""
        filled = 0
        while filled < len(view):
            if not self._rest:
                self._rest = memoryview(next(self._unread))
            taken = self._rest[: len(view) - filled]
            view[filled : filled + len(taken)] = taken
            filled += len(taken)
            self._rest = self._rest[len(taken) :]
        self.remaining -= filled
        return filled

    def _pieces(self) -> Iterator[Piece]:
        for member in self._members:
            yield _head(member)
            yield from self._content(member.file)
            yield tar.padding(member.file.size)
        index = self._layout.index([reading.checksum for reading in self._readings])
        yield tar.header(self._layout.index_name, len(index), self._modified)
        yield index
        yield tar.padding(len(index))
        yield tar.END

    def _content(self, file: LocalFile) -> Iterator[Piece]:
        """Yield exactly the announced number of bytes, and record the reading."""
        if file.size > TINY:
            yield from self._stream(file)
            return
        try:
            content, checksum = read_tiny(file, self._folders)
        except FileChangedError as error:
            self._record_problem(error.problem)
            yield from zeros(file.size)
        else:
            self._readings.append(Reading(checksum))
            yield content

    def _stream(self, file: LocalFile) -> Iterator[Piece]:
        remaining = file.size
        try:
            with open_source(file) as source:
                for chunk in source.chunks(bytearray(_CHUNK)):
                    remaining -= len(chunk)
                    yield chunk
                self._readings.append(Reading(source.finish()))
        except FileChangedError as error:
            self._record_problem(error.problem)
            yield from zeros(remaining)

    def _record_problem(self, problem: Problem) -> None:
        self._readings.append(Reading("", problem))


class _Layout:
    """The offsets of all members of an archive."""

    def __init__(self, name: bytes, members: Sequence[ArchiveMember]) -> None:
        self.index_name = index_name(name)
        self._members = members
        self._offsets: list[int] = []
        position = 0
        for member in members:
            position += len(_head(member))
            self._offsets.append(position)
            position += _filled(member.file.size)
        self._index_size = len(self.index([_UNKNOWN] * len(members)))
        head = len(tar.header(self.index_name, self._index_size, 0))
        self.size = position + head + _filled(self._index_size) + len(tar.END)

    def index(self, checksums: Sequence[str]) -> bytes:
        """Return the index; an empty checksum marks a member as changed."""
        placed = zip(self._members, self._offsets, checksums, strict=True)
        lines = (_index_line(*each) for each in placed)
        return INDEX_HEAD + ",\n".join(lines).encode("ascii") + INDEX_TAIL


def _index_line(member: ArchiveMember, offset: int, checksum: str) -> str:
    """Return the index line of a member; the length is the same for a changed member."""
    file = member.file
    known = {
        "name": member.name.decode("utf-8", "surrogateescape"),
        "size": file.size,
        "modified_ns": file.modified_ns,
        "offset": offset,
    }
    if checksum:
        return json.dumps({**known, "md5": checksum})
    width = len(json.dumps({**known, "md5": _UNKNOWN}))
    return json.dumps({**known, "state": "changed"}).ljust(width)


def _head(member: ArchiveMember) -> bytes:
    return tar.header(member.name, member.file.size, _seconds(member.file.modified_ns))


def _seconds(modified_ns: int) -> int:
    return max(modified_ns // 1_000_000_000, 0)


def _filled(size: int) -> int:
    """Return the size of a body of `size` bytes with its padding."""
    return size + len(tar.padding(size))
