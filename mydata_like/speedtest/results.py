"""The results of a speed test: measurements, both computers, and what could not be measured.

Bytes, seconds and counts a second throughout; `docs/doctor.md` explains them as they stand in JSON.
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
    """What bytes pass on their way; any of them may be the limit."""

    SOURCE = "source"
    HASH = "hash"
    CIPHER = "cipher"
    NETWORK = "network"
    CHANNELS = "channels"
    SERVER_CPU = "server cpu"
    SERVER_DISK = "server disk"
    API = "API"


class Unit(StrEnum):
    """What a look counts."""

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
RECORDS: Final = "records, in earlier runs"
LATENCIES: Final = {"root": "root", "listing": "one page of a listing", "statistics": "statistics"}


def local(cipher: str) -> str:
    """Return the name of a cipher's measurement on one core of this computer, without a wire."""
    return f"{cipher}, here"


def flooded(channels: int) -> str:
    """Return the name of the measurement with so many channels into nothing."""
    return f"{channels} channel{'s' * (channels != 1)}"


def carried(what: str) -> str:
    """Return the name of the measurement of all stages together, for such files."""
    return f"together, {what}"


def in_usual_batches(what: str) -> str:
    """Return the name of such a measurement where the settings make batches smaller than usual."""
    return f"{what}, in batches as usual"


def connected(connections: int) -> str:
    """Return the name of the API's measurement over so many connections."""
    return f"{connections} connection{'s' * (connections != 1)}"


class CpuCost(NamedTuple):
    """Processor seconds that one byte takes on either side; None where nobody tells.

    The others are the seconds for which there was work, and no processor free for it.
    """

    here: float | None = None
    there: float | None = None
    here_waited: float | None = None
    there_waited: float | None = None


