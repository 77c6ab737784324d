"""A fast writer of tar streams that every `tar` can read.

POSIX ustar headers (IEEE 1003.1, pax: "ustar Interchange Format") with GNU tar's extensions: a
member of type L for long names, and binary numbers for large sizes. GNU tar, bsdtar and busybox all
support these, unlike their pax counterparts, and treat names as bytes. Pax records are used only
where there is no other form: fractions of seconds, and the map of a sparse file (GNU sparse format
1.0; GNU tar and bsdtar only).

A header announces a size. A caller with less data pads the member (`pad_member`), otherwise
everything after it is corrupt.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from mydata_like.core.errors import FileChangedError
from mydata_like.transfer.sparse import Extent, zeros

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)  # the end of an archive

FILE_MODE: Final = 0o660
DIRECTORY_MODE: Final = 0o2770

_OCTAL_MOST: Final = 0o77777777777  # 8 GiB - 1, or the year 2242
_FILE: Final = b"0"
_DIRECTORY: Final = b"5"
_LONG_NAME: Final = b"L"
_PAX: Final = b"x"

# The constant fields: uid and gid 0, an empty link name, the magic, no owner names.
_OWNER: Final = b"0000000\0" * 2
_BEFORE_PREFIX: Final = bytes(100) + b"ustar\x0000" + bytes(80)
_AFTER_PREFIX: Final = bytes(12)
_NO_PREFIX: Final = bytes(155)
_FIXED_SUM: Final = sum(_BEFORE_PREFIX) + 8 * ord(" ")  # with the checksum field as spaces
_PADDINGS: Final = tuple(bytes(length) for length in range(BLOCK))


def header(
    name: bytes, size: int, modified: float, mode: int = FILE_MODE, *, precise: bool = False
) -> bytes:
    r"""Return the header of a regular file of `size` bytes.

    `name` is relative, of plain components; otherwise ValueError is raised. (bsdtar removes what
    looks like a drive, `C:\`, from the start of a name: let names start with a folder.) Times are
    whole seconds since 1970, or with a fraction if `precise`.
    """
    check_name(name)
    if precise:
        return _pax_header([(b"mtime", b"%.6f" % modified)]) + _member(
            name, size, modified, mode, _FILE
        )
    return _member(name, size, modified, mode, _FILE)


def directory(name: bytes, modified: float = 0.0, mode: int = DIRECTORY_MODE) -> bytes:
    """Return the member that creates a directory."""
    check_name(name)
    return _member(name + b"/", 0, modified, mode, _DIRECTORY)


def sparse_header(
    name: bytes, size: int, modified: float, extents: Sequence[Extent], mode: int = FILE_MODE
) -> bytes:
    """Return the header of a regular file with holes, including the map of its data.

    The bytes of the extents follow without gaps, then the padding for their sum. Extents are in
    order, start at multiples of 512, and fill whole blocks except at the end.
    """
    check_name(name)
    ends_in_hole = not extents or sum(extents[-1]) < size
    entries = [*extents, (size, 0)] if ends_in_hole else extents
    text = b"%d\n" % len(entries) + b"".join(b"%d\n%d\n" % entry for entry in entries)
    archived = len(text) + len(padding(len(text))) + sum(length for _, length in extents)
    sparse = [
        (b"GNU.sparse.major", b"1"),
        (b"GNU.sparse.minor", b"0"),
        (b"GNU.sparse.realsize", b"%d" % size),
    ]
    member = _member(name, archived, modified, mode, _FILE)
    return b"".join((_pax_header(sparse), member, text, padding(len(text))))


def padding(size: int) -> bytes:
    """Return the zeros that fill the last block of a body of `size` bytes."""
    return _PADDINGS[-size % BLOCK]


def pad_member(remaining: int) -> Iterator[memoryview]:
    """Yield zeros in place of announced bytes that cannot be read."""
    return zeros(remaining)


def write_member(
    write: Callable[[bytes | memoryview], object],
    head: bytes,
    size: int,
    chunks: Iterable[bytes | memoryview],
) -> None:
    """Write a header, the `size` bytes it announces and their padding.

    If the source raises `FileChangedError`, or yields too few or too many bytes, the member is
    padded first: the stream stays valid, and the error marks this member as invalid.
    """
    write(head)
    remaining = size
    try:
        for chunk in _exactly(size, chunks):
            write(chunk)
            remaining -= len(chunk)
    except FileChangedError:
        for chunk in pad_member(remaining):
            write(chunk)
        write(padding(size))
        raise
    write(padding(size))


def _exactly(size: int, chunks: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Yield exactly `size` bytes, or raise before there is one too many."""
    for chunk in chunks:
        size -= len(chunk)
        if size < 0:
            raise FileChangedError("There is more data than announced.")
        yield chunk
    if size:
        raise FileChangedError("There is less data than announced.")


def is_plain(name: bytes) -> bool:
    """Return whether a name is relative, stays below its start, and has no empty component.

    So are several names if they are plain when joined by slashes.
    """
    closed = b"/%b/" % name
    return not (b"//" in closed or b"/./" in closed or b"/../" in closed or b"\0" in closed)


def check_name(name: bytes) -> None:
    """Raise ValueError for a name that is not relative, of plain components."""
    if not is_plain(name):
        raise ValueError(f"not a plain relative name: {name!r}")


def _member(name: bytes, size: int, modified: float, mode: int, kind: bytes) -> bytes:
    """Return the header block, preceded by a long-name member if the name is too long."""
    fields = _fields(size, modified, mode)
    if len(name) <= 100:
        return _block(name, fields, kind)
    # The last slash that fits into the prefix, except one that ends a directory's name.
    split = name.rfind(b"/", len(name) - 101, min(156, len(name) - 1))
    if split > 0:
        return _block(name[split + 1 :], fields, kind, name[:split])
    return _extra(b"././@LongLink", name + b"\0", _LONG_NAME) + _block(name[:100], fields, kind)


def _fields(size: int, modified: float, mode: int) -> bytes:
    """Return the fields from mode to time; sizes beyond eleven octal digits are binary."""
    digits = b"%011o\0" % size if size <= _OCTAL_MOST else b"\x80" + size.to_bytes(11, "big")
    seconds = min(max(int(modified), 0), _OCTAL_MOST)
    return b"%07o\0%b%b%011o\0" % (mode, _OWNER, digits, seconds)


def _block(name: bytes, fields: bytes, kind: bytes, prefix: bytes = b"") -> bytes:
    return b"%b%b%06o\0 %b%b%b%b" % (
        name.ljust(100, b"\0"),
        fields,
        _FIXED_SUM + sum(name) + sum(fields) + kind[0] + sum(prefix),
        kind,
        _BEFORE_PREFIX,
        prefix.ljust(155, b"\0") if prefix else _NO_PREFIX,
        _AFTER_PREFIX,
    )


def _extra(name: bytes, body: bytes, kind: bytes) -> bytes:
    """Return a member with metadata of the member that follows."""
    return _block(name, _fields(len(body), 0, 0), kind) + body + padding(len(body))


def _pax_header(records: Sequence[tuple[bytes, bytes]]) -> bytes:
    body = b"".join(_pax_record(key, value) for key, value in records)
    return _extra(b"PaxHeader", body, _PAX)


def _pax_record(key: bytes, value: bytes) -> bytes:
    """Return `length key=value`, where the length counts its own digits."""
    rest = b" " + key + b"=" + value + b"\n"
    length = len(rest) + 1
    while len(b"%d" % length) + len(rest) != length:
        length += 1
    return b"%d" % length + rest
