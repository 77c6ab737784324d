"""All stages together: files of ours, sent as a run sends them, to see what that comes to."""

import os
import secrets
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from math import inf
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Final, NamedTuple

from mydata_like.core.errors import TransientError, UploaderError
from mydata_like.core.model import Dataset, DatasetId, LocalFile, Payload, Wanted
from mydata_like.core.ports import Channel, Sent, Transport
from mydata_like.doctor.findings import (
    LARGE_FILES,
    TINY_FILES,
    Measured,
    Stage,
    Unit,
    carried,
)
from mydata_like.doctor.looks import Budget, Effort
from mydata_like.doctor.verdict import TINY
from mydata_like.settings.transfer import Transfer
from mydata_like.ssh.links import NO_CHANNEL

_LONG_AGO: Final = 1_000_000_000  # seconds since 1970: no later change of a file goes unnoticed
_NOWHERE: Final = Dataset(DatasetId(0), "")
_LEAST: Final = 200_000  # bytes of a large file
_FEWEST: Final = 20  # tiny files
_PREFIX: Final = "speed-test-"

OpenTransport = Callable[[Transfer], Transport]


class Wish(NamedTuple):
    """What is to be carried: over so many channels, below this folder, as the line is fast.

    `rate` is what it is known to carry, in bytes a second; `pace` is how many tiny files a second
    the server's disk is known to take, where that is known.
    """

    folder: str
    channels: int
    rate: float
    pace: float = inf

    def size(self, effort: Effort) -> int:
        """Return how large a large file is: together they take a look's time."""
        together = min(effort.disk, self.rate * effort.seconds)
        return max(_LEAST, int(together) // self.channels)

    def files(self, effort: Effort) -> int:
        """Return how many tiny files there are, which take a look's time at most."""
        pace = min(self.rate / TINY, self.pace)
        return int(max(_FEWEST, min(effort.files, pace * effort.seconds)))


def remove_leftovers(state: Path) -> None:
    """Remove the local files of tests that were killed."""
    for folder in state.glob(_PREFIX + "*"):
        rmtree(folder, ignore_errors=True)


def carry(
    open_transport: OpenTransport, settings: Transfer, wish: Wish, state: Path, budget: Budget
) -> Generator[Measured, None, int]:
    """Yield how fast large files go, and tiny ones, each read, hashed, sent and proven there.

    Return over how many channels: as many as are wished, or as the host grants.
    """
    effort = budget.effort
    each = wish.size(effort) * wish.channels + wish.files(effort) * TINY
    budget.take(each * (effort.looks + 1))
    with closing(open_transport(settings)) as transport, _own_files(state, wish, budget) as files:
        channels = [*_open_channels(transport, wish.channels)]
        count = len(channels)

        def send_large(look: int) -> float:
            names = [f"{wish.folder}/large-{look}-{number}" for number in range(count)]
            loads = [[_payload(number, [(files[0], name)])] for number, name in enumerate(names)]
            return _send(channels, loads) * files[0].size

        def send_tiny(look: int) -> float:
            wanted = [
                (file, f"{wish.folder}/tiny-{look}/{number}")
                for number, file in enumerate(files[1:])
            ]
            size = min(settings.batch_files, max(1, settings.batch_bytes // TINY))
            size = min(size, -(-len(wanted) // count))
            batches = [wanted[begin : begin + size] for begin in range(0, len(wanted), size)]
            loads = [
                [_payload(number, batch) for number, batch in enumerate(batches)][place::count]
                for place in range(count)
            ]
            return _send(channels, loads)

        looks = _repeat(send_large, budget)
        yield Measured(Stage.CHANNELS, carried(LARGE_FILES), Unit.BYTES, looks)
        looks = _repeat(send_tiny, budget)
        yield Measured(Stage.CHANNELS, carried(TINY_FILES), Unit.FILES, looks)
    return count


def _open_channels(transport: Transport, wanted: int) -> Iterator[Channel]:
    """Yield so many channels, or as many as there may be."""
    yield transport.open_channel()
    for _ in range(min(wanted, transport.capacity) - 1):  # known better once the first is open
        try:
            yield transport.open_channel()
        except TransientError as error:
            if error.problem_code != NO_CHANNEL:
                raise
            return


def _repeat(send: Callable[[int], float], budget: Budget) -> tuple[float, ...]:
    """Return the rates of several looks; the first one, before channels are warm, is left out.

    Where the time of the test has run out, one look has to do.
    """
    rates: list[float] = []
    for look in range(budget.effort.looks + 1):
        budget.check()
        if len(rates) > 1 and budget.spent():
            break
        began = time.perf_counter()
        done = send(look)
        rates.append(done / (time.perf_counter() - began))
    return tuple(rates[1:])


def _send(channels: list[Channel], loads: list[list[Payload]]) -> float:
    """Send payloads over all channels at once; return how many files arrived."""
    with ThreadPoolExecutor(len(channels)) as threads:
        return float(sum(threads.map(_send_one_by_one, channels, loads)))


def _send_one_by_one(channel: Channel, payloads: list[Payload]) -> int:
    fates = [fate for payload in payloads for fate in channel.send(payload, lambda _: None)]
    for fate in fates:
        if not isinstance(fate, Sent):
            code, message, hint = fate.problem
            raise UploaderError(message, hint=hint, code=code)
    return len(fates)


def _payload(number: int, files: list[tuple[LocalFile, str]]) -> Payload:
    members = tuple(Wanted(file, _NOWHERE, name) for file, name in files)
    return Payload(number, members, batched=len(members) > 1)


@contextmanager
def _own_files(state: Path, wish: Wish, budget: Budget) -> Iterator[list[LocalFile]]:
    """Yield a large file and many tiny ones, of which nothing is left afterwards."""
    folder = Path(mkdtemp(prefix=_PREFIX, dir=state))
    try:
        sizes = [wish.size(budget.effort), *[TINY] * wish.files(budget.effort)]
        yield [_make_file(folder / str(number), size) for number, size in enumerate(sizes)]
    finally:
        rmtree(folder, ignore_errors=True)


def _make_file(path: Path, size: int) -> LocalFile:
    path.write_bytes(secrets.token_bytes(size))
    os.utime(path, (_LONG_AGO, _LONG_AGO))
    there = path.stat()
    return LocalFile(
        os.fsencode(path), b"", b"", b"", size, there.st_mtime_ns, there.st_dev, there.st_ino
    )
