"""Checksums: MD5, of several inputs at once where the library `md5.c` is there, and SHA-256.

Hashing two files together takes half of the time of hashing them one after the other, eight about a
quarter. Without the library, and for SHA-256, each is hashed by `hashlib`.
"""

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mydata_like.core.checksums import Algorithm

LANES: Final = 8  # inputs that are hashed at once

LIBRARY: Final = Path(__file__).with_name(
    {"win32": "_md5.dll", "darwin": "_md5.dylib"}.get(sys.platform, "_md5.so")
)
_FUNCTIONS: Final = ("md5_context_size", "md5_begin", "md5_update", "md5_read")
_CHECKSUM: Final = ctypes.c_char * 16


def load(path: Path) -> ctypes.CDLL | None:
    """Return the library, or None if it is missing or computes something else than `hashlib`."""
    try:
        library = ctypes.CDLL(str(path))
        for name in _FUNCTIONS:
            getattr(library, name)
    except (OSError, AttributeError):
        return None
    library.md5_context_size.restype = ctypes.c_size_t
    # Of different sizes, so that all numbers of lanes are tried.
    data = bytes(range(251)) * 6
    pieces = [data[lane:][: 128 * (lane + 1)] for lane in range(LANES + 1)]
    checksums = [Checksum(library) for _ in pieces]
    update_all(list(zip(checksums, pieces, strict=True)))
    right = all(
        checksum.hexdigest() == Algorithm.MD5.hash(piece).hexdigest()
        for checksum, piece in zip(checksums, pieces, strict=True)
    )
    return library if right else None


def new(algorithm: Algorithm = Algorithm.MD5) -> "Checksum":
    """Return the checksum of no bytes yet."""
    return Checksum(LOADED if algorithm is Algorithm.MD5 else None, algorithm)


class Checksum:
    """The checksum of bytes that are passed piece by piece; the library computes MD5 only."""

    __slots__ = ("_address", "_context", "_library", "_plain")

    def __init__(self, library: ctypes.CDLL | None, algorithm: Algorithm = Algorithm.MD5) -> None:
        self._library = library
        if library is None:
            self._plain = algorithm.hash()
            return
        self._context = ctypes.create_string_buffer(library.md5_context_size())
        self._address = ctypes.addressof(self._context)
        library.md5_begin(self._context)

    def update(self, data: bytes | memoryview) -> None:
        """Append bytes."""
        if self._library is None:
            self._plain.update(data)
        else:
            update_all([(self, data)])

    def hexdigest(self) -> str:
        """Return the checksum of all bytes so far, in hexadecimal digits."""
        if self._library is None:
            return self._plain.hexdigest()
        checksum = _CHECKSUM()
        self._library.md5_read(self._context, checksum)
        return checksum.raw.hex()


def update_all(pieces: Sequence[tuple[Checksum, bytes | memoryview]]) -> None:
    """Append a piece to each of several different checksums."""
    wanted = []
    for checksum, data in pieces:
        if checksum._library is None:
            checksum._plain.update(data)
        elif len(data):
            wanted.append((checksum, data))
    if not wanted:
        return
    library = wanted[0][0]._library
    assert library is not None
    exposed = [_expose(data) for _, data in wanted]
    count = len(wanted)
    library.md5_update(
        (ctypes.c_void_p * count)(*[checksum._address for checksum, _ in wanted]),
        (ctypes.c_void_p * count)(*[address for address, _ in exposed]),
        (ctypes.c_size_t * count)(*[len(data) for _, data in wanted]),
        ctypes.c_size_t(count),
    )


def _expose(data: bytes | memoryview) -> tuple[int | None, object]:
    """Return the address of data, and an object that keeps the data there."""
    if isinstance(data, memoryview):
        if not data.readonly:
            first = ctypes.c_char.from_buffer(data)
            return ctypes.addressof(first), first
        data = bytes(data)
    text = ctypes.c_char_p(data)
    return ctypes.cast(text, ctypes.c_void_p).value, text


LOADED: Final = load(LIBRARY)
