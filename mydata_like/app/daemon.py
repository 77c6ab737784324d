"""The watch: the scheduler, its heartbeat, and a run for each scheduled start."""

from contextlib import closing
from math import inf
from pathlib import Path

from mydata_like.app.connection import require_complete
from mydata_like.app.ledger_status import sign_file
from mydata_like.app.monitoring import HeartbeatWriter, look_back, send_signals
from mydata_like.app.registration import load_trusting
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.run_service import open_run
from mydata_like.app.service_setup import WatchRequest
from mydata_like.app.settings_service import (
    correct_places,
    find_places,
    find_sources,
    find_state,
    heartbeat_file,
    prepare_places,
    server_settings_file,
)
from mydata_like.core.errors import Cancelled, Problem, UploaderError
from mydata_like.core.events import Event, Notice, RunFinished
from mydata_like.core.ports import Clock, Emit
from mydata_like.engine.health_reports import HealthReporter
from mydata_like.engine.layout_walk import ALL, ScanScope
from mydata_like.engine.pipeline import WorkerGroup
from mydata_like.engine.run import INTERRUPTED, RunEnd
from mydata_like.engine.scheduler import (
    FOLDER,
    Rule,
    RunRequests,
    RunResult,
    Scheduler,
    SchedulerDeps,
    ScheduleSnapshot,
)
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.folder_watcher import FolderWatcher
from mydata_like.hostos.lock import lock_watch
from mydata_like.settings.layers import Loaded
from mydata_like.settings.schema import Settings
from mydata_like.state.state_files import SCHEDULE, TimestampStore, find_file

WATCH_RETRY = 300.0  # seconds after which a folder watch that failed is set up again


def run_watch(request: WatchRequest, observer: RunObserver, requests: RunRequests) -> None:
    """Start runs according to the settings until asked to stop.

    Raises a `RunError` if the watch cannot start. After that it only ends when it is asked to:
    failures are reported and retried.
    """
    settings_watcher = SettingsWatcher(request, observer.emit)
    settings, places = settings_watcher.settings, find_places(request.config)
    require_complete(settings, request.config)
    prepare_places(settings, places)
    correct_places(settings, places, observer.emit)
    clock = SystemClock()
    state = find_state(settings, places)
    with lock_watch(state, clock):
        heartbeat = HeartbeatWriter(heartbeat_file(settings, places), clock, observer.emit)
        memory = TimestampStore(find_file(state, SCHEDULE))
        heartbeat.follow(
            HealthReporter(
                settings.monitor,
                memory,
                lambda since: look_back(settings_watcher.settings, request.config, since),
            )
        )
        runner = Runner(observer, requests, settings_watcher, heartbeat)
        with closing(ChangeSignals(settings_watcher, clock)) as changes:
            _report_start(settings, changes.problem, runner.emit, attended=request.attended)
            deps = SchedulerDeps(
                look=settings_watcher.look,
                run=runner.run,
                memory=memory,
                hints=changes,
                wished=requests.take,
            )
            watch = Scheduler(deps, clock, requests, runner.emit)
            ended = observer.cancel.part()
            with WorkerGroup(observer.cancel) as group:
                group.start("heartbeat", lambda: heartbeat.keep_beating(ended))
                watch.keep()
                ended.set("the watch has ended")


class SettingsWatcher:
    """The current settings; invalid ones are reported, and the last valid ones stay in force."""

    def __init__(self, request: WatchRequest, emit: Emit) -> None:
        self._request = request
        self._emit = emit
        self.settings = self.load().settings
        self._stamp: object = None  # so that a change during loading is noticed

    def look(self) -> ScheduleSnapshot:
        """Return the current schedule."""
        stamp = self._read_stamp()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self.settings = self.load().settings
            except UploaderError as error:
                message = f"The settings were changed and are now invalid. {error.message}"
                hint = f"{error.hint} Until then, the previous settings apply.".strip()
                self._emit(Notice(problem=Problem(error.problem_code, message, hint)))
        schedule = self.settings.schedule
        return ScheduleSnapshot(
            Rule.of(schedule), self.settings.filters.settle_seconds, self.settings
        )

    @property
    def config(self) -> Path | None:
        """The settings file, None for the default one."""
        return self._request.config

    def load(self) -> Loaded:
        """Return the current settings; raises like `load_settings`."""
        request = self._request
        return load_trusting(request.config, request.assignments, request.host_keys)

    def _read_stamp(self) -> object:
        """Return a value that changes whenever a settings file changes."""
        sources, places = find_sources(self._request.config), find_places(self._request.config)
        files = [sources.user, sources.managed]
        files.append(server_settings_file(self.settings, places))
        return tuple(sign_file(file) for file in files if file)


