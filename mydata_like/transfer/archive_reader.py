"""Reads archives from a file or a stream, and accepts only what `archive_writer` writes.

A tar with anything else (links, devices, other headers) is rejected, and so is an archive whose
index and headers differ. Nothing is returned before these checks.
"""

import hashlib
import os
import re
import secrets
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, Self

from mydata_like.core.archives import Indexed
from mydata_like.core.errors import ArchiveError
from mydata_like.core.file_access import system_path
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import ArchiveMember
from mydata_like.core.openat import is_link
from mydata_like.core.parsing import parse_json
from mydata_like.transfer.archive_writer import (
    INDEX_ENDING,
    INDEX_HEAD,
    INDEX_TAIL,
    measure_archive,
)
from mydata_like.transfer.tar import BLOCK, check_name, padding

_MOST_MEMBERS: Final = 100_000  # ten times as many as `archive_writer` puts into one archive
_LONGEST_NAME: Final = 64 * 1024
_LONGEST_NAMES: Final = 64 * 1024 * 1024  # bytes of all names together
_LONGEST_LINE: Final = 6 * _LONGEST_NAME + 1024  # of an index: one byte may take six characters
_CHUNK: Final = 256 * 1024
_ZEROS: Final = bytes(BLOCK)
_OCTAL: Final = re.compile(rb"([0-7]{11})\0")
_SUM: Final = re.compile(rb"([0-7]{6})\0 ")
_CHECKSUM: Final = re.compile(r"[0-9a-f]{32}")
_LARGEST: Final = 2**63


class _Reader(Protocol):
    """A forward-only reader of an archive."""

    def read(self, count: int) -> bytes:
        """Return `count` bytes; raises `ArchiveError` if there are fewer."""

    def skip(self, count: int) -> str:
        """Skip `count` bytes; return their checksum, or an empty string if they were not read."""


class _Header(NamedTuple):
    """A member as described by its header."""

    name: bytes
    size: int
    offset: int
    checksum: str  # empty if its bytes were not read


def read_index(chunks: Iterable[bytes]) -> list[Indexed]:
    """Return the index of an archive that arrives in chunks.

    Raises `ArchiveError` if the data is not in the format of `archive_writer`, or if a member does
    not match its checksum.
    """
    reader = _ChunkReader(chunks)
    index = _read_index(reader)
    reader.end()
    return index


def read_members(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int, Iterator[bytes]]]:
    """Yield name, size and content of each member of an archive that arrives in chunks.

    The content is to be read before the next member. The index, which has its checksum, is at the
    end and not read. Raises `ArchiveError`, also while content is read.
    """
    reader = _ChunkReader(chunks)
    while header := _read_header(reader):
        name, size, _ = header
        if name.endswith(INDEX_ENDING) and b"/" not in name:
            return
        content = reader.take(size)
        yield name, size, map(bytes, content)
        for _ in content:  # what was not read
            pass
        reader.skip(len(padding(size)))


class TarArchives:
    """The archive format for the engine; implements `core.archives.ArchiveFormat`."""

    def measure(self, name: bytes, members: Sequence[ArchiveMember]) -> int:
        return measure_archive(name, members)

    def read_index(self, chunks: Iterable[bytes]) -> list[Indexed]:
        return read_index(chunks)


class ArchiveFile:
    """An open archive file; `index` lists its members."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise _unreadable(path, error) from error
        try:
            self.index = self._read()
        except BaseException:
            self._file.close()
            raise

    def content(self, member: Indexed) -> Iterator[bytes]:
        """Yield the bytes of a member; raises `ArchiveError` at the end if the checksum differs."""
        checksum = hashlib.md5(usedforsecurity=False)
        left = member.size
        try:
            self._file.seek(member.offset)
            while chunk := self._file.read(min(left, _CHUNK)):
                left -= len(chunk)
                checksum.update(chunk)
                yield chunk
        except OSError as error:
            raise _unreadable(self._path, error) from error
        if left or checksum.hexdigest() != member.checksum:
            raise ArchiveError(
                f"The checksum of {format_path(member.name)} does not match.",
                hint="Download the archive again from the server.",
            )

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

    def _read(self) -> list[Indexed]:
        try:
            index = _read_index(_FileReader(self._file))
            surplus = self._file.read(1)
        except OSError as error:
            raise _unreadable(self._path, error) from error
        if surplus:
            raise _damaged("there is data after its end")
        return index


class _ChunkReader:
    """A reader of an archive that arrives in chunks."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._left = memoryview(b"")

    def read(self, count: int) -> bytes:
        return b"".join(self.take(count))

    def skip(self, count: int) -> str:
        checksum = hashlib.md5(usedforsecurity=False)
        for piece in self.take(count):
            checksum.update(piece)
        return checksum.hexdigest()

    def end(self) -> None:
        """Check that the archive ends here."""
        if self._left or any(self._chunks):
            raise _damaged("there is data after its end")

    def take(self, count: int) -> Iterator[memoryview]:
        """Yield the next bytes; raises `ArchiveError` if there are fewer."""
        while count:
            if not self._left:
                more = next(self._chunks, None)
                if more is None:
                    raise _damaged("it ends too early")
                self._left = memoryview(more)
            taken, self._left = self._left[:count], self._left[count:]
            count -= len(taken)
            yield taken


