"""The end-to-end measurement: send test files in the same way as a run does."""

import os
import secrets
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from math import inf
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Final, NamedTuple

from mydata_like.core.errors import TransientError, UploaderError
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import Dataset, DatasetId, FileToSend, Payload
from mydata_like.core.ports import Channel, SentFile, Transport, UnsentFile
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.flood_worker import FloodProgress
from mydata_like.speedtest.prediction import TINY
from mydata_like.speedtest.results import (
    LARGE_FILES,
    TINY_FILES,
    Measurement,
    SpeedTestBudget,
    SpeedTestEffort,
    StageResult,
    Unit,
    carried,
    in_usual_batches,
)
from mydata_like.speedtest.throughput_probe import slice_up
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.transfer.channel import CUT

_LONG_AGO: Final = 1_000_000_000  # seconds since 1970: any later change of a file is noticed
_NOWHERE: Final = Dataset(DatasetId(0), "")
_PIECE: Final = 2**20  # bytes that are written at once
_LEAST: Final = 200_000  # bytes of a large file
_FEWEST: Final = 20  # tiny files
_BATCHES: Final = 20  # per channel and sample
_ENOUGH: Final = 4  # progress reports of a file, with which its end is not needed
_PREFIX: Final = "speed-test-"

OpenTransport = Callable[[Transfer], Transport]


