"""The small files of the state folder: names, contents and storage.

Each file is private (0600). A record is one JSON object, replaced atomically; a log has one JSON
object per line, and lines are appended. Sizes are limited, and values are checked against the type
of their record. Except for the deletion log, losing a file costs little: a missing or damaged file
counts as empty, and a disk that cannot be written stops nothing.
"""

import json
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from types import UnionType
from typing import Any, BinaryIO, Final, NamedTuple, Self, TypeVar, get_args, get_origin
from urllib.parse import urlsplit

from mydata_like.core.checksums import Algorithm
from mydata_like.core.deletion import DeletedFile
from mydata_like.core.errors import Problem, RunError, SettingsError
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
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

# File names; `*` stands for the server, if each server has its own file.
APPROVAL: Final = "standing-*.json"
CLEANUP: Final = "staging-folders-*.json"
DELETIONS: Final = "freed.jsonl"
HEARTBEAT: Final = "heartbeat.json"
HOSTS: Final = "staging-hosts-*.json"
SCHEDULE: Final = "schedule.json"
SERVER_SETTINGS: Final = "server-settings-*.json"
SPEED_TESTS: Final = "speed-tests.jsonl"
VISITED: Final = "staging-folders-*.jsonl"
NAMES: Final = (
    *(APPROVAL, CLEANUP, DELETIONS, HEARTBEAT, HOSTS, SCHEDULE, SERVER_SETTINGS, SPEED_TESTS),
    VISITED,
)

SPEED_TESTS_KEPT: Final = 50
_MOST_SPEED_TESTS: Final = 1000  # limit for a file that the user may have edited
_LARGEST_SPEED_TESTS: Final = 4 * 1024 * 1024  # bytes; one speed test has about 10 kB


def find_file(state: Path, name: str, server_url: str = "") -> Path:
    """Return the path of a file of this name in the state folder."""
    return state / name.replace("*", urlsplit(server_url).netloc.replace(":", "_"))


# Records


class PendingApproval(NamedTuple):
    """A pending approval: for which key, since when, and what it waits for."""

    fingerprint: str
    since: datetime
    problem: Problem


@frozen()
class ApprovalState:
    """The digest and time of our last report to the server, the approved key, and the pending one.

    `let_in` names the key and the hosts to which a channel was last opened with it.
    """

    told: str = ""
    told_at: datetime | None = None
    awaited: PendingApproval | None = None
    let_in: str = ""


def load_approval(file: Path) -> ApprovalState:
    """Return the stored approval state for a server."""
    return load_record(file, ApprovalState) or ApprovalState()


class HostRecord(NamedTuple):
    """The capabilities of a staging host (`ssh.capabilities`), and when they were found."""

    at: datetime
    access: str
    why: str
    tar: str
    checksum: str
    cpus: int | None
    zstd: bool
    times: bool = True
    renames: bool = True
    lacks: str = ""
    doubtful: bool = False
    gcm_only: bool = False
    sha256: str = ""


class Heartbeat(NamedTuple):
    """The last report of `watch`: when, by which process, its state and its next run.

    `state` is "waiting", "running" or "paused", or "stopped" after a regular end; `last` has the
    totals of its last run, as in the event `run_finished`.
    """

    at: datetime
    pid: int
    version: str
    state: str
    since: datetime  # of the state
    next_start: datetime | None = None
    problem: Mapping[str, str] | None = None
    last: Mapping[str, object] | None = None


class RunStatus(NamedTuple):
    """What a run in progress reports about itself: its id, and why it is paused, if it is."""

    run: str
    paused: Mapping[str, str] | None = None


class RunCommand(NamedTuple):
    """A command from another process to the run with this id; `id` is that of the command."""

    run: str
    command: str
    id: str


class FileState(NamedTuple):
    """A local file in one state, as in `core.model.ChangedFile`."""

    size: int
    modified_ns: int
    ctime_ns: int
    inode: int


class HeldChoices(NamedTuple):
    """A user's choice for held files, by key; undecodable bytes of a key are surrogates."""

    choice: str
    files: Mapping[str, FileState]


class ServerSettings(NamedTuple):
    """The settings that a server stores for this uploader, as of the last query.

    `texts` are by key; `updated` is the server's own text for the time of the last change. A server
    reports local times without a zone: `offset` is the difference between its clock and UTC,
    measured with a time that it wrote at our request. `changed_at` is the time of the last change
    in UTC, None if unknown; `seen_at` is the time of the last query.
    """

    texts: Mapping[str, str]
    updated: str
    changed_at: datetime | None
    seen_at: datetime
    offset: float | None = None  # seconds

    def renew(self, texts: Mapping[str, str], updated: str, now: datetime) -> "ServerSettings":
        """Return the settings after a further query."""
        changed_at = self.changed_at
        if updated != self.updated:
            # It changed after the last query, whatever the server's clock shows: the offset may
            # have changed with daylight saving time, or may be unknown.
            changed_at = to_utc(updated, self.offset) or now
            changed_at = min(max(changed_at, self.seen_at), now)
        return self._replace(texts=texts, updated=updated, changed_at=changed_at, seen_at=now)

    def learn(self, written: str, now: datetime) -> "ServerSettings":
        """Return the settings with the offset measured by a time that the server has just written.

        That time replaces the time of the last change, which is now known in UTC.
        """
        naive = parse_naive(written)
        if naive is None:
            return self
        offset = (naive.replace(tzinfo=UTC) - now).total_seconds()
        changed_at = self.changed_at or to_utc(self.updated, offset)
        return self._replace(updated=written, changed_at=changed_at, offset=offset)


