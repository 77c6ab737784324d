"""The speed of this computer: checksums, ciphers, compression and disk reads."""

import hashlib
import io
import os
import platform
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from mmap import mmap
from pathlib import Path
from typing import Final, NamedTuple, Self

import psutil
import zstandard
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import AES

from mydata_like.core.file_access import is_remote
from mydata_like.speedtest.results import (
    COMPRESSED,
    LARGE_FILES,
    MD5,
    MD5_ALL,
    TINY_FILES,
    LocalMachine,
    Measurement,
    SpeedTestBudget,
    StageResult,
    Unit,
)
from mydata_like.transfer.sessions import count_cpus

_PIECE: Final = 1024 * 1024
_PACKET: Final = 32 * 1024  # bytes that SSH encrypts at once
_IDLE: Final = 0.5  # seconds over which the load of other programs is measured
_CPUS: Final = Path("/proc/cpuinfo")


def describe_here() -> LocalMachine:
    """Return the facts about this computer, and its current load from other programs."""
    try:
        text = _CPUS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        # All 64-bit processors of Apple have AES instructions.
        text = "features: aes" if platform.system() == "Darwin" else ""
    return LocalMachine(count_cpus(), find_aes(text), measure_busy())


def measure_busy() -> float:
    """Return the share of all cores that other programs use now."""
    return psutil.cpu_percent(_IDLE) / 100


def find_aes(text: str) -> bool | None:
    """Return whether Linux's /proc/cpuinfo lists AES instructions; None if it lists no flags."""
    for line in text.splitlines():
        name, _, words = line.partition(":")
        if name.strip().lower() in ("flags", "features"):
            return "aes" in words.split()
    return None


def measure_checksums(budget: SpeedTestBudget) -> Iterator[Measurement]:
    """Yield the speed of MD5 on one core, and on all cores."""
    piece = os.urandom(_PIECE)

    def act(times: int = 1) -> float:
        for _ in range(times):
            hashlib.md5(piece, usedforsecurity=False)
        return float(times * _PIECE)

    yield Measurement(StageResult.HASH, MD5, Unit.BYTES, budget.sample(act))
    cpus = count_cpus()
    with ThreadPoolExecutor(cpus) as threads:
        # The time that a thread takes to start is small against 16 pieces.
        samples = budget.sample(lambda: sum(threads.map(act, [16] * cpus)))
    yield Measurement(StageResult.HASH, MD5_ALL, Unit.BYTES, samples)


def measure_ciphers(names: tuple[str, ...], budget: SpeedTestBudget) -> Iterator[Measurement]:
    """Yield the speed of one core for each cipher that can be measured alone."""
    piece = os.urandom(_PACKET)
    for name in names:
        try:
            encrypt = _build_cipher(name)
        except UnsupportedAlgorithm:
            continue
        if encrypt is None:
            continue

        def act(encrypt: Callable[[bytes], object] = encrypt) -> float:
            encrypt(piece)
            return float(_PACKET)

        yield Measurement(StageResult.CIPHER, name, Unit.BYTES, budget.sample(act))


def _build_cipher(name: str) -> Callable[[bytes], object] | None:
    """Return a function that encrypts a packet; None for a cipher that cannot be measured alone.

    For ciphers without a built-in authentication code, the code is not included.
    """
    if name.startswith("chacha20"):
        chacha, nonce = ChaCha20Poly1305(os.urandom(32)), os.urandom(12)
        return lambda piece: chacha.encrypt(nonce, piece, None)
    key = os.urandom(32 if name.startswith("aes256") else 16)
    if "-gcm" in name:
        gcm, nonce = AESGCM(key), os.urandom(12)
        return lambda piece: gcm.encrypt(nonce, piece, None)
    if name.endswith("-ctr"):
        return Cipher(AES(key), modes.CTR(os.urandom(16))).encryptor().update
    return None


if sys.platform == "darwin":
    import fcntl

_LARGE: Final = 8_000_000  # bytes from which a file shows how fast the disk reads
_TINY: Final = 64 * 1024
_READ_PIECE: Final = 4 * 1024 * 1024  # bytes read at once; disks that work in parallel need many
_ENTRIES: Final = 20_000  # folder entries that are inspected to find files
_SEARCH: Final = 2.0  # seconds for the same
_READERS: Final = 4  # tiny files read at once, as in a channel
ENOUGH: Final = 30  # tiny files
_SAMPLES: Final = 16  # files of which the first piece is compressed
_SAMPLE: Final = 512 * 1024


class FileSample(NamedTuple):
    """Some files of the data directory."""

    large: tuple[Path, ...]
    tiny: tuple[Path, ...]