class _FileReader:
    """A reader of a file, in which `skip` seeks; the next read detects a file that is too short."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, count: int) -> bytes:
        content = self._file.read(count)
        if len(content) != count:
            raise _damaged("it ends too early")
        return content

    def skip(self, count: int) -> str:
        self._file.seek(count, 1)
        return ""  # `ArchiveFile.content` compares the checksum later


def _read_index(reader: _Reader) -> list[Indexed]:
    """Read all headers, then the index line by line, so that only names take memory."""
    found: list[_Header] = []
    position = names = 0
    while header := _read_header(reader):
        name, size, length = header
        if name.endswith(INDEX_ENDING) and b"/" not in name:
            index = _check_index(_Lines(reader, size), found)
            reader.skip(len(padding(size)))
            if _read_header(reader):
                raise _damaged("its index is not at its end")
            return index
        checksum = reader.skip(size)
        reader.skip(len(padding(size)))
        found.append(_Header(name, size, position + length, checksum))
        position += length + size + len(padding(size))
        names += len(name)
        if len(found) > _MOST_MEMBERS or names > _LONGEST_NAMES:
            raise _damaged("it has too many members")
    raise _damaged("it has no index")


def _read_header(reader: _Reader) -> tuple[bytes, int, int] | None:
    """Return a member's name, size and header length; None at the end of the archive."""
    block = reader.read(BLOCK)
    if block == _ZEROS:
        if reader.read(BLOCK) != _ZEROS:
            raise _damaged("its end is incomplete")
        return None
    kind, name, size = _parse_block(block)
    if kind != b"L":
        return _check_member(name, kind), size, BLOCK
    if size > _LONGEST_NAME:
        raise _damaged("it has a name that is too long")
    filled = size + len(padding(size))
    long_name = reader.read(filled)[:size].removesuffix(b"\0")
    kind, short, size = _parse_block(reader.read(BLOCK))
    if not long_name.startswith(short):
        raise _damaged("a long name and its header differ")
    return _check_member(long_name, kind), size, 2 * BLOCK + filled


def _parse_block(block: bytes) -> tuple[bytes, bytes, int]:
    """Return the kind, name and size from a header block (POSIX ustar)."""
    declared = _SUM.fullmatch(block[148:156])
    size = _OCTAL.fullmatch(block[124:136])
    actual = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    if (
        declared is None
        or size is None
        or int(declared[1], 8) != actual
        or block[257:263] != b"ustar\0"
    ):
        raise _damaged("it has a header that mydata-like does not write")
    name, prefix = (field.rstrip(b"\0") for field in (block[:100], block[345:500]))
    return block[156:157], prefix + b"/" + name if prefix else name, int(size[1], 8)


def _check_member(name: bytes, kind: bytes) -> bytes:
    try:
        check_name(name)
    except ValueError:
        raise _damaged(f"it has a member with an unsafe path: {format_path(name[:200])}") from None
    if kind != b"0":
        raise _damaged(f"{format_path(name[:200])} is not a regular file")
    return name


class _Lines:
    """The lines of an index of `size` bytes."""

    def __init__(self, reader: _Reader, size: int) -> None:
        self._tape = reader
        self._left = size
        self._whole: deque[bytes] = deque()
        self._rest = b""

    def take(self) -> bytes:
        """Return the next line with its newline; empty at the end of the index."""
        while not self._whole and self._left:
            if len(self._rest) > _LONGEST_LINE:
                raise _damaged("its index has a line that is too long")
            more = self._tape.read(min(self._left, _CHUNK))
            self._left -= len(more)
            *whole, self._rest = (self._rest + more).split(b"\n")
            self._whole.extend(line + b"\n" for line in whole)
        if self._whole:
            return self._whole.popleft()
        line, self._rest = self._rest, b""
        return line


def _check_index(lines: _Lines, found: list[_Header]) -> list[Indexed]:
    """Return the index after comparing it with the headers; each name must be unique."""
    if lines.take() != INDEX_HEAD:
        raise _damaged("its index is of another version")
    index = [
        _check_entry(_parse_line(lines.take(), last=place == len(found)), header)
        for place, header in enumerate(found, 1)
    ]
    if not found or lines.take() + lines.take() != INDEX_TAIL.lstrip(b"\n"):
        raise _damaged("its index and its headers differ")
    if len({each.name for each in index}) != len(index):
        raise _damaged("it has a duplicate name")
    return index