def first_seen(texts: Mapping[str, str], updated: str, now: datetime) -> ServerSettings:
    """Return the settings after the first query of a server."""
    return ServerSettings(texts, updated, None, now)


def to_utc(text: str, offset: float | None) -> datetime | None:
    """Return a server's time in UTC, or None if it cannot be determined."""
    naive = parse_naive(text)
    if naive is None or offset is None:
        return None
    try:
        return naive.replace(tzinfo=UTC) - timedelta(seconds=offset)
    except (OverflowError, ValueError):  # out of range, or not a number of seconds
        return None


def parse_naive(text: str) -> datetime | None:
    """Parse a server's local time; None for an invalid text."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


class TimestampStore:
    """Times by name that survive a restart; in memory only if the disk cannot be written.

    Safe to call from any thread.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = Lock()
        self._times = load_record(file, dict[str, datetime]) or {}

    def find(self, name: str) -> datetime | None:
        """Return the time with this name, or None."""
        return self._times.get(name)

    def keep(self, name: str, moment: datetime | None) -> None:
        """Store a time, or remove it."""
        with self._lock:
            if self._times.get(name) == moment:
                return
            self._times.pop(name, None)
            if moment is not None:
                self._times[name] = moment.astimezone(UTC)
            save_record(self._file, self._times)

    def keep_alone(self, name: str, moment: datetime) -> None:
        """Store a time and remove all others whose name begins with the same word."""
        word = name.partition(" ")[0]
        with self._lock:
            for other in [other for other in self._times if other.partition(" ")[0] == word]:
                del self._times[other]
            self._times[name] = moment.astimezone(UTC)
            save_record(self._file, self._times)


# Logs


class LoggedDeletion(NamedTuple):
    """The fields of a line of the deletion log that are read again.

    A file that a killed process has not deleted may have the name `aside`; `key` is its own, in
    hexadecimal.
    """

    path: str
    deleted: bool
    md5: str = ""
    sha256: str = ""
    aside: str = ""
    key: str = ""


def load_deletions(file: Path) -> frozenset[tuple[str, str]]:
    """Return path and checksum of every deleted file; damaged lines are skipped.

    Raises `RunError` if the log exists and cannot be read.
    """
    deleted: dict[str, str] = {}
    try:
        for line in _iter_lines(file, LoggedDeletion):
            if line.deleted:
                deleted[line.path] = line.md5 or line.sha256
            else:
                deleted.pop(line.path, None)
    except OSError as error:
        raise RunError(
            f"The deletion log {file} cannot be read: {error.strerror or error}.",
            hint="Check its permissions.",
            code="free.no-log",
        ) from error
    return frozenset(deleted.items())


def find_unfinished_deletion(file: Path) -> LoggedDeletion | None:
    """Return the last deletion in the log, unless it is known to be over."""
    try:
        require_plain(file)
        with file.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - LONGEST_FILE))
            *_, last = _parse_lines(stream.read().splitlines(), LoggedDeletion)
    except (OSError, ValueError):  # no log, or an empty one
        return None
    return last if last.deleted and last.aside else None


class DeletionLogFile:
    """Logs every local file that is deleted to free space, before its deletion.

    Raises `RunError` if the disk cannot be written; then nothing may be deleted.
    """

    def __init__(self, file: Path, clock: Clock) -> None:
        self._clock = clock
        self._path = file
        try:
            self._file = _open_to_append(file)
        except OSError as error:
            raise self._failed(error) from error

    def note(self, freed: DeletedFile) -> None:
        """Log that a file is about to be deleted, and where its bytes are stored."""
        entry = freed.entry
        self._write(
            freed.key,
            size=freed.size,
            dataset=entry.dataset,
            datafile=freed.datafile,
            archive=entry.archive or None,
            deleted=True,
            **{Algorithm.of(entry.checksum).value: entry.checksum},
            **({"aside": freed.aside, "key": freed.key.hex()} if freed.aside else {}),
        )

    def take_back(self, freed: DeletedFile, problem: Problem) -> None:
        """Log that a file whose deletion was logged still exists."""
        self._write(freed.key, deleted=False, problem=problem.code)

    def restored(self, unfinished: LoggedDeletion) -> None:
        """Log that a file still exists whose deletion a killed process had not finished."""
        self._write(bytes.fromhex(unfinished.key), deleted=False, problem="free.interrupted")

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, key: bytes, /, **facts: object) -> None:
        record = {"at": self._clock.now(), "path": format_path(key), **facts}
        try:
            self._file.write(_format_line(record))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> RunError:
        return RunError(
            f"The deletion log {self._path} cannot be written: {error.strerror or error}.",
            hint="Nothing was deleted. Check the free space of the disk and the permissions of "
            "the file.",
            code="free.no-log",
        )


