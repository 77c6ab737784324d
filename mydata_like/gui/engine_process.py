"""The engine as a child process: starts it, reads its events and sends it commands."""

import json
import logging
from collections.abc import Callable, Sequence
from math import inf
from time import monotonic
from typing import Any, Final

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Qt, Signal, Slot

from mydata_like.app.settings_service import hand_over
from mydata_like.core.events import parse_event
from mydata_like.core.parsing import parse_json
from mydata_like.gui.theme import texts

logger = logging.getLogger(__name__)

Record = dict[str, Any]  # an event as docs/events.md describes it
Parse = Callable[[Record], object | None]  # raises ValueError
# Qt kills a process when its QProcess is destroyed, so these never are (see `gui.start`).
_LET_GO: list[QProcess] = []
# It also waits until the process has ended: half a minute, where a dead mount holds it.
_GIVEN_UP: list["Engine"] = []
LONGEST_EVENT = 16 * 1024 * 1024  # bytes of a line; one of a speed test has some 10 kB
SAID_AT_MOST = 4000  # characters that are kept of what it wrote to standard error


class Engine(QObject):
    """One process of `mydata-like`, from its start to its end.

    It outlives this object where it has to: an attended watch ends by itself, after the run
    under way, when its standard input closes.
    """

    events_received = Signal(object)  # a list of Events, or of what else `parse` returns
    ended = Signal(object)  # its exit code; None where it died or could not be started

    def __init__(
        self,
        program: Sequence[str],
        parent: QObject | None = None,
        parse: Parse = parse_event,
    ) -> None:
        super().__init__(parent)
        self._parse = parse
        self._rest = b""
        self._said = ""
        self._commands = 0
        self._process = QProcess(self)
        self._process.setProgram(program[0])
        self._process.setArguments(list(program[1:]))
        self._connect()

    def _connect(self) -> None:
        self._process.readyReadStandardOutput.connect(self._read_events)
        self._process.readyReadStandardError.connect(self._read_words)
        self._process.finished.connect(self._tell_end)
        # Some failures to start are known within `start`: they are told after it, like all others.
        queued = Qt.ConnectionType.QueuedConnection
        self._process.errorOccurred.connect(self._tell_failure, queued)

    @property
    def said(self) -> str:
        """What it wrote to standard error, the latest of it."""
        return self._said

    @property
    def number(self) -> int:
        """The number of its process, 0 where there is none."""
        return self._process.processId()

    def start(self) -> None:
        """Start the process; an API key from our environment is the first line that it reads."""
        variables, key = hand_over()
        if variables:
            surroundings = QProcessEnvironment.systemEnvironment()
            for name, text in variables.items():
                surroundings.insert(name, text)
            self._process.setProcessEnvironment(surroundings)
        self._process.start()
        if key:
            self._process.write(key)

    def command(self, name: str, **fields: object) -> int:
        """Ask for something; the answer comes as an event with the number that is returned."""
        self._commands += 1
        line = json.dumps({"command": name, "id": self._commands} | fields)
        self._process.write(line.encode() + b"\n")
        return self._commands

    def close_input(self) -> None:
        """Tell it that nobody gives commands any more; what is attended ends by that."""
        self._process.closeWriteChannel()

    def let_go(self) -> None:
        """Close its input: it goes on without us, and ends when its run has ended."""
        self.close_input()
        self._process.waitForBytesWritten(1000)
        self._process.setParent(None)
        _LET_GO.append(self._process)

    def kill(self) -> None:
        """End it at once; the next run mends what was cut off."""
        self._process.kill()

    def give_up(self) -> None:
        """End it at once, and wait for nothing: this object goes when its process has ended."""
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
        # Of a line without end one byte too many is kept, so that it is refused as too long.
        self._rest = lines.pop()[: LONGEST_EVENT + 1]
        parsed = (parse_line(line, self._parse) for line in lines)
        events = [event for event in parsed if event is not None]
        if events:
            self.events_received.emit(events)

    @Slot()
    def _read_words(self) -> None:
        text = bytes(self._process.readAllStandardError().data()).decode("utf-8", "replace")
        self._said = (self._said + text)[-SAID_AT_MOST:]

    @Slot(int, QProcess.ExitStatus)
    def _tell_end(self, code: int, status: QProcess.ExitStatus) -> None:
        self._read_events()
        self._read_words()
        if self._said:
            logger.warning("The engine said: %s", texts.plain(self._said))
        self.ended.emit(code if status is QProcess.ExitStatus.NormalExit else None)

    @Slot(QProcess.ProcessError)
    def _tell_failure(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self._said = self._process.errorString()
            self.ended.emit(None)


def parse_line(line: bytes, parse: Parse = parse_event) -> object | None:
    """Return the event of a line; None for what is none, or is unknown to this version."""
    try:
        record = parse_json(line, longest=LONGEST_EVENT)
        return parse(record) if isinstance(record, dict) else None
    except ValueError:
        logger.warning("The engine wrote a line that is no event: %s", texts.plain(line[:200]))
        return None


def describe_end(code: int | None, said: str) -> str:
    """Return the last words of a process that ended without any event, or how it ended."""
    how = "a crash" if code is None else f"exit code {code}"
    return next(reversed(said.strip().splitlines()), how)


FIRST: Final = 5.0  # seconds after the first unexpected end
LONGEST: Final = 1800.0


class RestartBackoff:
    """Longer after each end, until an engine has done some work."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._delay = 0.0
        self._due = -inf

    @property
    def is_over(self) -> bool:
        """Whether an engine may be started by itself now."""
        return self._now() >= self._due

    def begin(self) -> None:
        """An engine has ended unexpectedly."""
        self._delay = min(self._delay * 2, LONGEST) or FIRST
        self._due = self._now() + self._delay

    def forget(self) -> None:
        """An engine has worked, or what kept it from that is mended."""
        self._delay, self._due = 0.0, -inf
