"""What the engine asks of the outside world; implementations say how in their names."""

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
from mydata_like.core.errors import Problem
from mydata_like.core.events import Event
from mydata_like.core.model import (
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
    LocalFile,
    NewestDatafile,
    OpenFiles,
    Payload,
    Reading,
    Registration,
    Replacement,
    User,
)

T = TypeVar("T")
Emit = Callable[[Event], None]


class Clock(Protocol):
    """Time; a fake one moves when it is slept on."""

    def now(self) -> datetime:
        """Return wall-clock time, aware, in UTC: for schedules, ages and display only."""

    def monotonic(self) -> float:
        """Return seconds that only grow: for deadlines and rates."""


class CancelSignal(Protocol):
    """A request to stop that every wait listens to."""

    def is_set(self) -> bool: ...

    def wait(self, timeout: float) -> bool:
        """Wait so many seconds for the request; return whether it has come."""


class ExperimentDraft(NamedTuple):
    """What makes an experiment: its title, and what it is found by again."""

    title: str
    description: str
    layout: str  # the layout's text, which selects the server's rule of matching
    user_folder: str
    group_folder: str  # empty for none
    uploader: str  # uuid of this installation


class ServerAPI(Protocol):
    """The REST API of the upload server (MyTardis with its MyData app).

    Every method may be called from any thread. They raise `TransientError` once their own
    retries are used up, `AccessDeniedError` when the server does not accept who we are,
    `ServerUnavailableError` when it cannot be reached, `RejectedError` when it refuses
    this one request for good. A `find_` that returns None has proved that the empty answer
    was not a matter of missing rights.
    """

    def fetch_resources(self) -> frozenset[str]:
        """Return the names of the API's resources; needs no credentials."""

    def fetch_account(self) -> User:
        """Return who we are to the server; the proof that the credentials work."""

    def find_user(self, username: str) -> User | None: ...

    def find_user_by_email(self, email: str) -> User | None: ...

    def find_group(self, name: str) -> Group | None: ...

    def fetch_facilities(self) -> list[Facility]:
        """Return the facilities whose managers we belong to."""

    def ensure_instrument(self, facility: Facility, name: str) -> InstrumentRecord:
        """Return the facility's instrument of this name, making it where it is missing."""

    def find_experiment(self, draft: ExperimentDraft) -> Experiment | None: ...

    def create_experiment(self, draft: ExperimentDraft) -> Experiment:
        """Make an experiment; a lost reply is resolved by looking for it."""

    def grant(self, experiment: Experiment, holder: User | Group) -> None:
        """Make a user or a group an owner of the experiment."""

    def fetch_datasets(self, experiment: Experiment, instrument: InstrumentRecord) -> list[Dataset]:
        """Return the experiment's datasets of this instrument, all pages."""

    def create_dataset(
        self, experiment: Experiment, name: str, instrument: InstrumentRecord
    ) -> Dataset:
        """Make a dataset; a lost reply is resolved by looking for it."""

    def fetch_stats(self, dataset: DatasetId) -> DatasetStats | None:
        """Return the dataset's numbers, or None where the server cannot tell."""

    def fetch_newest(self, dataset: DatasetId, total: int) -> NewestDatafile:
        """Return how many records a dataset has, and the id of the last one of `total`.

        That is one request. Records are in the order of their ids; 0 stands for no such record.
        """

    def list_datafiles(self, dataset: DatasetId, offset: int = 0) -> Iterator[Datafile]:
        """Yield all records of a dataset from `offset` on, ordered by id, page by page."""

    def fetch_datafiles(self, ids: Sequence[DatafileId]) -> list[Datafile]:
        """Return the records of these ids; unknown ones are left out."""

    def find_datafiles(self, dataset: DatasetId, name: str) -> list[Datafile]:
        """Return a dataset's records of this file name, whatever their directories are."""

    def read_datafile(self, record: Datafile, take: Callable[[Iterable[bytes]], T]) -> T:
        """Return what `take` makes of the bytes of a verified datafile, all of them.

        Raises `RejectedError` where the server does not give them to us.
        """

    def register(self, records: Sequence[Registration]) -> None:
        """Make or repair records in one request that happens wholly or not at all.

        Raises `TransientError` where it is not known whether it happened, `RejectedError`
        where it did not. It is never repeated here: list first.
        """

    def request_verification(self, datafile: DatafileId) -> None:
        """Ask the server to compare the bytes it has with the checksum it was told."""


