"""The small files of the state folder: their names, what each holds, and how it is kept there.

Each is private (0600). A record is one JSON object, replaced atomically; a log is one JSON object
a line, to which lines are appended. What is read is bounded and checked against the type of its
record. Except for the deletion log, losing a file costs little: a file that is missing or damaged
holds nothing, and a disk that takes nothing stops nothing.
"""

import json
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from types import TracebackType, UnionType
from typing import Any, BinaryIO, Final, NamedTuple, Self, TypeVar, get_args, get_origin
from urllib.parse import urlsplit

from mydata_like.core.deletion import DeletedFile
from mydata_like.core.errors import Problem, RunError, SettingsError
from mydata_like.core.formatting import format_path
from mydata_like.core.parsing import LONGEST_FILE, parse_json, parse_moment
from mydata_like.core.ports import Clock
from mydata_like.settings.atomic_write import (
    load_json,
    load_limited,
    make_private_file,
    require_plain,
    write_private,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Names of files; `*` stands for the server, where each has a file of its own.
APPROVAL: Final = "standing-*.json"
CLEANUP: Final = "staging-folders-*.json"
DELETIONS: Final = "freed.jsonl"
HEARTBEAT: Final = "heartbeat.json"
SCHEDULE: Final = "schedule.json"
SERVER_SETTINGS: Final = "server-settings-*.json"
SPEED_TESTS: Final = "speed-tests.jsonl"
VISITED: Final = "staging-folders-*.jsonl"
NAMES: Final = (
    *(APPROVAL, CLEANUP, DELETIONS, HEARTBEAT, SCHEDULE, SERVER_SETTINGS, SPEED_TESTS, VISITED),
)

SPEED_TESTS_KEPT: Final = 50
_MOST_SPEED_TESTS: Final = 1000  # that are read from a file that somebody has edited
_LARGEST_SPEED_TESTS: Final = 4 * 1024 * 1024  # bytes; one speed test has about 10 kB


def find_file(state: Path, name: str, server_url: str = "") -> Path:
    """Return where a file of this name is in the state folder."""
    return state / name.replace("*", urlsplit(server_url).netloc.replace(":", "_"))


# Records


class PendingApproval(NamedTuple):
    """An approval that is waited for: of which key, since when, and what keeps it out."""

    fingerprint: str
    since: datetime
    problem: Problem


@dataclass(frozen=True, slots=True)
class ApprovalState:
    """What the server was told of us last (its digest) and when; who lets us in; who does not.

    `let_in` names the key and the hosts that a channel was last opened to with it.
    """

    told: str = ""
    told_at: datetime | None = None
    awaited: PendingApproval | None = None
    let_in: str = ""


def load_approval(file: Path) -> ApprovalState:
    """Return what is remembered of how we stand with a server."""
    return load_record(file, ApprovalState) or ApprovalState()


class Heartbeat(NamedTuple):
    """What a `watch` reported last: when, as which process, what it does and what comes next.

    `state` is "waiting", "running" or "paused", or "stopped" when it ended regularly; `last`
    are the sums of its last run, as of the event `run_finished`.
    """

    at: datetime
    pid: int
    version: str
    state: str
    since: datetime  # of the state
    next_start: datetime | None = None
    problem: Mapping[str, str] | None = None
    last: Mapping[str, object] | None = None


class ServerSettings(NamedTuple):
    """The settings that a server keeps for this uploader, as they were when it was asked last.

    `texts` are by key, `updated` is the server's own text for when they were changed last. A
    server reports times of its own zone without naming it: `offset` is what its clock shows ahead
    of ours in UTC, learnt from a time that it wrote at our request. `changed_at` is our time of
    the last change (UTC), None while that is unknown; `seen_at` is when the server was asked last.
    """

    texts: Mapping[str, str]
    updated: str
    changed_at: datetime | None
    seen_at: datetime
    offset: float | None = None  # seconds

    def renew(self, texts: Mapping[str, str], updated: str, now: datetime) -> "ServerSettings":
        """Return what is known after the server was asked again."""
        changed_at = self.changed_at
        if updated != self.updated:
            # It was since we asked last, whatever its clock shows: that may have gone over to
            # summer time, or not be known at all.
            changed_at = to_utc(updated, self.offset) or now
            changed_at = min(max(changed_at, self.seen_at), now)
        return self._replace(texts=texts, updated=updated, changed_at=changed_at, seen_at=now)

    def learn(self, written: str, now: datetime) -> "ServerSettings":
        """Return what is known once the server wrote its time of this moment for us.

        It takes the place of the time of the last change, which is now known in ours.
        """
        naive = parse_naive(written)
        if naive is None:
            return self
        offset = (naive.replace(tzinfo=UTC) - now).total_seconds()
        changed_at = self.changed_at or to_utc(self.updated, offset)
        return self._replace(updated=written, changed_at=changed_at, offset=offset)


def first_seen(texts: Mapping[str, str], updated: str, now: datetime) -> ServerSettings:
    """Return what is known when a server is asked for the first time."""
    return ServerSettings(texts, updated, None, now)


def to_utc(text: str, offset: float | None) -> datetime | None:
    """Return our time (UTC) of a server's text, None where that cannot be known."""
    naive = parse_naive(text)
    if naive is None or offset is None:
        return None
    try:
        return naive.replace(tzinfo=UTC) - timedelta(seconds=offset)
    except (OverflowError, ValueError):  # beyond every calendar, or no number of seconds
        return None


def parse_naive(text: str) -> datetime | None:
    """Return a server's time as its clocks show it; None for an unreadable text."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


class TimestampStore:
    """Times that outlive the program, by name; kept in memory only where the disk takes nothing.

    Safe to call from any thread.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = Lock()
        self._times = load_record(file, dict[str, datetime]) or {}

    def find(self, name: str) -> datetime | None:
        """Return a time, or None where there is none of this name."""
        return self._times.get(name)

    def keep(self, name: str, moment: datetime | None) -> None:
        """Remember a time, or forget it."""
        with self._lock:
            if self._times.get(name) == moment:
                return
            self._times.pop(name, None)
            if moment is not None:
                self._times[name] = moment.astimezone(UTC)
            save_record(self._file, self._times)

    def keep_alone(self, name: str, moment: datetime) -> None:
        """Remember a time and forget all others whose name begins with the same word."""
        word = name.partition(" ")[0]
        with self._lock:
            for other in [other for other in self._times if other.partition(" ")[0] == word]:
                del self._times[other]
            self._times[name] = moment.astimezone(UTC)
            save_record(self._file, self._times)


# Logs


class _Deletion(NamedTuple):
    """What a line of the deletion log says, as far as it is read again."""

    path: str
    deleted: bool
    md5: str = ""


def load_deletions(file: Path) -> frozenset[tuple[str, str]]:
    """Return path and checksum of every file that was deleted; damaged lines are left out.

    Raises `RunError` where the log is there and cannot be read.
    """
    deleted: dict[str, str] = {}
    try:
        for line in _iter_lines(file, _Deletion):
            if line.deleted:
                deleted[line.path] = line.md5
            else:
                deleted.pop(line.path, None)
    except OSError as error:
        raise RunError(
            f"The log of deletions {file} cannot be read: {error.strerror or error}.",
            hint="Check its permissions.",
            code="free.no-log",
        ) from error
    return frozenset(deleted.items())


class DeletionLogFile:
    """Logs every local file that is deleted to free space, before it is deleted.

    Raises `RunError` where the disk takes nothing: then nothing may be deleted.
    """

    def __init__(self, file: Path, clock: Clock) -> None:
        self._clock = clock
        self._path = file
        try:
            self._file = _open_to_append(file)
        except OSError as error:
            raise self._failed(error) from error

    def note(self, freed: DeletedFile) -> None:
        """Log that a file is about to be deleted, and where its bytes are."""
        entry = freed.entry
        self._write(
            freed,
            size=freed.size,
            md5=entry.checksum,
            dataset=entry.dataset,
            datafile=freed.datafile,
            archive=entry.archive or None,
            deleted=True,
        )

    def take_back(self, freed: DeletedFile, problem: Problem) -> None:
        """Log that a file whose deletion was logged is still there."""
        self._write(freed, deleted=False, problem=problem.code)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, freed: DeletedFile, **facts: object) -> None:
        record = {"at": self._clock.now(), "path": format_path(freed.key), **facts}
        try:
            self._file.write(_format_line(record))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> RunError:
        return RunError(
            f"The log of deletions {self._path} cannot be written: {error.strerror or error}.",
            hint="Nothing was deleted. Check that the disk is not full, and its permissions.",
            code="free.no-log",
        )


