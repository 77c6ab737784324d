"""The server's API in memory, with faults on request."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count, islice
from typing import TypeVar

from mydata_like.catalogues.mytardis.server_api import ExperimentDraft
from mydata_like.core.errors import RejectedError, UnansweredError
from mydata_like.core.model import (
    Datafile,
    DatafileId,
    Dataset,
    DatasetId,
    DatasetStats,
    Experiment,
    ExperimentId,
    Facility,
    Group,
    InstrumentRecord,
    NewestDatafile,
    Registration,
    Replica,
    User,
)

T = TypeVar("T")
ACCOUNT = User(1, "facility", "Facility Account")
MANAGERS = Group(1, "managers")
FACILITY = Facility(1, "Demo Facility", MANAGERS)
FIRST_LOOK = datetime(2026, 1, 5, 20, 0)  # noqa: DTZ001 - the server's times have no zone


class ScriptedServer:
    """A server that stores records in dicts; `faults[name]` has errors to raise, one per call.

    An error in `late_faults` is raised after the call has done its work, as for a lost reply.
    Replicas are verified when `verify()` is called. Files named in `bad` and replicas in `stale`
    boxes are never verified. The next verification of those in `begun` succeeds, because it read
    earlier bytes.
    """

    def __init__(self) -> None:
        self.users = {"alice": User(2, "alice", "Alice Ang", "alice@example.org")}
        self.groups = {"lab-a": Group(2, "lab-a")}
        self.experiments: dict[ExperimentDraft, Experiment] = {}
        self.datasets: dict[DatasetId, tuple[ExperimentId, Dataset]] = {}
        self.records: dict[DatafileId, Datafile] = {}
        self.grants: list[tuple[ExperimentId, User | Group]] = []
        self.faults: dict[str, list[BaseException]] = {}
        self.late_faults: dict[str, list[BaseException]] = {}
        self.calls: Counter[str] = Counter()
        self.listed = 0  # records that were returned in listings
        self.bad: set[str] = set()
        self.begun: set[str] = set()
        self.unread: set[str] = set()  # boxes whose replicas are not verified
        self.stale: set[str] = set()  # boxes whose replicas have earlier bytes
        self.contents: dict[str, bytes] = {}
        self.refused: set[str] = set()
        self.asked: list[DatafileId] = []
        self.has_stats = True
        self.verifies_at_once = False
        self.ends_at: float | None = None  # seconds after which unanswered requests have ended
        self._ids = count(1)
        self._looks = count(1)

    def _called(self, name: str) -> None:
        self.calls[name] += 1
        if self.faults.get(name):
            raise self.faults[name].pop(0)

    def _answered(self, name: str) -> None:
        if self.late_faults.get(name):
            raise self.late_faults[name].pop(0)

    def fetch_resources(self) -> frozenset[str]:
        self._called("fetch_resources")
        return frozenset({"mydata_uploader", "mydata_dataset_stats"})

    def fetch_account(self) -> User:
        self._called("fetch_account")
        return ACCOUNT

    def find_user(self, username: str) -> User | None:
        self._called("find_user")
        return self.users.get(username)

    def find_user_by_email(self, email: str) -> User | None:
        self._called("find_user_by_email")
        return next((user for user in self.users.values() if user.email == email), None)

    def find_group(self, name: str) -> Group | None:
        self._called("find_group")
        return self.groups.get(name)

    def fetch_facilities(self) -> list[Facility]:
        self._called("fetch_facilities")
        return [FACILITY]

    def ensure_instrument(self, facility: Facility, name: str) -> InstrumentRecord:
        self._called("ensure_instrument")
        return InstrumentRecord(facility.id, name)

    def find_experiment(self, draft: ExperimentDraft) -> Experiment | None:
        self._called("find_experiment")
        return self.experiments.get(draft)

    def create_experiment(self, draft: ExperimentDraft) -> Experiment:
        self._called("create_experiment")
        made = Experiment(ExperimentId(next(self._ids)), draft.title)
        self.experiments[draft] = made
        self._answered("create_experiment")
        return made

    def grant(self, experiment: Experiment, holder: User | Group) -> None:
        self._called("grant")
        self.grants.append((experiment.id, holder))

    def fetch_datasets(self, experiment: Experiment, instrument: InstrumentRecord) -> list[Dataset]:
        self._called("fetch_datasets")
        return [dataset for owner, dataset in self.datasets.values() if owner == experiment.id]

    def create_dataset(
        self, experiment: Experiment, name: str, instrument: InstrumentRecord
    ) -> Dataset:
        self._called("create_dataset")
        made = Dataset(DatasetId(next(self._ids)), name)
        self.datasets[made.id] = (experiment.id, made)
        return made

    def fetch_stats(self, dataset: DatasetId) -> DatasetStats | None:
        self._called("fetch_stats")
        if not self.has_stats:
            return None
        records = self._of(dataset)
        replicas = [replica for record in records for replica in record.replicas or (None,)]
        return DatasetStats(len(replicas), sum(bool(it and it.verified) for it in replicas))

    def fetch_newest(self, dataset: DatasetId, total: int) -> NewestDatafile:
        self._called("fetch_newest")
        records = sorted(self._of(dataset), key=lambda record: record.id)
        last = records[max(0, total - 1) :][:1]
        return NewestDatafile(len(records), last[0].id if last else 0)

    def list_datafiles(self, dataset: DatasetId, offset: int = 0) -> Iterator[Datafile]:
        self._called("list_datafiles")
        return self._counted(islice(iter(self._of(dataset)), offset, None))

    def _counted(self, records: Iterator[Datafile]) -> Iterator[Datafile]:
        for record in records:
            self.listed += 1
            yield record

    def fetch_datafiles(self, ids: Sequence[DatafileId]) -> list[Datafile]:
        self._called("fetch_datafiles")
        return [self.records[number] for number in ids if number in self.records]

    def find_datafiles(self, dataset: DatasetId, name: str) -> list[Datafile]:
        self._called("find_datafiles")
        return [record for record in self._of(dataset) if record.name == name]

    def read_datafile(self, record: Datafile, take: Callable[[Iterable[bytes]], T]) -> T:
        self._called("read_datafile")
        return take([self.contents[record.name]])

    def find_end(self, begun: float, lost: UnansweredError) -> float:
        return begun + (300.0 if self.ends_at is None else self.ends_at)

    def register(self, records: Sequence[Registration]) -> None:
        self._called("register")
        self._refuse_what_a_real_server_refuses(records)
        for record in records:
            self._store(record)
        if self.verifies_at_once:
            self.verify()
        self._answered("register")

    def request_verification(self, datafile: DatafileId) -> None:
        self._called("request_verification")
        self.asked.append(datafile)
        self.verify(lambda record: record.id == datafile)

    def verify(self, chosen: Callable[[Datafile], bool] = lambda record: True) -> None:
        """Verify these records, as the server does in the background."""
        for record in filter(chosen, list(self.records.values())):
            stamp = (FIRST_LOOK + timedelta(seconds=next(self._looks))).isoformat()
            good = record.name not in self.bad or record.name in self.begun
            self.begun.discard(record.name)
            looked = tuple(
                replica._replace(
                    verified=good and replica.location not in self.stale, verified_at=stamp
                )
                if replica.location not in self.unread
                else replica
                for replica in record.replicas
            )
            self.records[record.id] = record._replace(replicas=looked)

    def add(self, dataset: DatasetId, record: Datafile) -> Datafile:
        """Add a record as another client would."""
        made = record._replace(id=DatafileId(next(self._ids)), dataset=dataset)
        self.records[made.id] = made
        return made

    def _of(self, dataset: DatasetId) -> list[Datafile]:
        return [record for record in self.records.values() if record.dataset == dataset]

    def _refuse_what_a_real_server_refuses(self, records: Sequence[Registration]) -> None:
        names = {(item.dataset, item.directory, item.name) for item in self.records.values()}
        for record in records:
            taken = (record.dataset, record.directory, record.name) in names
            if record.name in self.refused or (record.datafile is None and taken):
                raise RejectedError("The server refused the request.", code="register.refused")

    def _store(self, record: Registration) -> None:
        number = record.datafile or DatafileId(next(self._ids))
        known = self.records.get(number)
        replicas = known.replicas if known and known.replicas else ()
        if not replicas and record.uri is not None:
            replicas = (Replica(record.uri, record.box, verified=False, verified_at=None),)
        self.records[number] = Datafile(
            number,
            record.dataset,
            record.directory,
            record.name,
            record.size,
            record.checksum,
            record.modified,
            replicas,
        )
