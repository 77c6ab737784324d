"""Carries out commands while a run goes, and answers each with one event."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from mydata_like.core.commands import (
    AddSource,
    Cancel,
    CancelTransfer,
    Command,
    CommandLine,
    Pause,
    Resume,
    Retry,
    SetBandwidth,
    SetChannels,
    Start,
    Stop,
    StopRun,
    parse_command,
)
from mydata_like.core.errors import Cancelled, Problem, UploaderError
from mydata_like.core.events import CommandDone, CommandRefused, Notice
from mydata_like.core.extra_sources import SourceRequest
from mydata_like.core.ports import Emit
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import Lock, Stoppable
from mydata_like.engine.run_context import RunContext
from mydata_like.engine.run_limits import RunLimits
from mydata_like.engine.scheduler import RunRequests
from mydata_like.engine.user_overrides import NO_TRANSFER, NOTHING_LEFT, UserOverrides

PERSON = "person"  # whose hold a pause is
PAUSED = Problem("run.paused", "A person paused the run.", "It goes on when it is resumed.")
UNDER_WAY = Problem("run.already-running", "A run is under way.", "It goes on.")
NO_RUN = Problem("command.no-run", "No run is under way.", "There is nothing to be stopped.")
NO_WATCH = Problem(
    "command.no-watch", "Only a watch starts a run.", "`mydata-like watch --events` is one."
)
NEXT_RUN = Problem(
    "source.later",
    "This run has carried that folder already, or takes no more.",
    "The next run takes it.",
)
ENDING = Problem("command.too-late", "The run is ending.", "The next run takes what is left.")


Acting = (
    Start
    | Pause
    | Resume
    | Stop
    | StopRun
    | Cancel
    | CancelTransfer
    | Retry
    | SetChannels
    | SetBandwidth
)


class PendingRun(NamedTuple):
    """What of a run can be acted upon before it goes, while it may wait for the server."""

    gate: Gate
    cancel: Stoppable


class CommandHandler:
    """Obeys commands, from any thread, and answers each at once.

    What comes before a run is kept for it, and done when it begins; one that is not wanted any
    more is stopped wherever it is. It serves one run, or of a watch, which has `wishes`, one
    after the other.
    """

    def __init__(self, cancel: Stoppable, emit: Emit, wishes: RunRequests | None = None) -> None:
        self._cancel = cancel
        self._emit = emit
        self._wishes = wishes
        self._lock = Lock()
        self._opening: PendingRun | None = None
        self._context: RunContext | None = None
        self._kept: list[Command] = []
        self._remember: Callable[[SourceRequest], None] | None = None
        self._coming = wishes is None  # a run was asked for, and has not begun to open
        self._over = False

    def obey(self, line: bytes) -> None:
        """Carry out what a line asks for."""
        asked = parse_command(line)
        with self._lock:
            if not self._over:  # the run's sums are the last that is said
                self._answer(asked)

    @contextmanager
    def opening(self, gate: Gate, cancel: Stoppable) -> Iterator[None]:
        """Let commands act on a run that is put together while this lasts, and then `over` it."""
        with self._lock:
            self._coming = False
            self._opening = PendingRun(gate, cancel)
            if any(isinstance(command, StopRun) for command in self._kept):
                self._give_up(self._opening)
        try:
            yield
        finally:
            with self._lock:
                self._opening, self._remember = None, None
                self._over = self._wishes is None

    def accept(self, remember: Callable[[SourceRequest], None]) -> None:
        """Have the sources that are kept for a run remembered at once, while one is opening."""
        with self._lock:
            self._remember = remember
            for command in self._kept:
                if isinstance(command, AddSource):
                    self._remember_source(command)

    @contextmanager
    def over(self, context: RunContext) -> Iterator[None]:
        """Let commands act on this run while this lasts."""
        with self._lock:
            self._coming, self._opening = False, None
            self._context = context
            kept, self._kept = self._kept, []
            for command in kept:
                problem = self._try(command)
                if problem and isinstance(command, AddSource):
                    context.emit(Notice(problem=problem))
        try:
            yield
        finally:
            with self._lock:
                self._context = None
                self._over = self._wishes is None

    def _answer(self, asked: CommandLine) -> None:
        command = asked.command
        problem = command if isinstance(command, Problem) else self._try(command)
        if problem is None:
            self._emit(CommandDone(id=asked.id, command=asked.name))
        else:
            self._emit(CommandRefused(id=asked.id, command=asked.name, problem=problem))

    def _try(self, command: Command) -> Problem | None:
        """Act, and return why that is not possible, if it is not."""
        if isinstance(command, Stop) and (command.now or self._context is None):
            self._cancel.set("asked to stop")
        if self._cancel.is_set():
            return None if isinstance(command, Stop) else ENDING
        if self._opening is not None:
            return self._act_early(command, self._opening)
        return self._keep(command) if self._context is None else self._act(command, self._context)

    def _act(self, command: Command, context: RunContext) -> Problem | None:
        """Act on a run that goes."""
        try:
            match command:
                case AddSource():
                    return self._add_source(command, context)
                case _:
                    return _act(command, context)
        except Cancelled:
            return ENDING

    def _act_early(self, command: Command, opening: PendingRun) -> Problem | None:
        """Act on a run that is put together, or keep the command until it goes."""
        match command:
            case AddSource():
                self._put_off(command)
            case StopRun():
                self._give_up(opening)
            case _ if opening.cancel.is_set():
                return ENDING
            case Start():
                return UNDER_WAY
            case Resume():
                opening.gate.hurry()
                self._kept.append(command)  # a pause may be kept as well
            case _:
                return self._keep(command)
        return None

    def _give_up(self, opening: PendingRun) -> None:
        """Stop a run that does not go yet; of what was kept for it only the sources stay."""
        self._kept = [command for command in self._kept if isinstance(command, AddSource)]
        opening.cancel.set("asked to stop")

    def _keep(self, command: Command) -> Problem | None:
        """Keep a command for the run to come; of nothing there is nothing to retry or to stop."""
        match command:
            case Retry():
                return NOTHING_LEFT
            case CancelTransfer():
                return NO_TRANSFER
            case StopRun() if not self._coming:
                return NO_RUN
            case Start(only=only):
                return self._wish(only)
            case AddSource():
                self._put_off(command)
            case _:
                self._kept.append(command)
        return None

    def _wish(self, only: str) -> Problem | None:
        if self._wishes is None:
            return NO_WATCH
        self._coming = True
        self._kept = [command for command in self._kept if not isinstance(command, StopRun)]
        if only:
            self._wishes.start_only(only.rstrip("/"))
        else:
            self._wishes.start()
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
        if self._wishes is None:
            return NEXT_RUN
        self._put_off(command)
        return None

    def _put_off(self, command: AddSource) -> None:
        """Leave a source to the next run: one that is about to go, now, or after this one."""
        self._kept.append(command)
        self._remember_source(command)
        if self._opening is not None and not self._opening.cancel.is_set():
            return
        self._coming = True
        if self._wishes:
            self._wishes.start(alone=True)

    def _remember_source(self, command: AddSource) -> None:
        """Remember a source as soon as that is possible; what is wrong with it is told later."""
        if self._remember is not None:
            with suppress(UploaderError):
                self._remember(command.offer)


def _act(command: Acting, context: RunContext) -> Problem | None:
    match command:
        case Pause():
            context.gate.hold(PERSON, PAUSED)
        case Resume():
            context.gate.release(PERSON)
            context.gate.hurry()
        case Start():
            return UNDER_WAY
        case Stop() | StopRun():
            _end(command, context)
        case Cancel() | CancelTransfer() | Retry():
            return _choose(command, context.choices)
        case SetChannels() | SetBandwidth():
            _limit(command, context.limits)
    return None


def _choose(command: Cancel | CancelTransfer | Retry, choices: UserOverrides) -> Problem | None:
    match command:
        case Cancel(path=path):
            choices.cancel(path)
        case CancelTransfer(transfer=number):
            return choices.cancel_transfer(number)
        case Retry(path=path):
            return choices.retry(path)
    return None


def _end(command: Stop | StopRun, context: RunContext) -> None:
    if command.now:
        context.cancel.set("asked to stop")
    else:
        context.choices.finish()
        context.gate.lift_holds()


def _limit(command: SetChannels | SetBandwidth, limits: RunLimits) -> None:
    if isinstance(command, SetChannels):
        limits.set_channels(command.channels)
    else:
        limits.set_bandwidth(command.bandwidth)
