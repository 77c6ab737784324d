"""The engine as a child process that writes events and reads commands."""

import json
import logging
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, Final

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Qt, Signal, Slot

from mydata_like.app import settings_service
from mydata_like.core.errors import Problem
from mydata_like.core.events import (
    CommandDone,
    CommandRefused,
    Event,
    RunFinished,
    RunStarted,
    parse_event,
)
from mydata_like.core.parsing import parse_json
from mydata_like.gui.theme import texts
from mydata_like.hostos.process import find_program

logger = logging.getLogger(__name__)

Record = dict[str, Any]  # one event; see docs/events.md
Parse = Callable[[Record], object | None]  # raises ValueError
# Work-around: PySide6 6.11.3 kills a process when its QProcess is destroyed, and waits for its end.
# So these are never destroyed (see `gui.launch`).
# https://doc.qt.io/qt-6.12/qttasktree-qprocesstaskdeleter.html
# Remove when a QProcess can let go of a process that it has started.
_LET_GO: list[QProcess] = []
# The wait takes 30 s if a dead mount blocks the process.
_GIVEN_UP: list["Engine"] = []
LONGEST_EVENT = 16 * 1024 * 1024  # bytes in a line; a line of a speed test has about 10 kB
ERRORS_AT_MOST = 4000  # characters of standard error that are kept
SHORT_LIFE = 10.0  # seconds; an engine that ends sooner is restarted only after a delay


def program_command(command: str, config: Path | None, *options: str) -> tuple[str, ...]:
    """Return the command line that starts a command in a separate process."""
    settings = () if config is None else ("--config", str(config))
    return (*find_program(), command, *options, *settings)


def engine_command(command: str, config: Path | None, *options: str) -> tuple[str, ...]:
    """Return the command line that starts the engine with a command."""
    return program_command(command, config, "--events", "--brief", *options)


