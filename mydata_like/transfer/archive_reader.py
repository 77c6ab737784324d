"""Reads archives from a file or a stream; accepts only what `archive_writer` writes.

Whatever else a tar may hold (links, devices, other headers) makes it no archive of ours, and
so does an index that says other things than the headers do. Nothing is believed before that.
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
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import ArchiveMember
from mydata_like.core.parsing import parse_json
from mydata_like.transfer.archive_writer import (
    INDEX_ENDING,
    INDEX_HEAD,
    INDEX_TAIL,
    measure_archive,
)
from mydata_like.transfer.tar import BLOCK, check_name, padding

_MOST_MEMBERS: Final = 100_000  # ten times as many as we put into one archive
_LONGEST_NAME: Final = 64 * 1024
_LONGEST_NAMES: Final = 64 * 1024 * 1024  # bytes of all of them
_LONGEST_LINE: Final = 6 * _LONGEST_NAME + 1024  # of an index: six characters may be one byte
_CHUNK: Final = 256 * 1024
_ZEROS: Final = bytes(BLOCK)
_OCTAL: Final = re.compile(rb"([0-7]{11})\0")
_SUM: Final = re.compile(rb"([0-7]{6})\0 ")
_CHECKSUM: Final = re.compile(r"[0-9a-f]{32}")
_LARGEST: Final = 2**63


class _Tape(Protocol):
    """What an archive is read from, forwards only."""

    def read(self, count: int) -> bytes:
        """Return so many bytes; raises `ArchiveError` where there are fewer."""

    def skip(self, count: int) -> str:
        """Pass so many bytes; return their checksum, empty where they are not read."""


class _Found(NamedTuple):
    """A member as its header tells it."""

    name: bytes
    size: int
    offset: int
    checksum: str  # empty where its bytes were not read


def read_index(chunks: Iterable[bytes]) -> list[Indexed]:
    """Return what an archive holds that comes in pieces.

    Raises `ArchiveError`, at the first thing that does not look like one of ours, or where a
    member's bytes are not those of its checksum.
    """
    tape = _Streamed(chunks)
    index = _read_index(tape)
    tape.end()
    return index


class TarArchives:
    """What the engine knows of archives: `core.archives.ArchiveFormat`."""

    def measure(self, name: bytes, members: Sequence[ArchiveMember]) -> int:
        return measure_archive(name, members)

    def read_index(self, chunks: Iterable[bytes]) -> list[Indexed]:
        return read_index(chunks)


class ArchiveFile:
    """An archive on the disk, open to be read; `index` is what it holds."""

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
        """Yield the bytes of a member; raises `ArchiveError` at their end if they are not it."""
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
                f"The bytes of {format_path(member.name)} are not those of its checksum.",
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
            index = _read_index(_Seekable(self._file))
            surplus = self._file.read(1)
        except OSError as error:
            raise _unreadable(self._path, error) from error
        if surplus:
            raise _damaged("something follows its end")
        return index


class _Streamed:
    """A tape that comes in pieces."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._left = memoryview(b"")

    def read(self, count: int) -> bytes:
        return b"".join(self._take(count))

    def skip(self, count: int) -> str:
        checksum = hashlib.md5(usedforsecurity=False)
        for piece in self._take(count):
            checksum.update(piece)
        return checksum.hexdigest()

    def end(self) -> None:
        """Come to the end, which must be here; who reads an archive reads all of it."""
        if self._left or any(self._chunks):
            raise _damaged("something follows its end")

    def _take(self, count: int) -> Iterator[memoryview]:
        while count:
            if not self._left:
                more = next(self._chunks, None)
                if more is None:
                    raise _damaged("it ends too early")
                self._left = memoryview(more)
            taken, self._left = self._left[:count], self._left[count:]
            count -= len(taken)
            yield taken


class _Seekable:
    """A tape that can be wound forwards; that it is long enough shows at the next reading."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, count: int) -> bytes:
        content = self._file.read(count)
        if len(content) != count:
            raise _damaged("it ends too early")
        return content

    def skip(self, count: int) -> str:
        self._file.seek(count, 1)
        return ""  # what is taken out of the file is compared then


def _read_index(tape: _Tape) -> list[Indexed]:
    """Read all headers, then the index, one line at a time: memory is only taken for names."""
    found: list[_Found] = []
    position = names = 0
    while header := _read_header(tape):
        name, size, length = header
        if name.endswith(INDEX_ENDING) and b"/" not in name:
            index = _agreed(_Lines(tape, size), found)
            tape.skip(len(padding(size)))
            if _read_header(tape):
                raise _damaged("its index is not at its end")
            return index
        checksum = tape.skip(size)
        tape.skip(len(padding(size)))
        found.append(_Found(name, size, position + length, checksum))
        position += length + size + len(padding(size))
        names += len(name)
        if len(found) > _MOST_MEMBERS or names > _LONGEST_NAMES:
            raise _damaged("it has too many members")
    raise _damaged("it has no index")


def _read_header(tape: _Tape) -> tuple[bytes, int, int] | None:
    """Return a member's name and size, and how long its header was; None at the end."""
    block = tape.read(BLOCK)
    if block == _ZEROS:
        if tape.read(BLOCK) != _ZEROS:
            raise _damaged("its end is incomplete")
        return None
    kind, name, size = _parse_block(block)
    if kind != b"L":
        return _checked(name, kind), size, BLOCK
    if size > _LONGEST_NAME:
        raise _damaged("it has a name that is too long")
    filled = size + len(padding(size))
    long_name = tape.read(filled)[:size].removesuffix(b"\0")
    kind, short, size = _parse_block(tape.read(BLOCK))
    if not long_name.startswith(short):
        raise _damaged("a long name and its header differ")
    return _checked(long_name, kind), size, 2 * BLOCK + filled


