"""The data that the contestants carry: incompressible bytes, made once for a case."""

import os
import random
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import ContestError

_AGE = 86_400  # seconds; no contestant shall take the files for unfinished ones
_SLACK = 1.1
_PIECE = 2**20
_PAGE = 4096  # bytes that a file occupies at least
_ISLANDS = 16  # places where a sparse file holds bytes
_MODIFIED = 1000  # one file in so many

# An archive of a facility: shares of its files, and their sizes in powers of ten.
ARCHIVE_MIX = ((0.28, 2, 3), (0.47, 3, 4), (0.16, 4, 5), (0.06, 5, 6), (0.024, 6, 7), (0.007, 7, 8))

Write = Callable[[Path, random.Random, int], None]


class Corpus(NamedTuple):
    """A tree of dataset folders; `files` are paths below `root`.

    `held` are the bytes that are no holes, nor zeros in their place.
    """

    root: Path
    files: tuple[str, ...]
    bytes: int
    folders: tuple[str, ...]
    held: int

    def part(self, folder: str) -> "Corpus":
        """Return what lies below one folder, as a corpus of its own."""
        root, prefix = self.root / folder, f"{folder}/"
        files, folders = (
            tuple(path.removeprefix(prefix) for path in paths if path.startswith(prefix))
            for paths in (self.files, self.folders)
        )
        found = [(root / path).stat() for path in files]
        size = sum(status.st_size for status in found)
        return Corpus(root, files, size, folders, min(size, _occupied(found)))


class Scale(NamedTuple):
    """How much of everything: counts, and sizes in bytes."""

    large_count: int = 16
    large_size: int = 256 * 2**20  # P2's file is as large as all of these together
    tiny_count: int = 10_000
    tiny_size: int = 3000
    mixed_count: int = 5000
    known_count: int = 100_000
    sparse_size: int = 8 * 2**30
    sparse_held: int = 64 * 2**20
    hollow_size: int = 2 * 2**30
    growing_counts: tuple[int, ...] = (1000, 10_000, 100_000)
    growing_sizes: tuple[int, ...] = (16 * 2**20, 256 * 2**20, 4 * 2**30)
    growing_holes: tuple[int, ...] = (2**30, 16 * 2**30)


QUICK = Scale(
    large_size=32 * 2**20,
    tiny_count=2000,
    mixed_count=500,
    known_count=10_000,
    sparse_size=512 * 2**20,
    sparse_held=4 * 2**20,
    hollow_size=512 * 2**20,
    growing_counts=(100, 1000, 5000),
    growing_sizes=(2**20, 16 * 2**20, 128 * 2**20),
    growing_holes=(64 * 2**20, 2**30),
)
FULL = Scale(
    known_count=1_000_000,
    growing_counts=(1000, 10_000, 100_000, 1_000_000),
    growing_holes=(2**30, 2**40),
)


def make_large(root: Path, scale: Scale) -> Corpus:
    """Make a few large files in one folder."""
    return _make(root, {"dataset-000": [scale.large_size] * scale.large_count})


def make_text(root: Path, scale: Scale) -> Corpus:
    """Make a few large files of measured values, as text."""
    return _make(root, {"dataset-000": [scale.large_size] * scale.large_count}, write=_write_text)


def make_tiny_text(root: Path, scale: Scale) -> Corpus:
    """Make as many tiny files of measured values, as text."""
    folders = _folders(scale.tiny_count, 1000, scale.tiny_size)
    return _make(root, folders, write=_write_text)


def make_single(root: Path, scale: Scale) -> Corpus:
    """Make one very large file."""
    return _make(root, {"dataset-000": [scale.large_size * scale.large_count]})


def make_tiny(root: Path, scale: Scale) -> Corpus:
    """Make many tiny files, a thousand a folder at most."""
    return _make(root, _folders(scale.tiny_count, 1000, scale.tiny_size))


def make_tiny_folders(root: Path, scale: Scale) -> Corpus:
    """Make as many tiny files, two hundred a folder at most."""
    return _make(root, _folders(scale.tiny_count, 200, scale.tiny_size))


def make_known(root: Path, scale: Scale) -> Corpus:
    """Make a great many tiny files, five thousand a folder at most."""
    # rsync has a copy of its own.
    return _make(root, _folders(scale.known_count, 5000, scale.tiny_size), copies=3)


def make_mixed(root: Path, scale: Scale) -> Corpus:
    """Make files as an archive holds them, a thousand a folder at most."""
    sizes = mixed_sizes(scale.mixed_count)
    starts = range(0, len(sizes), 1000)
    return _make(root, {f"dataset-{at // 1000:03}": sizes[at : at + 1000] for at in starts})


def make_sparse(root: Path, scale: Scale) -> Corpus:
    """Make one file that is nearly all holes."""
    return _make_sparse(root, {"dataset-000": scale.sparse_size}, scale.sparse_held)


def make_hollow(root: Path, scale: Scale) -> Corpus:
    """Make one file that is nearly all zeros, none of which is a hole."""
    _check_room(root.parent, [scale.hollow_size], copies=2)
    return _make_sparse(root, {"dataset-000": scale.hollow_size}, scale.sparse_held, fill=True)


def make_growing(root: Path, scale: Scale) -> Corpus:
    """Make ever more tiny files, and ever larger single ones; each step is a part."""
    sizes = {f"{size >> 20} MiB/dataset-000": [size] for size in scale.growing_sizes}
    return _make(root, _growing_counts(scale.growing_counts, scale.tiny_size) | sizes)


