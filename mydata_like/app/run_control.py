"""Control of a run by other processes of the same account, through files in the state folder.

A run writes its id, and why it is paused, next to the note of its lock. Another process writes a
command to this id there, each in a file of its own. The run looks for commands every second, and
removes each once it is executed. A later run has another id, so it ignores and removes them.
"""

import json
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Final, NamedTuple, Self

from mydata_like.app.settings_service import find_places, find_state
from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import Cancelled, Problem, RunError
from mydata_like.core.events import parse_problem
from mydata_like.core.ports import CancelSignal
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import repeated
from mydata_like.hostos.lock import find_note, find_shards, is_locked
from mydata_like.settings.schema import Settings
from mydata_like.state.state_files import RunCommand, RunStatus, load_record, save_record

logger = logging.getLogger(__name__)

COMMANDS: Final = ("pause", "resume", "stop_run")
LOOK_INTERVAL: Final = 1.0  # seconds between two looks for a command
PATIENCE: Final = 15.0  # seconds in which a run executes a command
_PROBE_TIME: Final = 3.0  # seconds in which a resumed run usually finds out whether it can continue
_WAIT_INTERVAL: Final = 0.1  # seconds


class ControlFiles(NamedTuple):
    """The files through which one run is controlled."""

    status: Path
    commands: Path  # the beginning of the commands' paths

    @classmethod
    def of(cls, state: Path, data_directory: bytes, shard: Shard = WHOLE) -> Self:
        """Return the files for the runs over a data directory, or over a shard of it."""
        note = find_note(state, data_directory, shard)
        return cls(
            note.with_name(f"{note.stem}-status.json"), note.with_name(f"{note.stem}-command")
        )

    def new_command(self) -> Path:
        """Return the path of a command that is executed after those that were given before."""
        return self.commands.with_name(
            f"{self.commands.name}-{time.time_ns():020}-{secrets.token_hex(4)}.json"
        )

    def find_commands(self) -> list[Path]:
        """Return the paths of the commands, the oldest first."""
        return sorted(self.commands.parent.glob(f"{escape(self.commands.name)}-*.json"))

    def remove_all(self) -> None:
        for file in (self.status, *self.find_commands()):
            _remove(file)


class RunControl:
    """Executes the commands of other processes, and writes why the run is paused."""

    def __init__(
        self, files: ControlFiles, run: str, gate: Gate, handle: Callable[[bytes], None]
    ) -> None:
        self._files = files
        self._run = run
        self._gate = gate
        self._handle = handle
        self._executed: set[str] = set()  # ids of commands, whose files may not be removable yet
        self._written: RunStatus | None = None

    def look(self) -> None:
        """Execute the commands that were given, and write the status if it has changed."""
        self._write_status()
        for file in self._files.find_commands():
            asked = load_record(file, RunCommand) if _is_ours(file) else None
            if asked is not None and asked.id not in self._executed:
                self._executed.add(asked.id)
                if asked.run == self._run and asked.command in COMMANDS:
                    self._handle(json.dumps({"command": asked.command, "id": asked.id}).encode())
            self._write_status()  # before the removal, which is the answer
            _remove(file)

    def _write_status(self) -> None:
        problem = self._gate.problem
        status = RunStatus(self._run, problem and problem._asdict())
        if status != self._written and save_record(self._files.status, status):
            self._written = status


@contextmanager
def controlled(
    files: ControlFiles, run: str, gate: Gate, handle: Callable[[bytes], None]
) -> Iterator[None]:
    """Let other processes control a run in this context; `handle` executes a command's line."""
    files.remove_all()  # what a run that was killed has left
    try:
        with repeated(RunControl(files, run, gate, handle).look, LOOK_INTERVAL):
            yield
    finally:
        files.remove_all()


