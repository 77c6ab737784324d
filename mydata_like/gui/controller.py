"""What the window can do, and what it knows: its only way to the engine and the settings."""

import logging
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic

from PySide6.QtCore import QObject, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices

from mydata_like.core.errors import Problem, UploaderError
from mydata_like.core.format import format_path
from mydata_like.gui import standing
from mydata_like.gui.background import Background
from mydata_like.gui.engine import Engine, Record, describe_end
from mydata_like.gui.live import NO_LIMIT, NOTHING, Live, read_problem, read_time
from mydata_like.gui.standing import Standing, read_past_run
from mydata_like.gui.state import PastRun, Phase, RunState
from mydata_like.settings.policy import Loaded
from mydata_like.settings.schema import Settings

logger = logging.getLogger(__name__)

LOOK_AFTER = 3000  # milliseconds after which it is looked again whether a run goes on elsewhere
SHOW_AFTER = 250  # milliseconds after which the window is shown what goes on
LEDGER_AFTER = 4  # so many times later it is told that the ledger has changed
SHORT_LIFE = 10.0  # seconds; an engine that ends so soon is not simply started again
CLEARS_UP = 5.0  # seconds for which the lock that is held may be that of our last run
ALREADY_RUNNING = "run.already-running"
STOPPED_BY_PERSON = "run.interrupted"


