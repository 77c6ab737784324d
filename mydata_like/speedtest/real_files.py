"""Test files that are sent as a run sends files, to compare settings in alternation."""

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import count, cycle, islice
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Final, Protocol, Self

from mydata_like.core.errors import TransientError, UploaderError
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import Dataset, DatasetId, FileRecord, Payload
from mydata_like.core.ports import Channel, SentFile, Transport
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.recommendations import Candidate, count_channels
from mydata_like.speedtest.results import (
    TINY,
    LocalMachine,
    Measurement,
    SettingsComparison,
    SpeedTestBudget,
    Workload,
)
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.dialing import NO_CHANNEL

ROUNDS: Final = 2  # that a change has to win
TURNS: Final = 3  # times in a round that the files are sent with, and without, the change
WORTH: Final = 1.05  # the least speed-up by which a turn is won

_LONG_AGO: Final = 1_000_000_000  # seconds since 1970: any later change of a file is noticed
_NOWHERE: Final = Dataset(DatasetId(0), "")
_SETTLED: Final = 0.05  # seconds; a file that is read earlier may be changed without a new time
_PIECE: Final = 2**20  # bytes that are written at once
_FIRST: Final = {Workload.LARGE: 200_000, Workload.TINY: 20}  # bytes, or files, sent at first
_GROWTH: Final = 8  # times as much is sent next, at most
_BATCHES: Final = 20  # sent over each channel at once, at most
_PREFIX: Final = "speed-test-"


def remove_leftovers(state: Path) -> None:
    """Remove the local files of speed tests that were killed."""
    for folder in state.glob(_PREFIX + "*"):
        rmtree(folder, ignore_errors=True)


def alternate(
    send_before: Callable[[], float],
    send_after: Callable[[], float],
    is_over: Callable[[], bool] = lambda: False,
) -> tuple[list[float], list[float], bool | None]:
    """Send with and without a change by turns; return both lists of speeds, and whether it won.

    The change wins a round if its slowest turn is clearly faster than the fastest one without it.
    It has to win all rounds, so it ends as soon as it cannot win a round any more: what other
    programs do at the same time makes one turn faster by chance, but hardly six of them. None means
    that the time was over before it was clear.
    """
    before, after = list[float](), list[float]()
    for each in range(ROUNDS):
        slowest, fastest = float("inf"), 0.0
        for turn in range(TURNS):
            if is_over():
                return before, after, None
            if (each + turn) % 2:
                after.append(send_after())
                before.append(send_before())
            else:
                before.append(send_before())
                after.append(send_after())
            slowest, fastest = min(slowest, after[-1]), max(fastest, before[-1])
            if slowest < WORTH * fastest:
                return before, after, False
    return before, after, True


OpenTransport = Callable[[Transfer], Transport]


class SpeedTestDestination(Protocol):
    """A destination to which test files are written, in a `folder` of its own; `open` it first."""

    name: str  # of the part of the test in which it is measured
    is_encrypted: bool  # the way to it

    @property
    def folder(self) -> str: ...

    @property
    def capabilities(self) -> HostCapabilities: ...

    @property
    def cipher(self) -> str: ...

    @property
    def parts(self) -> Mapping[str, Callable[[], Iterator[Measurement]]]:
        """The parts that can be measured alone, by name; each yields its measurements."""

    def open(self) -> HostCapabilities:
        """Return what it can do, after the files of a killed test were removed."""

    def describe(self) -> LocalMachine:
        """Return the facts about its computer."""

    def open_transport(self, settings: Transfer) -> Transport:
        """Return the transport of a run with these settings."""

    def noting_silence(self) -> AbstractContextManager[None]:
        """Return a context that notes that it does not respond, if it must then be left alone."""

    def remove(self) -> str:
        """Remove the test files.

        Return what remains of them, as the subject of a sentence; empty if nothing does.
        """

    def close(self) -> None: ...


