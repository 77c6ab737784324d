"""Tells the server what lies in the staging area, many files in one request."""

import logging
from collections.abc import Iterator, Set
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain

from mydata_like.core.errors import (
    ItemError,
    Problem,
    RejectedError,
    ServerUnavailableError,
    TransientError,
    UploaderError,
)
from mydata_like.core.events import FileFailed, FileRegistered
from mydata_like.core.model import (
    Datafile,
    DatasetId,
    EntryState,
    Registered,
    Registration,
    Staged,
    Wanted,
)
from mydata_like.core.ports import Clock, Emit, Ledger, ServerAPI
from mydata_like.core.values import dataclass
from mydata_like.engine.bookkeeping import Step, record_steps
from mydata_like.engine.queues import Source
from mydata_like.engine.retry import Gate

logger = logging.getLogger(__name__)

# A request that takes longer than five seconds loses the verifications that the server
# queues inside its transaction, so requests are kept far below that.
WANTED_SECONDS = 1.0
LONGEST_SECONDS = 2.5
LARGEST_REQUEST = 1000
LEAP = 8  # times as many records in the next request, where that is sure to be quick enough
FAILURES = 6  # of the line or the server, for one request, before its files fail
REJECTIONS = 2  # of one record alone: servers answer 500 when they are busy, too
BEGINNING = datetime.fromtimestamp(0, UTC)  # of the times of files

CONFLICT = Problem(
    "register.conflict",
    "Another program registered this name with other bytes while we were sending.",
    "Run again: the file will be compared with what the server has now.",
)

Key = tuple[DatasetId, str, str]


class Register:
    """The stage that registers; its workers keep several requests in flight.

    A request that failed or whose reply was lost is settled by listing what the server
    has, then by halves: what is refused alone fails alone.
    """

    def __init__(
        self, server: ServerAPI, ledger: Ledger, emit: Emit, gate: Gate, filing: "Filing"
    ) -> None:
        self._server = server
        self._ledger = ledger
        self._emit = emit
        self._gate = gate
        self._box = filing.box
        self._pace = filing.pace
        self._refusing: set[DatasetId] = set()  # their last record was refused for good

    def __call__(self, source: Source[list[Staged | Registered]]) -> Iterator[list[Registered]]:
        for items in source:
            ready = [items, *source.take_ready(self._pace.size - len(items))]
            staged: list[Staged] = []
            passing: list[Registered] = []
            for item in chain.from_iterable(ready):
                if isinstance(item, Registered):
                    passing.append(item)
                else:
                    staged.append(item)
            if passing:
                yield passing
            while staged:
                batch, staged = staged[: self._pace.size], staged[self._pace.size :]
                yield from self._settle(batch)

    def _settle(self, batch: list[Staged], failures: int = 0) -> Iterator[list[Registered]]:
        error = self._register(batch)
        if error is None:
            yield self._record(batch)
            return
        logger.info("%d records were not registered: %s", len(batch), error)
        try:
            known, batch = self._split(batch)
        except ItemError as unknown:
            # Without knowing what is there nothing may be made: it could be there twice.
            self._fail(batch, unknown.problem)
            return
        if known:
            yield self._record(known)
        if len(batch) > 1 and isinstance(error, RejectedError):
            middle = len(batch) // 2
            yield from self._settle(batch[:middle])
            yield from self._settle(batch[middle:])
        elif batch and failures < self._allowed_failures(batch[0], error):
            self._gate.rest(self._gate.delay(failures + 1))
            yield from self._settle(batch, failures + 1)
        elif batch:
            if isinstance(error, RejectedError):
                self._refusing.add(batch[0].wanted.dataset.id)
            self._fail(batch, error.problem)

    def _allowed_failures(self, item: Staged, error: UploaderError) -> int:
        """Return how often to try again; a dataset that refuses all must not hold up the others."""
        if not isinstance(error, RejectedError):
            return FAILURES
        return 0 if item.wanted.dataset.id in self._refusing else REJECTIONS

    def _register(self, batch: list[Staged]) -> UploaderError | None:
        """Send one request; return why it did not succeed, or why that is not known."""
        records = [_registration(item, self._box) for item in batch if not item.registered]
        if not records:
            return None
        try:
            with self._pace.measured(len(records)):
                self._server.register(records)
        except (ItemError, ServerUnavailableError) as error:
            return error
        return None

    def _split(self, batch: list[Staged]) -> tuple[list[Staged], list[Staged]]:
        """Ask the server which of these it knows by now; return the known and the others."""
        records: dict[Key, Datafile] = {}
        keys = {_key(item) for item in batch}
        for dataset in {item.wanted.dataset.id for item in batch}:
            records |= self._list(dataset, keys)
        known, others = [], []
        for item in batch:
            found = records.get(_key(item))
            if found and found.checksum == item.checksum and found.replicas:
                known.append(item)
            elif found and found.replicas and not found.copies_at(item.wanted.remote):
                self._fail([item], CONFLICT)
            else:
                others.append(item._replace(wanted=item.wanted._replace(datafile=found)))
        return known, others

    def _list(self, dataset: DatasetId, keys: Set[Key]) -> dict[Key, Datafile]:
        for failures in range(1, FAILURES):
            try:
                return self._fetch(dataset, keys)
            except TransientError as error:
                logger.info("Dataset %d could not be listed: %s", dataset, error)
                self._gate.rest(self._gate.delay(failures, error.retry_after))
        return self._fetch(dataset, keys)

    def _fetch(self, dataset: DatasetId, keys: Set[Key]) -> dict[Key, Datafile]:
        """Return the records of these keys, of a listing of any length."""

        def choose() -> dict[Key, Datafile]:
            listed = self._server.list_datafiles(dataset)
            keyed = (((dataset, it.directory or "", it.name), it) for it in listed)
            return {key: record for key, record in keyed if key in keys}

        return self._gate.call(choose)

    def _record(self, batch: list[Staged]) -> list[Registered]:
        record_steps(
            self._ledger, [Step(item.wanted, _state(item.wanted), item.checksum) for item in batch]
        )
        for item in batch:
            self._refusing.discard(item.wanted.dataset.id)
            for file in item.wanted.files:
                self._emit(FileRegistered(path=file.key, size=file.size))
        return [_registered(item) for item in batch]

    def _fail(self, batch: list[Staged], problem: Problem) -> None:
        for item in batch:
            for file in item.wanted.files:
                self._emit(FileFailed.of(file, problem))


