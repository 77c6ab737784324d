"""One run at a time per data directory: a lock that the system frees when its holder dies."""

import hashlib
import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from mydata_like.core.errors import AlreadyRunningError, RunError
from mydata_like.core.format import format_path
from mydata_like.core.ports import Clock

logger = logging.getLogger(__name__)

WATCH_NOTE = "watch.json"


@contextmanager
def lock_data_directory(state: Path, data_directory: bytes, clock: Clock) -> Iterator[None]:
    """Hold the data directory's lock, whose file lies in the folder of our own state.

    Raises `AlreadyRunningError` at once when another run holds it, `RunError` where there can
    be no lock. What a killed run left behind never stands in the way.
    """
    what = f"Another run is at work on {format_path(os.path.realpath(data_directory))}"
    with _hold(_note_file(state, data_directory), what, clock):
        yield


def is_locked(state: Path, data_directory: bytes, clock: Clock) -> bool:
    """Return whether a run is at work on the data directory; never in the way of one."""
    note = _note_file(state, data_directory)
    return note.exists() and _is_held(lock_data_directory(state, data_directory, clock))


def is_watched(state: Path, clock: Clock) -> bool:
    """Return whether a watch is at work; never in the way of one."""
    return (state / WATCH_NOTE).exists() and _is_held(lock_watch(state, clock))


def _is_held(lock: AbstractContextManager[None]) -> bool:
    """Return whether a lock with a note is held: a killed holder has left its note, too."""
    try:
        with lock:
            return False
    except AlreadyRunningError:
        return True


@contextmanager
def lock_watch(state: Path, clock: Clock) -> Iterator[None]:
    """Be the one `watch` of this installation; raises as `lock_data_directory` does."""
    with _hold(state / WATCH_NOTE, "Another watch is at work here", clock):
        yield


def _note_file(state: Path, data_directory: bytes) -> Path:
    """Return where it is noted who works on the data directory; the lock lies beside."""
    name = hashlib.sha256(os.path.realpath(data_directory)).hexdigest()[:16]
    return state / f"run-{name}.json"


@contextmanager
def _hold(note: Path, what: str, clock: Clock) -> Iterator[None]:
    state = note.parent
    lock = FileLock(note.with_suffix(".lock"), timeout=0, mode=0o600)
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise AlreadyRunningError(
            f"{what}{_describe_holder(note)}.",
            hint="Wait until it has ended, or stop it there.",
        ) from None
    except (OSError, NotImplementedError) as error:
        raise RunError(
            f"No lock can be made in {state}: {error}.",
            hint="Choose a folder on a local disk in advanced.state_directory.",
            code="lock.failed",
        ) from error
    try:
        _write_note(note, clock)
        yield
        note.unlink(missing_ok=True)
    finally:
        lock.release()


def _write_note(note: Path, clock: Clock) -> None:
    """Say who holds the lock, for those who come in vain."""
    facts = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": clock.now().isoformat(),
    }
    draft = note.with_suffix(".new")
    try:
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(facts), encoding="utf-8")
        draft.replace(note)
    except OSError as error:
        logger.warning("The lock's note %s could not be written: %s", note, error)


def _describe_holder(note: Path) -> str:
    """Return since when, where and as which process the other run works, if it has said so."""
    try:
        facts = json.loads(note.read_text(encoding="utf-8"))
        since = datetime.fromisoformat(facts["started"]).astimezone(UTC)
        return f" since {since:%Y-%m-%d %H:%M} UTC (process {facts['pid']} on {facts['host']})"
    except (OSError, ValueError, TypeError, KeyError):
        return ""