def find_sample(root: Path, files: int) -> FileSample:
    """Return files below a folder: large ones that a short search finds, and up to `files` tiny."""
    large: list[Path] = []
    tiny: list[Path] = []
    for entry in _walk(root):
        size = 0
        with suppress(OSError):  # it was removed, or may not be read
            status = entry.stat(follow_symlinks=False)
            size = 0 if is_remote(status) else status.st_size
        if size >= _LARGE:
            large.append(Path(entry.path))
        elif 0 < size <= _TINY and len(tiny) < files:
            tiny.append(Path(entry.path))
    return FileSample(tuple(large), tuple(tiny))


def _walk(root: Path) -> Iterator["os.DirEntry[str]"]:
    """Yield files until the limit of entries or of time is reached."""
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
        except OSError:  # an unreadable folder does not matter for the speed of the disk
            continue


def measure_source(sample: FileSample, budget: SpeedTestBudget) -> Iterator[Measurement]:
    """Yield the speed of the disk for large files, one after another, and for tiny files."""
    if sample.large:
        pieces = _read_repeatedly(sample.large)
        samples = budget.sample(lambda: float(next(pieces)))
        pieces.close()
        yield Measurement(
            StageResult.SOURCE, LARGE_FILES, Unit.BYTES, samples, note=_describe(sample.large)
        )
    if len(sample.tiny) >= ENOUGH:
        samples = tuple(_read_tiny(sample.tiny, budget))
        yield Measurement(
            StageResult.SOURCE, TINY_FILES, Unit.FILES, samples, note=_describe(sample.tiny)
        )


def read_pieces(sample: FileSample) -> list[bytes]:
    """Return the first piece of some files of each kind."""
    pieces = []
    for path in (*sample.large[:_SAMPLES], *sample.tiny[:_SAMPLES]):
        with suppress(OSError), path.open("rb") as file:
            pieces.append(file.read(_SAMPLE))
    return [piece for piece in pieces if piece]


def measure_compression(pieces: Sequence[bytes]) -> Iterator[Measurement]:
    """Yield the compressed size of pieces of files, as a share of their size."""
    if pieces:
        packer = zstandard.ZstdCompressor(level=1)
        shrunk = sum(min(len(packer.compress(piece)), len(piece)) for piece in pieces)
        share = shrunk / sum(map(len, pieces))
        yield Measurement(StageResult.SOURCE, COMPRESSED, Unit.SHARE, (share,))


def _read_repeatedly(files: Sequence[Path]) -> Generator[int, None, None]:
    """Yield the size of each piece of all files as it is read, and 0 after each file."""
    while True:
        for path in files:
            with suppress(OSError), DirectReader(path, _READ_PIECE) as file:
                while size := len(file.read()):
                    yield size
            yield 0


def _read_tiny(paths: Sequence[Path], budget: SpeedTestBudget) -> Iterator[float]:
    """Yield the files a second of each sample; each file is read once."""
    share = len(paths) // budget.effort.samples
    with ThreadPoolExecutor(_READERS) as readers:
        for sample in range(budget.effort.samples):
            budget.check()
            began = time.perf_counter()
            for _ in readers.map(_read_whole, paths[sample * share : (sample + 1) * share]):
                pass
            yield share / (time.perf_counter() - began)


def _read_whole(path: Path) -> None:
    with suppress(OSError), DirectReader(path, _TINY) as file:  # it may have been deleted
        file.read()


def _describe(files: Sequence[Path]) -> str:
    with suppress(OSError), DirectReader(files[0], _TINY) as file:
        return "" if file.read() and file.direct else "possibly cached by the system"
    return ""


class DirectReader:
    """A file that is read from its disk and bypasses the page cache if possible.

    The page cache of other programs is kept: Linux and macOS offer reads that bypass it. On a file
    system without such reads, Linux drops the file from the cache first; `direct` is then False.
    """

    def __init__(self, path: Path, piece: int) -> None:
        self._path = path
        self._buffer = mmap(-1, piece)  # aligned to a page, as O_DIRECT requires
        self.direct = sys.platform != "win32"
        self._file = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self) -> memoryview:
        """Return the next piece, or an empty one at the end."""
        try:
            count = self._file.readinto(self._buffer)
        except OSError:
            if not self.direct:
                raise
            self._file.close()
            self._file = self._open_cached()
            count = self._file.readinto(self._buffer)
        return memoryview(self._buffer)[: count or 0]

    def _open(self) -> io.FileIO:
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
        try:
            file = io.FileIO(os.open(self._path, flags | getattr(os, "O_DIRECT", 0)))
        except OSError:
            return self._open_cached()
        if sys.platform == "darwin":
            fcntl.fcntl(file.fileno(), fcntl.F_NOCACHE, 1)
        return file

    def _open_cached(self) -> io.FileIO:
        self.direct = False
        file = io.FileIO(self._path)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return file