class _Visit(NamedTuple):
    """A folder of the staging area, and when something was last sent to it."""

    at: datetime
    folder: str


class VisitedFolders:
    """The folders of the staging area to which files were sent, with the time of the last one.

    Folders are paths below the location. If the file is lost, files left behind there are never
    removed. Safe to call from any thread.
    """

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._lock = Lock()
        self._noted: set[str] = set()  # since the program started

    def note(self, folders: Iterable[str]) -> None:
        """Record that something is about to be sent to folders; a full disk stops nothing."""
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
        """Return the folders to which nothing was sent since a time."""
        return {folder: at for folder, at in self._load().items() if at <= before}

    def forget(self, folders: Collection[str]) -> None:
        """Remove folders from the record."""
        with self._lock:
            visits = (_Visit(at, folder) for folder, at in self._load().items())
            rest = [_format_line(visit) for visit in visits if visit.folder not in folders]
            try:
                write_private(self._file, b"".join(rest))
            except SettingsError as error:
                logger.warning("%s", error)

    def _load(self) -> dict[str, datetime]:
        """Return the time of the last transfer to each folder."""
        found: dict[str, datetime] = {}
        try:
            for visit in _iter_lines(self._file, _Visit):
                found[visit.folder] = max(visit.at, found.get(visit.folder, visit.at))
        except OSError:
            return {}
        return found


def add_speed_test(file: Path, record: Mapping[str, object]) -> None:
    """Add a speed test, or update the latest; the oldest ones are removed beyond a limit.

    Raises SettingsError.
    """
    kept = read_speed_tests(file)
    if kept and "at" in record and kept[-1].get("at") == record["at"]:
        del kept[-1]
    kept = [*kept[-(SPEED_TESTS_KEPT - 1) :], record]
    write_private(file, b"".join(_format_line(each) for each in kept))


def read_speed_tests(file: Path) -> list[Mapping[str, Any]]:
    """Return all readable speed tests, the latest last."""
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
    """Return the record in a file; None if it is missing or damaged."""
    try:
        record: T = parse_plain(load_json(file), kind)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        logger.warning("%s cannot be read: %s", file, error)
        return None
    return record


def save_record(file: Path, record: object) -> bool:
    """Replace the record in a file, and return whether that succeeded; errors are only logged."""
    try:
        write_private(file, json.dumps(to_plain(record), indent=1).encode())
    except SettingsError as error:
        logger.warning("%s", error)
        return False
    return True


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
    """Return a value of a type from the result of `to_plain`.

    Fields with a default may be missing, and unknown ones are ignored. Raises ValueError or
    TypeError for values of other types.
    """
    if isinstance(kind, UnionType):  # an optional type
        return None if value is None else parse_plain(value, get_args(kind)[0])
    if kind is datetime:
        return parse_moment(value)
    fields, origin = _fields(kind), get_origin(kind)
    plain: Any = dict if fields else (int, float) if kind is float else origin or kind
    if not isinstance(value, plain):
        raise TypeError(f"a {type(value).__name__} instead of {kind}")
    if fields:
        known = {name: parse_plain(value[name], fields[name]) for name in fields if name in value}
        return kind(**known)
    if origin:  # a mapping
        part = get_args(kind)[1]
        return {name: parse_plain(each, part) for name, each in value.items()}
    return value


def _fields(kind: Any) -> Mapping[str, Any]:
    """Return the fields of a record's class with their types; empty for other types."""
    return getattr(kind, "__annotations__", {}) if isinstance(kind, type) else {}


def _iter_lines(file: Path, kind: type[T]) -> Iterator[T]:
    """Yield the records of a log; nothing if it is missing. Raises OSError."""
    require_plain(file)
    try:
        stream = file.open("rb")
    except FileNotFoundError:
        return
    with stream:
        yield from _parse_lines(iter(lambda: stream.readline(LONGEST_FILE), b""), kind)


def _parse_lines(lines: Iterable[bytes], kind: type[T]) -> Iterator[T]:
    """Yield the records of lines; truncated or edited lines are skipped."""
    for line in lines:
        try:
            record = parse_plain(parse_json(line), kind)
        except (ValueError, TypeError):
            continue
        yield record


def _format_line(record: object) -> bytes:
    return json.dumps(to_plain(record)).encode() + b"\n"


def _open_to_append(file: Path) -> BinaryIO:
    """Open a log to append; first end a truncated last line, which would damage the next one.

    Raises as `make_private_file` does.
    """
    make_private_file(file)
    stream = file.open("a+b")
    if stream.seek(0, os.SEEK_END):
        stream.seek(-1, os.SEEK_END)
        if stream.read(1) != b"\n":
            stream.write(b"\n")
    return stream
