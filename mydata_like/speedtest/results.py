"""The results of a speed test: measurements, comparisons of settings, and what was not measured.

Units are bytes, seconds and counts a second; `docs/doctor.md` explains the fields in JSON.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Final, NamedTuple

from mydata_like.core.errors import Cancelled, RejectedError
from mydata_like.core.ports import CancelSignal


class StageResult(StrEnum):
    """A stage that bytes pass during an upload; `CHANNELS` is an upload with all of them."""

    SOURCE = "source"
    HASH = "hash"
    CIPHER = "cipher"
    NETWORK = "network"
    CHANNELS = "channels"
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


class Workload(StrEnum):
    """The kind of files that are sent; each kind can have another slowest part."""

    LARGE = "large"
    TINY = "tiny"

    @property
    def unit(self) -> Unit:
        """The unit of the speed of such files."""
        return Unit.BYTES if self is Workload.LARGE else Unit.FILES

    @property
    def together(self) -> str:
        """The name of the measurement that sends such files."""
        return f"together, {self} files"


TINY: Final = 3_000  # bytes of a tiny file; half of the tiny files of real instruments are smaller
LARGE_FILES: Final = "large files"
TINY_FILES: Final = "tiny files"
MD5: Final = "MD5, one core"
MD5_ALL: Final = "MD5, all cores"
ROUND_TRIP: Final = "round trip"
SET_UP: Final = "connection set-up"
COMPRESSED: Final = "compressed size"
RENAME: Final = "rename"
RECORDS: Final = "records, in earlier runs"


class Measurement(NamedTuple):
    """One measurement: the value of each sample."""

    stage: StageResult
    what: str
    unit: Unit
    samples: tuple[float, ...]
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
            "note": self.note,
        }


class SettingsComparison(NamedTuple):
    """The speeds of the same files with and without a change of settings, sent in alternation.

    `code` is stable: `cipher`, `channels`, `batches` or `compression`. `changes` are values of
    settings by key. `won` is whether the change was faster in two rounds.
    """

    code: str
    text: str
    workload: Workload
    changes: Mapping[str, object]
    before: tuple[float, ...]
    after: tuple[float, ...]
    won: bool

    @property
    def gain(self) -> float:
        """The factor by which the files were faster with the change."""
        return median(self.after) / median(self.before)

    def as_record(self) -> dict[str, object]:
        """Return this as plain values for JSON."""
        return {
            "code": self.code,
            "text": self.text,
            "workload": self.workload,
            "unit": self.workload.unit,
            "changes": dict(self.changes),
            "before": list(self.before),
            "after": list(self.after),
            "gain": self.gain,
            "won": self.won,
        }


class LocalMachine(NamedTuple):
    """One of the two computers; None is unknown."""

    cpus: int | None = None  # cores that we may use
    aes: bool | None = None  # whether its processors have AES instructions
    busy: float | None = None  # the share of all cores that others used before the test
    busy_after: float | None = None  # the same after the test


NOT_TOLD: Final = LocalMachine()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTestResult:
    """All results of a speed test; `unknown` are sentences on what was not measured, and why.

    `rung` is what the staging host allows, as in `ssh.capabilities`, `folder` if files are written
    to a mounted folder, or empty if neither was reached.
    """

    measured: tuple[Measurement, ...] = ()
    compared: tuple[SettingsComparison, ...] = ()
    here: LocalMachine = NOT_TOLD
    there: LocalMachine = NOT_TOLD
    channels: int = 1  # over which files were sent with the current settings
    rung: str = ""
    cipher: str = ""  # that the two sides negotiate with these settings
    unknown: tuple[str, ...] = ()

    def value(self, stage: StageResult, what: str) -> float | None:
        """Return the median of the measurement of this name, or None."""
        fits = (one.value for one in self.measured if (one.stage, one.what) == (stage, what))
        return next(fits, None) or None

    def find_parts(self, workload: Workload) -> dict[StageResult, float]:
        """Return the speed of each part alone in the unit of the workload, the slowest first."""
        parts: dict[StageResult, float] = {}
        for one in self.measured:
            if one.stage is StageResult.CHANNELS or one.unit is not workload.unit:
                continue
            # One core computes the checksum of one file, and each session has a core for its own.
            if one.stage is not StageResult.CIPHER and one.what != MD5:
                parts[one.stage] = max(one.value, parts.get(one.stage, 0.0))
        return dict(sorted(parts.items(), key=lambda part: part[1]))

    def as_record(self) -> dict[str, object]:
        """Return this as plain values for JSON."""
        return {
            "stages": [one.as_record() for one in self.measured],
            "compared": [one.as_record() for one in self.compared],
            "here": self.here._asdict(),
            "there": self.there._asdict(),
            "rung": self.rung,
            "cipher": self.cipher,
            "channels": self.channels,
            "unknown": list(self.unknown),
        }


class SpeedTestEffort(NamedTuple):
    """The limits of the measurements of one test."""

    seconds: float  # of one sample
    samples: int
    line: int  # bytes of one sample of the line
    disk: int  # bytes of one disk test
    files: int  # tiny files
    total: float  # seconds of the whole test; later measurements are left out
    sending: float  # seconds for which test files are sent once
    sent: int  # bytes of large files that are sent once, over all channels together
    most: int = 1_000_000_000  # bytes that are sent in all


FULL: Final = SpeedTestEffort(0.5, 4, 10_000_000, 36_000_000, 1000, 55.0, 1.0, 32_000_000)
QUICK: Final = SpeedTestEffort(0.2, 3, 10_000_000, 46_000_000, 400, 22.0, 0.4, 16_000_000)


class SpeedTestBudget:
    """The remaining time and bytes of a test, and its cancel signal."""

    def __init__(self, effort: SpeedTestEffort, cancel: CancelSignal) -> None:
        self.effort = effort
        self.left = effort.most  # bytes that may still be sent
        self._cancel = cancel
        self._end = time.monotonic() + effort.total

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

    def sample(self, act: Callable[[], float]) -> tuple[float, ...]:
        """Return the rates of several samples; each repeats `act` for the time of a sample.

        `act` does something and returns how many units it processed. One call before the first
        sample fills caches and opens connections; it is not counted.
        """
        self.check()
        act()
        rates = []
        for _ in range(self.effort.samples):
            done, seconds, began = 0.0, 0.0, time.perf_counter()
            while seconds < self.effort.seconds:
                self.check()
                done += act()
                seconds = time.perf_counter() - began
            rates.append(done / seconds)
        return tuple(rates)

    def time(self, act: Callable[[], object], count: int) -> tuple[float, ...]:
        """Return the seconds that each of `count` calls takes, after one that is not counted."""
        act()
        seconds = []
        for _ in range(count):
            self.check()
            began = time.perf_counter()
            act()
            seconds.append(time.perf_counter() - began)
        return tuple(seconds)

    def wait(self, seconds: float) -> None:
        """Wait; raises `Cancelled` as soon as the test is cancelled."""
        self._cancel.wait(seconds)
        self.check()
