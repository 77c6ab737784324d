"""The results of a speed test: measurements, both computers, and what could not be measured.

Units are bytes, seconds and counts a second; `docs/doctor.md` explains the fields in JSON.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any, Final, NamedTuple

from mydata_like.core.errors import Cancelled, RejectedError
from mydata_like.core.ports import CancelSignal


class StageResult(StrEnum):
    """A stage that bytes pass during an upload; each one can be the bottleneck."""

    SOURCE = "source"
    HASH = "hash"
    CIPHER = "cipher"
    NETWORK = "network"
    CHANNELS = "channels"
    SERVER_CPU = "server cpu"
    SERVER_DISK = "server disk"
    FOLDER = "folder"
    API = "API"


class Unit(StrEnum):
    """The unit of a sample."""

    BYTES = "bytes/s"
    FILES = "files/s"
    REQUESTS = "requests/s"
    SECONDS = "seconds"
    SHARE = "share"


LARGE_FILES: Final = "large files"
TINY_FILES: Final = "tiny files"
MD5: Final = "MD5, one core"
MD5_ALL: Final = "MD5, all cores"
ROUND_TRIP: Final = "round trip"
SET_UP: Final = "connection set-up"
CEILING: Final = "window over round trip, each channel"
COMPRESSED: Final = "compressed size"
COMPRESSION: Final = "compression, one core"
RENAME: Final = "rename"
RECORDS: Final = "records, in earlier runs"
LATENCIES: Final = {"root": "root", "listing": "one page of a listing", "statistics": "statistics"}


def local(cipher: str) -> str:
    """Return the name of a cipher's measurement on one core of this computer, without network."""
    return f"{cipher}, here"


def flooded(channels: int) -> str:
    """Return the name of the flood over so many channels.

    A host discards its bytes; in a mounted folder, as many files are written at once.
    """
    return f"{channels} channel{'s' * (channels != 1)}"


def carried(what: str) -> str:
    """Return the name of the end-to-end measurement for a kind of files."""
    return f"together, {what}"


def in_usual_batches(what: str) -> str:
    """Return the name of a measurement with default batch sizes instead of the smaller set ones."""
    return f"{what}, in batches as usual"


def connected(connections: int) -> str:
    """Return the name of the API measurement over so many connections."""
    return f"{connections} connection{'s' * (connections != 1)}"


class CpuCost(NamedTuple):
    """Processor seconds for one byte on either side; None if unknown.

    The `_waited` fields are the seconds spent waiting for a free processor.
    """

    here: float | None = None
    there: float | None = None
    here_waited: float | None = None
    there_waited: float | None = None


