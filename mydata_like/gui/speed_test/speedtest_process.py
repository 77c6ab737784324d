"""Runs a speed test in a child process and reads its results."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal, Slot

from mydata_like.core.errors import Problem
from mydata_like.core.events import Event, RunFinished, parse_event
from mydata_like.core.parsing import parse_moment
from mydata_like.gui import services
from mydata_like.gui.controller import WindowController
from mydata_like.gui.engine_process import Engine, Record, describe_end
from mydata_like.settings.schema import Settings

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


class ReportedValue(NamedTuple):
    """One thing measured: its median, and the lowest and highest look."""

    stage: str
    what: str
    unit: str
    median: float
    lowest: float
    highest: float


class ReportedPrediction(NamedTuple):
    """How fast files of a workload go, in bytes and in files a second.

    `rates` are what each stage would carry alone, in bytes a second.
    """

    rate: float
    files: float
    limit: str
    behind: str
    rates: Mapping[str, float]


class ReportedAdvice(NamedTuple):
    """One change, and how many times as fast the workload would go that gains most by it."""

    code: str
    text: str
    gain: float
    workload: str
    changes: Mapping[str, object]


class Improvement(NamedTuple):
    """The same thing measured before and after settings were changed."""

    before: ReportedValue | None
    after: ReportedValue


class AppliedGain(NamedTuple):
    """What came of an advice: settings by their keys, and what the person's file said before."""

    changes: Mapping[str, object]
    replaced: Mapping[str, object]
    gains: tuple[Improvement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTestReport:
    """One speed test."""

    at: datetime
    quick: bool
    figures: tuple[ReportedValue, ...]
    forecasts: Mapping[str, ReportedPrediction]  # by workload
    advice: tuple[ReportedAdvice, ...]
    unknown: tuple[str, ...]
    one_machine: bool
    without_shell: bool  # the server's disk cannot be told from the network
    busy: float  # the share of this computer that other programs took
    proof: AppliedGain | None

    @property
    def reached(self) -> bool:
        """Whether the way to the server was measured."""
        return any(one.stage == "channels" and one.what[:1].isdigit() for one in self.figures)

    @property
    def changes(self) -> dict[str, object]:
        """All settings that are worth a change, by their keys."""
        return {key: value for each in self.advice for key, value in each.changes.items()}

    def find(self, what: str) -> ReportedValue | None:
        """Return what was measured under this name."""
        return next((one for one in self.figures if one.what == what), None)


def read_reports(records: Iterable[Mapping[str, Any]]) -> list[SpeedTestReport]:
    """Return the speed tests that can be read, the latest first."""
    found = [report for record in records if (report := _try_to_read(record)) is not None]
    return found[::-1]


def read_report(record: Mapping[str, Any]) -> SpeedTestReport:
    """Return a speed test as docs/doctor.md describes it."""
    findings, verdict = record["findings"], record["verdict"]
    here = findings["here"]
    return SpeedTestReport(
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


def read_figure(record: Mapping[str, Any]) -> ReportedValue:
    """Return something measured as events and records tell it."""
    return ReportedValue(*(record[name] for name in ReportedValue._fields))


def _try_to_read(record: Mapping[str, Any]) -> SpeedTestReport | None:
    try:
        return read_report(record)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        logger.warning("A speed test of another version cannot be shown: %r", error)
        return None


def _read_forecast(record: Mapping[str, Any]) -> ReportedPrediction:
    return ReportedPrediction(
        record["rate"],
        record["files_per_second"],
        record["limit"] or "",
        record["behind"] or "",
        record["rates"],
    )


def _read_advice(record: Mapping[str, Any]) -> ReportedAdvice:
    return ReportedAdvice(*(record[name] for name in ReportedAdvice._fields))


def _read_proof(record: Mapping[str, Any] | None) -> AppliedGain | None:
    if record is None:
        return None
    gains = (
        Improvement(one["before"] and read_figure(one["before"]), read_figure(one["after"]))
        for one in record["measured"]
    )
    return AppliedGain(record["changes"], record.get("replaced", {}), tuple(gains))


PATIENCE = 20_000  # milliseconds that it has to leave nothing on the server once it was cancelled


class SpeedTestProcess(QObject):
    """Makes one speed test after the other, or applies what the latest one advised.

    It ends with the window: its standard input does, and it removes what it wrote.
    """

    measured = Signal(object)  # a figure, as a record
    ended = Signal(object)  # a Problem, or None where all went well or it was cancelled

    def __init__(self, controller: WindowController, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._engine: Engine | None = None
        self._problem: Problem | None = None
        self._is_over = False  # reported by itself or cancelled by the user: its end is expected
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE)
        self._patience.timeout.connect(self._lose_patience)
        if app := QCoreApplication.instance():
            app.aboutToQuit.connect(self._let_go)

    @property
    def at_work(self) -> bool:
        """Whether there is a test that has not ended yet."""
        return self._engine is not None

    def test(self, *, quick: bool, anyway: bool) -> None:
        """Begin a test; `anyway` although the instrument is to be spared just now."""
        self._begin(("--quick",) * quick + ("--anyway",) * anyway)

    def apply(self, *, quick: bool, anyway: bool) -> None:
        """Write what the latest test advised, and measure what that gains."""
        self._begin(("--apply", "--latest") + ("--quick",) * quick + ("--anyway",) * anyway)

    @Slot()
    def cancel(self) -> None:
        """End it; it takes a moment to remove what it wrote on the server."""
        if self._engine is not None:
            self._is_over = True
            self._engine.close_input()
            self._patience.start()

    def _begin(self, options: tuple[str, ...]) -> None:
        self._problem, self._is_over = None, False
        program = services.program_command(
            "doctor", self._controller.config, "--events", "--attended", *options
        )
        self._engine = Engine(program, self, parse=_parse_test_event)
        self._engine.events_received.connect(self._take_events)
        self._engine.ended.connect(self._take_end)
        self._engine.start()
        self._controller.show_test(under_way=True)

    @Slot(object)
    def _take_events(self, events: list[Event | Record]) -> None:
        for event in events:
            match event:
                case {"event": "stage_measured"}:
                    self.measured.emit(event)
                case {"event": "test_finished"}:
                    self._is_over = True
                case RunFinished():
                    self._problem = event.problem
                case _:
                    pass

    @Slot(object)
    def _take_end(self, code: int | None) -> None:
        said = ""
        if self._engine is not None:
            said = self._engine.said
            self._engine.deleteLater()
        self._engine = None
        self._patience.stop()
        self._controller.show_test(under_way=False)
        if self._problem is None and not self._is_over:
            self._problem = _explain_end(code, said)
        self.ended.emit(self._problem)

    @Slot()
    def _lose_patience(self) -> None:
        if self._engine is not None:
            self._engine.kill()  # the next test removes what this one leaves

    @Slot()
    def _let_go(self) -> None:
        if self._engine is not None:
            self._engine.let_go()


def _parse_test_event(record: Record) -> Event | Record:
    """Return an event of runs as such, and one of speed tests only as the record that it is."""
    return parse_event(record) or record


def _explain_end(code: int | None, said: str) -> Problem:
    """Return in words what ended the test without any."""
    return Problem(
        "window.test-ended",
        f"The speed test ended unexpectedly ({describe_end(code, said)}).",
        "Make it once more: that also removes what this one left on the server.",
    )


def load_reports(settings: Settings, config: Path | None) -> list[SpeedTestReport]:
    """Return the speed tests of this installation, the latest first."""
    return read_reports(services.load_speed_tests(settings, config))