@dataclass(slots=True)
class SentFile:
    """One member of a payload is in the staging area: `index` is its place in the payload.

    `inside` tells what came of reading each file where the member is an archive.
    """

    index: int
    checksum: str
    registered: bool = False
    inside: tuple[Reading, ...] = ()


@dataclass(slots=True)
class UnsentFile:
    """One member of a payload is not proven to be in the staging area.

    `again` says that sending it again may help; otherwise its local file or the server
    refuses it as it is.
    """

    index: int
    problem: Problem
    again: bool


Progress = Callable[[int], None]  # bytes of the payload that have gone, a running total


class Channel(Protocol):
    """One line to the staging area; it carries one payload at a time."""

    @property
    def number(self) -> int: ...

    def open(self) -> None:
        """Make sure that it stands, also after its line broke; raises as `send` does.

        That takes moments, however large the payload is that comes after it.
        """

    def send(self, payload: Payload, progress: Progress) -> list[SentFile | UnsentFile]:
        """Carry a payload and tell the fate of each of its members, in their order.

        What replaces earlier bytes is laid aside for `replace`; where nothing can be renamed, it
        is only read.

        Raises `TransientError` when the line broke (the channel has been replaced by then)
        and nothing is known, a `RunError` when no payload could travel now.
        """

    def replace(
        self, replacements: Sequence[Replacement], files: Mapping[bytes, FileToSend]
    ) -> list[SentFile | UnsentFile]:
        """Put what was laid aside into its place; tell the fate of each, in their order.

        Where nothing can be renamed, those of the `files` (by key) are sent into their places.
        What is no longer there has the code `staging.missing`. Raises as `send` does.
        """

    def discard(self, replacements: Sequence[Replacement]) -> None:
        """Remove what was laid aside; raises as `send` does."""

    def limit(self, rate: float) -> None:
        """Send at most so many bytes a second from now on, 0 as fast as it goes; from any thread.

        It holds at once, for the payload under way and those that follow.
        """

    def cut(self) -> None:
        """Break off the payload under way: its `send` raises `TransientError`; from any thread."""

    def close(self) -> None:
        """Give the channel up, when it carries nothing."""


class Transport(Protocol):
    """The bounded pool of channels that carries payloads."""

    @property
    def capacity(self) -> int:
        """How many channels there may be at once."""

    @property
    def round_trip(self) -> float:
        """How many seconds the way there and back takes, 0 while that is unknown."""

    @property
    def spent(self) -> TimeByCause:
        """On what the channels have spent their time so far, as far as they tell."""

    def prepare(self) -> None:
        """Begin what takes time, since something is to be sent soon; again and again."""

    def open_channel(self) -> Channel:
        """Open one more channel; raises as `Channel.send` does."""

    def close(self) -> None:
        """Close all channels at once; sends under way raise `TransientError`."""


class FileChecksum(Protocol):
    """What reads local files for the engine."""

    def __call__(self, file: LocalFile, heed: Callable[[], None]) -> str:
        """Return the MD5 of all bytes of a file that is as it was seen.

        `heed` is called between pieces, may wait and may raise. Raises `FileChangedError`.
        """


class SystemLoad(Protocol):
    """What else is at work on the instrument's computer."""

    def find_program(self, names: Sequence[str]) -> str | None:
        """Return the first of these programs, each a name or a full path, that runs."""

    def measure_pressure(self) -> float | None:
        """Return the share of the time, in %, in which others waited for disk or memory lately.

        None where the system does not tell.
        """


