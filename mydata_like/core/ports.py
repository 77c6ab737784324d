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
from typing import NamedTuple, Protocol, Self, TypeVar

from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.channel_time import TimeByCause
from mydata_like.core.errors import Problem, UnansweredError
from mydata_like.core.events import Event
from mydata_like.core.local_files import LocalFile, Reading
from mydata_like.core.model import (
    ChangedFile,
    Datafile,
    DatafileId,
    Dataset,
    DatasetId,
    DatasetListing,
    DatasetStats,
    EarlierWrite,
    Entry,
    Experiment,
    Facility,
    FileToSend,
    Group,
    InstrumentRecord,
    KeptCopy,
    NewestDatafile,
    OpenFiles,
    Payload,
    Recheck,
    Registration,
    Replacement,
    User,
)

T = TypeVar("T")
Emit = Callable[[Event], None]


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


class ExperimentDraft(NamedTuple):
    """The attributes of a new experiment, by which it is also found again."""

    title: str
    description: str
    layout: str  # the layout's text, which selects the server's matching rule
    user_folder: str
    group_folder: str  # empty for none
    uploader: str  # uuid of this installation


class ServerAPI(Protocol):
    """The REST API of the upload server (MyTardis with its MyData app).

    Every method may be called from any thread. Methods raise `TransientError` after their own
    retries, `AccessDeniedError` if the server does not accept the account, `ServerUnavailableError`
    if it cannot be reached, and `RejectedError` if it permanently refuses the request. If a `find_`
    method returns None, it has checked that missing permissions are not the reason.
    """

    def fetch_resources(self) -> frozenset[str]:
        """Return the names of the API's resources; needs no credentials."""

    def fetch_account(self) -> User:
        """Return the account in use, which proves that the credentials are valid."""

    def find_user(self, username: str) -> User | None: ...

    def find_user_by_email(self, email: str) -> User | None: ...

    def find_group(self, name: str) -> Group | None: ...

    def fetch_facilities(self) -> list[Facility]:
        """Return the facilities of which the account is a manager."""

    def ensure_instrument(self, facility: Facility, name: str) -> InstrumentRecord:
        """Return the facility's instrument of this name; create it if it is missing."""

    def find_experiment(self, draft: ExperimentDraft) -> Experiment | None: ...

    def create_experiment(self, draft: ExperimentDraft) -> Experiment:
        """Create an experiment; after a lost response, look for it."""

    def grant(self, experiment: Experiment, holder: User | Group) -> None:
        """Make a user or a group an owner of the experiment."""

    def fetch_datasets(self, experiment: Experiment, instrument: InstrumentRecord) -> list[Dataset]:
        """Return the experiment's datasets of this instrument, from all pages."""

    def create_dataset(
        self, experiment: Experiment, name: str, instrument: InstrumentRecord
    ) -> Dataset:
        """Create a dataset; after a lost response, look for it."""

    def fetch_stats(self, dataset: DatasetId) -> DatasetStats | None:
        """Return the dataset's statistics, or None if the server does not support them."""

    def fetch_newest(self, dataset: DatasetId, total: int) -> NewestDatafile:
        """Return the number of records of a dataset, and the id of the last one of `total`.

        This takes one request. Records are ordered by id; 0 means that there is no such record.
        """

    def list_datafiles(self, dataset: DatasetId, offset: int = 0) -> Iterator[Datafile]:
        """Yield all records of a dataset from `offset` on, ordered by id, page by page."""

    def fetch_datafiles(self, ids: Sequence[DatafileId]) -> list[Datafile]:
        """Return the records of these ids; unknown ones are left out."""

    def find_datafiles(self, dataset: DatasetId, name: str) -> list[Datafile]:
        """Return a dataset's records with this file name, in any directory."""

    def read_datafile(self, record: Datafile, take: Callable[[Iterable[bytes]], T]) -> T:
        """Pass all bytes of a verified datafile to `take` and return its result.

        Raises `RejectedError` if the server does not return them.
        """

    def register(self, records: Sequence[Registration]) -> None:
        """Create or repair records in one atomic request.

        Raises `TransientError` if the result is not known, `RejectedError` if nothing was changed.
        The request is never repeated here: list the records first.
        """

    def find_end(self, begun: float, lost: UnansweredError) -> float:
        """Return the monotonic time when a request with a lost answer must have ended.

        It was made at `begun`. The time becomes earlier when it is seen that the server went down.
        """

    def request_verification(self, datafile: DatafileId) -> None:
        """Ask the server to compare its bytes with the registered checksum."""


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

    `omitted` of them did not have to be sent: an earlier attempt has left them, or they are holes.
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
        self, replacements: Sequence[Replacement], files: Mapping[bytes, FileToSend]
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
        """Return the MD5 of all bytes, or of the first `size` ones, of an unchanged file.

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

    def keep(self) -> None:
        """Prevent sleep until `end`; does nothing if it is already prevented."""

    def end(self) -> None:
        """Allow sleep again."""


class WriteLog(Protocol):
    """The log of write requests in progress, from which the next run learns about them.

    Safe to call from any thread.
    """

    def begin(self, dataset: DatasetId) -> None:
        """Record that a request is about to write to a dataset.

        A request that writes to no dataset, such as one that creates an experiment, has a negative
        number.
        """

    def end(self, dataset: DatasetId) -> None:
        """Record that its response was received, or that it must have ended."""

    def find_rest(self, dataset: DatasetId) -> float:
        """Return for how many seconds a request of an earlier run may still write there."""


class Ledger(Protocol):
    """The local record of what was sent and verified; a cache that never overrides the server.

    Keys are those of the data directory it was opened for. Safe to call from any thread.
    """

    def find_entries(self, keys: Sequence[bytes]) -> Mapping[bytes, Entry]:
        """Return the entries of these files; unknown files are omitted."""

    def find_open(self, files: Sequence[LocalFile]) -> OpenFiles:
        """Return which files are not known as verified and unchanged.

        Files are compared by size, time, ctime and inode, and must have a known record.
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

    def is_doubted(self, key: bytes) -> bool:
        """Return whether an answer of the server contradicted that it has a file as verified."""

    def record(self, entries: Sequence[Entry]) -> None:
        """Record these rows; they replace older ones."""

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