class RealFiles:
    """Sends test files to one folder at the destination, and compares settings by their speed.

    `pieces` are parts of the user's files, of which large files are made to compare compression;
    otherwise the content is random. As a context, it has channels with the current settings open,
    and local files in `state`.
    """

    def __init__(
        self,
        destination: SpeedTestDestination,
        settings: Transfer,
        state: Path,
        budget: SpeedTestBudget,
        pieces: list[bytes],
    ) -> None:
        self._open_transport = destination.open_transport
        self._folder = destination.folder
        self._settings = settings
        self._state = state
        self._budget = budget
        self._pieces = pieces
        self._newest = 0  # the time of the latest local file, in nanoseconds
        self._amounts: dict[Workload, int] = {}  # bytes, or files, that are sent at once

    def __enter__(self) -> Self:
        self._local = Path(mkdtemp(prefix=_PREFIX, dir=self._state))
        try:
            self._now = _Sender(self._open_transport, self._settings)
        except BaseException:
            rmtree(self._local, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._now.close()
        rmtree(self._local, ignore_errors=True)

    @property
    def channels(self) -> int:
        """The number of open channels: that of the settings, or fewer if the host allows fewer."""
        return len(self._now.channels)

    def measure(self, workload: Workload) -> tuple[float, ...]:
        """Return the speeds of several sendings with the current settings.

        First, more and more is sent until it takes long enough to be measured. That is not counted.
        """
        effort = self._budget.effort
        most = effort.sent if workload is Workload.LARGE else effort.files
        amount = _FIRST[workload]
        while True:
            self._amounts[workload] = amount
            seconds = amount / self._send(self._now, workload)
            if seconds >= effort.sending / 2 or amount >= most:
                break
            amount = min(most, int(amount * min(_GROWTH, max(2, effort.sending / seconds))))
        rates: list[float] = []
        while len(rates) < effort.samples and not (rates and self._budget.spent()):
            rates.append(self._send(self._now, workload))
        return tuple(rates)

    def compare(self, candidate: Candidate) -> SettingsComparison | None:
        """Compare the current settings with a change of them, which becomes current if it wins.

        Return None if there was not enough time.
        """
        own = candidate.code == "compression"
        changed = _Sender(self._open_transport, candidate.apply(self._now.settings))
        try:
            self._send(changed, candidate.workload, own=own)  # opens what is opened at first
            before, after, won = alternate(
                lambda: self._send(self._now, candidate.workload, own=own),
                lambda: self._send(changed, candidate.workload, own=own),
                self._budget.spent,
            )
            if won:
                self._now, changed = changed, self._now
        finally:
            changed.close()
        if won is None:
            return None
        return SettingsComparison(
            candidate.code,
            candidate.text,
            candidate.workload,
            candidate.changes,
            tuple(before),
            tuple(after),
            won,
        )

    def _send(self, sender: "_Sender", workload: Workload, *, own: bool = False) -> float:
        """Send the files of a workload over all channels at once; return the speed."""
        channels, amount = len(sender.channels), self._amounts[workload]
        if workload is Workload.LARGE:
            size = -(-amount // channels)
            amount = size * channels
            self._budget.take(amount)
            file = self._make_file("own" if own else "large", size)
            loads = [[_payload(0, [(file, f"{self._folder}/large-{n}")])] for n in range(channels)]
        else:
            most = sender.files_together
            amount = min(amount, most * channels * _BATCHES)
            self._budget.take(amount * TINY)
            wanted = [
                (self._make_file(f"tiny-{n}", TINY), f"{self._folder}/{n}") for n in range(amount)
            ]
            size = min(most, -(-amount // channels))
            parts = [wanted[begin : begin + size] for begin in range(0, amount, size)]
            payloads = [_payload(number, part) for number, part in enumerate(parts)]
            loads = [payloads[place::channels] for place in range(channels)]

        def send(channel: Channel, payloads: list[Payload]) -> None:
            for payload in payloads:
                self._budget.check()
                for fate in channel.send(payload, lambda *_: self._budget.check()):
                    if not isinstance(fate, SentFile):
                        code, message, hint = fate.problem
                        raise UploaderError(message, hint=hint, code=code)

        self._budget.wait(max(0.0, _SETTLED - (time.time_ns() - self._newest) / 1e9))
        with ThreadPoolExecutor(channels) as threads:
            began = time.perf_counter()
            for _ in threads.map(send, sender.channels, loads):
                pass
            return amount / (time.perf_counter() - began)

    def _make_file(self, kind: str, size: int) -> LocalFile:
        """Return a file of this kind and size, which is made at its first use."""
        path = self._local / f"{kind}-{size}"
        if not path.exists():
            random = (secrets.token_bytes(_PIECE) for _ in count())
            content = cycle(self._pieces) if kind == "own" else random
            with path.open("wb") as file:
                while (left := size - file.tell()) > 0:
                    self._budget.check()
                    file.write(next(content)[:left])
            os.utime(path, (_LONG_AGO, _LONG_AGO))
        there = path.stat()
        self._newest = max(self._newest, there.st_ctime_ns)
        return LocalFile(
            os.fsencode(path), b"", b"", b"", size, there.st_mtime_ns, there.st_dev, there.st_ino
        )


class _Sender:
    """The channels of a transport with some settings; they stay open."""

    def __init__(self, open_transport: OpenTransport, settings: Transfer) -> None:
        self.settings = settings
        self._transport = open_transport(settings)
        try:
            self.channels = list(self._open_channels())
        except BaseException:
            self.close()
            raise

    @property
    def files_together(self) -> int:
        """The number of tiny files in a batch."""
        if self.settings.batch_below <= TINY:
            return 1
        return max(1, min(self.settings.batch_limit, self.settings.batch_bytes // TINY))

    def close(self) -> None:
        self._transport.close()

    def _open_channels(self) -> Iterator[Channel]:
        """Yield the channels of the settings, or as many as the host allows."""
        wanted = count_channels(self.settings)
        yield self._transport.open_channel()
        # The capacity is precise only once the first channel is open.
        for _ in islice(range(self._transport.capacity - 1), wanted - 1):
            try:
                yield self._transport.open_channel()
            except TransientError as error:
                if error.problem_code != NO_CHANNEL:
                    raise
                return


def _payload(number: int, files: list[tuple[LocalFile, str]]) -> Payload:
    members = tuple(FileRecord(file, _NOWHERE, name) for file, name in files)
    return Payload(number, members, batched=len(members) > 1)
