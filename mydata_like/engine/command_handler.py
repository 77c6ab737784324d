"""The handler that executes commands during a run and answers each with one event."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from mydata_like.core.commands import (
    AddSource,
    Cancel,
    CancelTransfer,
    Command,
    ListNext,
    Pause,
    Resume,
    Retry,
    RetryTransfer,
    SendNext,
    SetBandwidth,
    SetChannels,
    Start,
    Stop,
    StopRun,
    parse_command,
)
from mydata_like.core.errors import Cancelled, Problem, UploaderError
from mydata_like.core.events import CommandDone, CommandRefused, NextListed, Notice
from mydata_like.core.extra_sources import SourceRequest
from mydata_like.core.ports import Emit
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import Lock, Stoppable
from mydata_like.engine.run_context import RunContext
from mydata_like.engine.scheduler import RunRequests
from mydata_like.engine.user_overrides import NO_TRANSFER, NOTHING_LEFT

PERSON = "person"  # name of the hold for a pause by the user
PAUSED = Problem("run.paused", "The user paused the run.", "Resume it to continue.")
UNDER_WAY = Problem("run.already-running", "A run is already in progress.", "It continues.")
NO_RUN = Problem("command.no-run", "No run is in progress.", "There is nothing to stop.")
NO_WATCH = Problem(
    "command.no-watch", "Only a watch can start a run.", "Use `mydata-like watch --events`."
)
NEXT_RUN = Problem(
    "source.later",
    "This run has uploaded that folder already, or accepts no more.",
    "The next run uploads it.",
)
ENDING = Problem("command.too-late", "The run is ending.", "The next run uploads the rest.")


class PendingRun(NamedTuple):
    """The parts of a starting run that commands can act on, while it may wait for the server."""

    gate: Gate
    cancel: Stoppable


class CommandHandler:
    """The handler of commands from any thread; it answers each immediately.

    Commands that arrive before a run are stored and executed when it starts. A run that is no
    longer wanted can be stopped at any stage. The handler serves one run, or the runs of a watch
    one after the other if it has `wishes`.
    """

    def __init__(self, cancel: Stoppable, emit: Emit, wishes: RunRequests | None = None) -> None:
        self._cancel = cancel
        self._emit = emit
        self._requests = wishes
        self._lock = Lock()
        self._opening: PendingRun | None = None
        self._context: RunContext | None = None
        self._stored: list[Command] = []
        self._remember: Callable[[SourceRequest], None] | None = None
        self._run_requested = wishes is None  # a run was requested and has not started to open
        self._over = False

    def handle(self, line: bytes) -> None:
        """Execute the command in a line."""
        asked = parse_command(line)
        with self._lock:
            if self._over:  # the run's final sums are the last event
                return
            command = asked.command
            problem = command if isinstance(command, Problem) else self._execute(command)
            if problem is None:
                self._emit(CommandDone(id=asked.id, command=asked.name))
            else:
                self._emit(CommandRefused(id=asked.id, command=asked.name, problem=problem))

    @contextmanager
    def opening(self, gate: Gate, cancel: Stoppable) -> Iterator[None]:
        """Let commands act on a run that is starting, in this context, and `over` it after that."""
        with self._lock:
            self._run_requested = False
            self._opening = PendingRun(gate, cancel)
            if any(isinstance(command, StopRun) for command in self._stored):
                self._stop_opening(self._opening)
        try:
            yield
        finally:
            with self._lock:
                self._opening, self._remember = None, None
                self._over = self._requests is None

    def accept(self, remember: Callable[[SourceRequest], None]) -> None:
        """While a run is starting, remember the stored sources and all new ones immediately."""
        with self._lock:
            self._remember = remember
            for command in self._stored:
                if isinstance(command, AddSource):
                    self._remember_source(command)

    @contextmanager
    def over(self, context: RunContext) -> Iterator[None]:
        """Let commands act on this run in this context."""
        with self._lock:
            self._run_requested, self._opening = False, None
            self._context = context
            kept, self._stored = self._stored, []
            for command in kept:
                problem = self._execute(command)
                if problem and isinstance(command, AddSource):
                    context.emit(Notice(problem=problem))
        try:
            yield
        finally:
            with self._lock:
                self._context = None
                self._over = self._requests is None

    def _execute(self, command: Command) -> Problem | None:
        """Execute a command; return a problem if that is not possible."""
        if isinstance(command, Stop) and (command.now or self._context is None):
            self._cancel.set("stop requested")
        if self._cancel.is_set():
            return None if isinstance(command, Stop) else ENDING
        if self._opening is not None:
            return self._act_early(command, self._opening)
        if self._context is None:
            return self._keep(command)
        try:
            return self._act(command, self._context)
        except Cancelled:
            return ENDING

    def _act(self, command: Command, context: RunContext) -> Problem | None:
        """Execute a command on the current run."""
        gate, choices, channels = context.gate, context.choices, context.channels
        match command:
            case AddSource():
                return self._add_source(command, context)
            case Start():
                return UNDER_WAY
            case Pause():
                gate.hold(PERSON, PAUSED)
                channels.follow_holds()
            case Resume():
                gate.release(PERSON)
                gate.hurry()
                channels.follow_holds()
            case Stop(now=now) | StopRun(now=now):
                if now:
                    context.cancel.set("stop requested")
                else:
                    choices.finish()
                    gate.lift_holds()
            case SendNext(paths=paths):
                choices.send_next(paths)
            case Cancel(path=path):
                choices.cancel(path)
            case CancelTransfer(transfer=number):
                return choices.cancel_transfer(number)
            case Retry(path=path):
                return choices.retry(path)
            case RetryTransfer(transfer=number):
                return choices.retry_transfer(number)
            case ListNext(most=most):
                held = choices.list_held(most)
                listed = [*choices.list_next(most), *held]
                names, sizes = tuple(it.path for it in listed), tuple(it.size for it in listed)
                context.emit(NextListed(paths=names, sizes=sizes, held=len(held)))
            case SetChannels(channels=count):
                channels.set_channels(count)
            case SetBandwidth(bandwidth=rate):
                channels.set_bandwidth(rate)
        return None

    def _act_early(self, command: Command, opening: PendingRun) -> Problem | None:
        """Execute a command on a run that is starting, or store it for later."""
        match command:
            case AddSource():
                self._postpone(command)
            case StopRun():
                self._stop_opening(opening)
            case _ if opening.cancel.is_set():
                return ENDING
            case Start():
                return UNDER_WAY
            case Resume():
                opening.gate.hurry()
                self._stored.append(command)  # a stored pause may precede it
            case _:
                return self._keep(command)
        return None

    def _stop_opening(self, opening: PendingRun) -> None:
        """Stop a run that is starting; of its stored commands only the sources remain."""
        self._stored = [command for command in self._stored if isinstance(command, AddSource)]
        opening.cancel.set("stop requested")

    def _keep(self, command: Command) -> Problem | None:
        """Store a command for the next run; without a run, there is nothing to retry or to stop."""
        match command:
            case Retry() | RetryTransfer():
                return NOTHING_LEFT
            case CancelTransfer():
                return NO_TRANSFER
            case StopRun() if not self._run_requested:
                return NO_RUN
            case ListNext():
                self._emit(NextListed(paths=(), sizes=()))
            case Start(only=only):
                if self._requests is None:
                    return NO_WATCH
                self._run_requested = True
                self._stored = [it for it in self._stored if not isinstance(it, StopRun)]
                if only:
                    self._requests.start_only(only.rstrip("/"))
                else:
                    self._requests.start()
            case AddSource():
                self._postpone(command)
            case _:
                self._stored.append(command)
        return None

    def _add_source(self, command: AddSource, context: RunContext) -> Problem | None:
        try:
            if context.cancel.is_set():
                context.sources.remember(command.offer)
                taken = False
            else:
                taken = context.sources.add(command.offer)
        except UploaderError as error:
            return error.problem
        if taken:
            return None
        if self._requests is None:
            return NEXT_RUN
        self._postpone(command)
        return None

    def _postpone(self, command: AddSource) -> None:
        """Leave a source to the next run: a starting one, a new one, or the one after this."""
        self._stored.append(command)
        self._remember_source(command)
        if self._opening is not None and not self._opening.cancel.is_set():
            return
        self._run_requested = True
        if self._requests:
            self._requests.start(alone=True)

    def _remember_source(self, command: AddSource) -> None:
        """Remember a source as soon as possible; its problems are reported later."""
        if self._remember is not None:
            with suppress(UploaderError):
                self._remember(command.offer)
