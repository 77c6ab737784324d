"""The child process of a speed test, and its results."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal, Slot

from mydata_like.app.speedtest_records import load_speed_tests
from mydata_like.core.errors import Problem
from mydata_like.core.events import Event, RunFinished, parse_event
from mydata_like.core.parsing import parse_moment
from mydata_like.gui.controller import WindowController
from mydata_like.gui.engine_process import Engine, Record, describe_end, program_command
from mydata_like.settings.schema import Settings

logger = logging.getLogger(__name__)

# In the order in which bytes pass them; as `speedtest.results`, which the window does not import.
STAGES = ("source", "hash", "network", "server disk", "folder", "API")
TOGETHER = "channels"  # the stage of an upload with all of them
WORKLOADS = ("large", "tiny")


class ReportedValue(NamedTuple):
    """One measurement: its median, lowest and highest sample."""

    stage: str
    what: str
    unit: str
    median: float
    lowest: float
    highest: float


class ReportedSpeed(NamedTuple):
    """The speeds of a workload, in bytes or in files a second.

    `rates` has the speed of each part alone, and of an upload with all of them; `limit` is the
    slowest part, or empty.
    """

    rates: Mapping[str, float]
    limit: str


class ReportedComparison(NamedTuple):
    """Speeds with and without a change of settings; `won` if the change was faster twice."""

    code: str
    text: str
    workload: str
    unit: str
    changes: Mapping[str, object]
    before: tuple[float, ...]
    after: tuple[float, ...]
    gain: float
    won: bool


class AppliedAdvice(NamedTuple):
    """An applied recommendation: changed settings by key, and their old values."""

    changes: Mapping[str, object]
    replaced: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTestReport:
    """One speed test."""

    at: datetime
    quick: bool
    figures: tuple[ReportedValue, ...]
    speeds: Mapping[str, ReportedSpeed]  # by workload
    compared: tuple[ReportedComparison, ...]
    unknown: tuple[str, ...]
    busy: float  # the share of this computer that other programs used
    proof: AppliedAdvice | None

    @property
    def advice(self) -> list[ReportedComparison]:
        """The changes of settings that were faster twice."""
        return [one for one in self.compared if one.won]

    @property
    def changes(self) -> dict[str, object]:
        """All recommended changes of settings, by key."""
        return {key: value for each in self.advice for key, value in each.changes.items()}


def read_report(record: Mapping[str, Any]) -> SpeedTestReport:
    """Return the speed test of a record, whose format docs/doctor.md describes.

    Recommendations of earlier versions are left out, since they were predicted.
    """
    findings, proof = record["findings"], record.get("proof")
    here = findings["here"]
    return SpeedTestReport(
        at=parse_moment(record["at"]),
        quick=record["quick"],
        figures=tuple(read_figure(one) for one in findings["stages"]),
        speeds={one["workload"]: _read_speed(one) for one in record["verdict"]["workloads"]},
        compared=tuple(read_comparison(one) for one in findings.get("compared", ())),
        unknown=tuple(findings["unknown"]),
        busy=max(here.get("busy") or 0.0, here.get("busy_after") or 0.0),
        proof=AppliedAdvice(proof["changes"], proof.get("replaced", {})) if proof else None,
    )


def read_figure(record: Mapping[str, Any]) -> ReportedValue:
    """Return the measurement of an event or of a part of a record."""
    return ReportedValue(*(record[name] for name in ReportedValue._fields))


def read_comparison(record: Mapping[str, Any]) -> ReportedComparison:
    """Return the comparison of an event or of a part of a record."""
    return ReportedComparison(*(record[name] for name in ReportedComparison._fields))


def _read_speed(record: Mapping[str, Any]) -> ReportedSpeed:
    limit = record["limit"] or ""
    if "parts" not in record:  # earlier versions had bytes a second for all workloads
        tiny = record["workload"] == "tiny" and record["rate"]
        factor = record["files_per_second"] / record["rate"] if tiny else 1.0
        return ReportedSpeed({key: rate * factor for key, rate in record["rates"].items()}, limit)
    together = {TOGETHER: record["together"]} if record["together"] else {}
    return ReportedSpeed(record["parts"] | together, limit)


CANCEL_TIMEOUT = 20_000  # milliseconds for removing test files from the server after a cancel


class SpeedTestProcess(QObject):
    """A child process that runs a speed test.

    It ends with the window: its standard input closes, and it removes its test files.
    """

    measured = Signal(object)  # a measurement or comparison, as a record
    ended = Signal(object)  # a Problem; None after a success or a cancel

    def __init__(self, controller: WindowController, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._engine: Engine | None = None
        self._problem: Problem | None = None
        self._is_over = False  # it has reported its end or was cancelled: its exit is expected
        self._kill_timer = QTimer(self, singleShot=True, interval=CANCEL_TIMEOUT)
        self._kill_timer.timeout.connect(self._kill)
        if app := QCoreApplication.instance():
            app.aboutToQuit.connect(self._let_go)

    @property
    def at_work(self) -> bool:
        """Whether a test is in progress."""
        return self._engine is not None

    def test(self, *, quick: bool, anyway: bool) -> None:
        """Start a test; `anyway` ignores limits that protect the instrument."""
        self._problem, self._is_over = None, False
        options = ("--quick",) * quick + ("--anyway",) * anyway
        program = program_command(
            "doctor", self._controller.config, "--events", "--attended", *options
        )
        self._engine = Engine(program, self, parse=_parse_test_event)
        self._engine.events_received.connect(self._take_events)
        self._engine.ended.connect(self._take_end)
        self._engine.start()
        self._controller.show_test(under_way=True)

    @Slot()
    def cancel(self) -> None:
        """Cancel the test; it first removes its files from the server."""
        if self._engine is not None:
            self._is_over = True
            self._engine.close_input()
            self._kill_timer.start()

    @Slot(object)
    def _take_events(self, events: list[Event | Record]) -> None:
        for event in events:
            match event:
                case {"event": "stage_measured" | "settings_compared"}:
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
            said = self._engine.error_output
            self._engine.deleteLater()
        self._engine = None
        self._kill_timer.stop()
        self._controller.show_test(under_way=False)
        if self._problem is None and not self._is_over:
            self._problem = Problem(
                "window.test-ended",
                f"The speed test ended unexpectedly ({describe_end(code, said)}).",
                "Run it again: that also removes the files that this one left on the server.",
            )
        self.ended.emit(self._problem)

    @Slot()
    def _kill(self) -> None:
        if self._engine is not None:
            self._engine.kill()  # the next test removes the files of this one

    @Slot()
    def _let_go(self) -> None:
        if self._engine is not None:
            self._engine.let_go()


def _parse_test_event(record: Record) -> Event | Record:
    """Return an event of a run as an `Event`, and one of a speed test as its record."""
    return parse_event(record) or record


def load_reports(settings: Settings, config: Path | None) -> list[SpeedTestReport]:
    """Return the speed tests of this installation that are readable, the latest first."""
    return read_reports(load_speed_tests(settings, config))


def read_reports(records: Iterable[Mapping[str, Any]]) -> list[SpeedTestReport]:
    """Return the speed tests of all readable records, the latest first."""
    found: list[SpeedTestReport] = []
    for record in records:
        try:
            found.append(read_report(record))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            logger.warning("A speed test of another version cannot be shown: %r", error)
    return found[::-1]