class Wakefulness(Protocol):
    """The instrument's computer, which may go to sleep."""

    def keep(self) -> None:
        """Let it not go to sleep until `end`; does nothing where that is so already."""

    def end(self) -> None:
        """Let it go to sleep again."""


class WriteLog(Protocol):
    """What is being written on the server, noted so that the next run knows it, too.

    Safe to call from any thread.
    """

    def begin(self, dataset: DatasetId) -> None:
        """Note that a request is about to write to a dataset.

        What is in none, such as an experiment that is made, has a negative number.
        """

    def end(self, dataset: DatasetId) -> None:
        """Note that its answer was heard, or that it must be over."""

    def find_rest(self, dataset: DatasetId) -> float:
        """Return for how many seconds a request of an earlier run may still be writing there."""


class Ledger(Protocol):
    """Our local record of what was sent and verified; a cache of truth, never the truth.

    Keys are those of the data directory it was opened for. Safe to call from any thread.
    """

    def find_entries(self, keys: Sequence[bytes]) -> Mapping[bytes, Entry]:
        """Return what is known about these files; unknown ones are left out."""

    def find_open(self, files: Sequence[LocalFile]) -> OpenFiles:
        """Return which files are not known as verified just as they are now.

        That is by size, time, ctime and inode, with a known record.
        """

    def iter_verified(self, dataset: DatasetId) -> Iterator[Entry]:
        """Yield the rows of a dataset that are verified, but for those in archives."""

    def count_records(
        self, dataset: DatasetId, after: int = 0, until: int = 2**63 - 1
    ) -> NewestDatafile:
        """Return how many records are known of a dataset, of ids above `after` up to `until`.

        Files in archives do not count, but their archives do.
        """

    def find_listed(self, dataset: DatasetId) -> DatasetListing | None:
        """Return what the last full listing of a dataset showed."""

    def record_listed(self, dataset: DatasetId, newest: NewestDatafile) -> None:
        """Keep what a full listing of a dataset has just shown."""

    def record(self, entries: Sequence[Entry]) -> None:
        """Keep these rows (written soon, in order, by one writer); replaces older ones."""

    def record_found(
        self, files: Sequence[LocalFile], since: datetime, *, unsent: bool = False
    ) -> int:
        """Keep that these files exist only here, unless they are known as verified as they are.

        With `unsent` the server lacks them, whatever is known. What has been recorded of a file
        `since` the run began stays as it is; being verified ends it. Return of how many it is news.
        """

    def record_replacements(self, replacements: Sequence[Replacement]) -> None:
        """Keep which bytes are to take the place of others; durable when this returns."""

    def find_replacements(self) -> Sequence[Replacement]:
        """Return all replacements that are not known to be complete, in the order of their keys."""

    def forget_replacements(self, replacements: Sequence[Replacement]) -> None:
        """Drop replacements, complete or never to be, unless they are of other bytes by now."""

    def find_archives(self, dataset: DatasetId) -> Mapping[str, ArchiveRecord]:
        """Return the archives of a dataset by their paths."""

    def record_archive(
        self, archive: ArchiveRecord, members: Sequence[Entry] | None = None
    ) -> None:
        """Keep an archive; replaces an older row.

        With `members` it holds exactly these from now on. Else those that it has come as far
        as it has.
        """

    def forget_archive(self, archive: ArchiveRecord) -> None:
        """Drop an archive which the server has lost; its members are in none then."""

    def note_write(self, dataset: DatasetId, until: datetime) -> None:
        """Keep that a request may be writing to a dataset until then."""

    def forget_write(self, dataset: DatasetId) -> None:
        """Drop that, since the request is over."""

    def find_writes(self) -> Mapping[DatasetId, EarlierWrite]:
        """Return the requests of earlier runs that may still be writing."""

    def open_room(self) -> MutableMapping[tuple[str, str], T]:
        """Return an empty mapping by directory and name, for this run.

        All of them together take no more than a certain amount of memory.
        """

    def flush(self) -> None:
        """Return once all that was recorded is durable."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
