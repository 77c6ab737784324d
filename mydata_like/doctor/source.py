"""The person's own files, looked at without the system's memory of them, and without a change."""

import io
import os
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from mmap import mmap
from pathlib import Path
from typing import Final, NamedTuple, Self

import zstandard

from mydata_like.doctor.findings import (
    COMPRESSED,
    COMPRESSION,
    LARGE_FILES,
    TINY_FILES,
    Measured,
    Stage,
    Unit,
)
from mydata_like.doctor.looks import Budget

if sys.platform == "darwin":
    import fcntl

_LARGE: Final = 8_000_000  # bytes from which a file says how fast the disk reads
_TINY: Final = 64 * 1024
_PIECE: Final = 4 * 1024 * 1024  # bytes read at once; a disk that works in parallel wants many
_ENTRIES: Final = 20_000  # of folders that are looked at to find files
_SEARCH: Final = 2.0  # seconds for the same
_READERS: Final = 4  # tiny files under way at once, as a channel has them
ENOUGH: Final = 30  # tiny files
_SAMPLES: Final = 16  # files, of which a piece is compressed
_SAMPLE: Final = 512 * 1024


class Sample(NamedTuple):
    """Some files of the data directory."""

    large: tuple[Path, ...]
    tiny: tuple[Path, ...]


def find_sample(root: Path, files: int) -> Sample:
    """Return files below a folder: all large ones that are soon found, and so many tiny ones."""
    large: list[Path] = []
    tiny: list[Path] = []
    for entry in _walk(root):
        size = _find_size(entry)
        if size >= _LARGE:
            large.append(Path(entry.path))
        elif 0 < size <= _TINY and len(tiny) < files:
            tiny.append(Path(entry.path))
    return Sample(tuple(large), tuple(tiny))


def _find_size(entry: "os.DirEntry[str]") -> int:
    """Return how large a file is; 0 where it is gone meanwhile, or not ours to look at."""
    with suppress(OSError):
        return entry.stat(follow_symlinks=False).st_size
    return 0


def _walk(root: Path) -> Iterator["os.DirEntry[str]"]:
    """Yield files, until enough of them were seen."""
    end, seen, folders = time.monotonic() + _SEARCH, 0, [str(root)]
    while folders and seen < _ENTRIES and time.monotonic() < end:
        try:
            with os.scandir(folders.pop(0)) as entries:
                for entry in entries:
                    seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        yield entry
        except OSError:  # a folder that is not ours to read says nothing about the disk
            continue


def measure_source(sample: Sample, budget: Budget) -> Iterator[Measured]:
    """Yield how fast the disk reads one file after another, and many tiny ones."""
    if sample.large:
        pieces = _read_again_and_again(sample.large)
        looks = budget.look(lambda: float(next(pieces)))
        pieces.close()
        yield Measured(Stage.SOURCE, LARGE_FILES, Unit.BYTES, looks, note=_describe(sample.large))
    if len(sample.tiny) >= ENOUGH:
        looks = tuple(_read_tiny(sample.tiny, budget))
        yield Measured(Stage.SOURCE, TINY_FILES, Unit.FILES, looks, note=_describe(sample.tiny))


def measure_compression(sample: Sample, budget: Budget) -> Iterator[Measured]:
    """Yield to what part of their size pieces of all files shrink, and how fast a core is."""
    pieces = [*_read_samples(sample)]
    if not pieces:
        return
    packer = zstandard.ZstdCompressor(level=1)
    whole = b"".join(pieces)
    shrunk = sum(min(len(packer.compress(piece)), len(piece)) for piece in pieces)

    def pack() -> float:
        packer.compress(whole)
        return float(len(whole))

    yield Measured(Stage.SOURCE, COMPRESSED, Unit.SHARE, (shrunk / len(whole),))
    yield Measured(Stage.SOURCE, COMPRESSION, Unit.BYTES, budget.look(pack))


def _read_samples(sample: Sample) -> Iterator[bytes]:
    for path in (*sample.large[:_SAMPLES], *sample.tiny[:_SAMPLES]):
        try:
            with path.open("rb") as file:
                if piece := file.read(_SAMPLE):
                    yield piece
        except OSError:
            continue


def _read_again_and_again(files: Sequence[Path]) -> Generator[int, None, None]:
    """Yield the sizes of the pieces of all files as they are read, and 0 after each of them."""
    while True:
        for path in files:
            with suppress(OSError), Direct(path, _PIECE) as file:
                while size := len(file.read()):
                    yield size
            yield 0


def _read_tiny(paths: Sequence[Path], budget: Budget) -> Iterator[float]:
    """Yield how many files a second each look opened and read; each file is read once."""
    share = len(paths) // budget.effort.looks
    with ThreadPoolExecutor(_READERS) as readers:
        for look in range(budget.effort.looks):
            budget.check()
            began = time.perf_counter()
            for _ in readers.map(_read_whole, paths[look * share : (look + 1) * share]):
                pass
            yield share / (time.perf_counter() - began)


def _read_whole(path: Path) -> None:
    with suppress(OSError), Direct(path, _TINY) as file:  # it may be deleted meanwhile
        file.read()


def _describe(files: Sequence[Path]) -> str:
    with suppress(OSError), Direct(files[0], _TINY) as file:
        return "" if file.read() and file.direct else "possibly from the system's memory"
    return ""


class Direct:
    """A file that is read from its disk, not from the system's memory where it can be avoided.

    What others have in that memory stays there: Linux and macOS are asked to go around it. Where a
    file system cannot, Linux is asked to drop the file first; `direct` is False then.
    """

    def __init__(self, path: Path, piece: int) -> None:
        self._path = path
        self._buffer = mmap(-1, piece)  # begins with a page, as reading past the memory wants it
        self.direct = sys.platform != "win32"
        self._file = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self) -> memoryview:
        """Return the next piece; empty at the end."""
        try:
            count = self._file.readinto(self._buffer)
        except OSError:
            if not self.direct:
                raise
            self._file.close()
            self._file = self._open_anyhow()
            count = self._file.readinto(self._buffer)
        return memoryview(self._buffer)[: count or 0]

    def _open(self) -> io.FileIO:
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
        try:
            file = io.FileIO(os.open(self._path, flags | getattr(os, "O_DIRECT", 0)))
        except OSError:
            return self._open_anyhow()
        if sys.platform == "darwin":
            fcntl.fcntl(file.fileno(), fcntl.F_NOCACHE, 1)
        return file

    def _open_anyhow(self) -> io.FileIO:
        self.direct = False
        file = io.FileIO(self._path)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return file