class EndToEndTest(NamedTuple):
    """The plan of an end-to-end measurement: target folder, number of channels and limits.

    `rate` is the highest known throughput of the connection in bytes a second. `pace` is the number
    of tiny files that the server's disk can create in a second, if known. The first `warm_up`
    seconds are not counted. `spared` bytes of the budget are kept for later measurements. With
    `whole`, large files are sent to their end, as often as tiny ones: what is written may stay in
    memory until then.
    """

    folder: str
    channels: int
    rate: float
    pace: float = inf
    warm_up: float = 0.0
    spared: int = 0
    whole: bool = False

    def size(self, effort: SpeedTestEffort, left: int) -> int:
        """Return the size of each large file if `left` bytes may be sent in all."""
        seconds = self.warm_up + effort.together
        together = min(effort.carried, self.rate * seconds, left - self.spared)
        return max(_LEAST, int(together) // (self.channels * self.times(effort)))

    def times(self, effort: SpeedTestEffort) -> int:
        """Return how often each large file is sent."""
        return effort.samples + 1 if self.whole else 1

    def files(self, effort: SpeedTestEffort) -> int:
        """Return the number of tiny files that can be sent in the time of one sample."""
        pace = min(self.rate / TINY, self.pace)
        return int(max(_FEWEST, min(effort.files, pace * effort.seconds)))


def remove_leftovers(state: Path) -> None:
    """Remove the local files of speed tests that were killed."""
    for folder in state.glob(_PREFIX + "*"):
        rmtree(folder, ignore_errors=True)


def measure_end_to_end(
    open_transport: OpenTransport,
    settings: Transfer,
    plan: EndToEndTest,
    state: Path,
    budget: SpeedTestBudget,
) -> Generator[Measurement, None, int]:
    """Yield the speed of large and of tiny files, each read, hashed, sent and checked on the host.

    Return the number of channels used: `plan.channels`, or fewer if the host allows fewer. The
    start and the end of a large file are not counted unless it is sent `whole`, because the large
    files of a run are larger than those of a test. Otherwise, files that take longer than expected
    are interrupted.
    """
    effort = budget.effort
    batches = _list_batches(settings)
    tiny_bytes = plan.files(effort) * TINY * (effort.samples + 1) * len(batches)
    size = plan.size(effort, budget.left - tiny_bytes)
    budget.take(size * plan.channels * plan.times(effort) + tiny_bytes)
    with (
        _own_files(state, size, plan.files(effort)) as files,
        closing(open_transport(settings)) as transport,
    ):
        channels = [*_open_channels(transport, plan.channels)]
        count = len(channels)
        large, *tiny = files
        yield _measure_large(channels, large, plan, budget)

        def send_tiny(most: int, sample: int) -> float:
            folder = f"{plan.folder}/tiny-{most}-{sample}"
            some = tiny[: most * count * _BATCHES]
            wanted = [(file, f"{folder}/{number}") for number, file in enumerate(some)]
            size = min(most, -(-len(wanted) // count))
            parts = [wanted[begin : begin + size] for begin in range(0, len(wanted), size)]
            payloads = [_payload(number, part) for number, part in enumerate(parts)]
            _send(channels, [payloads[place::count] for place in range(count)], budget)
            return float(len(wanted))

        for what, most in batches.items():
            samples = _repeat(partial(send_tiny, most), budget)
            yield Measurement(StageResult.CHANNELS, what, Unit.FILES, samples)
    return count


def _measure_large(
    channels: list[Channel], file: LocalFile, plan: EndToEndTest, budget: SpeedTestBudget
) -> Measurement:
    """Return the speed of sending a large file over each channel."""
    names = [f"{plan.folder}/large-{number}" for number in range(len(channels))]
    loads = [[_payload(number, [(file, name)])] for number, name in enumerate(names)]
    if plan.whole:

        def send(_: int) -> float:
            _send(channels, loads, budget)
            return float(file.size * len(channels))

        samples = _repeat(send, budget)
    else:
        effort = budget.effort
        end = budget.over_after(plan.warm_up + effort.together)
        samples = slice_up(_send(channels, loads, budget, end), effort.samples, plan.warm_up)
    return Measurement(StageResult.CHANNELS, carried(LARGE_FILES), Unit.BYTES, samples)


def _list_batches(settings: Transfer) -> dict[str, int]:
    """Return the number of tiny files in a batch, by the name of each measurement."""
    together = carried(TINY_FILES)
    by_settings = _count_together(settings)
    usual = _count_together(Transfer(method=settings.method, folder=settings.folder))
    if by_settings >= usual:
        return {together: by_settings}
    return {together: by_settings, in_usual_batches(together): usual}


def _count_together(settings: Transfer) -> int:
    if settings.batch_below <= TINY:
        return 1
    return max(1, min(settings.batch_limit, settings.batch_bytes // TINY))


def _open_channels(transport: Transport, wanted: int) -> Iterator[Channel]:
    """Yield `wanted` channels, or as many as the host allows."""
    yield transport.open_channel()
    for _ in range(min(wanted, transport.capacity) - 1):  # precise only once the first is open
        try:
            yield transport.open_channel()
        except TransientError as error:
            if error.problem_code != NO_CHANNEL:
                raise
            return


def _repeat(send: Callable[[int], float], budget: SpeedTestBudget) -> tuple[float, ...]:
    """Return the rates of several samples, without the first, which warms up the channels.

    If the time of the test has run out, return one sample.
    """
    rates: list[float] = []
    for sample in range(budget.effort.samples + 1):
        budget.check()
        if len(rates) > 1 and budget.spent():
            break
        began = time.perf_counter()
        done = send(sample)
        rates.append(done / (time.perf_counter() - began))
    return tuple(rates[1:])


def _send(
    channels: list[Channel],
    loads: list[list[Payload]],
    budget: SpeedTestBudget,
    may_end: Callable[[], bool] = lambda: False,
) -> list[list[FloodProgress]]:
    """Send payloads over all channels at once; return the progress of the last one on each channel.

    A payload is interrupted when `may_end` returns True.
    """
    began = time.perf_counter()

    def send_one_by_one(channel: Channel, payloads: list[Payload]) -> list[FloodProgress]:
        ticks: list[FloodProgress] = []

        def note(moved: int, _: int = 0, /) -> None:
            budget.check()
            ticks.append(FloodProgress(time.perf_counter() - began, moved))
            if moved and len(ticks) >= _ENOUGH and may_end():
                channel.cut()

        for payload in payloads:
            ticks[:] = [FloodProgress(0.0, 0)]
            try:
                _require_sent(channel.send(payload, note))
            except TransientError as error:
                if error.problem_code != CUT or not may_end():
                    raise
                break
            if len(ticks) < _ENOUGH:
                size = sum(member.file.size for member in payload.members)
                ticks.append(FloodProgress(time.perf_counter() - began, size))
        return ticks

    with ThreadPoolExecutor(len(channels)) as threads:
        return list(threads.map(send_one_by_one, channels, loads))


def _require_sent(fates: list[SentFile | UnsentFile]) -> None:
    for fate in fates:
        if not isinstance(fate, SentFile):
            code, message, hint = fate.problem
            raise UploaderError(message, hint=hint, code=code)


def _payload(number: int, files: list[tuple[LocalFile, str]]) -> Payload:
    members = tuple(FileToSend(file, _NOWHERE, name) for file, name in files)
    return Payload(number, members, batched=len(members) > 1)


@contextmanager
def _own_files(state: Path, large: int, tiny: int) -> Iterator[list[LocalFile]]:
    """Yield a large file of `large` bytes and `tiny` tiny files; remove them at the end."""
    folder = Path(mkdtemp(prefix=_PREFIX, dir=state))
    try:
        sizes = [large, *[TINY] * tiny]
        yield [_make_file(folder / str(number), size) for number, size in enumerate(sizes)]
    finally:
        rmtree(folder, ignore_errors=True)


def _make_file(path: Path, size: int) -> LocalFile:
    with path.open("wb") as file:
        for begin in range(0, size, _PIECE):
            file.write(secrets.token_bytes(min(_PIECE, size - begin)))
    os.utime(path, (_LONG_AGO, _LONG_AGO))
    there = path.stat()
    return LocalFile(
        os.fsencode(path), b"", b"", b"", size, there.st_mtime_ns, there.st_dev, there.st_ino
    )
