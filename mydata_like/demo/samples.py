"""Sample instrument data: the same bytes and names every time, old enough to be uploaded.

The folders are those of the layout `Username / Dataset`: alice/ and bob/ with their datasets.
"""

import os
import random
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

MEBIBYTE = 1 << 20
_AGE = 3600 * 24  # seconds; so nothing is too new, and folders made today are not either
_ODD_NAMES = (
    "with spaces in the name.txt",
    "quote ' and \" and `tick`.txt",
    "dollar $(HOME) & more; rest.txt",
    "100% done.txt",
    "emoji \N{MICROSCOPE} \N{DNA DOUBLE HELIX}.txt",
    "\u6f22\u5b57.txt",
    unicodedata.normalize("NFC", "r\u00e9sum\u00e9 nfc.txt"),
    unicodedata.normalize("NFD", "r\u00e9sum\u00e9 nfd.txt"),
    "-rf",
    ".hidden",
    "no extension",
)


def make_samples(directory: Path, *, tiny_files: int = 300, large: int = 64 * MEBIBYTE) -> None:
    """Make sample data below a directory; `large` is the size of the two large files."""
    chance = random.Random(20240501)  # noqa: S311 - the same data every time
    for path, content in _small_files(chance, tiny_files):
        _write(directory / path, content)
    _write_large(directory / "alice" / "Tomogram 7" / "volume.raw", chance, large)
    _write_sparse(directory / "bob" / "Long run" / "sparse.dat", chance, large)
    _age(directory, chance)


def _small_files(chance: random.Random, tiny_files: int) -> Iterator[tuple[str, bytes]]:
    for index in range(tiny_files):
        folder = f"alice/Cell count 2024-05-01/well {index % 12:02d}/field {index % 5}"
        yield f"{folder}/image_{index:05d}.tif", chance.randbytes(chance.randrange(100, 6000))
    for name in _ODD_NAMES:
        if os.name == "nt" and '"' in name:
            continue  # Windows has no such names
        yield f"bob/Odd names \N{GREEK SMALL LETTER MU}m/{name}", name.encode()
    yield "bob/Odd names \N{GREEK SMALL LETTER MU}m/a b/\u00fcn\u00ef/deep.txt", b"deep"
    yield "bob/Odd names \N{GREEK SMALL LETTER MU}m/empty.dat", b""
    yield "alice/Tomogram 7/log/acquisition.log", b"angle,exposure\n" * 200
    for index in range(8):
        yield f"bob/Long run/part_{index}.csv", chance.randbytes(50_000).hex().encode()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _write_large(path: Path, chance: random.Random, size: int) -> None:
    """Write bytes that cannot be compressed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for start in range(0, size, MEBIBYTE):
            file.write(chance.randbytes(min(MEBIBYTE, size - start)))


def _write_sparse(path: Path, chance: random.Random, size: int) -> None:
    """Write a file that is mostly a hole: up to 1 MiB of data near its middle."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.seek(size // 2)
        file.write(chance.randbytes(min(MEBIBYTE, size // 4)))
        file.truncate(size)


def _age(directory: Path, chance: random.Random) -> None:
    """Set times that lie a day and more back, of files and of the folders above them."""
    newest = time.time() - _AGE
    for path in sorted(directory.rglob("*"), key=lambda path: -len(path.parts)):
        modified = newest - chance.randrange(3600)
        os.utime(path, (modified, modified))