class Measurement(NamedTuple):
    """One thing measured: what each look told, and what it cost the processors."""

    stage: StageResult
    what: str
    unit: Unit
    looks: tuple[float, ...]
    cost: CpuCost = CpuCost()
    note: str = ""

    @property
    def value(self) -> float:
        """The median of all looks."""
        return median(self.looks)

    @property
    def spread(self) -> float:
        """The distance between the lowest and the highest look, in parts of the median."""
        return (max(self.looks) - min(self.looks)) / self.value if self.value else 0.0

    def as_record(self) -> dict[str, object]:
        """Return this as plain values for JSON."""
        return {
            "stage": self.stage,
            "what": self.what,
            "unit": self.unit,
            "median": self.value,
            "lowest": min(self.looks),
            "highest": max(self.looks),
            "looks": len(self.looks),
            "cpu_seconds_here": self.cost.here,
            "cpu_seconds_there": self.cost.there,
            "cpu_seconds_waited_here": self.cost.here_waited,
            "cpu_seconds_waited_there": self.cost.there_waited,
            "note": self.note,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Measurement":
        """Return what was measured as JSON tells it, without its cost; it tells three looks."""
        return cls(
            StageResult(record["stage"]),
            record["what"],
            Unit(record["unit"]),
            (record["lowest"], record["median"], record["highest"]),
            note=record["note"],
        )


class LocalMachine(NamedTuple):
    """One of the two computers; None is what nobody tells."""

    cpus: int | None = None  # that we may use
    aes: bool | None = None  # whether its processors encrypt by AES themselves
    busy: float | None = None  # the share of all its cores that others took before the test
    busy_after: float | None = None  # the same when it was over
    others: int = 0  # cores that it has besides


NOT_TOLD: Final = LocalMachine()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTestResult:
    """All that a speed test found; `unknown` are sentences on what could not be told, and why.

    `rung` is what the staging host allows, as of `ssh.remote.Rung`, or empty without one.
    """

    measured: tuple[Measurement, ...] = ()
    here: LocalMachine = NOT_TOLD
    there: LocalMachine = NOT_TOLD
    one_machine: bool = False  # both sides share their cores
    channels: int = 1  # of what was carried together
    sessions: int = 1  # over which floods went, at most
    rung: str = ""
    cipher: str = ""  # that both sides agree on by the settings
    zstd: bool = False  # whether the staging host unpacks
    unknown: tuple[str, ...] = ()

    def find(self, stage: StageResult, what: str) -> Measurement | None:
        """Return what was measured under this name, if it was."""
        fits = (one for one in self.measured if (one.stage, one.what) == (stage, what))
        return next(fits, None)

    def value(self, stage: StageResult, what: str) -> float | None:
        """Return the median of what was measured under this name; None where nothing was."""
        found = self.find(stage, what)
        return found.value if found and found.value > 0 else None

    @property
    def tells_of_tiny(self) -> bool:
        """Whether anything on the way to the server says how many tiny files it takes."""
        told = (
            (StageResult.CHANNELS, carried(TINY_FILES)),
            (StageResult.SERVER_DISK, TINY_FILES),
            (StageResult.API, RECORDS),
        )
        return any(self.value(stage, what) for stage, what in told)

    def ciphers(self) -> dict[str, Measurement]:
        """Return the measurements over the wire by their ciphers."""
        rows = (one for one in self.measured if one.stage is StageResult.CIPHER)
        return {one.what: one for one in rows if not one.what.endswith(", here")}

    def floods(self) -> dict[int, Measurement]:
        """Return the measurements into nothing by their numbers of channels."""
        return dict(self._floods())

    def _floods(self) -> Iterator[tuple[int, Measurement]]:
        for one in self.measured:
            number = one.what.partition(" ")[0]
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


Act = Callable[[], float]  # does something once, and returns how much of it went


class SpeedTestEffort(NamedTuple):
    """What one measurement may take, at most."""

    seconds: float  # of one look
    looks: int
    flood: int  # bytes that go into nothing, twice as many over several channels
    disk: int  # bytes that are written or read at once
    files: int  # tiny ones
    total: float  # seconds for the whole test; what comes later is left out
    most: int = 1_000_000_000  # bytes that are sent in all
    together: float = 2.0  # seconds in which large files go as a run sends them,
    carried: int = 500_000_000  # and their bytes: moments differ by half where processors are full


FULL: Final = SpeedTestEffort(0.5, 4, 40_000_000, 36_000_000, 1000, 55.0)
QUICK: Final = SpeedTestEffort(0.2, 3, 40_000_000, 46_000_000, 400, 22.0)


class SpeedTestBudget:
    """The time and the bytes that a test has, and whether somebody wants it to end."""

    def __init__(self, effort: SpeedTestEffort, cancel: CancelSignal) -> None:
        self.effort = effort
        self._cancel = cancel
        self.begin()

    def begin(self) -> None:
        """Take the time and the bytes from now on."""
        self.left = self.effort.most  # bytes that may still be sent
        self._end = time.monotonic() + self.effort.total

    def check(self) -> None:
        """Raise `Cancelled` where the test is not wanted any more."""
        if self._cancel.is_set():
            raise Cancelled

    def take(self, size: int) -> None:
        """Set so many bytes apart to be sent; raises `RejectedError` where they are too many."""
        if size > self.left:
            raise RejectedError("The speed test has reached its limit of bytes.")
        self.left -= size

    def spent(self) -> bool:
        """Return whether nothing more is to be begun."""
        return time.monotonic() >= self._end

    def over_after(self, seconds: float) -> Callable[[], bool]:
        """Return what tells whether so many seconds from now, or the time of the test, are over."""
        end = min(self._end, time.monotonic() + seconds)
        return lambda: time.monotonic() >= end

    def look(self, act: Act, count: int | None = None) -> tuple[float, ...]:
        """Return the rates of several looks, each as many acts as fit into its time.

        A first act, which finds caches and connections cold, does not count.
        """
        self.check()
        act()
        return tuple(self._rate(act) for _ in range(count or self.effort.looks))

    def _rate(self, act: Act) -> float:
        done, began = 0.0, time.perf_counter()
        while True:
            self.check()
            done += act()
            seconds = time.perf_counter() - began
            if seconds >= self.effort.seconds:
                return done / seconds

    def time(self, act: Callable[[], object], count: int) -> tuple[float, ...]:
        """Return how long each of several acts takes, in seconds; the first does not count."""
        act()
        return tuple(self._seconds(act) for _ in range(count))

    def _seconds(self, act: Callable[[], object]) -> float:
        self.check()
        began = time.perf_counter()
        act()
        return time.perf_counter() - began