def make_memory(root: Path, scale: Scale) -> Corpus:
    """Make the two largest steps of tiny files, and sparse files of growing size; all are parts."""
    files = _make(root, _growing_counts(scale.growing_counts[-2:], scale.tiny_size))
    holes = {f"{size >> 20} MiB/dataset-000": size for size in scale.growing_holes}
    sparse = _make_sparse(root, holes, scale.sparse_held)
    return Corpus(
        root,
        files.files + sparse.files,
        files.bytes + sparse.bytes,
        files.folders + sparse.folders,
        files.held + sparse.held,
    )


def mixed_sizes(count: int) -> list[int]:
    """Return the sizes of an archive's files, the same ones every time and in no order.

    Within a class ten times as large is ten times as rare.
    """
    chance = random.Random("archive")
    sizes = []
    for share, low, high in ARCHIVE_MIX:
        least, most = 10.0**low, 10.0**high
        for _ in range(round(share * count)):
            sizes.append(int(1 / chance.uniform(1 / most, 1 / least)))
    chance.shuffle(sizes)
    return sizes


def modify_some(corpus: Corpus) -> int:
    """Change the bytes and the time of one file in a thousand; return how many these are."""
    files = corpus.files[:: min(_MODIFIED, len(corpus.files))]
    for name in files:
        path = corpus.root / name
        found = path.stat()
        _write(path, random.Random(f"{name} {found.st_mtime}"), found.st_size)
        os.utime(path, (found.st_mtime + 1, found.st_mtime + 1))
    return len(files)


def forget_pages(corpus: Corpus) -> None:
    """Have the system drop what it keeps of the files in memory; what is dirty is written first."""
    for name in corpus.files:
        with (corpus.root / name).open("rb") as file:
            os.fsync(file)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _folders(count: int, most: int, size: int) -> dict[str, list[int]]:
    """Return equal folders of equal files, so many files a folder at most."""
    folders = max(count // most, 1)
    return {f"dataset-{number:03}": [size] * (count // folders) for number in range(folders)}


def _growing_counts(counts: Iterable[int], size: int) -> dict[str, list[int]]:
    return {
        f"{count} files/{folder}": sizes
        for count in counts
        for folder, sizes in _folders(count, 5000, size).items()
    }


def _write(path: Path, generator: random.Random, size: int) -> None:
    """Write incompressible bytes, the same every time and no two files alike."""
    with path.open("wb") as file:
        for begin in range(0, size, _PIECE):
            file.write(generator.randbytes(min(_PIECE, size - begin)))


def _write_text(path: Path, generator: random.Random, size: int) -> None:
    """Write lines of a time and two values, the same every time and no two files alike."""
    with path.open("wb") as file:
        second = 0
        while file.tell() < size:
            first, other = generator.random(), generator.gauss(20, 3)
            line = f"2024-03-05T{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}"
            file.write(f"{line};sensor-{second % 7};{first:.3f};{other:.2f};ok\n".encode())
            second += 1
        file.truncate(size)


def _make(
    root: Path, sizes_by_folder: dict[str, list[int]], copies: int = 2, write: Write = _write
) -> Corpus:
    sizes = [size for sizes in sizes_by_folder.values() for size in sizes]
    _check_room(root.parent, sizes, copies)
    modified = time.time() - _AGE
    files = []
    for folder, sizes_here in sizes_by_folder.items():
        (root / folder).mkdir(parents=True)
        for number, size in enumerate(sizes_here):
            name = f"{folder}/image-{number:06}.raw"
            write(root / name, random.Random(name), size)
            os.utime(root / name, (modified, modified))
            files.append(name)
    return Corpus(root, tuple(files), sum(sizes), tuple(sizes_by_folder), sum(sizes))


def _make_sparse(
    root: Path, size_by_folder: dict[str, int], held: int, *, fill: bool = False
) -> Corpus:
    """Make one sparse file a folder, with so many bytes in islands all over it.

    With `fill`, zeros are written where else would be holes.
    """
    _check_room(root.parent, [held] * len(size_by_folder), copies=2)
    modified = time.time() - _AGE
    files = []
    for folder, size in size_by_folder.items():
        (root / folder).mkdir(parents=True)
        name = f"{folder}/volume.raw"
        with (root / name).open("wb") as file:
            file.truncate(size)
            for _ in range(size // _PIECE if fill else 0):
                file.write(bytes(_PIECE))
            for at in range(0, size, size // _ISLANDS):
                file.seek(at)
                file.write(random.Random(f"{name} {at}").randbytes(held // _ISLANDS))
        os.utime(root / name, (modified, modified))
        files.append(name)
    total = held * len(size_by_folder)
    return Corpus(root, tuple(files), sum(size_by_folder.values()), tuple(size_by_folder), total)


def _check_room(directory: Path, sizes: Iterable[int], copies: int) -> None:
    """Source and target lie on the same storage."""
    needed = copies * sum(-(-one // _PAGE) * _PAGE for one in sizes) * _SLACK
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise ContestError(
            f"{directory} has {free / 1e9:.1f} GB free, but {needed / 1e9:.1f} GB are needed "
            "(see --directory, --quick, --file-size)"
        )


def _occupied(found: Iterable[os.stat_result]) -> int:
    return sum(status.st_blocks * 512 for status in found)
