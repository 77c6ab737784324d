"""Reads what the tar of a host writes: GNU, busybox or BSD.

Formats: POSIX ustar and pax (IEEE 1003.1), with GNU tar's members for long names and its sparse
format 1.0. The host is not trusted: whoever reads decides by name and size which members are of
use. It cannot fill the memory either: names have a longest size, sparse files a highest number of
extents, and the bytes of files are passed on in pieces.
"""

import struct
import tarfile
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from mydata_like.core.destination_files import HOLE
from mydata_like.core.errors import TransientError
from mydata_like.transfer.sparse import Extent
from mydata_like.transfer.tar import BLOCK

_LONGEST: Final = 256 * 1024  # bytes of the names of one member
_PIECE: Final = 256 * 1024
_MOST_EXTENTS: Final = 1_000_000  # of a sparse file
_LONGEST_NUMBER: Final = 19  # digits
_ZEROS: Final = bytes(BLOCK)
_LONG_NAMES: Final = {tarfile.GNUTYPE_LONGNAME: b"path", tarfile.GNUTYPE_LONGLINK: b"linkpath"}
_PAX: Final = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_POSIX: Final = b"ustar\x0000"
_FIELDS: Final = struct.Struct("100s8s16x12s12s8sc100s8s80x155s12x").unpack
_FILES: Final = (tarfile.REGTYPE, tarfile.AREGTYPE)

Take = Callable[[int], bytes]  # returns exactly so many bytes, or fewer at the end


class TarMember(NamedTuple):
    """A member as its headers describe it; `kind` is `file`, `folder`, `link` or empty.

    A path of `./` stands for the current folder, and has become `b""`. `target` is that of a link.
    Exactly `size` bytes are in `pieces`, holes as `HOLE`; what the reader leaves is skipped.
    """

    path: bytes
    kind: str
    size: int
    mode: int
    modified: int
    target: bytes
    pieces: Iterator[bytes]


def read_members(take: Take, take_others: Callable[[], None] = lambda: None) -> Iterator[TarMember]:
    """Yield the members of one tar stream or of several, one after the other, up to the end.

    Before each of them, `take_others` may take whole members that are not yielded. Raises
    `TransientError` for anything that is no tar, or ends too early.
    """
    names: dict[bytes, bytes] = {}
    while True:
        if not names:
            take_others()
        if not (block := take(BLOCK)):
            return
        if block == _ZEROS:
            continue
        head = _parse_header(block)
        body = _Body(take, head.size)
        if head.type in (*_LONG_NAMES, *_PAX, tarfile.XGLTYPE):
            if head.size > _LONGEST:
                raise _damaged()
            content = b"".join(body)
            if head.type in _LONG_NAMES:
                names[_LONG_NAMES[head.type]] = content.partition(b"\0")[0]
            elif head.type in _PAX:
                names.update(_parse_records(content))
            body.skip()
            continue
        path, size = names.get(b"path") or head.name, head.size
        target = names.get(b"linkpath") or head.target
        if b"size" in names:  # of a file that is too large for the field
            raise _damaged()
        pieces: Iterator[bytes] = body
        if (real := names.get(b"GNU.sparse.realsize")) and head.type in _FILES:
            path, size = names.get(b"GNU.sparse.name") or path, _number(real)
            pieces = _fill_holes(body, _read_map(body), size)
        names = {}
        kind = {tarfile.DIRTYPE: "folder", tarfile.SYMTYPE: "link"}.get(head.type, "")
        if head.type in _FILES:
            kind = "file"
        path = path.rstrip(b"/") if kind == "folder" else path
        path = b"" if path == b"." else path.removeprefix(b"./")
        yield TarMember(path, kind, size, head.mode & 0o777, head.modified, target, pieces)
        body.skip()


class _Header(NamedTuple):
    name: bytes
    mode: int
    size: int
    modified: int
    type: bytes
    target: bytes


