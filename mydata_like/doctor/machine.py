"""What this computer can do by itself: checksums and ciphers, on one core and on all."""

import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import psutil
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import AES

from mydata_like.doctor.findings import MD5, MD5_ALL, Cost, Machine, Measured, Stage, Unit, local
from mydata_like.doctor.looks import Budget
from mydata_like.transfer.sessions import count_cpus

_PIECE: Final = 1024 * 1024
_PACKET: Final = 32 * 1024  # bytes, as SSH encrypts them at once
_IDLE: Final = 0.5  # seconds in which others show what they take
_CPUS: Final = Path("/proc/cpuinfo")


def describe_here() -> Machine:
    """Return what this computer is, and how much of it others take just now."""
    cpus = count_cpus()
    others = (os.cpu_count() or cpus) - cpus
    return Machine(cpus, find_aes(_read_cpus()), measure_busy(), others=others)


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


def measure_checksums(budget: Budget) -> Iterator[Measured]:
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
    cost = Cost((time.thread_time() - used) / done)
    yield Measured(Stage.HASH, MD5, Unit.BYTES, looks, cost)
    cpus = count_cpus()
    with ThreadPoolExecutor(cpus) as threads:
        looks = budget.look(lambda: sum(threads.map(_many(act), range(cpus))))
    yield Measured(Stage.HASH, MD5_ALL, Unit.BYTES, looks)


def _many(act: Callable[[], float]) -> Callable[[int], float]:
    """Return an act that takes long enough for its thread to be worth the while."""
    return lambda _: sum(act() for _ in range(16))


def measure_ciphers(names: tuple[str, ...], budget: Budget) -> Iterator[Measured]:
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

        yield Measured(Stage.CIPHER, local(name), Unit.BYTES, budget.look(act))


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