class Controller(QObject):
    """Starts and commands the engine, follows its events, and knows the settings."""

    settings_changed = Signal()
    run_changed = Signal(object)  # a RunState
    live_changed = Signal(object)  # a Snapshot
    ledger_changed = Signal()
    problem_raised = Signal(object)  # a Problem that a person should know of
    command_refused = Signal(object)  # a Problem: why what was asked for was not done

    def __init__(
        self, config: Path | None, background: Background, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.config = config
        self.settings = Settings()
        self.loaded: Loaded | None = None
        self.state = RunState()
        self._background = background
        self._engine: Engine | None = None
        self._live = Live()
        self._wanted: list[tuple[str, dict[str, object]]] = []  # when the engine has begun
        self._last_words: Problem | None = None  # why the engine ended, if it said so
        self._reason = "person"  # why the run under way began
        self._begun = 0.0  # when the engine did
        self._finished = -CLEARS_UP  # when its last run did, or a speed test
        self._watched = False  # by another program: a service
        self._testing = False  # a speed test of this window is under way
        self._asking = False
        self._changed = False
        self._turns = 0
        self._show_timer = QTimer(self, interval=SHOW_AFTER)
        self._look_timer = QTimer(self, interval=LOOK_AFTER)
        self._show_timer.timeout.connect(self._show)
        self._look_timer.timeout.connect(self._look)

    def open(self) -> None:
        """Read the settings and begin to watch; returns at once."""
        self._look_timer.start()
        self.reload_settings()

    def close(self) -> None:
        """Let the engine go: its run goes on to its end without us."""
        self._show_timer.stop()
        self._look_timer.stop()
        if self._engine is not None:
            self._engine.let_go()

    @property
    def engine(self) -> Engine | None:
        """The engine that obeys this window, while there is one."""
        return self._engine

    @Slot()
    def reload_settings(self) -> None:
        """Read the settings again; `settings_changed` tells when that is done."""
        self._background.run(
            partial(standing.load, self.config), self._take_settings, self._refuse_settings
        )

    @Slot()
    def start(self) -> None:
        """Begin a run now."""
        if not self.state.can_start:
            return
        self._set(phase=Phase.STARTING, problem=None, sums=NOTHING)
        self._order("start")

    def start_only(self, folder: bytes) -> None:
        """Begin a run over one folder of the data directory now."""
        if not self.state.can_start:
            return
        self._set(phase=Phase.STARTING, problem=None, sums=NOTHING)
        self._order("start", only=format_path(folder))

    @Slot()
    def pause(self) -> None:
        """Send nothing new until `resume`."""
        self._order("pause")

    @Slot()
    def resume(self) -> None:
        """Go on after `pause`, and look at once whether another reason to wait is gone."""
        self._order("resume")

    @Slot()
    def stop(self) -> None:
        """End the run; the next one carries on."""
        self._set(phase=Phase.STOPPING)
        self._order("stop_run")

    def cancel(self, path: bytes) -> None:
        """Leave a file, or all in a folder, for the next run."""
        self._order("cancel", path=format_path(path))

    def retry(self, path: bytes) -> None:
        """Send again what failed at or below a path; where no run goes on, a new one does it."""
        if self.state.ours:
            self._order("retry", path=format_path(path))
        elif Path(os.fsdecode(path)).is_absolute():  # which no run over the data directory looks at
            ask = partial(standing.find_source_of, self.settings, self.config, path)
            self._background.run(ask, self._carry_again)
        else:
            self.start()

    @Slot(object)
    def _carry_again(self, source: bytes | None) -> None:
        """Carry an added folder once more, as what it was."""
        if source is not None:
            self._order("add_source", path=os.fsdecode(source))

    def add_source(self, path: bytes, owner: str, experiment: str, dataset: str) -> None:
        """Upload a folder or file from outside the data directory, to this place."""
        # Exactly as the system has it: what is no text travels as lone surrogates.
        names = [owner, experiment, dataset]
        self._order("add_source", path=os.fsdecode(path), **{"as": names})

    def show_test(self, *, under_way: bool) -> None:
        """Say that a speed test of this window has begun or ended: no run goes on beside it."""
        self._testing, self._finished = under_way, monotonic()
        if not self.state.ours:
            self._set(phase=Phase.TESTING if under_way else Phase.IDLE)

    def open_path(self, path: Path) -> None:
        """Show a folder, or the folder of a file, in the system's file manager."""
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))

    def open_address(self, address: str) -> None:
        """Show a web page of the server."""
        url = QUrl(address)
        if url.scheme() in ("http", "https"):
            QDesktopServices.openUrl(url)

    def _order(self, name: str, **fields: object) -> None:
        """Give the engine a command; where there is none, one is started for it."""
        if self._engine is None:
            self._wanted.append((name, fields))
            self._begin()
        else:
            self._engine.command(name, **fields)

    def _begin(self) -> None:
        """Start the engine."""
        # Where a service watches, only a run of its own can be started.
        words = ("run",) if self._watched else ("watch", "--attended")
        self._last_words = None
        self._begun = monotonic()
        self._engine = Engine(standing.engine_words(words[0], self.config, *words[1:]), self)
        self._engine.told.connect(self._take_events)
        self._engine.ended.connect(self._take_end)
        self._engine.start()
        for name, fields in self._wanted:
            if not (self._watched and name == "start"):
                self._engine.command(name, **fields)
        self._wanted.clear()

    @Slot(object)
    def _take_settings(self, loaded: Loaded) -> None:
        if loaded.settings.data != self.settings.data:
            self._set(last=None)  # it was about other data
        self.loaded, self.settings = loaded, loaded.settings
        self.settings_changed.emit()
        self._look()

    @Slot(object)
    def _refuse_settings(self, error: UploaderError) -> None:
        self._set(phase=Phase.BROKEN, problem=error.problem)
        self.problem_raised.emit(error.problem)

    @Slot()
    def _look(self) -> None:
        """Look at what others do, and at what the ledger knows, beside the GUI thread."""
        if not self._asking and self.loaded is not None:
            self._asking = True
            ask = partial(standing.look, self.settings, self.config)
            self._background.run(ask, self._take_standing, self._miss_standing)

    @Slot(object)
    def _miss_standing(self, error: UploaderError) -> None:
        self._asking = False
        logger.warning("How things stand cannot be told: %s", error.problem)

    @Slot(object)
    def _take_standing(self, found: Standing) -> None:
        self._asking = False
        self._watched = found.watched and self._engine is None
        self._set(
            missing=found.missing,
            awaited=found.awaited,
            at_risk=found.at_risk,
            schedule=self.settings.schedule.kind,
        )
        if not self.state.ours:
            self._set(last=_later(self.state.last, found.last), phase=self._judge(found))
            if found.running:
                self._set(sums=found.sums)
                self.ledger_changed.emit()
        if self._engine is None and self.state.phase is Phase.IDLE and not found.watched:
            self._begin()

    def _judge(self, found: Standing) -> Phase:
        """Return what goes on where no run of ours does."""
        if found.missing:
            return Phase.UNSET
        if self._testing:
            return Phase.TESTING
        if found.running and monotonic() - self._finished > CLEARS_UP:
            return Phase.ELSEWHERE
        return Phase.BROKEN if self.state.phase is Phase.BROKEN else Phase.IDLE

    @Slot(object)
    def _take_events(self, records: list[Record]) -> None:
        for record in records:
            self._live.add(record)
            self._follow(record)
        self._changed = True
        if not self._show_timer.isActive():
            self._show_timer.start()

    def _follow(self, record: Record) -> None:
        """Take an event that is about the run as a whole."""
        match record["event"]:
            case "run_started":
                self._live.begin()
                self._last_words = None
                self._reason = record["reason"]
                self._set(phase=Phase.RUNNING, problem=None, sums=NOTHING, limit=NO_LIMIT)
            case "run_paused":
                self._set(phase=Phase.PAUSED, problem=read_problem(record["problem"]))
            case "run_resumed":
                self._set(phase=Phase.RUNNING, problem=None)
            case "run_scheduled":
                self._set(next_start=read_time(record["at"]), schedule=record["kind"])
            case "run_finished":
                self._finish(record)
            case "notice":
                self.problem_raised.emit(read_problem(record["problem"]))
            case "command_refused":
                self.command_refused.emit(read_problem(record["problem"]))
            case _:
                pass

    def _finish(self, record: Record) -> None:
        if not record["run"]:  # the run could not begin, or not even the engine
            self._last_words = read_problem(record["problem"])
            if not self._testing:  # beside which no run can begin
                self._set(phase=Phase.BROKEN, problem=self._last_words)
            return
        self._finished = monotonic()
        told = record | {"reason": self._reason}
        past = read_past_run(told, self._live.sums.seconds)
        self._set(phase=Phase.IDLE, problem=None, last=past)
        self._look()  # what is left only on this computer
        self.ledger_changed.emit()
        if past.problem is not None and past.problem.code != STOPPED_BY_PERSON:
            self.problem_raised.emit(past.problem)

    @Slot(object)
    def _take_end(self, code: int | None) -> None:
        said = self._engine.said if self._engine else ""
        self._engine = None
        problem = self._last_words
        if problem is None and (self.state.at_work or monotonic() - self._begun < SHORT_LIFE):
            problem = _explain_end(code, said)
        if problem is None or problem.code == ALREADY_RUNNING:
            self._set(phase=Phase.IDLE)  # `_look` tells what others do, and begins anew
            return
        self._set(phase=Phase.BROKEN, problem=problem)
        self.problem_raised.emit(problem)
        self.ledger_changed.emit()

    @Slot()
    def _show(self) -> None:
        """Pass on what has changed, at a pace that suits eyes."""
        self._turns += 1
        if not self.state.ours and not self._changed:
            self._show_timer.stop()  # a program at rest does not wake the computer
            return
        self._changed = False
        self._live.sample()
        told = self._live.sums, self._live.limit
        if self.state.ours and (self.state.sums, self.state.limit) != told:
            self._set(sums=told[0], limit=told[1])
        self.live_changed.emit(self._live.snapshot())
        if self._turns % LEDGER_AFTER == 0:
            self.ledger_changed.emit()

    def _set(self, **changes: object) -> None:
        state = replace(self.state, **changes)  # type: ignore[arg-type]
        if state != self.state:
            self.state = state
            self.run_changed.emit(state)


def _later(told: PastRun | None, found: PastRun | None) -> PastRun | None:
    """Return the later one of two runs: the ledger learns of an end a moment after we do."""
    if told is None or found is None:
        return found or told
    ends = told.finished, found.finished
    return told if ends[0] and ends[1] and ends[0] > ends[1] else found


def _explain_end(code: int | None, said: str) -> Problem:
    """Return in words what ended the engine without any."""
    return Problem(
        "window.engine-ended",
        f"The engine ended unexpectedly ({describe_end(code, said)}).",
        "Nothing is lost: Start goes on where it was. If it happens again, see the log.",
    )
