"""The child process of a speed test, and its results."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal, Slot

from mydata_like.app.settings_service import load_speed_tests
from mydata_like.core.errors import Problem
from mydata_like.core.events import Event, RunFinished, parse_event
from mydata_like.core.parsing import parse_moment
from mydata_like.gui.controller import WindowController
from mydata_like.gui.engine_process import Engine, Record, describe_end, program_command
from mydata_like.settings.schema import Settings

logger = logging.getLogger(__name__)

# In the order in which bytes pass them; as `speedtest.results`, which the window does not import.
STAGES = (
    "source",
    "hash",
    "cipher",
    "network",
    "channels",
    "server cpu",
    "server disk",
    "folder",
    "API",
)
WORKLOADS = ("large", "mixed", "tiny")


class ReportedValue(NamedTuple):
    """One measurement: its median, lowest and highest sample."""

    stage: str
    what: str
    unit: str
    median: float
    lowest: float
    highest: float


class ReportedPrediction(NamedTuple):
    """The predicted speed of a workload, in bytes and in files a second.

    `rates` has the speed of each stage alone in bytes a second.
    """

    rate: float
    files: float
    limit: str
    behind: str
    rates: Mapping[str, float]


class ReportedAdvice(NamedTuple):
    """One recommended change, and the speed-up of the workload that gains most from it."""

    code: str
    text: str
    gain: float
    workload: str
    changes: Mapping[str, object]


class Improvement(NamedTuple):
    """The same measurement before and after settings were changed."""

    before: ReportedValue | None
    after: ReportedValue


class AppliedGain(NamedTuple):
    """An applied recommendation: changed settings by key, their old values and the gains."""

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
    without_shell: bool  # the server's disk cannot be measured apart from the network
    in_folder: bool  # files are written to a mounted folder
    busy: float  # the share of this computer that other programs used
    proof: AppliedGain | None

    @property
    def reached(self) -> bool:
        """Whether the connection to the server, or the mounted folder, was measured."""
        return any(
            (one.stage == "channels" and one.what[:1].isdigit())
            or (one.stage, one.what) == ("folder", "large files")
            for one in self.figures
        )

    @property
    def changes(self) -> dict[str, object]:
        """All recommended changes of settings, by key."""
        return {key: value for each in self.advice for key, value in each.changes.items()}

    def find(self, what: str) -> ReportedValue | None:
        """Return the measurement of this name, or None."""
        return next((one for one in self.figures if one.what == what), None)


def read_reports(records: Iterable[Mapping[str, Any]]) -> list[SpeedTestReport]:
    """Return the speed tests of all readable records, the latest first."""
    found = [report for record in records if (report := _try_to_read(record)) is not None]
    return found[::-1]


def read_report(record: Mapping[str, Any]) -> SpeedTestReport:
    """Return the speed test of a record, whose format docs/doctor.md describes."""
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
        in_folder=findings.get("rung") == "folder",
        busy=max(here.get("busy") or 0.0, here.get("busy_after") or 0.0),
        proof=_read_proof(record.get("proof")),
    )


def read_figure(record: Mapping[str, Any]) -> ReportedValue:
    """Return the measurement of an event or of a part of a record."""
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


CANCEL_TIMEOUT = 20_000  # milliseconds for removing test files from the server after a cancel


class SpeedTestProcess(QObject):
    """A child process that runs a speed test or applies the recommendations of the latest one.

    It ends with the window: its standard input closes, and it removes its test files.
    """

    measured = Signal(object)  # a measurement, as a record
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
        self._begin(("--quick",) * quick + ("--anyway",) * anyway)

    def apply(self, *, quick: bool, anyway: bool) -> None:
        """Apply the recommendations of the latest test, and measure the gain."""
        self._begin(("--apply", "--latest") + ("--quick",) * quick + ("--anyway",) * anyway)

    @Slot()
    def cancel(self) -> None:
        """Cancel the test; it first removes its files from the server."""
        if self._engine is not None:
            self._is_over = True
            self._engine.close_input()
            self._kill_timer.start()

    def _begin(self, options: tuple[str, ...]) -> None:
        self._problem, self._is_over = None, False
        program = program_command(
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
            said = self._engine.error_output
            self._engine.deleteLater()
        self._engine = None
        self._kill_timer.stop()
        self._controller.show_test(under_way=False)
        if self._problem is None and not self._is_over:
            self._problem = _explain_end(code, said)
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


def _explain_end(code: int | None, said: str) -> Problem:
    """Return the problem of a test that ended without reporting one."""
    return Problem(
        "window.test-ended",
        f"The speed test ended unexpectedly ({describe_end(code, said)}).",
        "Run it again: that also removes the files that this one left on the server.",
    )


def load_reports(settings: Settings, config: Path | None) -> list[SpeedTestReport]:
    """Return the speed tests of this installation, the latest first."""
    return read_reports(load_speed_tests(settings, config))
