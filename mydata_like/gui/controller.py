"""The controller, through which the window uses the engine and the settings."""

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices

from mydata_like.app import settings_service
from mydata_like.core.commands import MOST_PATHS
from mydata_like.core.errors import Problem, UploaderError
from mydata_like.core.events import (
    CommandRefused,
    Event,
    NextListed,
    Notice,
    RetryScheduled,
    RunFinished,
    RunPaused,
    RunProgressed,
    RunResumed,
    RunScheduled,
    RunStarted,
    ServerSilent,
    parse_event,
)
from mydata_like.core.extra_sources import KnownSource
from mydata_like.core.formatting import format_path
from mydata_like.engine.progress import NO_PROGRESS, ActiveTransfer
from mydata_like.gui.engine_process import Engine, Order, RestartBackoff, UploadEngine
from mydata_like.gui.run_state import (
    TRANSITIONS,
    Effect,
    LiveRun,
    LiveView,
    PastRunState,
    Phase,
    RunState,
    ServerIndicator,
    Trigger,
    with_server,
)
from mydata_like.gui.tasks import BackgroundTask, Tasks
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.layers import LayerSources, Loaded
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.ledger_status import CurrentRun, KnownStatus, PastRunRow, StatusReport

logger = logging.getLogger(__name__)

LOOK_AFTER = 5000  # milliseconds between two checks for runs of other programs
FOLLOW_AFTER = 1000  # milliseconds between two looks at one; it records its sums once a second
SHOW_AFTER = 250  # milliseconds between two updates of the window
LEDGER_AFTER = 4  # updates of the window between two signals of a changed ledger
CLEARS_UP = 5.0  # seconds for which the last run of this window may still hold the lock
ALREADY_RUNNING = "run.already-running"
STOPPED_BY_USER = "run.interrupted"
HARMLESS = (ALREADY_RUNNING, STOPPED_BY_USER)  # why a run did not start, or an engine ended
NO_RUN = "command.no-run"
WAITS = Problem(
    ALREADY_RUNNING,
    "Another upload is in progress.",
    "The added folders and files are uploaded after it has ended.",
)


class Look(NamedTuple):
    """What a look at this installation has found; without a status, `problem` says why.

    `settings_changed` means that another program has written the settings files since the look
    before.
    """

    settings_changed: bool
    status: "StatusReport | None" = None
    problem: Problem | None = None


class StatusReader:
    """Reads the status of this installation, if something has changed it; in one thread at a time.

    A look that follows another one costs little while nothing has changed.
    """

    def __init__(self) -> None:
        self._known: KnownStatus | None = None
        self._stamp: tuple[tuple[int, int], ...] | None = None  # of the settings files

    def look(self, settings: Settings, config: Path | None, sources: LayerSources) -> Look:
        """Return the current status."""
        # Imported here, in the background, since the window appears without it.
        from mydata_like.app.ledger_status import renew_status

        stamp = tuple(_stamp(file) for file in (sources.user, sources.managed) if file)
        known, self._stamp = self._stamp, stamp
        changed = known is not None and known != stamp
        try:
            self._known = renew_status(settings, config, self._known)
        except UploaderError as error:
            return Look(changed, problem=error.problem)
        return Look(changed, self._known.report)


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