class Runner:
    """Executes the runs of a watch."""

    def __init__(
        self,
        observer: RunObserver,
        requests: RunRequests,
        settings_watcher: SettingsWatcher,
        heartbeat: HeartbeatWriter,
    ) -> None:
        self._observer = observer
        self._requests = requests
        self._settings_watcher = settings_watcher
        self._heartbeat = heartbeat

    def emit(self, event: Event) -> None:
        """Send an event to the observer and the heartbeat."""
        self._observer.emit(event)
        self._heartbeat.show(event)

    def run(self, reason: str) -> RunResult:
        """Execute a run; a failure is reported, and never raised."""
        settings = self._settings_watcher.settings
        try:
            end = self._execute(settings, reason)
        except UploaderError as error:
            self._report_failure(error.problem)
            return RunResult(complete=False)
        except Cancelled:
            if self._observer.cancel.is_set():
                raise
            self._report_failure(INTERRUPTED)  # only this run was cancelled, before it started
            return RunResult(complete=True)
        if reason != FOLDER:  # a run over one folder does not show that everything is healthy
            for problem in send_signals(settings, end.finished):
                self.emit(Notice(problem=problem))
        # A run that the user stopped is not retried automatically.
        complete = end.finished.problem in (None, INTERRUPTED)
        return RunResult(complete=complete, waiting=end.finished.waiting)

    def _report_failure(self, problem: Problem) -> None:
        """Report the end of a run that could not start."""
        self._heartbeat.note_failure(problem)
        self._observer.emit(RunFinished.of_nothing(SystemClock().now(), problem))

    def _execute(self, settings: Settings, reason: str) -> RunEnd:
        watcher = self._observer
        observer = RunObserver(
            emit=self.emit,
            details=watcher.details,
            cancel=watcher.cancel.part(),
            hide=watcher.hide,
            controller=watcher.controller,
        )
        request = RunRequest(
            settings=settings,
            config=self._settings_watcher.config,
            patience=inf,
            reason=reason,
            reload=self._settings_watcher.load,
            part=ScanScope(self._requests.only) if reason == FOLDER else ALL,
        )
        with open_run(request, observer) as run:
            return run.execute()


class ChangeSignals:
    """Notices changes in the data directory, also after it was replaced or reconnected."""

    def __init__(self, settings_watcher: SettingsWatcher, clock: Clock) -> None:
        self._settings_watcher = settings_watcher
        self._clock = clock
        self._open()

    @property
    def problem(self) -> str:
        """Why the system reports no changes; empty if it does."""
        return self._changes.problem

    def take(self) -> bool:
        """Return whether there was a change since the last call."""
        moved = self._directory != self._settings_watcher.settings.data.directory
        overdue = self.problem and self._clock.monotonic() - self._opened > WATCH_RETRY
        if moved or overdue:
            self.close()
            self._open()
            return not self.problem  # changes in the meantime were not reported
        return self._changes.take()

    def close(self) -> None:
        """Stop watching."""
        self._changes.close()

    def _open(self) -> None:
        self._directory = self._settings_watcher.settings.data.directory
        self._opened = self._clock.monotonic()
        self._changes = FolderWatcher(self._directory or Path())


def _report_start(settings: Settings, watch_problem: str, emit: Emit, *, attended: bool) -> None:
    kind = settings.schedule.kind
    if kind == "manual" and not attended:
        message = "No run starts automatically, because schedule.kind is manual."
        hint = "To change it, run for example: mydata-like settings set schedule.kind watch"
        emit(Notice(problem=Problem("schedule.manual", message, hint)))
    if kind == "watch" and watch_problem:
        hint = "New files are found by a scan every schedule.minutes."
        emit(Notice(problem=Problem("schedule.no-signs", watch_problem, hint)))