def _parse_block(block: bytes) -> tuple[bytes, bytes, int]:
    """Return the kind, the name and the size that a header block tells (POSIX ustar)."""
    told = _SUM.fullmatch(block[148:156])
    size = _OCTAL.fullmatch(block[124:136])
    true = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    if told is None or size is None or int(told[1], 8) != true or block[257:263] != b"ustar\0":
        raise _damaged("it has a header that we did not write")
    name, prefix = (field.rstrip(b"\0") for field in (block[:100], block[345:500]))
    return block[156:157], prefix + b"/" + name if prefix else name, int(size[1], 8)


def _checked(name: bytes, kind: bytes) -> bytes:
    try:
        check_name(name)
    except ValueError:
        raise _damaged(f"it has a member that leads elsewhere: {format_path(name[:200])}") from None
    if kind != b"0":
        raise _damaged(f"{format_path(name[:200])} is no regular file")
    return name


class _Lines:
    """The lines of an index, which is `size` bytes long, as they are read."""

    def __init__(self, tape: _Tape, size: int) -> None:
        self._tape = tape
        self._left = size
        self._whole: deque[bytes] = deque()
        self._rest = b""

    def take(self) -> bytes:
        """Return the next line with its end, empty at the end of the index."""
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


def _agreed(lines: _Lines, found: list[_Found]) -> list[Indexed]:
    """Return the index, if it says what the headers and the bytes say, and each name once."""
    if lines.take() != INDEX_HEAD:
        raise _damaged("its index is of another version")
    index = [
        _compared(_parse_line(lines.take(), last=place == len(found)), there)
        for place, there in enumerate(found, 1)
    ]
    if not found or lines.take() + lines.take() != INDEX_TAIL.lstrip(b"\n"):
        raise _damaged("its index and its headers differ")
    if len({each.name for each in index}) != len(index):
        raise _damaged("it has a name twice")
    return index


def _compared(told: Indexed, there: _Found) -> Indexed:
    """Return what the index says of a member, if its header and its bytes say the same."""
    if told[:2] != there[:2] or told.offset != there.offset:
        raise _damaged("its index and its headers differ")
    if told.checksum and there.checksum not in ("", told.checksum):
        raise _damaged(f"it has other bytes of {format_path(told.name)} than its index says")
    return told._replace(name=there.name)  # one copy of it


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
_PART: Final = ".mydata-part-"  # a file has its name only once its checksum is known to be right


def verify_member(archive: ArchiveFile, member: Indexed) -> None:
    """Read a member; raises `ArchiveError` where its bytes are not those of its checksum."""
    _check_known(member)
    for _ in archive.content(member):
        pass


def extract_member(archive: ArchiveFile, member: Indexed, target: Path) -> None:
    """Write a member below a folder, with the folders above it and its time.

    Links on the way are not followed, and what exists stays as it is. Raises `ArchiveError`.
    """
    _check_known(member)
    place = _find_place(member.name, target)
    part = place.with_name(_PART + secrets.token_hex(8))  # short: its name may have all 255 bytes
    try:
        _make_folders(place.parent, target)
        if os.path.lexists(place):
            raise FileExistsError(None, "it exists already")
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
            f"{format_path(member.name)} changed while it was put into the archive.",
            hint="A later archive or datafile of its dataset has it.",
            code="archive.changed-member",
        )


def _find_place(name: bytes, target: Path) -> Path:
    """Return where a member goes; its name is known to be relative, of plain components."""
    if os.sep != "/" and (b"\\" in name or b":" in name):
        raise ArchiveError(
            f"{format_path(name)} is no name that this system can give to a file.",
            hint="Extract the archive on another system.",
            code="archive.unwritable",
        )
    return target.joinpath(*map(os.fsdecode, name.split(b"/")))


def _make_folders(folder: Path, target: Path) -> None:
    """Make the folders from the target on; raises OSError for what is there and no folder."""
    target.mkdir(parents=True, exist_ok=True)
    path = target
    for name in folder.relative_to(target).parts:
        path = path / name
        path.mkdir(exist_ok=True)
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise NotADirectoryError(None, f"{path.name} is no folder")


def _write(archive: ArchiveFile, member: Indexed, part: Path, place: Path) -> None:
    """Write a member under a temporary name, of which nothing is left, then give it its own."""
    descriptor = os.open(part, _FLAGS, 0o666)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - it is open already
            for chunk in archive.content(member):
                file.write(chunk)
        os.utime(part, ns=(member.modified_ns, member.modified_ns))
        part.rename(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
