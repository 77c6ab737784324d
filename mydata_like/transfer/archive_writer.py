"""Writes archives: many small files, read ahead, as one plain tar with an index at its end.

Every place and size in an archive follows from the names and sizes of its members, so it is
known before the first byte is read: the checksums in the index have a fixed width. They are
the reason why the index comes last, since each file is read once, on its way. A member that
changes while it is read is filled up with zeros and has no checksum in the index.
"""

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import repeat
from types import TracebackType
from typing import Final, NamedTuple, Self

from mydata_like.core.errors import FileChangedError, Problem
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

TINY: Final = 64 * 1024  # read_tiny's callers keep whole files of up to this size

_TOGETHER: Final = 32  # tiny files that are open at once, at most


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
    """Yield for each file what `read_tiny` may want of it: None where it opens the file itself.

    Where the first of some files came from a disk, the others are fetched together, which
    takes a fraction of the waiting, even for a disk without moving parts.
    """
    for begin in range(0, len(files), _TOGETHER):
        before = count_fetched()
        yield None
        waited = count_fetched() > before
        others = files[begin + 1 : begin + _TOGETHER]
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
    """Open a tiny file that can be opened, and have the system fetch it."""
    if seen.size > TINY:
        return None
    started = time.time_ns()
    try:
        descriptor, before = open_seen(seen, folders)
    except FileChangedError:  # to be found out at its turn
        return None
    file_source.fetch(descriptor)
    return PrefetchedFile(descriptor, before, started)


def read_tiny(
    seen: Seen,
    folders: FolderCache,
    fetched: PrefetchedFile | None = None,
    read: Callable[[int, int], bytes] = os.read,
) -> tuple[bytes, str]:
    """Return the bytes and the checksum of a small file, with all the care of a `Source`.

    `read` reads from a descriptor, as the system does: at most so many bytes, none at the end.
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
        after = os.fstat(descriptor)
    except OSError as error:
        raise translated(seen.path, error) from error
    finally:
        os.close(descriptor)
    if len(content) != seen.size:
        raise changed(seen.path)
    check_unchanged(seen.path, before, after, started)
    return content, hashlib.md5(content, usedforsecurity=False).hexdigest()


def _read_on(
    descriptor: int, size: int, content: bytes, read: Callable[[int, int], bytes]
) -> bytes:
    """Return all of a file of which a part came: the next read tells why it was only a part.

    Before a bad sector the system gives what it could read, and the error afterwards.
    """
    while len(content) < size and (more := read(descriptor, size + 1 - len(content))):
        content += more
    return content


FORMAT: Final = "mydata-like archive 1"
ENDING: Final = b".tar"
INDEX_ENDING: Final = b".index.json"

# Each line between them is one member, in the order of the headers.
INDEX_HEAD: Final = b'{"format": "%b", "members": [\n' % FORMAT.encode()
INDEX_TAIL: Final = b"\n]}\n"
_UNKNOWN: Final = "0" * 32
_CHUNK: Final = 256 * 1024

Piece = bytes | memoryview


class IndexLine(NamedTuple):
    """What reading told: the checksum of the whole, and what came of each file of an archive."""

    checksum: str
    inside: tuple[Reading, ...] = ()

    @classmethod
    def of(cls, source: "FileSource | ArchiveSource") -> Self:
        """Return it once all is read; raises `FileChangedError` where the file did not stay."""
        return cls(source.finish(), source.inside)


def index_name(archive: bytes) -> bytes:
    """Return the name of the index within an archive of this name."""
    return archive.removesuffix(ENDING) + INDEX_ENDING


def measure_archive(name: bytes, members: Sequence[ArchiveMember]) -> int:
    """Return how many bytes an archive will have."""
    return _Places(name, members).size


def open_content(member: Member) -> "FileSource | ArchiveSource":
    """Open what is to be sent: a local file as the scan saw it, or an archive of several."""
    if not member.inside:
        return open_source(member)
    return ArchiveSource(member.remote.rpartition(b"/")[2], member.modified_ns, member.inside)


class ArchiveSource:
    """An archive as a source of bytes: what `reading.Source` is for a file.

    `inside` tells what came of each member, once all is read.
    """

    may_have_holes = False

    def __init__(self, name: bytes, modified_ns: int, members: Sequence[ArchiveMember]) -> None:
        self._places = _Places(name, members)
        self._members = members
        self._modified = _seconds(modified_ns)
        self._checksum = hashlib.md5(usedforsecurity=False)
        self._readings: list[Reading] = []
        self._folders = FolderCache()
        self.size = self._places.size
        self.remaining = self.size

    @property
    def inside(self) -> tuple[Reading, ...]:
        return tuple(self._readings)

    def chunks(self, buffer: bytearray | memoryview) -> Iterator[memoryview]:
        """Yield the bytes as views of `buffer`, each valid until the next. Call it once."""
        for chunk in _gather(self._pieces(), memoryview(buffer)):
            self._checksum.update(chunk)
            self.remaining -= len(chunk)
            yield chunk

    def finish(self) -> str:
        """Return the checksum; raises `FileChangedError` where no member is any good."""
        assert not self.remaining
        problems = [reading.problem for reading in self._readings if reading.problem]
        if problems and len(problems) == len(self._readings):
            code, message, hint = problems[0]
            raise FileChangedError(message, hint=hint, code=code)
        return self._checksum.hexdigest()

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

    def _pieces(self) -> Iterator[Piece]:
        for member in self._members:
            yield _head(member)
            yield from self._content(member.file)
            yield tar.padding(member.file.size)
        index = self._places.index([reading.checksum for reading in self._readings])
        yield tar.header(self._places.index_name, len(index), self._modified)
        yield index
        yield tar.padding(len(index))
        yield tar.END

    def _content(self, file: LocalFile) -> Iterator[Piece]:
        """Yield as many bytes as were promised, and note what they are worth."""
        if file.size > TINY:
            yield from self._stream(file)
            return
        try:
            content, checksum = read_tiny(file, self._folders)
        except FileChangedError as error:
            self._give_up(error.problem)
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
            self._give_up(error.problem)
            yield from zeros(remaining)

    def _give_up(self, problem: Problem) -> None:
        self._readings.append(Reading("", problem))


class _Places:
    """Where everything lies in an archive."""

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
    """Return what the index says of one member, as long for a changed one as for a good one."""
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
    """Return how much of a tar a body of this size takes."""
    return size + len(tar.padding(size))


def _gather(pieces: Iterator[Piece], buffer: memoryview) -> Iterator[memoryview]:
    """Yield what comes in pieces as full buffers, the last one as full as it gets."""
    filled = 0
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            taken = rest[: len(buffer) - filled]
            buffer[filled : filled + len(taken)] = taken
            filled += len(taken)
            rest = rest[len(taken) :]
            if filled == len(buffer):
                yield buffer
                filled = 0
    if filled:
        yield buffer[:filled]
