"""What happened in a run, in order: the public interface of `run --events` (docs/events.md).

Events about single files carry the file's path below the data directory (`path`, bytes).
Files that need nothing are counted per group, so that a run over a million known files does
not say a million times that nothing happened.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from functools import cache
from types import NoneType
from typing import Any, Final, NamedTuple, Self, get_args

from mydata_like.core.errors import Problem
from mydata_like.core.formatting import format_path
from mydata_like.core.model import LocalFile
from mydata_like.core.parsing import parse_moment


@dataclass(slots=True, kw_only=True)
class RunStarted:
    """A run began; `at` is the time of the clock on the wall.

    `reason` is `person`, or what made the run begin by itself: the kind of its schedule, `settled`
    (new files have settled), `retry` (the one before could not do its work), `source` (it looks at
    added sources only), or `folder` (a person wants only that one looked at). `run` names it from
    now on. `data_directory` is absolute. With `dry_run` it only looks. `shard` is the part of the
    data directory that it is about (`run --shard`), as in `2/4`; empty for all of it.
    """

    run: str
    at: datetime
    data_directory: bytes
    dry_run: bool = False
    reason: str = "person"
    shard: str = ""


@dataclass(slots=True, kw_only=True)
class FolderFound:
    """A dataset folder was found.

    It becomes `dataset` in the experiment `title`, which is null where the experiment is named
    after instrument and owner. `owner` and `group` are the folders of these names, without prefix;
    empty for the account's own, and for no group.
    """

    path: bytes
    dataset: str
    title: str | None
    owner: str
    group: str = ""


@dataclass(slots=True, kw_only=True)
class FolderSkipped:
    """A folder is left out of the run, with all that is below it."""

    path: bytes
    problem: Problem


@dataclass(slots=True, kw_only=True)
class FolderFailed:
    """A folder could not be read, or the server refused what it needs."""

    path: bytes
    problem: Problem


@dataclass(slots=True, kw_only=True)
class FilesSeen:
    """So many more local files were found in a dataset folder."""

    folder: bytes
    files: int
    bytes: int


@dataclass(slots=True, kw_only=True)
class FilesKnown:
    """So many local files of a folder are verified already; nothing is to be done for them."""

    folder: bytes
    files: int
    bytes: int


@dataclass(slots=True, kw_only=True)
class FileWaiting:
    """A local file is left for a later run: too new, not still, or not verified by the server yet.

    `modified_ns` is its time of modification in nanoseconds since 1970, 0 if it is not known.
    """

    path: bytes
    size: int
    problem: Problem
    modified_ns: int = 0

    @classmethod
    def of(cls, file: LocalFile, problem: Problem) -> Self:
        return cls(path=file.key, size=file.size, problem=problem, modified_ns=file.modified_ns)


@dataclass(slots=True, kw_only=True)
class FileSkipped:
    """A local file is left out for good, by a filter or because it is no regular file."""

    path: bytes
    size: int
    problem: Problem


@dataclass(slots=True, kw_only=True)
class FileWanted:
    """A local file will be sent; `changed` if the server has other bytes under its name."""

    path: bytes
    size: int
    changed: bool = False


@dataclass(slots=True, kw_only=True)
class TransferStarted:
    """A payload began to travel, for the first time or in a further `attempt`.

    It is one file, a batch (`name` is the path of its first file), or an archive (`name` is its
    own path) of so many `files`.
    """

    transfer: int
    channel: int
    name: bytes
    files: int
    bytes: int
    attempt: int = 1


@dataclass(slots=True, kw_only=True)
class TransferProgressed:
    """So many bytes of the payload have gone; told ten times a second at most."""

    transfer: int
    channel: int
    bytes: int


@dataclass(slots=True, kw_only=True)
class TransferRetried:
    """An attempt failed; another follows after `delay` seconds."""

    transfer: int
    channel: int
    problem: Problem
    delay: float


@dataclass(slots=True, kw_only=True)
class TransferFinished:
    """A payload's transfer ended: so many of its files and bytes are in the staging area.

    `seconds` is how long this attempt took.
    """

    transfer: int
    channel: int
    files: int
    bytes: int
    seconds: float


@dataclass(slots=True, kw_only=True)
class FileStaged:
    """The bytes of a local file lie in the staging area; the server does not know it yet."""

    path: bytes
    size: int
    checksum: str


@dataclass(slots=True, kw_only=True)
class FileRegistered:
    """The server has a record of the file; its bytes are not verified yet."""

    path: bytes
    size: int


@dataclass(slots=True, kw_only=True)
class FileVerified:
    """The server has compared its replica with our checksum: the file is safe.

    `known` says that this was so before: nothing of the file was sent in this run.
    """

    path: bytes
    size: int
    checksum: str
    known: bool = False


@dataclass(slots=True, kw_only=True)
class FileFailed:
    """A local file could not be brought to the server in this run.

    `modified_ns` is its time of modification in nanoseconds since 1970, 0 if it is not known.
    """

    path: bytes
    size: int
    problem: Problem
    modified_ns: int = 0

    @classmethod
    def of(cls, file: LocalFile, problem: Problem) -> Self:
        return cls(path=file.key, size=file.size, problem=problem, modified_ns=file.modified_ns)


@dataclass(slots=True, kw_only=True)
class FileRetried:
    """A person wants a file sent again.

    The `outcome` that was told of it before, `failed` or `waiting`, is taken back. `modified_ns` is
    its time of modification in nanoseconds since 1970, 0 if it is not known.
    """

    path: bytes
    size: int
    outcome: str
    modified_ns: int = 0

    @classmethod
    def of(cls, file: LocalFile, outcome: str) -> Self:
        return cls(path=file.key, size=file.size, outcome=outcome, modified_ns=file.modified_ns)


@dataclass(slots=True, kw_only=True)
class ChannelChanged:
    """A channel changed: its `state` is now `open`, `closed` or `lost`.

    `host` is the staging host, `rung` what it allows (`shell`, `scp`, `sftp`, or `http`), `cipher`
    what the channel is encrypted with, as far as they are known; `detail` says why.
    """

    channel: int
    state: str
    host: str = ""
    rung: str = ""
    cipher: str = ""
    detail: str = ""


@dataclass(slots=True, kw_only=True)
class LimitsChanged:
    """How many `channels` may work at once, or how fast, changed; `reason` says why.

    It is a setting, a person, a host that grants no more, or what was carried, as in `2 channels
    carried 118.0 MB/s, 3 carry 170.0 MB/s: trying 6`. `bandwidth` is how many bytes a second all
    channels may send together, 0 without a limit.
    """

    channels: int
    bandwidth: float = 0.0
    reason: str


@dataclass(slots=True, kw_only=True)
class RunPaused:
    """Nothing new is sent for now: something stopped the whole run, or holds it.

    The newest reason is told. It may come before `run_started`: an approval, or a server that is
    away, is waited for before a run begins.
    """

    problem: Problem


@dataclass(slots=True, kw_only=True)
class RunResumed:
    """Nothing that had paused the run is left."""


@dataclass(frozen=True, slots=True, kw_only=True)  # the window keeps it as a value
class RunProgressed:
    """The sums of the run so far, four times a second while they change.

    `found` = `verified` + `waiting` + `skipped` + `failed` + open. `checked` files were compared
    with the server, `wanted` ones are to be sent, `sent` ones have arrived in the staging area,
    `registered` ones have a record. `found_bytes`, `verified_bytes`, `wanted_bytes` and
    `sent_bytes` are the sizes of such files. `byte_rate` and `file_rate` are per second;
    `remaining` is seconds, null where nobody can tell; `seconds` have passed.
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
    registered: int
    byte_rate: float
    file_rate: float
    remaining: float | None
    seconds: float


