"""What happened in a run, in order: the public interface of `run --events` (docs/events.md).

Events about single files carry the file's path below the data directory (`path`, bytes).
Files that need nothing are counted per group, so that a run over a million known files does
not say a million times that nothing happened.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Self

from mydata_like.core.errors import Problem
from mydata_like.core.format import format_path
from mydata_like.core.model import LocalFile


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run began; `at` is wall-clock time in UTC.

    `reason` is "person", or of a run that began by itself the kind of its schedule, "settled"
    (new files have settled) or "retry" (the one before could not do its work). `shard` is the
    part of the data directory that it is about, as in "2/4"; empty for all of it.
    """

    run: str
    at: datetime
    data_directory: bytes
    dry_run: bool = False
    reason: str = "person"
    shard: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFound:
    """A dataset folder was found."""

    path: bytes
    dataset: str
    title: str | None
    owner: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSkipped:
    """A folder is left out of the run, with all that is below it."""

    path: bytes
    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFailed:
    """A folder could not be read, or the server refused what it needs."""

    path: bytes
    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSeen:
    """So many more local files were found in a dataset folder."""

    folder: bytes
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesKnown:
    """So many local files of a folder are verified already; nothing to do for them."""

    folder: bytes
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWaiting:
    """A local file is left for a later run: it is too new, or was not still while read.

    `modified_ns` is its time of modification in nanoseconds since 1970, 0 if it is not known.
    """

    path: bytes
    size: int
    problem: Problem
    modified_ns: int = 0

    @classmethod
    def of(cls, file: LocalFile, problem: Problem) -> Self:
        return cls(path=file.key, size=file.size, problem=problem, modified_ns=file.modified_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSkipped:
    """A local file is left out for good, by a filter or because it is no regular file."""

    path: bytes
    size: int
    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWanted:
    """The server lacks this file (or has other bytes under its name): it will be sent."""

    path: bytes
    size: int
    changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferStarted:
    """A payload began to travel: one file, or a batch of `files`."""

    transfer: int
    channel: int
    name: bytes
    files: int
    bytes: int
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferProgressed:
    """So many bytes of the payload have gone; at most ten a second per transfer."""

    transfer: int
    channel: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferRetried:
    """An attempt failed; another follows after `delay` seconds."""

    transfer: int
    channel: int
    problem: Problem
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferFinished:
    """A payload's transfer ended: so many of its files and bytes are in the staging area."""

    transfer: int
    channel: int
    files: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStaged:
    """The bytes of a local file lie in the staging area; the server does not know it yet."""

    path: bytes
    size: int
    checksum: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRegistered:
    """The server has a record of the file; its bytes are not verified yet."""

    path: bytes
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVerified:
    """The server has compared its replica with our checksum: the file is safe."""

    path: bytes
    size: int
    checksum: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFailed:
    """A local file could not be brought to the server in this run; times as `FileWaiting`'s."""

    path: bytes
    size: int
    problem: Problem
    modified_ns: int = 0

    @classmethod
    def of(cls, file: LocalFile, problem: Problem) -> Self:
        return cls(path=file.key, size=file.size, problem=problem, modified_ns=file.modified_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRetried:
    """A person wants a file sent again: its `outcome`, "failed" or "waiting", is taken back."""

    path: bytes
    size: int
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelChanged:
    """A channel opened, closed or changed its rung; `detail` says why."""

    channel: int
    state: str  # "open", "closed", "lost"
    host: str = ""
    rung: str = ""  # "shell", "scp", "sftp", "http"
    cipher: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsChanged:
    """How many channels may work at once, or how fast, changed; `reason` says why.

    `bandwidth` is bytes a second for all channels together, 0 without a limit.
    """

    channels: int
    bandwidth: float = 0.0
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPaused:
    """Nothing new is sent for now, and why: something stopped the whole run, or holds it."""

    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed:
    """Nothing that had paused the run is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgressed:
    """The sums of the run so far, four times a second while they change.

    found = verified + waiting + skipped + failed + open. `checked` files were compared with
    the server, `wanted` ones are to be sent. Rates are per second; `remaining` is seconds,
    None where nobody can tell. Sent bytes are those of files whose transfer has ended.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StagesMeasured:
    """How the last two seconds were shared out, once a second while the run is not paused.

    `stage` holds up the others because of its `limit`; both are empty where the shares do not
    decide. `busy` and `blocked` are numbers of workers (of `send`: channels) by stage, `spent` is
    the share of the channels' time that each need took, `processors` how many of them we used.
    """

    stage: str
    limit: str
    byte_rate: float
    busy: Mapping[str, float]
    blocked: Mapping[str, float]
    spent: Mapping[str, float]
    processors: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDone:
    """A command was carried out; `id` is its own."""

    id: str | int | None
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRefused:
    """A command was not carried out, and changed nothing."""

    id: str | int | None
    command: str
    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScheduled:
    """The next run starts by itself at this time (UTC), or never (`at` is null).

    `kind` is that of the schedule; a watch also starts when new files have settled.
    """

    at: datetime | None
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something a person should know; nothing failed because of it."""

    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The run ended; found = verified + waiting + skipped + failed.

    `run` is empty where it could not even begin.
    """

    run: str
    at: datetime
    found: int
    verified: int
    waiting: int
    skipped: int
    failed: int
    sent: int  # files whose bytes travelled in this run
    bytes: int  # bytes that travelled in this run
    seconds: float
    problem: Problem | None = None  # why the run ended early, if it did
    shard: str = ""  # as of `RunStarted`
    limit: str = ""  # as of `StagesMeasured`: what it was for the longest time

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
