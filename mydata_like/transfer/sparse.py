"""The extents of a sparse file: where its data is between holes."""

import errno
import os
from collections.abc import Iterable, Iterator
from typing import Final

Extent = tuple[int, int]  # offset, length

SMALLEST_HOLE: Final = 64 * 1024  # bytes; smaller holes are cheaper to send as zeros
MOST_EXTENTS: Final = 16 * 1024  # limits memory and the map of a very fragmented file
_BLOCK: Final = 512  # bytes of a tar block: extents fill whole blocks except the last one
_ZEROS: Final = memoryview(bytes(1024 * 1024))


def zeros(count: int) -> Iterator[memoryview]:
    """Yield `count` zero bytes in views of one shared constant."""
    for _ in range(count // len(_ZEROS)):
        yield _ZEROS
    if count % len(_ZEROS):
        yield _ZEROS[: count % len(_ZEROS)]


def find_extents(descriptor: int, size: int) -> list[Extent]:
    """Return the data extents of an open file, in order; everything between them is zeros.

    The whole file is one extent if it has no holes or the file system does not report them. Offsets
    are multiples of 512, and so are lengths except at the end of the file. Small holes count as
    data; the minimum grows for a file with very many holes. Moves the descriptor's position.
    """
    try:
        return condense(_walk(descriptor, size))
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise
        return [(0, size)]


def condense(extents: Iterable[Extent]) -> list[Extent]:
    """Return adjacent extents merged, and small holes between them included.

    The minimum size of a hole grows if there are very many.
    """
    found: list[Extent] = []
    least = SMALLEST_HOLE
    for extent in extents:
        found.append(extent)
        if len(found) >= 2 * MOST_EXTENTS:
            found, least = _limit(found, least)
    return _limit(found, least)[0]


def measure(extents: Iterable[Extent]) -> int:
    """Return the total length of extents."""
    return sum(length for _, length in extents)


def _walk(descriptor: int, size: int) -> Iterator[Extent]:
    """Yield the extents that the file system reports as data (`lseek(2)`, SEEK_DATA, SEEK_HOLE)."""
    if not hasattr(os, "SEEK_DATA"):
        yield from [(0, size)] if size else []
        return
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
            end = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno != errno.ENXIO:  # only a hole up to the end
                raise
            return
        if start < end:
            start -= start % _BLOCK
            yield start, min(end + -end % _BLOCK, size) - start


def _limit(extents: list[Extent], least: int) -> tuple[list[Extent], int]:
    """Return at most `MOST_EXTENTS` extents, and the minimum hole size between them."""
    extents = _join(extents, least)
    while len(extents) > MOST_EXTENTS:
        least *= 2
        extents = _join(extents, least)
    return extents, least


def _join(extents: list[Extent], least: int) -> list[Extent]:
    joined: list[Extent] = []
    for offset, length in extents:
        if joined and offset - sum(joined[-1]) < least:
            joined[-1] = (joined[-1][0], offset + length - joined[-1][0])
        else:
            joined.append((offset, length))
    return joined
