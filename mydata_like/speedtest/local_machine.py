"""Speed of this computer: checksums, ciphers and disk reads, on one core and on all."""

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

from mydata_like.speedtest.results import (
    COMPRESSED,
    COMPRESSION,
    LARGE_FILES,
    MD5,
    MD5_ALL,
    TINY_FILES,
    CpuCost,
    LocalMachine,
    Measurement,
    SpeedTestBudget,
    StageResult,
    Unit,
    local,
)
from mydata_like.transfer.sessions import count_cpus

_PIECE: Final = 1024 * 1024
_PACKET: Final = 32 * 1024  # bytes, as SSH encrypts them at once
_IDLE: Final = 0.5  # seconds in which others show what they take
_CPUS: Final = Path("/proc/cpuinfo")


def describe_here() -> LocalMachine:
    """Return what this computer is, and how much of it others take just now."""
    cpus = count_cpus()
    others = (os.cpu_count() or cpus) - cpus
    return LocalMachine(cpus, find_aes(_read_cpus()), measure_busy(), others=others)


def measure_busy() -> float:
    """Return the share of all cores that is taken while we do nothing."""
    return psutil.cpu_percent(_IDLE) / 100


def find_aes(text: str) -> bool | None:
    """Return whether processors encrypt by AES themselves, as Linux's /proc/cpuinfo says."""
    for line in text.splitlines():
        name, _, words = line.partition(":")
        if name.strip().lower() in ("flags", "features"):
            return "aes" in words.split()
    return None


def measure_checksums(budget: SpeedTestBudget) -> Iterator[Measurement]:
    """Yield how fast MD5 goes on one core, and on all of them."""
    piece = os.urandom(_PIECE)

    def act(_: int = 0) -> float:
        hashlib.md5(piece, usedforsecurity=False)
        return float(_PIECE)

    used, done = time.thread_time(), 0.0

    def act_and_count() -> float:
        nonlocal done
        done += act()
        return float(_PIECE)

    looks = budget.look(act_and_count)
    cost = CpuCost((time.thread_time() - used) / done)
    yield Measurement(StageResult.HASH, MD5, Unit.BYTES, looks, cost)
    cpus = count_cpus()
    with ThreadPoolExecutor(cpus) as threads:
        looks = budget.look(lambda: sum(threads.map(_many(act), range(cpus))))
    yield Measurement(StageResult.HASH, MD5_ALL, Unit.BYTES, looks)


def _many(act: Callable[[], float]) -> Callable[[int], float]:
    """Return an act that takes long enough for its thread to be worth the while."""
    return lambda _: sum(act() for _ in range(16))


def measure_ciphers(names: tuple[str, ...], budget: SpeedTestBudget) -> Iterator[Measurement]:
    """Yield how fast one core encrypts by each cipher that the library here knows apart."""
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

        yield Measurement(StageResult.CIPHER, local(name), Unit.BYTES, budget.look(act))


def _build_cipher(name: str) -> Callable[[bytes], object] | None:
    """Return what encrypts a packet; of the ciphers without a code of their own that is all."""
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


def _read_cpus() -> str:
    try:
        return _CPUS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        # All 64-bit processors of Apple encrypt by AES.
        return "features: aes" if platform.system() == "Darwin" else ""


if sys.platform == "darwin":
    import fcntl

_LARGE: Final = 8_000_000  # bytes from which a file says how fast the disk reads
_TINY: Final = 64 * 1024
_READ_PIECE: Final = 4 * 1024 * 1024  # bytes read at once; a disk that works in parallel wants many
_ENTRIES: Final = 20_000  # of folders that are looked at to find files
_SEARCH: Final = 2.0  # seconds for the same
_READERS: Final = 4  # tiny files under way at once, as a channel has them
ENOUGH: Final = 30  # tiny files
_SAMPLES: Final = 16  # files, of which a piece is compressed
_SAMPLE: Final = 512 * 1024


class FileSample(NamedTuple):
    """Some files of the data directory."""

    large: tuple[Path, ...]
    tiny: tuple[Path, ...]


def find_sample(root: Path, files: int) -> FileSample:
    """Return files below a folder: all large ones that are soon found, and so many tiny ones."""
    large: list[Path] = []
    tiny: list[Path] = []
    for entry in _walk(root):
        size = _find_size(entry)
        if size >= _LARGE:
            large.append(Path(entry.path))
        elif 0 < size <= _TINY and len(tiny) < files:
            tiny.append(Path(entry.path))
    return FileSample(tuple(large), tuple(tiny))


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


def measure_source(sample: FileSample, budget: SpeedTestBudget) -> Iterator[Measurement]:
    """Yield how fast the disk reads one file after another, and many tiny ones."""
    if sample.large:
        pieces = _read_again_and_again(sample.large)
        looks = budget.look(lambda: float(next(pieces)))
        pieces.close()
        yield Measurement(
            StageResult.SOURCE, LARGE_FILES, Unit.BYTES, looks, note=_describe(sample.large)
        )
    if len(sample.tiny) >= ENOUGH:
        looks = tuple(_read_tiny(sample.tiny, budget))
        yield Measurement(
            StageResult.SOURCE, TINY_FILES, Unit.FILES, looks, note=_describe(sample.tiny)
        )


def measure_compression(sample: FileSample, budget: SpeedTestBudget) -> Iterator[Measurement]:
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

    yield Measurement(StageResult.SOURCE, COMPRESSED, Unit.SHARE, (shrunk / len(whole),))
    yield Measurement(StageResult.SOURCE, COMPRESSION, Unit.BYTES, budget.look(pack))


def _read_samples(sample: FileSample) -> Iterator[bytes]:
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
            with suppress(OSError), DirectReader(path, _READ_PIECE) as file:
                while size := len(file.read()):
                    yield size
            yield 0


def _read_tiny(paths: Sequence[Path], budget: SpeedTestBudget) -> Iterator[float]:
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
    with suppress(OSError), DirectReader(path, _TINY) as file:  # it may be deleted meanwhile
        file.read()


def _describe(files: Sequence[Path]) -> str:
    with suppress(OSError), DirectReader(files[0], _TINY) as file:
        return "" if file.read() and file.direct else "possibly cached by the system"
    return ""


class DirectReader:
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
