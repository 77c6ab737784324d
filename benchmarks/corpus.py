"""The test data of the contestants: incompressible bytes, created once for a case."""

import os
import random
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import ContestError

_AGE = 86_400  # seconds; so that no contestant takes the files for unfinished ones
_SLACK = 1.1
_PIECE = 2**20
_PAGE = 4096  # bytes that a file occupies at least
_ISLANDS = 16  # ranges of a sparse file that have data
_MODIFIED = 1000  # one file in so many

# An archive of a facility: shares of its files, and their sizes in powers of ten.
ARCHIVE_MIX = ((0.28, 2, 3), (0.47, 3, 4), (0.16, 4, 5), (0.06, 5, 6), (0.024, 6, 7), (0.007, 7, 8))

Write = Callable[[Path, random.Random, int], None]


class Corpus(NamedTuple):
    """A tree of dataset folders; `files` are paths below `root`.

    `held` is the number of bytes outside holes and outside zeros in place of holes.
    """

    root: Path
    files: tuple[str, ...]
    bytes: int
    folders: tuple[str, ...]
    held: int

    def part(self, folder: str) -> "Corpus":
        """Return the files below one folder as a separate corpus."""
        root, prefix = self.root / folder, f"{folder}/"
        files, folders = (
            tuple(path.removeprefix(prefix) for path in paths if path.startswith(prefix))
            for paths in (self.files, self.folders)
        )
        found = [(root / path).stat() for path in files]
        size = sum(status.st_size for status in found)
        return Corpus(root, files, size, folders, min(size, _occupied(found)))


class Scale(NamedTuple):
    """The amount of test data: counts, and sizes in bytes."""

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
    """Make the same number of tiny files of measured values, as text."""
    folders = _folders(scale.tiny_count, 1000, scale.tiny_size)
    return _make(root, folders, write=_write_text)


def make_single(root: Path, scale: Scale) -> Corpus:
    """Make one very large file."""
    return _make(root, {"dataset-000": [scale.large_size * scale.large_count]})


def make_tiny(root: Path, scale: Scale) -> Corpus:
    """Make many tiny files, at most a thousand per folder."""
    return _make(root, _folders(scale.tiny_count, 1000, scale.tiny_size))


def make_tiny_folders(root: Path, scale: Scale) -> Corpus:
    """Make the same number of tiny files, at most two hundred per folder."""
    return _make(root, _folders(scale.tiny_count, 200, scale.tiny_size))


def make_known(root: Path, scale: Scale) -> Corpus:
    """Make a very large number of tiny files, at most five thousand per folder."""
    # rsync has a separate copy.
    return _make(root, _folders(scale.known_count, 5000, scale.tiny_size), copies=3)


def make_mixed(root: Path, scale: Scale) -> Corpus:
    """Make files with the mix of sizes of an archive, at most a thousand per folder."""
    sizes = mixed_sizes(scale.mixed_count)
    starts = range(0, len(sizes), 1000)
    return _make(root, {f"dataset-{at // 1000:03}": sizes[at : at + 1000] for at in starts})


def make_sparse(root: Path, scale: Scale) -> Corpus:
    """Make one file that is nearly all holes."""
    return _make_sparse(root, {"dataset-000": scale.sparse_size}, scale.sparse_held)


def make_hollow(root: Path, scale: Scale) -> Corpus:
    """Make one file that is nearly all zeros, without holes."""
    _check_room(root.parent, [scale.hollow_size], copies=2)
    return _make_sparse(root, {"dataset-000": scale.hollow_size}, scale.sparse_held, fill=True)


def make_growing(root: Path, scale: Scale) -> Corpus:
    """Make growing numbers of tiny files, and growing single files; each step is a part."""
    sizes = {f"{size >> 20} MiB/dataset-000": [size] for size in scale.growing_sizes}
    return _make(root, _growing_counts(scale.growing_counts, scale.tiny_size) | sizes)


def make_memory(root: Path, scale: Scale) -> Corpus:
    """Make the two largest steps of tiny files, and growing sparse files; each is a part."""
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
    """Return the sizes of an archive's files, in a random order that is always the same.

    Within a class, files of ten times the size are ten times as rare.
    """
    chance = random.Random("archive")
    sizes = []
    for share, low, high in ARCHIVE_MIX:
        least, most = 10.0**low, 10.0**high
        for _ in range(round(share * count)):
            sizes.append(int(1 / chance.uniform(1 / most, 1 / least)))
    chance.shuffle(sizes)
    return sizes


def modify_some(corpus: Corpus, one_in: int = 1000) -> int:
    """Change the bytes and the time of one file in so many; return how many were changed."""
    files = corpus.files[:: min(one_in, len(corpus.files))]
    for name in files:
        path = corpus.root / name
        found = path.stat()
        _write(path, random.Random(f"{name} {found.st_mtime}"), found.st_size)
        os.utime(path, (found.st_mtime + 1, found.st_mtime + 1))
    return len(files)


def forget_pages(corpus: Corpus) -> None:
    """Write the files to the disk and drop them from the page cache."""
    for name in corpus.files:
        with (corpus.root / name).open("rb") as file:
            os.fsync(file)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _folders(count: int, most: int, size: int) -> dict[str, list[int]]:
    """Return equal folders of equal files, with at most `most` files per folder."""
    folders = max(count // most, 1)
    return {f"dataset-{number:03}": [size] * (count // folders) for number in range(folders)}


def _growing_counts(counts: Iterable[int], size: int) -> dict[str, list[int]]:
    return {
        f"{count} files/{folder}": sizes
        for count in counts
        for folder, sizes in _folders(count, 5000, size).items()
    }


def _write(path: Path, generator: random.Random, size: int) -> None:
    """Write incompressible bytes, reproducible and different for each file."""
    with path.open("wb") as file:
        for begin in range(0, size, _PIECE):
            file.write(generator.randbytes(min(_PIECE, size - begin)))


def _write_text(path: Path, generator: random.Random, size: int) -> None:
    """Write lines of a time and two values, reproducible and different for each file."""
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
    """Make one sparse file per folder, with `held` bytes distributed over it.

    With `fill`, zeros are written instead of holes.
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
    """Raise `ContestError` if there is no room for source and target on the same storage."""
    needed = copies * sum(-(-one // _PAGE) * _PAGE for one in sizes) * _SLACK
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise ContestError(
            f"{directory} has {free / 1e9:.1f} GB free, but {needed / 1e9:.1f} GB are needed "
            "(see --directory, --quick, --file-size)"
        )


def _occupied(found: Iterable[os.stat_result]) -> int:
    return sum(status.st_blocks * 512 for status in found)
