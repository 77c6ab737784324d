"""What a speed test found: every stage by several looks, the two computers, what nobody can tell.

Bytes, seconds and counts a second throughout; `docs/doctor.md` explains them as they stand in JSON.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any, Final, NamedTuple


class Stage(StrEnum):
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


class Cost(NamedTuple):
    """Processor seconds that one byte takes on either side; None where nobody tells.

    The others are the seconds for which there was work, and no processor free for it.
    """

    here: float | None = None
    there: float | None = None
    here_waited: float | None = None
    there_waited: float | None = None


class Measured(NamedTuple):
    """One thing measured: what each look told, and what it cost the processors."""

    stage: Stage
    what: str
    unit: Unit
    looks: tuple[float, ...]
    cost: Cost = Cost()
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
    def from_record(cls, record: Mapping[str, Any]) -> "Measured":
        """Return what was measured as JSON tells it, without its cost; it tells three looks."""
        return cls(
            Stage(record["stage"]),
            record["what"],
            Unit(record["unit"]),
            (record["lowest"], record["median"], record["highest"]),
            note=record["note"],
        )


class Machine(NamedTuple):
    """One of the two computers; None is what nobody tells."""

    cpus: int | None = None  # that we may use
    aes: bool | None = None  # whether its processors encrypt by AES themselves
    busy: float | None = None  # the share of all its cores that others took before the test
    busy_after: float | None = None  # the same when it was over
    others: int = 0  # cores that it has besides


NOT_TOLD: Final = Machine()


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that a speed test found; `unknown` are sentences on what could not be told, and why.

    `rung` is what the staging host allows, as of `ssh.remote.Rung`, or empty without one.
    """

    measured: tuple[Measured, ...] = ()
    here: Machine = NOT_TOLD
    there: Machine = NOT_TOLD
    one_machine: bool = False  # both sides share their cores
    channels: int = 1  # of what was carried together
    sessions: int = 1  # over which floods went, at most
    rung: str = ""
    cipher: str = ""  # that both sides agree on by the settings
    zstd: bool = False  # whether the staging host unpacks
    unknown: tuple[str, ...] = ()

    def find(self, stage: Stage, what: str) -> Measured | None:
        """Return what was measured under this name, if it was."""
        fits = (one for one in self.measured if (one.stage, one.what) == (stage, what))
        return next(fits, None)

    def value(self, stage: Stage, what: str) -> float | None:
        """Return the median of what was measured under this name; None where nothing was."""
        found = self.find(stage, what)
        return found.value if found and found.value > 0 else None

    @property
    def tells_of_tiny(self) -> bool:
        """Whether anything on the way to the server says how many tiny files it takes."""
        told = (
            (Stage.CHANNELS, carried(TINY_FILES)),
            (Stage.SERVER_DISK, TINY_FILES),
            (Stage.API, RECORDS),
        )
        return any(self.value(stage, what) for stage, what in told)

    def ciphers(self) -> dict[str, Measured]:
        """Return the measurements over the wire by their ciphers."""
        rows = (one for one in self.measured if one.stage is Stage.CIPHER)
        return {one.what: one for one in rows if not one.what.endswith(", here")}

    def floods(self) -> dict[int, Measured]:
        """Return the measurements into nothing by their numbers of channels."""
        return dict(self._floods())

    def _floods(self) -> Iterator[tuple[int, Measured]]:
        for one in self.measured:
            number = one.what.partition(" ")[0]
            if one.stage is Stage.CHANNELS and number.isdigit():
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
