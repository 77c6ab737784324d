"""The events of a run, in order: the public interface of `run --events` (docs/events.md).

Events about single files have the file's path below the data directory (`path`, bytes). Files that
need no work are counted per group, so that a run with a million known files does not write a
million events.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from functools import cache, partial
from types import NoneType
from typing import Any, Final, NamedTuple, Self, TypeVar, get_args

from mydata_like.core.errors import Problem
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import FileRecord
from mydata_like.core.parsing import parse_moment

T = TypeVar("T")


@frozen(kw_only=True)
class RunStarted:
    """A run began; `at` is the wall-clock time.

    `reason` is `person`, or what started the run automatically: the kind of its schedule, `settled`
    (new files have settled), `retry` (the run before could not do its work), `source` (only added
    sources are scanned), `folder` (the user requested a run for one folder), or `get` (files are
    fetched to `data_directory`). `run` is the name of the run. `data_directory` is absolute. With
    `dry_run`, the run only scans and checks. `shard` is the part of the data directory that is
    uploaded (`run --shard`), such as `2/4`; empty for all of it.
    """

    run: str
    at: datetime
    data_directory: bytes
    dry_run: bool = False
    reason: str = "person"
    shard: str = ""


@frozen(kw_only=True)
class FolderFound:
    """A dataset folder was found.

    It becomes `dataset` in the experiment `title`, which is null if the experiment is named after
    instrument and owner. `owner` and `group` are the names of the folders, without prefix; empty
    for the account's own folder, and for no group.
    """

    path: bytes
    dataset: str
    title: str | None
    owner: str
    group: str = ""


@frozen(kw_only=True)
class FolderSkipped:
    """A folder is skipped in this run, with everything below it."""

    path: bytes
    problem: Problem


@frozen(kw_only=True)
class FolderFailed:
    """A folder could not be read, or the server refused a request that it needs."""

    path: bytes
    problem: Problem


@frozen(kw_only=True)
class FilesSeen:
    """Further local files were found in a dataset folder."""

    folder: bytes
    files: int
    bytes: int


@frozen(kw_only=True)
class FilesKnown:
    """Local files of a folder are already verified and need no work.

    `compared` is when their records on the server were last compared with the ledger, or null if
    that is in this run; `run_finished` has the earliest of these times.
    """

    folder: bytes
    files: int
    bytes: int
    compared: datetime | None = None


@frozen(kw_only=True)
class FileWaiting:
    """A local file is left for a later run: too new, not settled, or not verified yet.

    `modified_ns` is its modification time in nanoseconds since 1970, 0 if it is not known.
    """

    path: bytes
    size: int
    problem: Problem
    modified_ns: int = 0

    @classmethod
    def of(cls, file: LocalFile, problem: Problem) -> Self:
        return cls(path=file.key, size=file.size, problem=problem, modified_ns=file.modified_ns)


@frozen(kw_only=True)
class FileSkipped:
    """A local file is skipped by a filter, or because it is not a regular file."""

    path: bytes
    size: int
    problem: Problem


@frozen(kw_only=True)
class FileWanted:
    """A local file will be sent; `changed` if the server has other content under its name.

    `size_before` and `verified_at` are of that content; the latter is the server's own text, which
    has no time zone on MyTardis, and is empty if the content is not verified.
    """

    path: bytes
    size: int
    changed: bool = False
    size_before: int = 0
    verified_at: str = ""

    @classmethod
    def of(cls, wanted: FileRecord) -> Self:
        file, record = wanted.file, wanted.earlier
        if record is None or not record.replicas:
            return cls(path=file.key, size=file.size)
        return cls(
            path=file.key,
            size=file.size,
            changed=True,
            size_before=record.size,
            verified_at=record.verified_time(wanted.remote),
        )


@frozen(kw_only=True)
class TransferStarted:
    """The transfer of a payload began; `attempt` counts from 1.

    The payload is one file, a batch (`name` is the path of its first file), or an archive (`name`
    is its own path) of `files` files.
    """

    transfer: int
    channel: int
    name: bytes
    files: int
    bytes: int
    attempt: int = 1


@frozen(kw_only=True)
class TransferProgressed:
    """Bytes of the payload that are done so far; at most about ten events per second.

    `omitted` of them did not have to be sent: they are there already, or are holes of the file.
    They are progress, but no throughput.
    """

    transfer: int
    channel: int
    bytes: int
    omitted: int = 0


@frozen(kw_only=True)
class TransferRetried:
    """An attempt failed; another follows after `delay` seconds."""

    transfer: int
    channel: int
    problem: Problem
    delay: float


@frozen(kw_only=True)
class TransferFinished:
    """The transfer of a payload ended; its `files` and `bytes` are in the staging area.

    `seconds` is the duration of this attempt.
    """

    transfer: int
    channel: int
    files: int
    bytes: int
    seconds: float


@frozen(kw_only=True)
class FileStaged:
    """The bytes of a local file are in the staging area; the server has no record of it yet."""

    path: bytes
    size: int
    checksum: str


@frozen(kw_only=True)
class FileReplaced:
    """The new bytes of a changed file have taken the place of earlier ones on the server.

    `size_before` and `verified_at` are of the earlier ones; the latter is as in `FileWanted`. They
    are kept until `kept_until`, or not at all if it is null.
    """

    path: bytes
    size: int
    size_before: int
    verified_at: str
    kept_until: datetime | None


@frozen(kw_only=True)
class FileRenamed:
    """The destination has renamed its copy of a file that was renamed here: nothing was sent.

    `before` was the path of the local file. In a dry run, the copy would be renamed.
    """

    path: bytes
    size: int
    before: bytes

    @classmethod
    def of(cls, record: FileRecord) -> Self:
        """Return the event for a record that is `renamed`."""
        assert record.renamed
        return cls(path=record.file.key, size=record.file.size, before=record.renamed.key)


@frozen(kw_only=True)
class FileRegistered:
    """The server has a record of the file; its bytes are not verified yet."""

    path: bytes
    size: int


@frozen(kw_only=True)
class FileVerified:
    """The server has compared its replica with our checksum: the file is safe.

    If `known` is true, it was verified before, and nothing was sent in this run.
    """

    path: bytes
    size: int
    checksum: str
    known: bool = False


@frozen(kw_only=True)
class FileFailed:
    """A local file could not be uploaded in this run.

    `modified_ns` is its modification time in nanoseconds since 1970, 0 if it is not known.
    """

    path: bytes
    size: int
    problem: Problem
    modified_ns: int = 0

    @classmethod
    def of(cls, file: LocalFile, problem: Problem) -> Self:
        return cls(path=file.key, size=file.size, problem=problem, modified_ns=file.modified_ns)


@frozen(kw_only=True)
class FileRetried:
    """The user requested to send a file again.

    The earlier `outcome` of the file, `failed` or `waiting`, no longer applies. `modified_ns` is
    its modification time in nanoseconds since 1970, 0 if it is not known.
    """

    path: bytes
    size: int
    outcome: str
    modified_ns: int = 0

    @classmethod
    def of(cls, file: LocalFile, outcome: str) -> Self:
        return cls(path=file.key, size=file.size, outcome=outcome, modified_ns=file.modified_ns)


@frozen(kw_only=True)
class ChannelChanged:
    """The `state` of a channel changed: it is now `open`, `closed` or `lost`.

    `host` is the staging host, or the path of a mounted folder. `rung` is what it allows (`shell`,
    `scp`, `sftp`, `folder`, `s3` or `http`), `cipher` the cipher of the connection; each is empty
    if not known. `detail` is the reason.
    """

    channel: int
    state: str
    host: str = ""
    rung: str = ""
    cipher: str = ""
    detail: str = ""


@frozen(kw_only=True)
class LimitsChanged:
    """The number of `channels` that may work concurrently, or the bandwidth, changed.

    `reason` is a setting, the user, what this computer or the host allows, or the measured speed,
    such as `2 channels carried 118.0 MB/s, 3 carry 170.0 MB/s: trying 6`. `bandwidth` is the limit
    of all channels together in bytes per second, 0 for no limit.
    """

    channels: int
    bandwidth: float = 0.0
    reason: str


@frozen(kw_only=True)
class RunPaused:
    """Nothing is sent for now, because something stopped or delays the whole run.

    `problem` is the newest reason. The event may precede `run_started`: a run waits for an
    approval, or for a server that is unavailable, before it begins.
    """

    problem: Problem


@frozen(kw_only=True)
class RetryScheduled:
    """A paused run tries at this time whether it can go on; sent before each such wait.

    There is none for a pause by the user or the settings.
    """

    at: datetime


@frozen(kw_only=True)
class RunResumed:
    """Everything that had paused the run is resolved."""


@frozen(kw_only=True)
class ServerSilent:
    """The server has answered no request for `seconds`, ten or more, although some are waiting.

    Sent once per second, also before `run_started`; with 0 within a second after the next answer,
    unless `run_finished` comes before.
    """

    seconds: int


@frozen(kw_only=True)  # immutable, because the window stores it
class RunProgressed:
    """The totals of the run so far, four times per second while they change.

    `found` = `verified` + `waiting` + `skipped` + `failed` + open. `checked` files were compared
    with the server, `wanted` are to be sent, `sent` have arrived, `registered` have a record.
    `found_bytes`, `verified_bytes`, `wanted_bytes` and `sent_bytes` are their sizes; `omitted` of
    the last did not have to be sent in this run. `transferred_bytes` also has what is done of files
    that have not arrived, earlier attempts included. `byte_rate` and `file_rate` are per second;
    `remaining` is the expected time until all is done, null if unknown; `seconds` is the elapsed
    time. `awake`: the computer is kept from going to sleep.
    """

    found: int
    found_bytes: int
    checked: int
    verified: int
    verified_bytes: int
    waiting: int
    skipped: int
    failed: int
    wanted: int
    wanted_bytes: int
    sent: int
    sent_bytes: int
    transferred_bytes: int
    registered: int
    byte_rate: float
    file_rate: float
    remaining: float | None
    seconds: float
    omitted: int = 0
    awake: bool = False


@frozen(kw_only=True)
class StagesMeasured:
    """The work of the stages in the last two seconds, once per second unless the run is paused.

    `stage` (`scan`, `check`, `send`, `register` or `verify`) is the bottleneck because of its
    `limit` (below); both are empty if there is none. `byte_rate` is per second. `busy` and
    `blocked` are the average numbers of workers of each stage that worked, or waited for the next.
    `spent` is the share of the channels' time by cause, `processors` the number of processors in
    use.
    """

    stage: str
    limit: str
    byte_rate: float
    busy: Mapping[str, float]
    blocked: Mapping[str, float]
    spent: Mapping[str, float]
    processors: float


@frozen(kw_only=True)
class NextListed:
    """The files that will be sent next, in their order: the answer to `list_next`.

    `paths` and `sizes` (in bytes) are theirs. An archive has its own path. The user holds the last
    `held` of them back until the next run. Files that are still being compared with the server are
    not in the list.
    """

    paths: tuple[bytes, ...]
    sizes: tuple[int, ...]
    held: int = 0


@frozen(kw_only=True)
class CommandDone:
    """A `command` was carried out; `id` is that of the command, or null."""

    id: str | int | None
    command: str


@frozen(kw_only=True)
class CommandRefused:
    """A `command` was refused and changed nothing; `id` is that of the command, or null."""

    id: str | int | None
    command: str
    problem: Problem


@frozen(kw_only=True)
class RunScheduled:
    """The time at which `watch` starts the next run automatically; null for never.

    That is the retry of a run that could not do its work, if it comes before the next start of the
    schedule. `kind` is that of the schedule. A watch also starts a run when new files have settled.
    """

    at: datetime | None
    kind: str


@frozen(kw_only=True)
class Notice:
    """Information for the user; nothing failed because of it."""

    problem: Problem


@frozen(kw_only=True)
class RunFinished:
    """The run ended; `found` = `verified` + `waiting` + `skipped` + `failed`.

    `left_behind` are files that were skipped unintentionally, and folders that were not read; they
    need attention. `sent` files of `bytes` in all have arrived in this run, which took `seconds`;
    `omitted` of these bytes did not have to be sent. `outside` are `skipped` files in no dataset
    folder. `unfinished` bytes were sent of files that have not arrived. `replaced` is how often
    content on the server was replaced, `renamed` how many copies were renamed there. `kept` are
    `skipped` files whose different copies the user keeps, `held` `waiting` ones that wait for the
    user's choice, `replacing` those to be sent whose names have other content there. `problem` is
    why it ended early, or null. `shard` is as in `run_started`; `limit` is the most frequent one of
    `stages_measured`. `run` is empty if the run could not begin. `compared` is as in `files_known`.
    """

    run: str
    at: datetime
    found: int
    verified: int
    waiting: int
    skipped: int
    failed: int
    sent: int
    bytes: int
    seconds: float
    left_behind: int = 0
    problem: Problem | None = None
    shard: str = ""
    limit: str = ""
    omitted: int = 0
    replaced: int = 0
    kept: int = 0
    held: int = 0
    replacing: int = 0
    compared: datetime | None = None
    unfinished: int = 0
    renamed: int = 0
    outside: int = 0

    @classmethod
    def of_nothing(cls, at: datetime, problem: Problem) -> Self:
        """Return the event for a run that could not begin."""
        return cls(
            run="",
            at=at,
            found=0,
            verified=0,
            waiting=0,
            skipped=0,
            failed=0,
            sent=0,
            bytes=0,
            seconds=0.0,
            problem=problem,
        )


Event = (
    RunStarted
    | FolderFound
    | FolderSkipped
    | FolderFailed
    | FilesSeen
    | FilesKnown
    | FileWaiting
    | FileSkipped
    | FileWanted
    | TransferStarted
    | TransferProgressed
    | TransferRetried
    | TransferFinished
    | FileStaged
    | FileRenamed
    | FileReplaced
    | FileRegistered
    | FileVerified
    | FileFailed
    | FileRetried
    | ChannelChanged
    | LimitsChanged
    | RunPaused
    | RetryScheduled
    | RunResumed
    | ServerSilent
    | RunProgressed
    | StagesMeasured
    | NextListed
    | CommandDone
    | CommandRefused
    | RunScheduled
    | Notice
    | RunFinished
)


def event_name(event: type[Event] | Event) -> str:
    """Return the event's stable name, as in `run_started`."""
    kind = event if isinstance(event, type) else type(event)
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def event_record(event: Event) -> dict[str, object]:
    """Return the event as plain values for JSON: its name, then its fields in order."""
    values = {field.name: _plain(getattr(event, field.name)) for field in fields(event)}
    return {"event": event_name(event)} | values