class _Visit(NamedTuple):
    """When something was sent to a folder of the staging area."""

    at: datetime
    folder: str


class VisitedFolders:
    """The folders of the staging area into which files were sent, and when last.

    Folders are paths below the location. Losing the file costs only that what was left behind
    there is never removed. Safe to call from any thread.
    """

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._lock = Lock()
        self._noted: set[str] = set()  # since the program started

    def note(self, folders: Iterable[str]) -> None:
        """Remember that something is about to be sent there; a full disk stops nothing."""
        with self._lock:
            new = set(folders) - self._noted
            if not new:
                return
            self._noted |= new
            now = self._clock.now()
            try:
                with _open_to_append(self._file) as stream:
                    stream.writelines(_format_line(_Visit(now, folder)) for folder in sorted(new))
            except (OSError, SettingsError) as error:
                logger.warning("%s cannot be written: %s", self._file, error)

    def find(self, before: datetime) -> Mapping[str, datetime]:
        """Return the folders into which nothing was sent since a moment."""
        return {folder: at for folder, at in self._load().items() if at <= before}

    def forget(self, folders: Collection[str]) -> None:
        """Remember these no longer."""
        with self._lock:
            visits = (_Visit(at, folder) for folder, at in self._load().items())
            rest = [_format_line(visit) for visit in visits if visit.folder not in folders]
            try:
                write_private(self._file, b"".join(rest))
            except SettingsError as error:
                logger.warning("%s", error)

    def _load(self) -> dict[str, datetime]:
        """Return when something was last sent to each folder."""
        found: dict[str, datetime] = {}
        try:
            for visit in _iter_lines(self._file, _Visit):
                found[visit.folder] = max(visit.at, found.get(visit.folder, visit.at))
        except OSError:
            return {}
        return found