def _parse_header(block: bytes) -> _Header:
    """Parse the header of a member; that of `tarfile` takes three times as long."""
    if len(block) != BLOCK:
        raise _damaged()
    name, mode, size, modified, checksum, kind, target, magic, prefix = _FIELDS(block)
    blanks = 8 * ord(" ") - sum(block[148:156])  # in place of the checksum
    if _parse_field(checksum) != sum(block) + blanks:
        raise _damaged()
    name = name.partition(b"\0")[0]
    if magic == _POSIX and (folder := prefix.partition(b"\0")[0]):
        name = folder + b"/" + name
    if kind == tarfile.AREGTYPE and name.endswith(b"/"):
        kind = tarfile.DIRTYPE
    numbers = _parse_field(mode), _parse_field(size), _parse_field(modified)
    return _Header(name, *numbers, kind, target.partition(b"\0")[0])


def _parse_field(field: bytes) -> int:
    """Parse a number: octal digits, or after a first bit, the bytes of a large one."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:])
    digits = field.partition(b"\0")[0].strip() or b"0"
    if not digits.isdigit() or max(digits) > ord("7"):
        raise _damaged()
    return int(digits, 8)


class _Body(Iterator[bytes]):
    """The bytes of a member, in pieces."""

    def __init__(self, take: Take, size: int) -> None:
        self._take = take
        self._left = size
        self._padding = -size % BLOCK

    def __next__(self) -> bytes:
        if not self._left:
            raise StopIteration
        return self.receive(min(self._left, _PIECE))

    def receive(self, wanted: int) -> bytes:
        """Return so many of the bytes that are left."""
        if wanted > self._left:
            raise _damaged()
        piece = self._take(wanted)
        self._left -= wanted
        if len(piece) != wanted:
            raise _damaged()
        return piece

    def skip(self) -> None:
        """Skip what is left, and the padding after it."""
        for _ in self:
            pass
        if self._padding:
            self._left = self._padding
            self._padding = 0
            self.receive(self._left)


def _read_map(body: _Body) -> list[Extent]:
    """Read the beginning of a sparse member: the number of its extents, their offsets and lengths.

    They are lines of text, filled to a whole block.
    """
    numbers: list[int] = []
    rest = b""
    while not numbers or len(numbers) <= 2 * numbers[0]:
        *lines, rest = (rest + body.receive(BLOCK)).split(b"\n")
        numbers += map(_number, lines)
        if len(rest) > BLOCK or (numbers and numbers[0] > _MOST_EXTENTS):
            raise _damaged()
    return list(zip(numbers[1::2], numbers[2::2], strict=True))


def _fill_holes(body: _Body, extents: Sequence[Extent], size: int) -> Iterator[bytes]:
    """Yield all bytes of a sparse file."""
    position = 0
    for offset, length in (*extents, (size, 0)):
        end = offset + length
        if not position <= offset <= end <= size:
            raise _damaged()
        while hole := HOLE if offset - position >= len(HOLE) else HOLE[: offset - position]:
            position += len(hole)
            yield hole
        while position < end:
            piece = body.receive(min(end - position, _PIECE))
            position += len(piece)
            yield piece


def _number(text: bytes) -> int:
    if not text.isdigit() or len(text) > _LONGEST_NUMBER:
        raise _damaged()
    return int(text)


def _parse_records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of pax records: `length key=value`, where the length counts all."""
    while content:
        digits, _, _ = content.partition(b" ")
        if not digits.isdigit() or not len(digits) < int(digits[:7]) <= len(content):
            raise _damaged()
        record, content = content[: int(digits)], content[int(digits) :]
        key, equals, value = record[len(digits) + 1 :].removesuffix(b"\n").partition(b"=")
        if not equals:
            raise _damaged()
        yield key, value


def _damaged() -> TransientError:
    return TransientError("The tar of the host did not answer as expected.", code="staging.shell")
