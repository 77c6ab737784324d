"""One run at a time per data directory: a lock that the system frees when its holder dies."""

import hashlib
import json
import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from mydata_like.core.errors import AlreadyRunningError, RunError
from mydata_like.core.format import format_path
from mydata_like.core.ports import Clock
from mydata_like.core.shards import WHOLE, Shard

logger = logging.getLogger(__name__)

WATCH_NOTE = "watch.json"
PROBE_PATIENCE = 1.0  # seconds; others may be looking at the same lock just now


@contextmanager
def lock_data_directory(
    state: Path, data_directory: bytes, clock: Clock, shard: Shard = WHOLE
) -> Iterator[None]:
    """Hold the lock of the data directory or of a shard, a file in the folder of our own state.

    Raises `AlreadyRunningError` when another run holds it or works on some of the same files,
    `RunError` where there can be no lock. What a killed run left behind never stands in the way.
    """
    name = format_path(os.path.realpath(data_directory))
    note = _note_file(state, data_directory)
    with _hold(_of(note, shard), _tell(name, shard), clock):
        # Ours is held first: of two that look at each other's at once, none misses the other.
        for other in _find_overlapping(note, shard):
            with _hold(_of(note, other), _tell(name, other), clock, PROBE_PATIENCE):
                pass
        yield


def _tell(name: str, shard: Shard) -> str:
    part = f"shard {shard} of " if shard != WHOLE else ""
    return f"Another run is at work on {part}{name}"


def _of(note: Path, shard: Shard) -> Path:
    """Return the note of a shard, given that of the whole."""
    return note.parent / shard.place / note.name


def _find_overlapping(note: Path, shard: Shard) -> list[Shard]:
    """Return the shards in which some of the same files lie and a run is, or was killed."""
    found = find_shards(note.parent)
    return [it for it in (WHOLE, *found) if it.total != shard.total and _of(note, it).exists()]


def find_shards(state: Path) -> list[Shard]:
    """Return the shards that have ever been at work with this state, in their order."""
    found = (re.fullmatch(r"shard-(\d+)-of-(\d+)", path.name) for path in state.glob("shard-*"))
    shards = (Shard(int(name[1]), int(name[2])) for name in found if name)
    return sorted(shards, key=lambda shard: (shard.total, shard.number))


def is_locked(state: Path, data_directory: bytes, clock: Clock, shard: Shard = WHOLE) -> bool:
    """Return whether a run is at work on the data directory or a shard; never in its way."""
    note = _of(_note_file(state, data_directory), shard)
    return note.exists() and _is_held(_hold(note, "", clock))


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
def _hold(note: Path, what: str, clock: Clock, patience: float = 0.0) -> Iterator[None]:
    state = note.parent
    lock = FileLock(note.with_suffix(".lock"), timeout=patience, mode=0o600)
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
