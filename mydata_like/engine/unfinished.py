"""Files that may not be finished: a program has them open, or they are dated in the future."""

import json
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from mydata_like.core.errors import Problem
from mydata_like.core.events import Notice
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import LocalFile
from mydata_like.core.parsing import parse_json
from mydata_like.core.ports import Clock, Emit, FindWriters
from mydata_like.engine.pipeline import Lock

HOUR_NS: Final = 3600 * 10**9
ASKED_NS: Final = 24 * HOUR_NS  # age of a change up to which programs are searched for
PATIENCE_NS: Final = 12 * HOUR_NS  # age of a change after which an open file is sent
MOST: Final = 10_000  # dates in the future that are remembered
_SEEN: Final = "dates in the future"  # the name of what is remembered
_LONGEST: Final = MOST * 5_000  # characters of all that is remembered; a path has 4,096 at most
_STATE: Final = 4  # numbers for each file: its size and times, and when it was first seen

_FUTURE: Final = Problem(
    "waiting.future",
    "The file's modification time is in the future.",
    "A later run uploads it if it has not changed by then. Check the clocks of this computer and "
    "of the one that wrote the file.",
)


class Memory(Protocol):
    """What outlives a run: the ledger."""

    def find_meta(self, key: str) -> str | None: ...

    def record_meta(self, key: str, value: str) -> None: ...


class UnfinishedFiles:
    """The search for files that must wait although they have settled.

    The time of a file that is dated in the future says nothing about when it was changed. It has
    settled when our own clock has seen it unchanged for `settle` seconds, in this run or from an
    earlier one on. Safe to call from any thread.
    """

    def __init__(
        self,
        find_writers: FindWriters,
        memory: Memory,
        clock: Clock,
        emit: Emit,
        settle: float,
        *,
        dry_run: bool = False,
    ) -> None:
        self._find_writers = find_writers
        self._memory = memory
        self._clock = clock
        self._emit = emit
        self._settle_ns = round(settle * 1e9)
        self._dry_run = dry_run
        self._lock = Lock()
        self._seen: dict[str, list[int]] | None = None  # by key

    def __call__(self, files: Sequence[LocalFile]) -> dict[bytes, Problem]:
        """Return by key why some of the files wait; report what a run sends nevertheless."""
        now = round(self._clock.now().timestamp() * 1e9)
        waiting = self._find_open(files, now)
        dated = [it for it in files if it.modified_ns > now and it.key not in waiting]
        return waiting | self._find_unsettled(dated, now) if dated else waiting

    def _find_open(self, files: Sequence[LocalFile], now: int) -> dict[bytes, Problem]:
        ages = {file.key: _find_age(file, now) for file in files}
        asked = [file for file in files if ages[file.key] < ASKED_NS]
        writers = self._find_writers(asked) if asked else {}
        late = [it for it in asked if it.key in writers and ages[it.key] >= PATIENCE_NS]
        if late and not self._dry_run:
            self._emit(Notice(problem=_sent_open(late, writers)))
        found = ((key, name) for key, name in writers.items() if ages[key] < PATIENCE_NS)
        return {key: _open_in(name) for key, name in found}

    def _find_unsettled(self, files: Sequence[LocalFile], now: int) -> dict[bytes, Problem]:
        with self._lock:
            since = {file.key: self._note(file, now) for file in files}
            if not self._dry_run:
                self._remember()
        waiting = {key: _FUTURE for key, at in since.items() if at > now - self._settle_ns}
        settled = [file for file in files if file.key not in waiting]
        if settled and not self._dry_run:
            self._emit(Notice(problem=_sent_dated(settled)))
        return waiting

    def _note(self, file: LocalFile, now: int) -> int:
        """Return when this state of a file was seen first, in nanoseconds since 1970."""
        if self._seen is None:
            self._seen = _parse(self._memory.find_meta(_SEEN))
        name = file.key.decode("utf-8", "surrogateescape")
        state = [file.size, file.modified_ns, file.ctime_ns]
        known = self._seen.get(name, [])
        if known[:3] != state or known[3] > now:  # our clock was set back
            self._seen[name] = known = [*state, now]
        return known[3]

    def _remember(self) -> None:
        newest = sorted((self._seen or {}).items(), key=lambda item: item[1][3])[-MOST:]
        self._memory.record_meta(_SEEN, json.dumps(dict(newest)))


def _parse(text: str | None) -> dict[str, list[int]]:
    """Return what is remembered; nothing if it is damaged."""
    try:
        seen = parse_json(text or "{}", longest=_LONGEST)
    except ValueError:
        return {}
    return {name: state for name, state in seen.items() if len(state) == _STATE}


def _find_age(file: LocalFile, now: int) -> int:
    """Return for how many nanoseconds a file has not changed; times in the future do not count."""
    changes = [at for at in (file.modified_ns, file.ctime_ns) if at <= now]
    return now - max(changes, default=now)


def _open_in(program: str) -> Problem:
    return Problem(
        "waiting.open",
        f"{program} has the file open and may still write to it.",
        "A later run uploads it, once it is closed or has not changed for 12 hours.",
    )


def _sent_open(files: Sequence[LocalFile], writers: Mapping[bytes, str]) -> Problem:
    return Problem(
        "file.sent-open",
        f"{_name(files)} sent while open in {writers[files[0].key]}.",
        "Open files are sent when they have not changed for 12 hours, and again if they change.",
    )


def _sent_dated(files: Sequence[LocalFile]) -> Problem:
    return Problem(
        "file.sent-future",
        f"{_name(files)} sent with a modification time in the future.",
        "Check the clocks of this computer and of the one that wrote the file.",
    )


def _name(files: Sequence[LocalFile]) -> str:
    first, others = format_path(files[0].key), len(files) - 1
    return f"{first} and {others:,} other files are" if others else f"{first} is"