class Measurement(NamedTuple):
    """One measurement: the value of each sample, and the processor time it took."""

    stage: StageResult
    what: str
    unit: Unit
    samples: tuple[float, ...]
    cost: CpuCost = CpuCost()
    note: str = ""

    @property
    def value(self) -> float:
        """The median of all samples."""
        return median(self.samples)

    @property
    def spread(self) -> float:
        """The distance between the lowest and the highest sample, as a share of the median."""
        return (max(self.samples) - min(self.samples)) / self.value if self.value else 0.0

    def as_record(self) -> dict[str, object]:
        """Return this as plain values for JSON."""
        return {
            "stage": self.stage,
            "what": self.what,
            "unit": self.unit,
            "median": self.value,
            "lowest": min(self.samples),
            "highest": max(self.samples),
            "looks": len(self.samples),
            "cpu_seconds_here": self.cost.here,
            "cpu_seconds_there": self.cost.there,
            "cpu_seconds_waited_here": self.cost.here_waited,
            "cpu_seconds_waited_there": self.cost.there_waited,
            "note": self.note,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Measurement":
        """Return the measurement of a JSON record: lowest, median and highest sample, no cost."""
        return cls(
            StageResult(record["stage"]),
            record["what"],
            Unit(record["unit"]),
            (record["lowest"], record["median"], record["highest"]),
            note=record["note"],
        )


class LocalMachine(NamedTuple):
    """One of the two computers; None is unknown."""

    cpus: int | None = None  # cores that we may use
    aes: bool | None = None  # whether its processors have AES instructions
    busy: float | None = None  # the share of all cores that others used before the test
    busy_after: float | None = None  # the same after the test
    others: int = 0  # further cores, which we may not use


NOT_TOLD: Final = LocalMachine()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTestResult:
    """All results of a speed test; `unknown` are sentences on what was not measured, and why.

    `rung` is what the staging host allows, as in `ssh.capabilities`, or empty without a host;
    `folder` if files are written to a mounted folder.
    """

    measured: tuple[Measurement, ...] = ()
    here: LocalMachine = NOT_TOLD
    there: LocalMachine = NOT_TOLD
    one_machine: bool = False  # both sides share their cores
    channels: int = 1  # of the end-to-end measurement
    sessions: int = 1  # the most sessions of a flood
    rung: str = ""
    cipher: str = ""  # that the two sides negotiate with these settings
    zstd: bool = False  # whether the staging host can decompress
    unknown: tuple[str, ...] = ()

    def find(self, stage: StageResult, what: str) -> Measurement | None:
        """Return the measurement of this name, or None."""
        fits = (one for one in self.measured if (one.stage, one.what) == (stage, what))
        return next(fits, None)

    def value(self, stage: StageResult, what: str) -> float | None:
        """Return the median of the measurement of this name, or None."""
        found = self.find(stage, what)
        return found.value if found and found.value > 0 else None

    @property
    def in_folder(self) -> bool:
        """Whether files are written to a mounted folder."""
        return self.rung == "folder"

    @property
    def measured_tiny(self) -> bool:
        """Whether a stage from the network on was measured with tiny files."""
        names = (
            (StageResult.CHANNELS, carried(TINY_FILES)),
            (StageResult.SERVER_DISK, TINY_FILES),
            (StageResult.FOLDER, TINY_FILES),
            (StageResult.API, RECORDS),
        )
        return any(self.value(stage, what) for stage, what in names)

    def ciphers(self) -> dict[str, Measurement]:
        """Return the measurements over the network by cipher."""
        rows = (one for one in self.measured if one.stage is StageResult.CIPHER)
        return {one.what: one for one in rows if not one.what.endswith(", here")}

    def floods(self) -> dict[int, Measurement]:
        """Return the floods by number of channels; files that are written in turn use one."""
        return dict(self._floods())

    def _floods(self) -> Iterator[tuple[int, Measurement]]:
        for one in self.measured:
            number = one.what.partition(" ")[0]
            if (one.stage, one.what) == (StageResult.FOLDER, LARGE_FILES):
                yield 1, one
            if one.stage is StageResult.CHANNELS and number.isdigit():
                yield int(number), one

    def as_record(self) -> Mapping[str, object]:
        """Return this as plain values for JSON."""
        return {
            "stages": [one.as_record() for one in self.measured],
            "here": self.here._asdict(),
            "there": self.there._asdict(),
            "one_machine": self.one_machine,
            "rung": self.rung,
            "cipher": self.cipher,
            "channels": self.channels,
            "unknown": list(self.unknown),
        }


Act = Callable[[], float]  # does something once, and returns how many units it processed


class SpeedTestEffort(NamedTuple):
    """The limits of the measurements of one test."""

    seconds: float  # of one sample
    samples: int
    flood: int  # bytes of a flood over one channel; twice as many over several
    disk: int  # bytes of one disk test
    files: int  # tiny files
    total: float  # seconds of the whole test; later measurements are left out
    most: int = 1_000_000_000  # bytes that are sent in all
    together: float = 2.0  # seconds of the end-to-end measurement of large files,
    carried: int = 500_000_000  # and its bytes: with full processors, short samples differ by half


FULL: Final = SpeedTestEffort(0.5, 4, 40_000_000, 36_000_000, 1000, 55.0)
QUICK: Final = SpeedTestEffort(0.2, 3, 40_000_000, 46_000_000, 400, 22.0)


class SpeedTestBudget:
    """The remaining time and bytes of a test, and its cancel signal."""

    def __init__(self, effort: SpeedTestEffort, cancel: CancelSignal) -> None:
        self.effort = effort
        self._cancel = cancel
        self.begin()

    def begin(self) -> None:
        """Start with the full time and all bytes."""
        self.left = self.effort.most  # bytes that may still be sent
        self._end = time.monotonic() + self.effort.total

    def check(self) -> None:
        """Raise `Cancelled` if the test was cancelled."""
        if self._cancel.is_set():
            raise Cancelled

    def take(self, size: int) -> None:
        """Reserve bytes to be sent. Raises `RejectedError` if fewer are left."""
        if size > self.left:
            raise RejectedError("The speed test has reached its limit of bytes.")
        self.left -= size

    def fit(self, count: int, seconds: float, most: int) -> int:
        """Return the count that fits into one sample, if `count` took `seconds`.

        The result is between `count` and `most`. It keeps a slow disk from being busy for long,
        because cancelling waits for the current measurement.
        """
        return max(count, min(most, int(count * self.effort.seconds / seconds)))

    def spent(self) -> bool:
        """Return whether the time has run out, so that no new measurement starts."""
        return time.monotonic() >= self._end

    @property
    def seconds_left(self) -> float:
        """The seconds until the time runs out."""
        return max(0.0, self._end - time.monotonic())

    def over_after(self, seconds: float) -> Callable[[], bool]:
        """Return a function that returns whether `seconds`, or the time of the test, are over."""
        end = min(self._end, time.monotonic() + seconds)
        return lambda: time.monotonic() >= end

    def sample(self, act: Act, count: int | None = None) -> tuple[float, ...]:
        """Return the rates of several samples; each repeats `act` for the time of a sample.

        One call before the first sample fills caches and opens connections; it is not counted.
        """
        self.check()
        act()
        return tuple(self._rate(act) for _ in range(count or self.effort.samples))

    def _rate(self, act: Act) -> float:
        done, began = 0.0, time.perf_counter()
        while True:
            self.check()
            done += act()
            seconds = time.perf_counter() - began
            if seconds >= self.effort.seconds:
                return done / seconds

    def time(self, act: Callable[[], object], count: int) -> tuple[float, ...]:
        """Return the seconds that each of `count` calls takes, after one that is not counted."""
        act()
        return tuple(self._seconds(act) for _ in range(count))

    def _seconds(self, act: Callable[[], object]) -> float:
        self.check()
        began = time.perf_counter()
        act()
        return time.perf_counter() - began
