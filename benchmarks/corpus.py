"""The data that the contestants carry: incompressible bytes, made once for a case."""

import os
import random
import shutil
import time
from pathlib import Path
from typing import NamedTuple

_AGE = 86_400  # seconds; no contestant shall take the files for unfinished ones
_SLACK = 1.1
_PIECE = 2**20


class Corpus(NamedTuple):
    """A tree of dataset folders; `files` are paths below `root`."""

    root: Path
    files: tuple[str, ...]
    bytes: int
    folders: tuple[str, ...]


class Scale(NamedTuple):
    """How much of everything: counts, and sizes in bytes."""

    large_count: int = 16
    large_size: int = 256 * 2**20
    tiny_count: int = 10_000
    tiny_size: int = 3000
    known_count: int = 100_000


QUICK = Scale(large_size=32 * 2**20, tiny_count=2000, known_count=10_000)


def make_large(root: Path, scale: Scale) -> Corpus:
    """Make a few large files in one folder."""
    return _make(root, 1, scale.large_count, scale.large_size)


def make_tiny(root: Path, scale: Scale) -> Corpus:
    """Make many tiny files, a thousand a folder at most."""
    folders = max(scale.tiny_count // 1000, 1)
    return _make(root, folders, scale.tiny_count // folders, scale.tiny_size)


def make_known(root: Path, scale: Scale) -> Corpus:
    """Make a great many tiny files, five thousand a folder at most."""
    folders = max(scale.known_count // 5000, 1)
    return _make(root, folders, scale.known_count // folders, scale.tiny_size)


def _make(root: Path, folders: int, count: int, size: int) -> Corpus:
    _check_room(root.parent, folders * count * size)
    names = [f"dataset-{number:03}" for number in range(folders)]
    modified = time.time() - _AGE
    files = []
    for folder in names:
        (root / folder).mkdir(parents=True)
        for number in range(count):
            path = root / folder / f"image-{number:06}.raw"
            _write(path, random.Random(f"{folder}/{number}"), size)
            os.utime(path, (modified, modified))
            files.append(f"{folder}/{path.name}")
    return Corpus(root, tuple(files), folders * count * size, tuple(names))


def _write(path: Path, generator: random.Random, size: int) -> None:
    """Write incompressible bytes, the same every time and no two files alike."""
    with path.open("wb") as file:
        for begin in range(0, size, _PIECE):
            file.write(generator.randbytes(min(_PIECE, size - begin)))


def _check_room(directory: Path, size: int) -> None:
    """Source and target lie on the same storage; one copy of each."""
    free = shutil.disk_usage(directory).free
    if free < 2 * size * _SLACK:
        raise SystemExit(
            f"{directory} has {free / 1e9:.1f} GB free; this case needs twice "
            f"{size / 1e9:.1f} GB (see --directory, --quick, --file-size)."
        )
