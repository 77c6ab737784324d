"""The interfaces between the engine and its environment."""

from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self, TypeVar

from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.channel_time import TimeByCause
from mydata_like.core.errors import Problem
from mydata_like.core.events import Event
from mydata_like.core.local_files import LocalFile, Reading
from mydata_like.core.model import (
    ChangedFile,
    DatafileId,
    DatasetId,
    DatasetListing,
    EarlierWrite,
    Entry,
    FileRecord,
    KeptCopy,
    KnownParts,
    NewestDatafile,
    OpenFiles,
    Payload,
    Recheck,
    Replacement,
)

T = TypeVar("T")
Emit = Callable[[Event], None]
EmitAll = Callable[[Sequence[Event]], None]  # of many files that are well


class Clock(Protocol):
    """A source of time; a fake clock advances when it sleeps."""

    def now(self) -> datetime:
        """Return aware wall-clock time in UTC, for schedules, ages and display only."""

    def monotonic(self) -> float:
        """Return seconds that never decrease, for deadlines and rates."""


class CancelSignal(Protocol):
    """A request to stop that interrupts every wait."""

    def is_set(self) -> bool: ...

    def wait(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the request; return whether it was made."""


@dataclass(slots=True)
class SentFile:
    """A member of a payload that is in the staging area; `index` is its position in the payload.

    For an archive, `inside` has the result of reading each file.
    """

    index: int
    checksum: str
    registered: bool = False
    inside: tuple[Reading, ...] = ()


@dataclass(slots=True)
class UnsentFile:
    """A member of a payload that is not proven to be in the staging area.

    `again` means that sending it again may help; otherwise its local file or the server rejects it.
    """

    index: int
    problem: Problem
    again: bool


class Progress(Protocol):
    """Called with the bytes of the payload that are done so far.

    `omitted` of them did not have to be sent: they are there already, or are holes.
    """

    def __call__(self, size: int, omitted: int = 0, /) -> None: ...


class Channel(Protocol):
    """A channel to the staging area, which sends one payload at a time."""

    @property
    def number(self) -> int: ...

    def open(self) -> None:
        """Connect the channel if it is not, or no longer, connected; raises as `send` does.

        This takes moments, regardless of the size of the payload that follows.
        """

    def send(self, payload: Payload, progress: Progress) -> list[SentFile | UnsentFile]:
        """Send a payload; return the result for each member, in order.

        Replacements of earlier bytes are stored temporarily for `replace`. A host that cannot
        rename files cannot keep the earlier ones: then they are refused with the code
        `waiting.changed`, or only read if the user has released them.

        Raises `TransientError` if the connection was lost (the channel has been replaced by then)
        and no result is known, and a `RunError` if no payload can be sent now.
        """

    def replace(
        self, replacements: Sequence[Replacement], files: Mapping[bytes, FileRecord]
    ) -> list[SentFile | UnsentFile]:
        """Move temporarily stored bytes to their final path; return each result, in order.

        The earlier bytes are first renamed to their `kept` path; if that fails, nothing is changed,
        and the code is `waiting.changed`. What an interrupted call has moved counts as moved. If
        the host cannot rename files, those of the `files` (by key) are sent to their final path.
        Missing bytes have the code `staging.missing`. Raises as `send` does.
        """

    def discard(self, paths: Sequence[str]) -> None:
        """Remove temporarily stored or kept bytes; raises as `send` does."""

    def limit(self, rate: float) -> None:
        """Limit the speed in bytes per second, 0 for no limit; from any thread.

        The limit applies immediately, to the payload in progress and to all later ones.
        """

    def cut(self) -> None:
        """Abort the payload in progress: its `send` raises `TransientError`; from any thread."""

    def close(self) -> None:
        """Close the channel when it sends nothing."""


class Transport(Protocol):
    """The bounded pool of channels that sends payloads."""

    @property
    def can_replace(self) -> bool:
        """Whether it can replace the content of a file on the server."""

    @property
    def mark(self) -> bytes:
        """The mark of this uploader in temporary names; empty if there are none."""

    @property
    def capacity(self) -> int:
        """The maximum number of concurrent channels."""

    @property
    def round_trip(self) -> float:
        """The round-trip time in seconds, 0 while it is not known."""

    @property
    def spent(self) -> TimeByCause:
        """The time the channels have spent so far, by cause, as far as they report it."""

    def prepare(self) -> None:
        """Start slow preparations before a payload is sent; may be called repeatedly."""

    def open_channel(self, wanted: int = 0) -> Channel:
        """Open one more channel of those `wanted` in all; raises as `Channel.send` does.

        The code of the `TransientError` is `channel.refused` if other channels are open and the
        host grants no more.
        """

    def close(self) -> None:
        """Close all channels immediately; transfers in progress raise `TransientError`."""


class FileChecksum(Protocol):
    """Computes checksums of local files for the engine."""

    def __call__(
        self, file: LocalFile, checkpoint: Callable[[], None], size: int | None = None
    ) -> str:
        """Return the checksum of all bytes, or of the first `size` ones, of an unchanged file.

        `checkpoint` is called between chunks; it may wait and may raise. Raises `FileChangedError`.
        """


class FindWriters(Protocol):
    """Finds the programs that write to local files, as far as the system tells."""

    def __call__(self, files: Sequence[LocalFile], /) -> Mapping[bytes, str]:
        """Return by key those of the files that a program has open, and its name."""


class SystemLoad(Protocol):
    """The load of other programs on the instrument's computer."""

    def find_program(self, names: Sequence[str]) -> str | None:
        """Return the first of these programs, each a name or a full path, that is running."""

    def measure_pressure(self) -> float | None:
        """Return the recent share of time, in %, in which other programs waited for disk or memory.

        Returns None if the system does not report it.
        """


class Wakefulness(Protocol):
    """Control of the sleep mode of the instrument's computer."""

    def keep(self) -> bool:
        """Prevent sleep until `end`, if that is not done; return whether it is known to work."""

    def end(self) -> None:
        """Allow sleep again."""


class Ledger(Protocol):
    """The local record of what was sent and verified; a cache that never overrides the server.

    Keys are those of the data directory it was opened for. Safe to call from any thread.
    """

    def find_entries(self, keys: Sequence[bytes]) -> Mapping[bytes, Entry]:
        """Return the entries of these files; unknown files are omitted."""

    def find_of_inodes(self, inodes: Sequence[int]) -> Sequence[Entry]:
        """Return the rows of files with these inodes that are registered or verified."""

    def find_verified(
        self, dataset: DatasetId, keys: Sequence[bytes]
    ) -> Mapping[bytes, DatafileId]:
        """Return the records of those files that are known as verified in a dataset."""

    def begin_listing(self, dataset: DatasetId) -> KnownParts:
        """Return the parts of earlier listings of a dataset whose files need no comparison."""

    def record_listing(
        self, dataset: DatasetId, known: KnownParts, same: Mapping[bytes, bytes]
    ) -> None:
        """Record the parts of a listing of which all files were the same as their rows.

        `known` is what `begin_listing` returned, and `same` has the `hash_keys` of all parts that
        are not known. Those with a verified row that has changed since then will not be known.
        """

    def find_open(self, files: Sequence[LocalFile]) -> OpenFiles:
        """Return which files are not known as verified and unchanged.

        Files are compared by size, time, ctime and inode, and must have a known record.
        """

    def find_open_parts(
        self, parts: Sequence[tuple[bytes, Sequence[LocalFile]]]
    ) -> Sequence[OpenFiles]:
        """Return the same for several parts.

        For the digest of a part of which all files are known in one dataset, `find_known` returns
        that dataset; an empty digest stands for none.
        """

    def find_known(self, digests: Sequence[bytes]) -> Mapping[bytes, DatasetId]:
        """Return the datasets in which files with a digest are known as verified and unchanged.

        That was seen within the last days, and no verified row of them has changed since.
        """

    def iter_verified(self, dataset: DatasetId) -> Iterator[Entry]:
        """Yield the verified rows of a dataset, except those in archives."""

    def count_records(
        self, dataset: DatasetId, after: int = 0, until: int = 2**63 - 1
    ) -> NewestDatafile:
        """Return the number of known records of a dataset with ids above `after` and up to `until`.

        Files in archives do not count, but their archives do.
        """

    def count_verified(self, dataset: DatasetId, after: int = 0) -> int:
        """Return the number of known records of a dataset with ids above `after` and verified."""

    def find_listed(self, dataset: DatasetId) -> DatasetListing | None:
        """Return when the records of a dataset were last compared, and which."""

    def record_listed(
        self, dataset: DatasetId, newest: NewestDatafile, verified: int | None
    ) -> None:
        """Record a full listing of a dataset.

        `verified` is the server's number of verified replicas, None if it does not count them.
        """

    def record_proven(
        self, dataset: DatasetId, newest: NewestDatafile, verified: int | None
    ) -> None:
        """Record that a dataset has exactly these records; the time of the last listing is kept."""

    def add_spot_checks(self, entries: Sequence[Entry]) -> None:
        """Record which records the server is to verify again."""

    def find_spot_checks(self, most: int) -> Mapping[DatafileId, bytes]:
        """Return the first of the records that are to be verified again, with their files' keys."""

    def forget_spot_checks(self, records: Sequence[DatafileId]) -> None:
        """Remove records that were verified again, or that are no longer known."""

    def recheck(self, found: Iterable[Recheck]) -> int:
        """Take "verified" away from what must be checked again; its datasets are due for a listing.

        The effect is durable on return. Return the number of files.
        """

    def find_verified_at(self, key: bytes) -> datetime | None:
        """Return when a file was recorded as verified last; None if it never was."""

    def is_doubted(self, key: bytes) -> bool:
        """Return whether an answer of the server contradicted that it has a file as verified."""

    def record(self, entries: Sequence[Entry]) -> None:
        """Record these rows; they replace older ones."""

    def forget(self, entries: Sequence[Entry]) -> None:
        """Remove these rows: the destination has nothing under these names any more."""

    def record_late(self, entries: Sequence[Entry]) -> None:
        """Record steps that soon become others; they are written if that takes some seconds.

        A run that is killed before repeats these steps.
        """

    def record_found(
        self, files: Sequence[LocalFile], since: datetime, *, unsent: bool = False
    ) -> int:
        """Record that these files exist only here, unless they are known as verified and unchanged.

        With `unsent`, the server lacks them, whatever is known. Outcomes recorded `since` the run
        began are kept; verification removes them. Returns the number of files for which this is
        new.
        """

    def record_replacements(self, replacements: Sequence[Replacement]) -> None:
        """Record which bytes are to replace others; durable on return."""

    def find_replacements(self) -> Sequence[Replacement]:
        """Return all replacements that are not known to be complete, ordered by key."""

    def forget_replacements(self, replacements: Sequence[Replacement]) -> None:
        """Remove finished or abandoned replacements, unless they are of other bytes by now."""

    def note_batch(self, keys: Sequence[bytes]) -> int:
        """Record that a batch of these files is about to be sent; return the note's number."""

    def find_batches(self) -> Mapping[int, Sequence[bytes]]:
        """Return the files of batches that are not known to have arrived, by note."""

    def forget_batches(self, notes: Sequence[int]) -> None:
        """Remove these notes."""

    def record_changed(self, changed: ChangedFile) -> None:
        """Record the state of a changed file; replaces an older one."""

    def record_kept(self, copies: Sequence[KeptCopy]) -> None:
        """Record earlier bytes that are, or are to be, kept on the server; durable on return."""

    def find_meta(self, key: str) -> str | None:
        """Return a fact about this installation or its destination."""

    def record_meta(self, key: str, value: str) -> None:
        """Record a fact about this installation or its destination."""

    def find_kept(self, key: bytes | None = None) -> Sequence[KeptCopy]:
        """Return what is kept of a file, or of all; the newest first."""

    def forget_kept(self, copies: Sequence[KeptCopy]) -> None:
        """Remove the record of bytes that are kept no longer."""

    def find_archives(self, dataset: DatasetId) -> Mapping[str, ArchiveRecord]:
        """Return the archives of a dataset by path."""

    def record_archive(
        self, archive: ArchiveRecord, members: Sequence[Entry] | None = None
    ) -> None:
        """Record an archive; replaces an older row.

        With `members`, it contains exactly these from now on. Without, its known members get its
        state.
        """

    def forget_archive(self, archive: ArchiveRecord) -> None:
        """Remove an archive that the server has lost; its members are then in none."""

    def note_write(self, dataset: DatasetId, until: datetime) -> None:
        """Record that a request may write to a dataset until a time."""

    def forget_write(self, dataset: DatasetId) -> None:
        """Remove the record of a request that has ended."""

    def find_writes(self) -> Mapping[DatasetId, EarlierWrite]:
        """Return the requests of earlier runs that may still be writing."""

    def open_mapping(self) -> MutableMapping[tuple[str, str], T]:
        """Return an empty mapping by directory and name, for this run.

        All such mappings together use a limited amount of memory.
        """

    def flush(self) -> None:
        """Return when everything recorded is durable."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