def _check_entry(declared: Indexed, header: _Header) -> Indexed:
    """Return an index entry after comparing it with the member's header and bytes."""
    if declared[:2] != header[:2] or declared.offset != header.offset:
        raise _damaged("its index and its headers differ")
    if declared.checksum and header.checksum not in ("", declared.checksum):
        raise _damaged(f"the checksum of {format_path(declared.name)} differs from its index")
    return declared._replace(name=header.name)  # keep only one copy of the name


def _parse_line(line: bytes, *, last: bool) -> Indexed:
    end = b"\n" if last else b",\n"
    if not line.endswith(end):
        raise _damaged("its index and its headers differ")
    try:
        return _parse_member(parse_json(line.removesuffix(end), longest=_LONGEST_LINE + _CHUNK))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damaged("its index is invalid") from None


def _parse_member(member: Any) -> Indexed:
    name, checksum = member["name"], member.get("md5", "")
    numbers = member["size"], member["modified_ns"], member["offset"]
    if not all(type(number) is int and abs(number) < _LARGEST for number in numbers):
        raise ValueError("not a number")
    if type(checksum) is not str or (checksum and not _CHECKSUM.fullmatch(checksum)):
        raise ValueError("not a checksum")
    return Indexed(name.encode("utf-8", "surrogateescape"), *numbers, checksum)


def _damaged(what: str) -> ArchiveError:
    return ArchiveError(
        f"This is not an archive of mydata-like, or it is damaged: {what}.",
        hint="Download it again from the server. Read other tar files with tar.",
    )


def _unreadable(path: Path, error: OSError) -> ArchiveError:
    return ArchiveError(
        f"{format_path(bytes(path))} cannot be read: {error.strerror or error}.",
        hint="Check the path, its permissions and its disk.",
        code="archive.unreadable",
    )


_FLAGS: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)
_PART: Final = ".mydata-part-"  # a file gets its final name after its checksum matched


def verify_member(archive: ArchiveFile, member: Indexed) -> None:
    """Read a member; raises `ArchiveError` if its checksum differs."""
    _check_known(member)
    for _ in archive.content(member):
        pass


def extract_member(archive: ArchiveFile, member: Indexed, target: Path) -> None:
    """Write a member below a folder, with its parent folders and its modification time.

    Symbolic links are not followed, and existing files are not overwritten. Raises `ArchiveError`.
    """
    _check_known(member)
    place = _find_place(member.name, target)
    part = place.with_name(_PART + secrets.token_hex(8))  # the name may have all 255 bytes
    try:
        _make_folders(place, member.name.count(b"/"))
        if os.path.lexists(place):
            raise FileExistsError(None, "it already exists")
        _write(archive, member, part, place)
    except OSError as error:
        raise ArchiveError(
            f"{format_path(member.name)} cannot be written: {error.strerror or error}.",
            hint="Choose an empty folder on a disk with free space.",
            code="archive.unwritable",
        ) from error


def _check_known(member: Indexed) -> None:
    if not member.checksum:
        raise ArchiveError(
            f"{format_path(member.name)} changed while it was added to the archive.",
            hint="A later archive or datafile of the same dataset contains it.",
            code="archive.changed-member",
        )


def _find_place(name: bytes, target: Path) -> Path:
    """Return the path to extract a member to; its name is relative, of plain components."""
    try:
        names = [os.fsdecode(part) for part in name.split(b"/")]
    except UnicodeDecodeError as error:  # the names of Windows are text
        raise _invalid(name) from error
    if os.sep != "/" and (b"\\" in name or b":" in name):
        raise _invalid(name)
    return Path(os.fsdecode(system_path(os.fsencode(target.absolute()))), *names)


def _invalid(name: bytes) -> ArchiveError:
    return ArchiveError(
        f"{format_path(name)} is not a valid file name on this system.",
        hint="Extract the archive on another system.",
        code="archive.unwritable",
    )


def _make_folders(place: Path, count: int) -> None:
    """Create the folders of a file; raises OSError if one of the last `count` is no folder."""
    place.parents[count].mkdir(parents=True, exist_ok=True)
    for path in reversed(place.parents[:count]):
        path.mkdir(exist_ok=True)
        status = path.lstat()
        if is_link(status) or not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(None, f"{path.name} is not a folder")


def _write(archive: ArchiveFile, member: Indexed, part: Path, place: Path) -> None:
    """Write a member to a temporary file and rename it; the temporary file is always removed."""
    descriptor = os.open(part, _FLAGS, 0o666)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a file descriptor
            for chunk in archive.content(member):
                file.write(chunk)
        os.utime(part, ns=(member.modified_ns, member.modified_ns))
        part.rename(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