class Engine(QObject):
    """One process of `mydata-like` that writes events.

    The process may outlive this object: when its standard input is closed, an attended watch
    finishes the active run before it ends.
    """

    events_received = Signal(object)  # a list of Events, or of other results of `parse`
    ended = Signal(object)  # its exit code; None if it crashed or could not be started

    def __init__(
        self,
        program: Sequence[str],
        parent: QObject | None = None,
        parse: Parse = parse_event,
    ) -> None:
        super().__init__(parent)
        self._parse = parse
        self._rest = b""
        self._errors = ""
        self._commands = 0
        self._process = QProcess(self)
        self._process.setProgram(program[0])
        self._process.setArguments(list(program[1:]))
        self._process.readyReadStandardOutput.connect(self._read_events)
        self._process.readyReadStandardError.connect(self._read_words)
        self._process.finished.connect(self._report_end)
        # Qt detects some failures within `start`; the queue delivers them after `start` returns.
        queued = Qt.ConnectionType.QueuedConnection
        self._process.errorOccurred.connect(self._report_failure, queued)

    @property
    def error_output(self) -> str:
        """The last output of the process to standard error."""
        return self._errors

    @property
    def number(self) -> int:
        """The process ID; 0 if there is no process."""
        return self._process.processId()

    def start(self) -> None:
        """Start the process, and send an API key from the environment as its first input line."""
        variables, key = settings_service.hand_over()
        if variables:
            surroundings = QProcessEnvironment.systemEnvironment()
            for name, text in variables.items():
                surroundings.insert(name, text)
            self._process.setProcessEnvironment(surroundings)
        self._process.start()
        if key:
            self._process.write(key)

    def command(self, name: str, **fields: object) -> int:
        """Send a command and return its number, which the event that answers it repeats."""
        self._commands += 1
        line = json.dumps({"command": name, "id": self._commands} | fields)
        self._process.write(line.encode() + b"\n")
        return self._commands

    def close_input(self) -> None:
        """Close the standard input of the process, which ends an attended one."""
        self._process.closeWriteChannel()

    def let_go(self) -> None:
        """Close the input of the process and detach from it; it ends after its run."""
        self.close_input()
        self._process.waitForBytesWritten(1000)
        self._process.setParent(None)
        _LET_GO.append(self._process)

    def kill(self) -> None:
        """Kill the process; the next run continues what was interrupted."""
        self._process.kill()

    def give_up(self) -> None:
        """Kill the process without waiting; this object is deleted once the process has ended."""
        self._process.kill()
        if self._process.state() != QProcess.ProcessState.NotRunning and self not in _GIVEN_UP:
            self.setParent(None)
            _GIVEN_UP.append(self)
            self.ended.connect(self._vanish)

    @Slot()
    def _vanish(self) -> None:
        _GIVEN_UP.remove(self)
        self.deleteLater()

    @Slot()
    def _read_events(self) -> None:
        lines = (self._rest + self._process.readAllStandardOutput().data()).split(b"\n")
        # Of a line without an end, keep one byte above the limit, so that it is refused.
        self._rest = lines.pop()[: LONGEST_EVENT + 1]
        parsed = (parse_line(line, self._parse) for line in lines)
        events = [event for event in parsed if event is not None]
        if events:
            self.events_received.emit(events)

    @Slot()
    def _read_words(self) -> None:
        text = bytes(self._process.readAllStandardError().data()).decode("utf-8", "replace")
        self._errors = (self._errors + text)[-ERRORS_AT_MOST:]

    @Slot(int, QProcess.ExitStatus)
    def _report_end(self, code: int, status: QProcess.ExitStatus) -> None:
        self._read_events()
        self._read_words()
        if self._errors:
            logger.warning("Output of the engine: %s", texts.plain(self._errors))
        self.ended.emit(code if status is QProcess.ExitStatus.NormalExit else None)

    @Slot(QProcess.ProcessError)
    def _report_failure(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self._errors = self._process.errorString()
            self.ended.emit(None)


Order = tuple[str, dict[str, object]]  # the name of a command, and its fields

ADD: Final = "add_source"
# Why a run refuses a source that the next one can accept.
_LATER: Final = ("source.later", "command.too-late")


class PendingSources:
    """Tracks added sources from the command to the engine until a run has accepted them."""

    def __init__(self) -> None:
        self._sent: dict[int, Order] = {}  # by the number of the command, not answered yet
        self._kept: list[Order] = []  # the engine keeps them for its next run
        self._refused: list[Order] = []  # by a run that accepts no more
        self._running = False

    @property
    def waiting(self) -> bool:
        """Whether the engine keeps sources for a run that has not started."""
        return bool(self._kept)

    def track_sent(self, number: int, order: Order) -> None:
        """Track a command that was sent to the engine."""
        self._sent[number] = order

    def track_kept(self, orders: Sequence[Order]) -> None:
        """Track the orders with which the engine was started."""
        self._kept.extend(orders)

    def follow(self, event: Event) -> None:
        """Update from an event of the engine."""
        match event:
            case RunStarted():
                self._running = True
                self._kept.clear()
            case RunFinished():
                self._running = False
            case CommandDone(id=int(number)) | CommandRefused(id=int(number)) if (
                number in self._sent
            ):
                order = self._sent.pop(number)
                if isinstance(event, CommandRefused) and event.problem.code in _LATER:
                    self._refused.append(order)
                elif isinstance(event, CommandDone) and not self._running:
                    self._kept.append(order)
            case _:
                pass

    def take_back(self) -> list[Order]:
        """Return the orders that an ended engine has left without a run."""
        left = [*self._kept, *self._sent.values(), *self._refused]
        self._kept, self._sent, self._refused, self._running = [], {}, [], False
        return left


def split_orders(orders: Sequence[Order]) -> tuple[list[str], list[Order], list[Order]]:
    """Return the options of a single run, the orders in them, and the orders to send as commands.

    If only added folders, or one folder of the data directory, are wanted, the run scans nothing
    else. Orders that no option can express (a path that is not text, a name with a slash) are
    sent as commands to a run over the data directory.
    """
    if len(orders) == 1 and "only" in orders[0][1]:
        return [f"--only={orders[0][1]['only']}"], [], []
    if any(name != ADD for name, _ in orders):
        return [], [], [order for order in orders if order[0] != "start"]
    optional = [order for order in orders if _fits_option(order)]
    # The options apply to all sources: either all have a kind (`as`), or none has.
    optional = [order for order in optional if ("as" in order[1]) == ("as" in optional[0][1])]
    return (
        [option for _, fields in optional for option in _options(fields)],
        optional,
        [order for order in orders if order not in optional],
    )


def _options(fields: dict[str, object]) -> list[str]:
    options = [f"--source={fields['path']}"]
    names = fields.get("as")
    if isinstance(names, list):
        options.append(f"--as={'/'.join(names)}")
    return options


def _fits_option(order: Order) -> bool:
    names = order[1].get("as", [])
    try:
        str(order[1]["path"]).encode()
    except UnicodeEncodeError:
        return False
    return isinstance(names, list) and not any("/" in name for name in names)


class UploadEngine(Engine):
    """The engine that uploads: a watch, or a single run while a service watches.

    `spent` means that the single run has ended. `refusal` is why the last run could not start.
    """

    def __init__(
        self, config: Path | None, orders: list[Order], parent: QObject, *, single: bool
    ) -> None:
        options, included, left = split_orders(orders) if single else ([], [], orders)
        if single:
            program = engine_command("run", config, *options)
        else:
            program = engine_command("watch", config, "--attended")
        super().__init__(program, parent)
        self.single, self.spent = single, False
        self.refusal: Problem | None = None
        self.sources = PendingSources()
        self.sources.track_kept(included)
        self._orders = left
        self._begun = monotonic()

    def start(self) -> None:
        """Start the process, and send it the commands that it was created for."""
        super().start()
        for order in self._orders:
            self.send(order)

    def send(self, order: Order) -> None:
        """Send a command."""
        name, fields = order
        if name == "start":
            self.refusal = None
        number = self.command(name, **fields)
        if name == ADD:
            self.sources.track_sent(number, order)

    def follow(self, event: Event) -> None:
        """Update from one of its events."""
        self.sources.follow(event)
        if isinstance(event, RunStarted):
            self.refusal = None
        elif isinstance(event, RunFinished):
            self.spent = self.single
            if not event.run:
                self.refusal = event.problem

    def explain_end(self, code: int | None, *, at_work: bool) -> Problem | None:
        """Return why it has ended; None if that was to be expected."""
        if self.refusal is not None or not (at_work or monotonic() - self._begun < SHORT_LIFE):
            return self.refusal
        return Problem(
            "window.engine-ended",
            f"The engine ended unexpectedly ({describe_end(code, self.error_output)}).",
            "Nothing is lost. The engine restarts automatically and keeps the schedule. To "
            "continue at once, press Start. If this happens again, see the log.",
        )


def parse_line(line: bytes, parse: Parse = parse_event) -> object | None:
    """Parse a line as an event; return None if it is invalid or of an unknown type."""
    try:
        record = parse_json(line, longest=LONGEST_EVENT)
        return parse(record) if isinstance(record, dict) else None
    except ValueError:
        logger.warning("The engine wrote a line that is not an event: %s", texts.plain(line[:200]))
        return None


def describe_end(code: int | None, said: str) -> str:
    """Return the last line of the output of a process, or how it ended if there is none."""
    how = "a crash" if code is None else f"exit code {code}"
    return next(reversed(said.strip().splitlines()), how)


FIRST: Final = 5.0  # seconds after the first unexpected end
LONGEST: Final = 1800.0


class RestartBackoff:
    """A restart delay that doubles after each unexpected end, until a run has ended normally."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._delay = 0.0
        self._due = -inf

    @property
    def is_over(self) -> bool:
        """Whether the engine may be restarted automatically now."""
        return self._now() >= self._due

    def begin(self) -> None:
        """Start the delay after an unexpected end."""
        self._delay = min(self._delay * 2, LONGEST) or FIRST
        self._due = self._now() + self._delay

    def forget(self) -> None:
        """Reset the delay after a normal run, or when the cause is fixed."""
        self._delay, self._due = 0.0, -inf
