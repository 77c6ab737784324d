"""What the engine's events say of this moment: the sums, the channels, what travels."""

from collections import deque
from dataclasses import dataclass, fields
from datetime import datetime
from time import monotonic
from typing import Any, NamedTuple

from mydata_like.core.errors import Problem
from mydata_like.core.events import RunProgressed

Record = dict[str, Any]

REMEMBERED = 600.0  # seconds of the past that the chart shows
SAMPLED = 0.45  # seconds that a sample is about, at least
_SUMS = tuple(field.name for field in fields(RunProgressed))
NOTHING = RunProgressed(**dict.fromkeys(_SUMS, 0) | {"remaining": None})  # type: ignore[arg-type]


class Limit(NamedTuple):
    """What holds a run up: a stage, the name of what that waits for, bytes a second meanwhile.

    Empty where nobody can tell.
    """

    stage: str = ""
    name: str = ""
    rate: float = 0.0


NO_LIMIT = Limit()


class Transfer(NamedTuple):
    """A payload on its way, or one that has gone; `name` is its first file."""

    number: int
    channel: int
    name: str
    files: int
    size: int
    done: int = 0
    attempt: int = 1
    rate: float = 0.0  # bytes a second
    problem: Problem | None = None  # why the last attempt failed


class Sample(NamedTuple):
    """How many bytes a second each channel carried at a moment."""

    at: float
    rates: dict[int, float]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The run at one moment."""

    sums: RunProgressed
    transfers: tuple[Transfer, ...]
    samples: tuple[Sample, ...]


class Live:
    """Folds the events of one run after the other."""

    def __init__(self) -> None:
        self.sums = NOTHING
        self.limit = NO_LIMIT
        self._transfers: dict[int, Transfer] = {}
        self._carried: dict[int, int] = {}  # bytes by channel since the last sample
        self._samples: deque[Sample] = deque()
        self._sampled = monotonic()

    def begin(self) -> None:
        """Forget the run before."""
        self.sums = NOTHING
        self.limit = NO_LIMIT
        self._transfers.clear()
        self._carried.clear()
        self._samples.clear()
        self._sampled = monotonic()

    def add(self, record: Record) -> None:
        """Take an event into account."""
        match record["event"]:
            case "run_progressed":
                self.sums = RunProgressed(**{name: record[name] for name in _SUMS})
            case "stages_measured" | "run_paused":
                self.limit = _read_limit(record)
            case "transfer_started":
                self._start(record)
            case "transfer_progressed":
                self._advance(record)
            case "transfer_retried":
                self._retry(record)
            case "transfer_finished":
                self._finish(record)
            case _:
                pass

    def sample(self) -> None:
        """Note how much every channel has carried since the last time, unless that was just now."""
        now = monotonic()
        passed = now - self._sampled
        if passed < SAMPLED:
            return
        rates = {number: carried / passed for number, carried in self._carried.items()}
        self._samples.append(Sample(now, rates))
        self._carried, self._sampled = {}, now
        while self._samples and now - self._samples[0].at > REMEMBERED:
            self._samples.popleft()
        for number, transfer in self._transfers.items():
            rate = 0.7 * transfer.rate + 0.3 * rates.get(transfer.channel, 0.0)
            self._transfers[number] = transfer._replace(rate=rate)

    def snapshot(self) -> Snapshot:
        """Return all of it as it is now."""
        return Snapshot(
            self.sums,
            tuple(sorted(self._transfers.values())),
            tuple(self._samples),
        )

    def _start(self, record: Record) -> None:
        self._transfers[record["transfer"]] = Transfer(
            record["transfer"],
            record["channel"],
            record["name"],
            record["files"],
            record["bytes"],
            attempt=record["attempt"],
        )

    def _advance(self, record: Record) -> None:
        transfer = self._transfers.get(record["transfer"])
        if transfer is None or record["bytes"] < transfer.done:
            return
        more = record["bytes"] - transfer.done
        self._carried[transfer.channel] = self._carried.get(transfer.channel, 0) + more
        self._transfers[transfer.number] = transfer._replace(done=record["bytes"])

    def _retry(self, record: Record) -> None:
        transfer = self._transfers.get(record["transfer"])
        if transfer is not None:
            problem = read_problem(record["problem"])
            self._transfers[transfer.number] = transfer._replace(problem=problem)

    def _finish(self, record: Record) -> None:
        self._advance(record)
        self._transfers.pop(record["transfer"], None)


def _read_limit(record: Record) -> Limit:
    """Return what an event says of the limit; a pause is none."""
    return (
        Limit(record["stage"], record["limit"], record["byte_rate"])
        if "stage" in record
        else NO_LIMIT
    )


def read_problem(record: Record | None) -> Problem | None:
    """Return a problem as events and the ledger tell it."""
    if record is None:
        return None
    return Problem(record["code"], record["message"], record.get("hint", ""))


def read_time(text: str | None) -> datetime | None:
    """Return a time as events and the ledger tell it."""
    return None if text is None else datetime.fromisoformat(text)