@dataclass(frozen=True, slots=True)
class Filing:
    """Into which storage box records go, and how many at once."""

    box: str
    pace: "Pace"


class Pace:
    """How many records go into one request: as many as the server makes in about a second."""

    def __init__(self, first: int, clock: Clock) -> None:
        self.size = first
        self._clock = clock

    @contextmanager
    def measured(self, records: int) -> Iterator[None]:
        """Learn from how long one request with so many records takes."""
        begun = self._clock.monotonic()
        yield
        seconds = self._clock.monotonic() - begun
        if seconds > LONGEST_SECONDS:
            self.size = max(1, records // 2)
        elif records >= self.size and seconds < WANTED_SECONDS / 2:
            growth = LEAP if seconds * LEAP < WANTED_SECONDS / 2 else 2
            self.size = min(records * growth, LARGEST_REQUEST)


def _registration(item: Staged, box: str) -> Registration:
    wanted, file = item.wanted, item.wanted.file
    record = wanted.datafile
    modified = (BEGINNING + timedelta(microseconds=file.modified_ns // 1000)).isoformat()
    return Registration(
        dataset=wanted.dataset.id,
        directory=file.directory.decode(),
        name=file.name.decode(),
        size=file.size,
        checksum=item.checksum,
        created=modified,
        modified=modified,
        uri=None if record and record.replicas else wanted.remote,
        box=box,
        datafile=record.id if record else None,
    )


def _state(wanted: Wanted) -> EntryState:
    """Return what to remember: a record that was verified with other bytes still says so."""
    repaired = wanted.datafile is not None and bool(wanted.datafile.replicas)
    return EntryState.REPAIRED if repaired else EntryState.REGISTERED


def _registered(item: Staged) -> Registered:
    record = item.wanted.datafile
    if record is None:
        return Registered(item.wanted, item.checksum, placed_by_server=item.registered)
    return Registered(item.wanted, item.checksum, record.id, record.looks, item.registered)


def _key(item: Staged) -> Key:
    file = item.wanted.file
    return item.wanted.dataset.id, file.directory.decode(), file.name.decode()
