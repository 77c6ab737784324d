"""Finds long runs of zeros in files without holes, so that they need not be sent."""

from collections.abc import Iterator
from typing import Final

from mydata_like.ssh.session import RemoteFile
from mydata_like.transfer import file_source
from mydata_like.transfer.file_source import FileSource
from mydata_like.transfer.sparse import SMALLEST_HOLE, Extent, condense
from mydata_like.transfer.worker_messages import Moving

LEAST: Final = 1024 * 1024  # bytes; smaller files are not searched

_BLOCK: Final = SMALLEST_HOLE
_CHUNK: Final = 16 * _BLOCK
_SAMPLES: Final = 16  # blocks sampled across a file
_PROMISING: Final = 4  # of the sampled blocks must be zeros
_ZEROS: Final = bytearray(_CHUNK)  # compared with a buffer at the speed of memory


def is_zero(piece: memoryview) -> bool:
    """Return whether a piece of at most 1 MiB is all zeros."""
    return not piece[0] and _ZEROS[: len(piece)] == piece


def find_data(source: FileSource, moving: Moving) -> list[Extent]:
    """Return the data extents of a file, in order; everything between them is zeros.

    Reads the whole file and skips whole blocks of zeros. Returns one extent if a few samples do not
    promise many zeros, so other files cost next to nothing.
    """
    view = memoryview(bytearray(_CHUNK))
    if source.size < LEAST or not _is_promising(source, view[:_BLOCK]):
        return [(0, source.size)]
    return condense(_walk(source, view, moving))


def _is_promising(source: FileSource, view: memoryview) -> bool:
    # In the middle of equal parts: the first and last bytes show whether the file is cached
    # (`PageCacheTrail`), so this must not fetch them.
    middles = (source.size * (2 * part + 1) // (2 * _SAMPLES) for part in range(_SAMPLES))
    samples = (source.peek(middle - middle % _BLOCK, view) for middle in middles)
    return sum(map(is_zero, samples)) >= _PROMISING


def _walk(source: FileSource, view: memoryview, moving: Moving) -> Iterator[Extent]:
    trail = file_source.PageCacheTrail(source.fileno(), source.size)
    for offset in range(0, source.size, len(view)):
        chunk = source.peek(offset, view)
        for start in range(0, len(chunk), _BLOCK):
            block = chunk[start : start + _BLOCK]
            if not is_zero(block):
                yield offset + start, len(block)
        position = offset + len(chunk)
        trail.drop(position, end=position == source.size)
        moving(0)


class SparseWriter:
    """A remote file in which zeros are skipped, so that it has holes if the server supports them.

    It is `size` bytes long and its last bytes are always written; with a `size` of 0, nothing is
    skipped. Existing content must be part of the same bytes. `passed` counts the skipped bytes.
    """

    def __init__(self, file: RemoteFile, size: int) -> None:
        self._file = file
        self._size = size
        self._offset = 0
        self.passed = 0

    def move_to(self, offset: int) -> None:
        """Set the offset of the next write."""
        self._offset = offset
        self._file.move_to(offset)

    def write(self, piece: memoryview, moving: Moving) -> None:
        """Write a piece, or skip it, and report it."""
        end = self._offset + len(piece)
        if end < self._size and is_zero(piece):
            self.passed += len(piece)
            self.move_to(end)
            moving(0, len(piece))
            return
        self._file.write(piece)
        self._offset = end
        moving(len(piece))

    def close(self) -> None:
        """Wait until the server has acknowledged every write."""
        self._file.close()