def _plain(value: object) -> object:
    match value:
        case bytes():
            return format_path(value)
        case datetime():
            return value.isoformat()
        case Problem():
            return value._asdict()
        case tuple():
            return [*map(_plain, value)]
        case _:
            return value


def parse_event(record: Mapping[str, object]) -> Event | None:
    """Return the event of a record made by `event_record`; None if its name is unknown.

    Another version may have written the record: unknown fields are ignored, and missing ones get
    their defaults. A path is the text that was printed. Raises ValueError for values of other
    types.
    """
    name = record.get("event")
    kind = _kinds().get(name) if isinstance(name, str) else None
    if kind is None:
        return None
    values = {}
    for field in _fields_of(kind):
        if field.name in record:
            values[field.name] = field.parse(record[field.name])
        elif field.is_required:
            raise ValueError(f"{name} without {field.name}")
    return kind(**values)


def parse_problem(value: object) -> Problem:
    """Parse a problem as in events and the ledger's runs; raises ValueError."""
    if not isinstance(value, dict):
        raise _unexpected(value, "a problem")
    parts = value.get("code"), value.get("message"), value.get("hint", "")
    return Problem(*map(_parse_text, parts))


class _Field(NamedTuple):
    """How one field of an event is parsed."""

    name: str
    parse: Callable[[object], object]
    is_required: bool


