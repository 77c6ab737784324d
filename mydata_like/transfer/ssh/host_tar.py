"""Reads what the tar of a host writes: GNU, busybox or BSD.

Formats: POSIX ustar and pax (IEEE 1003.1), with GNU tar's members for long names. The host is not
trusted: whoever reads decides by name and size which members are of use. It cannot fill
the memory either: names have a longest size, and the bytes of files are passed on in pieces.
"""

import tarfile
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from mydata_like.core.errors import TransientError
from mydata_like.transfer.tar import BLOCK

_LONGEST: Final = 256 * 1024  # bytes of the names of one member
_PIECE: Final = 256 * 1024
_ZEROS: Final = bytes(BLOCK)
_LONG_NAMES: Final = {tarfile.GNUTYPE_LONGNAME: b"path", tarfile.GNUTYPE_LONGLINK: b"linkpath"}
_PAX: Final = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_FILES: Final = (tarfile.REGTYPE, tarfile.AREGTYPE)

Take = Callable[[int], bytes]  # returns exactly so many bytes, or fewer at the end


class TarMember(NamedTuple):
    """A member as its headers describe it; `kind` is `file`, `folder`, `link` or empty.

    A path of `./` stands for the current folder, and has become `b""`. `target` is that of a link.
    Exactly `size` bytes are in `pieces`; what the reader leaves is skipped.
    """

    path: bytes
    kind: str
    size: int
    mode: int
    modified: int
    target: bytes
    pieces: Iterator[bytes]


def read_members(take: Take) -> Iterator[TarMember]:
    """Yield the members of one tar stream or of several, one after the other, up to the end.

    Raises `TransientError` for anything that is no tar, or ends too early.
    """
    names: dict[bytes, bytes] = {}
    while block := take(BLOCK):
        if block == _ZEROS:
            continue
        try:
            head = tarfile.TarInfo.frombuf(block, "latin-1", "strict")
        except tarfile.HeaderError as error:
            raise _damaged() from error
        if head.size < 0:
            raise _damaged()
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
        path = names.get(b"path") or head.name.encode("latin-1")
        target = names.get(b"linkpath") or head.linkname.encode("latin-1")
        if b"size" in names:  # of a file that is too large for the field
            raise _damaged()
        names = {}
        kind = {tarfile.DIRTYPE: "folder", tarfile.SYMTYPE: "link"}.get(head.type, "")
        if head.type in _FILES:
            kind = "file"
        path = path.rstrip(b"/") if kind == "folder" else path
        path = b"" if path == b"." else path.removeprefix(b"./")
        yield TarMember(path, kind, head.size, head.mode & 0o777, int(head.mtime), target, body)
        body.skip()


class _Body(Iterator[bytes]):
    """The bytes of a member, in pieces."""

    def __init__(self, take: Take, size: int) -> None:
        self._take = take
        self._left = size
        self._padding = -size % BLOCK

    def __next__(self) -> bytes:
        if not self._left:
            raise StopIteration
        return self._receive(min(self._left, _PIECE))

    def _receive(self, wanted: int) -> bytes:
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
            self._receive(self._left)


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