@dataclass(slots=True, kw_only=True)
class StagesMeasured:
    """How the last two seconds were shared out, once a second while nothing pauses the run.

    `stage` (`scan`, `check`, `send`, `register` or `verify`) holds up the others because of its
    `limit` (below); both are empty where the shares do not decide. `byte_rate` is per second.
    `busy` and `blocked` are how many workers (of `send`: channels) of each stage were at work, or
    waited for the next stage, on average. `spent` is the share of the channels' time that each
    need took, `processors` how many of them we used.
    """

    stage: str
    limit: str
    byte_rate: float
    busy: Mapping[str, float]
    blocked: Mapping[str, float]
    spent: Mapping[str, float]
    processors: float


@dataclass(slots=True, kw_only=True)
class CommandDone:
    """A `command` was carried out; `id` is its own, null where it had none."""

    id: str | int | None
    command: str


@dataclass(slots=True, kw_only=True)
class CommandRefused:
    """A `command` was not carried out, and changed nothing; `id` is its own, or null."""

    id: str | int | None
    command: str
    problem: Problem


@dataclass(slots=True, kw_only=True)
class RunScheduled:
    """Of `watch`: the next run starts by itself at this time, or (null) never.

    `kind` is that of the schedule; a watch also starts when new files have settled.
    """

    at: datetime | None
    kind: str


@dataclass(slots=True, kw_only=True)
class Notice:
    """Something a person should know; nothing failed because of it."""

    problem: Problem


@dataclass(slots=True, kw_only=True)
class RunFinished:
    """The run ended; `found` = `verified` + `waiting` + `skipped` + `failed`.

    `left_behind` are the skipped files that nothing leaves out on purpose, and the folders that
    were not read: somebody has to see to them before all is safe.
    `sent` files and `bytes` travelled in this run, which took so many `seconds`. `problem` says why
    it ended early, else null. `shard` is as in `run_started`, `limit` as in `stages_measured`: what
    it was for the longest time. `run` is empty where the run could not even begin.
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

    @classmethod
    def of_nothing(cls, at: datetime, problem: Problem) -> Self:
        """Return the end of a run that could not begin."""
        sums = dict.fromkeys(("found", "verified", "waiting", "skipped", "failed"), 0)
        return cls(
            run="", at=at, sent=0, bytes=0, seconds=0.0, problem=problem, shard="", limit="", **sums
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
    | FileRegistered
    | FileVerified
    | FileFailed
    | FileRetried
    | ChannelChanged
    | LimitsChanged
    | RunPaused
    | RunResumed
    | RunProgressed
    | StagesMeasured
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
        case _:
            return value


def parse_event(record: Mapping[str, object]) -> Event | None:
    """Return the event of a record as `event_record` makes it; None if its name is unknown.

    Another version may have written it: unknown fields are ignored, and missing ones get their
    defaults. A path is the text that was printed. Raises ValueError for values of other types.
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
    """Return a problem as events and the ledger's runs have it; raises ValueError."""
    if not isinstance(value, dict):
        raise _unexpected(value, "a problem")
    parts = value.get("code"), value.get("message"), value.get("hint", "")
    return Problem(*map(_parse_text, parts))


class _Field(NamedTuple):
    """How one field of an event is read."""

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
    """Return what parses values of a type, or of one of several as in `str | None`."""
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
    if type(value) is not int:  # which True is not
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
    NoneType: _parse_null,
}
