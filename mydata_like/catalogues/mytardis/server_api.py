"""The interface of the REST API of MyTardis and its MyData app."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from mydata_like.core.errors import UnansweredError
from mydata_like.core.model import (
    Datafile,
    DatafileId,
    Dataset,
    DatasetId,
    DatasetStats,
    Experiment,
    Facility,
    Group,
    InstrumentRecord,
    NewestDatafile,
    Registration,
    User,
)

T = TypeVar("T")


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