@cache
def _kinds() -> dict[str, Callable[..., Event]]:
    return {event_name(kind): kind for kind in get_args(Event)}


@cache
def _fields_of(kind: type[Event]) -> tuple[_Field, ...]:
    return tuple(
        _Field(field.name, _find_parser(field.type), field.default is MISSING)
        for field in fields(kind)
    )


def _find_parser(kind: object) -> Callable[[object], object]:
    """Return the parser for a type, or for a union such as `str | None`."""
    if kind in _PARSERS:
        return _PARSERS[kind]
    choices = [_PARSERS[each] for each in get_args(kind)]

    def parse(value: object) -> object:
        for choice in choices:
            try:
                return choice(value)
            except ValueError:
                continue
        raise _unexpected(value, str(kind))

    return parse


def _parse_path(value: object) -> bytes:
    return _parse_text(value).encode()


def _parse_text(value: object) -> str:
    if not isinstance(value, str):
        raise _unexpected(value, "a text")
    return value


def _parse_whole(value: object) -> int:
    if type(value) is not int:  # excludes True, which isinstance would accept
        raise _unexpected(value, "a whole number")
    return value


def _parse_number(value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
        raise _unexpected(value, "a number")
    return float(value)  # type: ignore[arg-type]


def _parse_choice(value: object) -> bool:
    if not isinstance(value, bool):
        raise _unexpected(value, "true or false")
    return value


def _parse_numbers(value: object) -> Mapping[str, float]:
    if not isinstance(value, dict):
        raise _unexpected(value, "numbers by name")
    return {_parse_text(name): _parse_number(number) for name, number in value.items()}


def _parse_all(parse: Callable[[object], T], value: object) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise _unexpected(value, "a list")
    return tuple(map(parse, value))


def _parse_null(value: object) -> None:
    if value is not None:
        raise _unexpected(value, "null")


def _unexpected(value: object, expected: str) -> ValueError:
    return ValueError(f"a {type(value).__name__} instead of {expected}")


_PARSERS: Final[dict[object, Callable[[Any], object]]] = {
    bytes: _parse_path,
    str: _parse_text,
    int: _parse_whole,
    float: _parse_number,
    bool: _parse_choice,
    datetime: parse_moment,
    Problem: parse_problem,
    Mapping[str, float]: _parse_numbers,
    tuple[bytes, ...]: partial(_parse_all, _parse_path),
    tuple[int, ...]: partial(_parse_all, _parse_whole),
    NoneType: _parse_null,
}
