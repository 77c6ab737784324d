"""Carries out commands while a run goes, and answers each with one event."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mydata_like.core.commands import (
    Asked,
    Cancel,
    Command,
    Pause,
    Resume,
    Retry,
    SetBandwidth,
    SetChannels,
    Stop,
    parse_command,
)
from mydata_like.core.errors import Cancelled, Problem
from mydata_like.core.events import CommandDone, CommandRefused
from mydata_like.core.ports import Emit
from mydata_like.engine.choices import Choices
from mydata_like.engine.limits import Limits
from mydata_like.engine.retry import Gate
from mydata_like.engine.workers import Lock, Stoppable

PERSON = "person"  # whose hold a pause is
PAUSED = Problem("run.paused", "A person paused the run.", "It goes on when it is resumed.")
ENDING = Problem("command.too-late", "The run is ending.", "The next run takes what is left.")


@dataclass(frozen=True, slots=True)
class Controls:
    """What of a run can be acted upon while it goes."""

    gate: Gate
    limits: Limits
    choices: Choices


class Controller:
    """Obeys commands, from any thread; it serves one run after the other.

    While no run goes they wait for the next one, and are answered then; only a request to
    stop is obeyed at once.
    """

    def __init__(self, cancel: Stoppable, emit: Emit) -> None:
        self._cancel = cancel
        self._emit = emit
        self._lock = Lock()
        self._controls: Controls | None = None
        self._waiting: list[Asked] = []

    def obey(self, line: bytes) -> None:
        """Carry out what a line asks for."""
        asked = parse_command(line)
        with self._lock:
            if asked.command == Stop(now=True):
                self._cancel.set("asked to stop")
            if self._controls is None:
                self._waiting.append(asked)
            else:
                self._answer(asked, self._controls)

    @contextmanager
    def over(self, controls: Controls) -> Iterator[None]:
        """Let commands act on this run while this lasts."""
        with self._lock:
            self._controls = controls
            waiting, self._waiting = self._waiting, []
            for asked in waiting:
                self._answer(asked, controls)
        try:
            yield
        finally:
            with self._lock:
                self._controls = None

    def _answer(self, asked: Asked, controls: Controls) -> None:
        problem = (
            asked.command
            if isinstance(asked.command, Problem)
            else self._try(asked.command, controls)
        )
        if problem is None:
            self._emit(CommandDone(id=asked.id, command=asked.name))
        else:
            self._emit(CommandRefused(id=asked.id, command=asked.name, problem=problem))

    def _try(self, command: Command, controls: Controls) -> Problem | None:
        """Act, and return why that is not possible, if it is not."""
        if self._cancel.is_set():
            return None if isinstance(command, Stop) else ENDING
        try:
            return _act(command, controls)
        except Cancelled:
            return ENDING


def _act(command: Command, controls: Controls) -> Problem | None:
    match command:
        case Pause():
            controls.gate.hold(PERSON, PAUSED)
        case Resume():
            controls.gate.release(PERSON)
            controls.gate.hurry()
        case Stop():
            controls.choices.finish()
            controls.gate.lift_holds()
        case Cancel(path=path):
            controls.choices.cancel(path)
        case Retry(path=path):
            return controls.choices.retry(path)
        case SetChannels(channels=channels):
            controls.limits.set_channels(channels)
        case SetBandwidth(bandwidth=bandwidth):
            controls.limits.set_bandwidth(bandwidth)
    return None
