"""Monitoring of unattended uploads: heartbeat, notices, and signals after complete runs."""

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from mydata_like import __version__
from mydata_like.app.ledger_status import read_ledger_state
from mydata_like.app.ledgers import reading
from mydata_like.core.errors import Problem
from mydata_like.core.events import (
    Event,
    Notice,
    RunFinished,
    RunPaused,
    RunResumed,
    RunScheduled,
    RunStarted,
    event_record,
)
from mydata_like.core.ports import CancelSignal, Clock, Emit
from mydata_like.engine.health_reports import HealthReporter, Week
from mydata_like.hostos.healthcheck_ping import call_signal, write_signal
from mydata_like.settings.schema import Settings
from mydata_like.state.state_files import Heartbeat, save_record

BEAT: Final = 30.0  # seconds between two heartbeats
_RUNS: Final = 10_000  # more than a week can hold
_WANTED: Final = "limits."  # codes of pauses that the settings ask for


def look_back(settings: Settings, config: Path | None, since: datetime) -> Week:
    """Return the results of the runs since a time, and the current state of the data."""
    found = read_ledger_state(settings, config)
    problem = found.data_problem.message if found.data_problem else ""
    with reading(settings, config) as ledger:
        runs = ledger.find_runs(_RUNS) if ledger else []
    past = [run for run in runs if run.started >= since]
    records = [run.summary if run.finished else {} for run in reversed(past)]
    return Week.of(records, found.safety, found.at_risk.files, problem)


def send_signals(settings: Settings, finished: RunFinished) -> list[Problem]:
    """Signal a successful run to the dead man's switch; return the problems of doing so."""
    if finished.problem or finished.failed:
        return []
    problems = []
    if settings.monitor.signal_file:
        problems.append(write_signal(settings.monitor.signal_file, event_record(finished)))
    if settings.monitor.signal_url:
        problems.append(call_signal(settings.monitor.signal_url))
    return [problem for problem in problems if problem]


class HeartbeatWriter:
    """Follows the events, writes the heartbeat and emits the notices of the monitor."""

    def __init__(self, file: Path, clock: Clock, emit: Emit) -> None:
        self._file = file
        self._clock = clock
        self._emit = emit
        self._monitor: HealthReporter | None = None
        now = clock.now()
        self._beat = Heartbeat(now, os.getpid(), __version__, "waiting", now)

    def follow(self, monitor: HealthReporter) -> None:
        """Use this monitor for notices from now on."""
        self._monitor = monitor

    def show(self, event: Event) -> None:
        """Update the heartbeat from an event."""
        match event:
            case RunStarted() | RunResumed():
                self._turn("running")
            case RunPaused(problem=problem):
                self._turn("paused", problem._asdict())
                if not problem.code.startswith(_WANTED):
                    self._note(well=False)
            case RunFinished():
                self._beat = self._beat._replace(last=event_record(event))
                self._turn("waiting", event.problem and event.problem._asdict())
                self._note(well=not event.problem and not event.failed)
            case RunScheduled(at=at):
                self._beat = self._beat._replace(next_start=at)
            case _:
                return
        self.beat()

    def note_failure(self, problem: Problem) -> None:
        """Record a run that could not start."""
        self._turn("waiting", problem._asdict())
        self._note(well=False)
        self.beat()

    def beat(self) -> None:
        """Write the heartbeat file."""
        self._beat = self._beat._replace(at=self._clock.now())
        save_record(self._file, self._beat)

    def keep_beating(self, cancel: CancelSignal) -> None:
        """Write heartbeats and emit due notices until asked to stop."""
        while True:
            self.beat()
            for problem in self._monitor.find_notices(self._clock.now()) if self._monitor else ():
                self._emit(Notice(problem=problem))
            if cancel.wait(BEAT):
                break
        self._turn("stopped")
        self.beat()

    def _turn(self, state: str, problem: Mapping[str, str] | None = None) -> None:
        since = self._beat.since if state == self._beat.state else self._clock.now()
        self._beat = self._beat._replace(state=state, since=since, problem=problem)

    def _note(self, *, well: bool) -> None:
        if self._monitor:
            self._monitor.note(self._clock.now(), well=well)