class WindowController(QObject):
    """Starts the engine, sends it commands, processes its events, and holds the settings.

    It also passes on which page or dialog a part of the window asks for.
    """

    settings_changed = Signal()
    run_changed = Signal(object)  # a RunState
    live_changed = Signal(object)  # a LiveView
    got_changed = Signal()  # see `got`
    ledger_changed = Signal()
    problem_raised = Signal(object)  # a Problem to show to the user
    command_refused = Signal(object)  # a Problem: why a command was not carried out
    next_listed = Signal(object)  # a NextListed, the answer to `list_next`
    # The name of a page or dialog, and what it is to show: a filter, a path, or the key of a
    # setting; empty for the default. Dialogs are "settings", "set-up", "demo", "dry-run",
    # "add-folders" and "help". An empty name only brings the window to the front.
    page_wanted = Signal(object, object)

    def __init__(self, config: Path | None, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.config = config
        self.settings = Settings()
        self.loaded: Loaded | None = None
        self.state = RunState()
        self._tasks, self._status = tasks, StatusReader()
        self._look_task = BackgroundTask()
        self._engine: UploadEngine | None = None
        self._live = LiveRun(SystemClock())
        self.gets = count(1)  # numbers for those who get files back
        self._got: dict[int, list[ActiveTransfer]] = {}  # by these
        self._wanted: list[Order] = []  # to send once an engine has started
        self._patience = RestartBackoff()
        self._refused: Problem | None = None  # why the settings cannot be read
        self._finished = -CLEARS_UP  # when the last run or a speed test ended
        self._watched = False  # by another program: a service
        self._testing = False  # a speed test of this window is in progress
        self._changed, self._turns = False, 0
        self._show_timer = QTimer(self, interval=SHOW_AFTER)
        self._show_timer.timeout.connect(self._show)
        self._look_timer = QTimer(self, interval=LOOK_AFTER)
        self._look_timer.timeout.connect(self._look)
        self._follow_timer = QTimer(self, interval=FOLLOW_AFTER)
        self._follow_timer.timeout.connect(self._look_at_run)

    def open(self) -> None:
        """Start to read the settings and to poll the status, in the background."""
        self._look_timer.start()
        self.reload_settings()

    def close(self) -> None:
        """Detach from the engine, which finishes its run without the window."""
        self._show_timer.stop()
        self._look_timer.stop()
        self._follow_timer.stop()
        if self._engine is not None:
            self._engine.let_go()

    @property
    def place(self) -> tuple[Settings, Path | None]:
        """The settings and the file that they come from, as the use cases of `app` take them."""
        return self.settings, self.config

    @property
    def engine(self) -> Engine | None:
        """The engine that this window controls, if any."""
        return self._engine

    @Slot()
    def reload_settings(self) -> None:
        """Read the settings again, and start an engine again that has ended.

        Emits `settings_changed` when done.
        """
        self._load_settings(restart=True)

    def _load_settings(self, *, restart: bool) -> None:
        load = partial(settings_service.load_settings, self.config, must_exist=False)
        use = partial(self._use_settings, restart=restart)
        self._tasks.run(load, use, self._refuse_settings)

    @Slot()
    def start(self) -> None:
        """Start a run now."""
        self._start()

    @Slot()
    def start_when_set_up(self) -> None:
        """Start a run as soon as the settings that were just completed have been read."""
        if self._engine is None:
            self._wanted.append(("start", {}))
        else:
            self.start()

    def start_only(self, folder: bytes) -> None:
        """Start a run that covers only one folder of the data directory."""
        self._start(only=format_path(folder))

    def _start(self, **fields: object) -> None:
        if self.state.can_start:
            self._move(Trigger.START, sums=NO_PROGRESS)
            self._order("start", **fields)

    @Slot()
    def pause(self) -> None:
        """Pause the run: start no new transfer until `resume`."""
        self._move(Trigger.PAUSE)
        self._control("pause")

    @property
    def live(self) -> LiveView:
        """The active transfers and the throughput, as in `live_changed`."""
        return self._live.view()

    @property
    def got(self) -> list[ActiveTransfer]:
        """The active transfers of files that come back; they have negative numbers."""
        return [transfer for one in self._got.values() for transfer in one]

    def show_got(self, get: int, transfers: Sequence[ActiveTransfer]) -> None:
        """Show what one of the `gets` fetches now; nothing if it has ended."""
        self._got[get] = [it._replace(number=-(it.number * 1000 + get)) for it in transfers]
        self.got_changed.emit()

    @property
    def can_retry(self) -> bool:
        """Whether failed files can be retried now, by the active run or a new one."""
        return self.state.is_steerable or self.state.can_start

    @Slot()
    def resume(self) -> None:
        """Continue after `pause`, and check at once whether other causes of a pause are gone."""
        self._control("resume")

    @Slot()
    def stop(self) -> None:
        """Stop the run; the next run continues."""
        self._move(Trigger.STOP, problem=self.state.problem)
        self._control("stop_run")

    def _control(self, command: str) -> None:
        """Send a command to the active run, also if another program executes it."""
        if not self.state.elsewhere:
            self._order(command)
            return
        # Imported here, as the start does not need it; the look has imported it.
        from mydata_like.app.run_control import control_runs

        give = partial(control_runs, *self.place, command)
        self._tasks.run(give, self._look_at_run, self._refuse_control, cancel=True)

    @Slot(object)
    def _refuse_control(self, error: UploaderError) -> None:
        if error.problem_code != NO_RUN:  # that is what the next look shows
            self.command_refused.emit(error.problem)
        if self.state.elsewhere:
            self._move(Trigger.CONTROL_FAILED, problem=self.state.problem)  # until the next look

    def cancel(self, path: bytes) -> None:
        """Leave a file, or all files in a folder, for the next run."""
        self._order("cancel", path=format_path(path))

    def cancel_transfer(self, number: int) -> None:
        """Leave all files of a transfer for the next run."""
        self._order("cancel_transfer", transfer=number)

    def retry_transfer(self, number: int) -> None:
        """Send the files of a cancelled transfer after all."""
        self._order("retry_transfer", transfer=number)

    def send_next(self, paths: Sequence[bytes]) -> None:
        """Send these files, or all files in these folders, in this order before all others."""
        for first in reversed(range(0, len(paths), MOST_PATHS)):  # the last request comes first
            part = [format_path(path) for path in paths[first : first + MOST_PATHS]]
            self._order("send_next", paths=part)

    @Slot()
    def list_next(self) -> None:
        """Ask for the files that the active run sends next; emits `next_listed`."""
        if self.state.is_steerable:
            self._order("list_next")

    def retry(self, path: bytes) -> None:
        """Retry failed files at or below a path, in a new run if none is active."""
        if self.state.is_steerable:
            self._order("retry", path=format_path(path))
        elif Path(os.fsdecode(path)).is_absolute():  # a run over the data directory skips it
            # Imported here, as the start does not need it.
            from mydata_like.app.source_service import find_source_of

            ask = partial(find_source_of, *self.place, path)
            self._tasks.run(ask, self._carry_again)
        else:
            self.start()

    @Slot(object)
    def _carry_again(self, source: bytes | None) -> None:
        """Upload an added folder again, with the same options."""
        if source is not None:
            self._order("add_source", path=os.fsdecode(source))

    def add_source(self, path: bytes, owner: str, experiment: str, dataset: str) -> None:
        """Upload an external folder or file to this experiment and dataset."""
        # The exact path: bytes that cannot be decoded become lone surrogates.
        names = [owner, experiment, dataset]
        self._order("add_source", path=os.fsdecode(path), **{"as": names})

    @Slot(object)
    def remove_source(self, source: KnownSource) -> None:
        """Remove an added folder that is not finished, so that no run continues it."""
        # Imported here, as the start does not need it.
        from mydata_like.app.source_service import remove_source

        remove = partial(remove_source, *self.place, source.path)
        done = partial(self._drop_source, source)
        self._tasks.run(remove, done, self._refuse_command, writes=True)

    def _drop_source(self, source: KnownSource, _nothing: object) -> None:
        left = tuple(one for one in self.state.sources if one.path != source.path)
        self._set(sources=left)
        self._look()
        self.ledger_changed.emit()

    @Slot(object)
    def _refuse_command(self, error: UploaderError) -> None:
        self.command_refused.emit(error.problem)

    def open_page(self, name: str, what: str = "") -> None:
        """Ask for a page or dialog, as `page_wanted` describes it."""
        self.page_wanted.emit(name, what)

    def show_test(self, *, under_way: bool) -> None:
        """Note that a speed test of this window has started or ended; no run starts during one."""
        self._testing, self._finished = under_way, monotonic()
        self._move(Trigger.TEST_STARTED if under_way else Trigger.TEST_ENDED)

    def open_path(self, path: Path) -> None:
        """Open a file or folder with the program that the system uses for it."""
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))

    def open_address(self, address: str) -> None:
        """Open a web page in the browser; other kinds of addresses are ignored."""
        url = QUrl(address)
        if url.scheme() in ("http", "https"):
            QDesktopServices.openUrl(url)

    def _order(self, name: str, **fields: object) -> None:
        """Send a command to the engine, and start an engine if there is none.

        While another program runs an upload, the command waits until that run has ended.
        """
        if self._engine is not None and not self._engine.spent:
            self._engine.send((name, fields))
            return
        self._wanted.append((name, fields))
        occupied = self.state.elsewhere or self.state.phase is Phase.TESTING
        if self._engine is None and not occupied:
            self._begin()

    def _begin(self) -> None:
        """Start an engine with the waiting commands; only for one run while a service watches."""
        orders, self._wanted = self._wanted, []
        self._engine = UploadEngine(self.config, orders, self, single=self._watched)
        self._engine.events_received.connect(self._take_events)
        self._engine.ended.connect(self._take_end)
        self._engine.start()

    @Slot(object)
    def _use_settings(self, loaded: Loaded, *, restart: bool) -> None:
        before, after = self.settings, loaded.settings
        if (after.data, after.destination) != (before.data, before.destination):
            self._set(last=None, whole=None, interrupted=None)  # these runs concerned other data
        if (after.server.url, after.destination) != (before.server.url, before.destination):
            self._set(server=ServerIndicator.UNKNOWN, answered=None, heard=False)
        self.loaded, self.settings = loaded, loaded.settings
        refused, self._refused = self._refused, None
        repaired = refused is not None and self.state.problem == refused
        if repaired or (restart and self._engine is None):
            self._move(Trigger.SETTINGS_REPAIRED)  # until the status is known
        self.settings_changed.emit()
        self._look()

    @Slot(object)
    def _refuse_settings(self, error: UploaderError) -> None:
        self._refused = error.problem
        self._move(Trigger.SETTINGS_REFUSED, problem=error.problem)
        self.problem_raised.emit(error.problem)

    @Slot()
    def _look(self) -> None:
        """Look for changes of the settings, the ledger, the locks and the state files."""
        if not self._look_task.running and self.loaded is not None:
            look = partial(self._status.look, *self.place, self.loaded.sources)
            self._look_task = self._tasks.run(look, self._take_look)

    @Slot()
    def _look_at_run(self, _done: object = None) -> None:
        """Read what a run of another program reports about itself."""
        # Imported here, as the start does not need it; the look has imported it.
        from mydata_like.app.ledger_status import find_current_run

        ask = partial(find_current_run, *self.place)
        self._tasks.run(ask, self._take_current_run, self._miss_current_run, latest=True)

    @Slot(object)
    def _take_current_run(self, found: "CurrentRun | None") -> None:
        if not self.state.elsewhere:
            return
        if found is None:
            self._look()
        else:
            self._set(**self._describe_elsewhere(found))

    @Slot(object)
    def _miss_current_run(self, error: UploaderError) -> None:
        logger.warning("The run in progress cannot be read: %s", error.problem)

    @Slot(object)
    def _take_look(self, found: Look) -> None:
        if found.settings_changed:
            self._load_settings(restart=False)
        if found.status is None:
            logger.warning("The status cannot be read: %s", found.problem)
        else:
            self._take_standing(found.status)

    def _take_standing(self, found: "StatusReport") -> None:
        if self._engine is None:
            self._watched = found.watched
        self._set(
            missing=found.missing,
            awaited=found.awaited.problem
            if found.awaited and not self.settings.destination.takes_tree
            else None,
            at_risk=found.at_risk,
            kept=found.kept,
            sources=found.sources,
            data_problem=None if found.missing else found.data_problem,
            whole=_later(self.state.whole, found.whole),
            interrupted=found.interrupted and PastRunState.of_row(found.interrupted),
            set_by_server=found.set_by_server,
            schedule=self.settings.schedule.kind,
        )
        if not self.state.ours:
            ended = next((past for past in found.runs if past.finished is not None), None)
            last = _later(self.state.last, ended)
            self._set(last=last, **self._describe_rest(found.current))
            if found.current is not None:
                self.ledger_changed.emit()
        # An engine that ended unexpectedly is restarted, so that scheduled runs still take place.
        broken = self.state.phase is Phase.BROKEN
        may_start = not broken or (self._refused is None and self._patience.is_over)
        waits = bool(self._wanted) and found.current is None
        if (
            self._engine is None
            and may_start
            and (broken or self.state.phase is Phase.IDLE)
            and (waits or not found.watched)
        ):
            self._begin()

    def _describe_rest(self, current: "CurrentRun | None") -> dict[str, object]:
        """Return the changes of the state while no run of this window is active."""
        if self.state.missing or self._testing:
            phase = Phase.UNSET if self.state.missing else Phase.TESTING
            return {"phase": phase, "problem": None}
        if current is not None and monotonic() - self._finished > CLEARS_UP:
            return self._describe_elsewhere(current)
        if self.state.phase is Phase.BROKEN:
            return {}
        return {"phase": Phase.IDLE, "problem": None}

    def _describe_elsewhere(self, found: "CurrentRun") -> dict[str, object]:
        """Return the changes of the state by the progress of a run of another program.

        The row of a run has no totals if another version wrote another format. There is no row
        while the run is starting.
        """
        row, phase = found.row, Phase.RUNNING if found.row else Phase.STARTING
        if found.active is None:
            phase = Phase.ELSEWHERE
        elif found.paused is not None:
            phase = Phase.PAUSED
        run = row.run if row else ""
        try:
            totals = parse_event(row.summary) if row else None
        except ValueError:
            totals = None
        if self.state.elsewhere and self.state.run in ("", run):
            asked = self.state.phase
            if asked is Phase.STOPPING or (asked is Phase.PAUSING and phase is Phase.RUNNING):
                phase = asked  # the run has not obeyed yet
        return {
            "phase": phase,
            "elsewhere": True,
            "problem": found.paused,
            "run": run,
            "reason": str(row.summary.get("reason", "")) if row else "",
            "sums": totals if isinstance(totals, RunProgressed) else NO_PROGRESS,
            "measured": None,
        }

    @Slot(object)
    def _take_events(self, events: list[Event]) -> None:
        for event in events:
            if self._engine is not None:
                self._engine.follow(event)
            self._follow(event)
            self._live.progress.add(event)
        self._changed = True
        if not self._show_timer.isActive():
            self._show_timer.start()

    def _follow(self, event: Event) -> None:
        match event:
            case ServerSilent():
                self._set(silence=event.seconds)
            case RunScheduled():
                self._set(next_start=event.at, schedule=event.kind)
            case Notice():
                self.problem_raised.emit(event.problem)
            case NextListed():
                self.next_listed.emit(event)
            case CommandRefused(problem=problem):
                if problem.code == NO_RUN:  # the run had already ended
                    self._move(Trigger.NOTHING_TO_STOP)
                else:
                    self._move(Trigger.COMMAND_REFUSED)
                    self.command_refused.emit(problem)
            case RunStarted():
                self._live = LiveRun(SystemClock())
                self._move(
                    Trigger.RUN_STARTED,
                    elsewhere=False,
                    run=event.run,
                    began=int(event.at.timestamp()),
                    reason=event.reason,
                    sums=NO_PROGRESS,
                    measured=None,
                )
            case RunPaused():
                self._move(Trigger.RUN_PAUSED, elsewhere=False, problem=event.problem)
            case RetryScheduled():
                self._set(next_try=event.at)
            case RunResumed():
                self._move(Trigger.RUN_RESUMED)
            case RunFinished():
                if event.run:
                    self._finish(event)
                else:
                    self._miss_run(event.problem)
            case _:
                pass

    def _finish(self, event: RunFinished) -> None:
        self._finished = monotonic()
        past = PastRunState.of(event, self.state.reason, self._live.progress.reported.seconds)
        whole = self.state.whole if past.partial else past
        kept = max(self.state.kept, past.kept)  # until the ledger is read
        self._move(Trigger.RUN_FINISHED, last=past, whole=whole, kept=kept)
        if past.problem is not None and past.problem.code != STOPPED_BY_USER:
            self.problem_raised.emit(past.problem)

    def _miss_run(self, problem: Problem | None) -> None:
        """Handle a run that did not start."""
        if problem is not None and problem.code not in HARMLESS:
            self._move(Trigger.RUN_IMPOSSIBLE, problem=problem)
            return
        elsewhere = problem is not None and problem.code == ALREADY_RUNNING
        keeps_sources = self._engine is not None and self._engine.sources.waiting
        if elsewhere and keeps_sources and not self.state.elsewhere:
            self.command_refused.emit(WAITS)
        self._move(Trigger.RUN_NOT_NEEDED)

    @Slot(object)
    def _take_end(self, code: int | None) -> None:
        engine, self._engine = self._engine, None
        if engine is None:
            return
        engine.deleteLater()
        problem = engine.explain_end(code, at_work=self.state.at_work)
        left = engine.sources.take_back()
        if problem is None or problem.code != STOPPED_BY_USER:
            self._wanted[:0] = left
        if problem is None or problem.code in HARMLESS:
            # The next look starts an engine again if one is needed.
            self._move(Trigger.ENGINE_ENDED, next_start=None)
        else:
            self._move(Trigger.ENGINE_FAILED, problem=problem, next_start=None)
            self.problem_raised.emit(problem)

    @Slot()
    def _show(self) -> None:
        """Emit the changes since the last update, at a rate that a user can follow."""
        self._turns += 1
        if not self.state.ours and not self._changed:
            self._show_timer.stop()  # an idle program must not wake the processor
            return
        self._changed = False
        self._live.sample()
        if self.state.ours:
            progress = self._live.progress
            self._set(sums=progress.reported, measured=progress.measured, rise=self._live.rise)
        self.live_changed.emit(self.live)
        if self._turns % LEDGER_AFTER == 0:
            self.ledger_changed.emit()

    def _move(self, trigger: Trigger, *, problem: Problem | None = None, **changes: object) -> None:
        """Make the transition of a trigger, if it counts in this state, with other changes."""
        if not self.state.allows(trigger):
            return
        _, phase, effects = TRANSITIONS[trigger]
        self._set(phase=phase, problem=problem, **changes)
        if Effect.ALLOW_RESTART in effects:
            self._patience.forget()
        if Effect.DELAY_RESTART in effects:
            self._patience.begin()
        if Effect.LOOK in effects:
            self._look()
        if Effect.READ_LEDGER in effects:
            self.ledger_changed.emit()

    def _set(self, **changes: object) -> None:
        state = replace(self.state, **changes)  # type: ignore[arg-type]
        elsewhere = state.phase is Phase.ELSEWHERE or (state.elsewhere and state.at_work)
        if state.elsewhere is not elsewhere:
            state = replace(state, elsewhere=elsewhere)
        if state.next_try and (state.phase is not Phase.PAUSED or state.problem is None):
            state = replace(state, next_try=None)
        if state.silence and not state.at_work:
            state = replace(state, silence=0)
        if "server" not in changes:
            state = with_server(self.state, state, SystemClock().now())
        if state != self.state:
            self.state = state
            # Look often at a run of another program, and only as long as there is one.
            if state.elsewhere is not self._follow_timer.isActive():
                (self._follow_timer.start if state.elsewhere else self._follow_timer.stop)()
            self.run_changed.emit(state)


def _later(known: PastRunState | None, row: "PastRunRow | None") -> PastRunState | None:
    """Return the later of two runs; the ledger records the end of a run just after its event."""
    found = row and PastRunState.of_row(row)
    if known is None or found is None:
        return found or known
    ends = known.finished, found.finished
    return known if ends[0] and ends[1] and ends[0] > ends[1] else found