def add_speed_test(file: Path, record: Mapping[str, object]) -> None:
    """Add a speed test, or more about the latest; the oldest go when there are too many.

    Raises SettingsError.
    """
    kept = read_speed_tests(file)
    if kept and "at" in record and kept[-1].get("at") == record["at"]:
        del kept[-1]
    kept = [*kept[-(SPEED_TESTS_KEPT - 1) :], record]
    write_private(file, b"".join(_format_line(each) for each in kept))


def read_speed_tests(file: Path) -> list[Mapping[str, Any]]:
    """Return all speed tests that can be read, the latest last."""
    try:
        lines = load_limited(file, _LARGEST_SPEED_TESTS).splitlines()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        logger.warning("%s cannot be read: %s", file, error)
        return []
    return list(_parse_lines(lines[-_MOST_SPEED_TESTS:], dict))


# Reading and writing


def load_record(file: Path, kind: type[T]) -> T | None:
    """Return the record that a file holds; None where it is missing or damaged."""
    try:
        record: T = parse_plain(load_json(file), kind)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        logger.warning("%s cannot be read: %s", file, error)
        return None
    return record


def save_record(file: Path, record: object) -> None:
    """Replace what a file holds; a disk that does not take it is no reason to stop."""
    try:
        write_private(file, json.dumps(to_plain(record), indent=1).encode())
    except SettingsError as error:
        logger.warning("%s", error)


def to_plain(value: Any) -> Any:
    """Return a record, or a part of one, as plain values for JSON."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: to_plain(part) for name, part in value.items()}
    if fields := _fields(type(value)):
        return {name: to_plain(getattr(value, name)) for name in fields}
    return value


def parse_plain(value: Any, kind: Any) -> Any:
    """Return the value of a type that `to_plain` made plain values of.

    Fields may be missing where they have a default, and others may be there. Raises ValueError or
    TypeError where the values are others.
    """
    if isinstance(kind, UnionType):  # something or None
        return None if value is None else parse_plain(value, get_args(kind)[0])
    if kind is datetime:
        return parse_moment(value)
    fields, origin = _fields(kind), get_origin(kind)
    plain: Any = dict if fields else (int, float) if kind is float else origin or kind
    if not isinstance(value, plain):
        raise TypeError(f"a {type(value).__name__} in the place of {kind}")
    if fields:
        known = {name: parse_plain(value[name], fields[name]) for name in fields if name in value}
        return kind(**known)
    if origin:  # a mapping
        part = get_args(kind)[1]
        return {name: parse_plain(each, part) for name, each in value.items()}
    return value


def _fields(kind: Any) -> Mapping[str, Any]:
    """Return the fields of a record's class with their types; of other types none."""
    return getattr(kind, "__annotations__", {}) if isinstance(kind, type) else {}


def _iter_lines(file: Path, kind: type[T]) -> Iterator[T]:
    """Yield the records of a log; of one that is missing none. Raises OSError."""
    require_plain(file)
    try:
        stream = file.open("rb")
    except FileNotFoundError:
        return
    with stream:
        yield from _parse_lines(iter(lambda: stream.readline(LONGEST_FILE), b""), kind)


def _parse_lines(lines: Iterable[bytes], kind: type[T]) -> Iterator[T]:
    """Yield the records of lines; one that was cut off, or edited, is left out."""
    for line in lines:
        try:
            record = parse_plain(parse_json(line), kind)
        except (ValueError, TypeError):
            continue
        yield record


def _format_line(record: object) -> bytes:
    return json.dumps(to_plain(record)).encode() + b"\n"


def _open_to_append(file: Path) -> BinaryIO:
    """Open a log; a last line that was cut off is ended, so that it spoils no other.

    Raises as `make_private_file` does.
    """
    make_private_file(file)
    stream = file.open("a+b")
    if stream.seek(0, os.SEEK_END):
        stream.seek(-1, os.SEEK_END)
        if stream.read(1) != b"\n":
            stream.write(b"\n")
    return stream
