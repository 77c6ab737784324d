"""A speed test as its record tells it: what was found, what is the limit, what would be faster."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from mydata_like.core.parsing import parse_moment

logger = logging.getLogger(__name__)

# In the order in which bytes pass them; as `doctor.findings`, which the window does not load.
STAGES = (
    "source",
    "hash",
    "cipher",
    "network",
    "channels",
    "server cpu",
    "server disk",
    "API",
)
WORKLOADS = ("large", "mixed", "tiny")


class Figure(NamedTuple):
    """One thing measured: its median, and the lowest and highest look."""

    stage: str
    what: str
    unit: str
    median: float
    lowest: float
    highest: float


class Forecast(NamedTuple):
    """How fast files of a workload go, in bytes and in files a second.

    `rates` are what each stage would carry alone, in bytes a second.
    """

    rate: float
    files: float
    limit: str
    behind: str
    rates: Mapping[str, float]


class Advice(NamedTuple):
    """One change, and how many times as fast the workload would go that gains most by it."""

    code: str
    text: str
    gain: float
    workload: str
    changes: Mapping[str, object]


class Gain(NamedTuple):
    """The same thing measured before and after settings were changed."""

    before: Figure | None
    after: Figure


class Proof(NamedTuple):
    """What came of an advice: settings by their keys, and what the person's file said before."""

    changes: Mapping[str, object]
    replaced: Mapping[str, object]
    gains: tuple[Gain, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One speed test."""

    at: datetime
    quick: bool
    figures: tuple[Figure, ...]
    forecasts: Mapping[str, Forecast]  # by workload
    advice: tuple[Advice, ...]
    unknown: tuple[str, ...]
    one_machine: bool
    without_shell: bool  # the server's disk cannot be told from the network
    busy: float  # the share of this computer that other programs took
    proof: Proof | None

    @property
    def reached(self) -> bool:
        """Whether the way to the server was measured."""
        return any(one.stage == "channels" and one.what[:1].isdigit() for one in self.figures)

    @property
    def changes(self) -> dict[str, object]:
        """All settings that are worth a change, by their keys."""
        return {key: value for each in self.advice for key, value in each.changes.items()}

    def find(self, what: str) -> Figure | None:
        """Return what was measured under this name."""
        return next((one for one in self.figures if one.what == what), None)


def read_reports(records: Iterable[Mapping[str, Any]]) -> list[Report]:
    """Return the speed tests that can be read, the latest first."""
    found = [report for record in records if (report := _try_to_read(record)) is not None]
    return found[::-1]


def read_report(record: Mapping[str, Any]) -> Report:
    """Return a speed test as docs/doctor.md describes it."""
    findings, verdict = record["findings"], record["verdict"]
    here = findings["here"]
    return Report(
        at=parse_moment(record["at"]),
        quick=record["quick"],
        figures=tuple(read_figure(one) for one in findings["stages"]),
        forecasts={one["workload"]: _read_forecast(one) for one in verdict["workloads"]},
        advice=tuple(_read_advice(one) for one in verdict["advice"]),
        unknown=tuple(findings["unknown"]),
        one_machine=findings["one_machine"],
        without_shell=findings.get("rung") == "sftp",
        busy=max(here.get("busy") or 0.0, here.get("busy_after") or 0.0),
        proof=_read_proof(record.get("proof")),
    )


def read_figure(record: Mapping[str, Any]) -> Figure:
    """Return something measured as events and records tell it."""
    return Figure(*(record[name] for name in Figure._fields))


def _try_to_read(record: Mapping[str, Any]) -> Report | None:
    try:
        return read_report(record)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        logger.warning("A speed test of another version cannot be shown: %r", error)
        return None


def _read_forecast(record: Mapping[str, Any]) -> Forecast:
    return Forecast(
        record["rate"],
        record["files_per_second"],
        record["limit"] or "",
        record["behind"] or "",
        record["rates"],
    )


def _read_advice(record: Mapping[str, Any]) -> Advice:
    return Advice(*(record[name] for name in Advice._fields))


def _read_proof(record: Mapping[str, Any] | None) -> Proof | None:
    if record is None:
        return None
    gains = (
        Gain(one["before"] and read_figure(one["before"]), read_figure(one["after"]))
        for one in record["measured"]
    )
    return Proof(record["changes"], record.get("replaced", {}), tuple(gains))