def _is_ours(file: Path) -> bool:
    """Return whether a command was given by our account or by an administrator.

    The state folder may be one that others may write to; on Windows, its permissions decide.
    """
    if os.name != "posix":
        return True
    try:
        owner = file.lstat().st_uid
    except OSError:
        return False
    if owner in (0, os.geteuid()):
        return True
    logger.warning("%s is of another account (%d) and is not executed", file, owner)
    return False


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)


class ActiveRun(NamedTuple):
    """A run in progress that accepts commands; `paused` is why it is paused, if it is."""

    run: str
    files: ControlFiles
    paused: Problem | None = None


def find_active_run(state: Path, data_directory: bytes, shard: Shard = WHOLE) -> ActiveRun | None:
    """Return what is known about the run that holds the lock; None if it accepts no commands.

    That is a run of an earlier version or of another account.
    """
    files = ControlFiles.of(state, data_directory, shard)
    status = load_record(files.status, RunStatus)
    if status is None:
        return None
    return ActiveRun(status.run, files, _read_problem(status.paused))


def _read_problem(paused: Mapping[str, str] | None) -> Problem | None:
    try:
        return parse_problem(paused) if paused else None
    except ValueError:
        return None


def give_command(
    active: ActiveRun, command: str, cancel: CancelSignal, patience: float = PATIENCE
) -> Problem | None:
    """Give a command to a run, wait until it was executed, and return why the run is paused then.

    A resumed run has some seconds to find out whether it can continue. An ended run counts as
    stopped. Raises `RunError` if the command was not executed within the patience, in seconds, if
    the run has ended or cannot be paused any more, or if the state folder cannot be written.
    """
    order = RunCommand(active.run, command, secrets.token_hex(8))
    file = active.files.new_command()
    if not save_record(file, order):
        raise _no_answer("The command cannot be written into the state folder.")
    _wait_gone(file, active, cancel, patience)
    if command == "stop_run":
        return None
    status = load_record(active.files.status, RunStatus)
    if status is None or status.run != active.run:
        raise RunError("The run has just ended.", code="command.no-run")
    paused = _read_problem(status.paused)
    if command == "pause" and paused is None:
        raise RunError("The run is ending, so it cannot be paused.", code="command.too-late")
    left = round(_PROBE_TIME / _WAIT_INTERVAL) if command == "resume" else 0
    while paused and left and not cancel.wait(_WAIT_INTERVAL):
        status = load_record(active.files.status, RunStatus)
        paused = _read_problem(status.paused) if status else None
        left -= 1
    return paused


def _wait_gone(file: Path, active: ActiveRun, cancel: CancelSignal, patience: float) -> None:
    """Wait until the run has removed the command; it does so when it ends."""
    for _ in range(round(patience / _WAIT_INTERVAL)):
        if not file.exists():
            return
        if not active.files.status.exists():  # the run ended just before the command was written
            break
        if cancel.wait(_WAIT_INTERVAL):
            raise Cancelled
    ended = not active.files.status.exists()
    _remove(file)
    if not ended:
        raise _no_answer("The run does not answer.")


def control_runs(
    settings: Settings, config: Path | None, command: str, cancel: CancelSignal
) -> list[Problem | None]:
    """Give a command to all runs of this data directory on this computer.

    Return for each why it is paused afterwards, None if it is not.
    Raises `RunError` if one of them accepts no commands, or does not answer.
    """
    state = find_state(settings, find_places(config))
    root = os.fsencode(settings.data.directory or "")
    states: list[Problem | None] = []
    for shard in (WHOLE, *find_shards(state)):
        if not is_locked(state, root, shard):
            continue
        active = find_active_run(state, root, shard)
        if active is None:
            raise _no_answer("The run in progress accepts no commands.")
        states.append(give_command(active, command, cancel))
    return states


def _no_answer(message: str) -> RunError:
    return RunError(
        message,
        hint="It may be of an earlier version or of another account. Control it where it was "
        "started.",
        code="command.no-answer",
    )
