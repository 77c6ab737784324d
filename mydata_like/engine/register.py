"""Tells the server what lies in the staging area, many files in one request."""

import logging
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain
from math import inf
from typing import NamedTuple

from mydata_like.core.errors import (
    ItemError,
    Problem,
    RejectedError,
    ServerUnavailableError,
    TransientError,
    UnansweredError,
    UploaderError,
    describe_wait,
)
from mydata_like.core.events import FileFailed, FileRegistered, Notice
from mydata_like.core.model import (
    Datafile,
    DatasetId,
    EntryState,
    FileToSend,
    Registered,
    Registration,
    Staged,
)
from mydata_like.core.ports import Clock, Emit, Ledger, ServerAPI
from mydata_like.engine.dataset_writers import DatasetQueues, WriteTracker
from mydata_like.engine.gate import Gate
from mydata_like.engine.outcome_recorder import LedgerStep, record_steps
from mydata_like.engine.pipeline import StageInput

logger = logging.getLogger(__name__)

# A request that takes longer than five seconds loses the verifications that the server
# queues inside its transaction, so requests are kept far below that.
WANTED_SECONDS = 1.0
LONGEST_SECONDS = 2.5
LARGEST_REQUEST = 1000
LEAP = 8  # times as many records in the next request, where that is sure to be quick enough
FAILURES = 6  # of the line or the server, for one request, before its files fail
UNHEARD = 3  # lost answers in a row for one dataset before the files of the last request fail
FIRST_LOOK, LONGEST_LOOK = 1.0, 30.0  # seconds between looks for what became of a lost answer
NAP, LONGEST_NAP = 0.05, 0.5  # seconds after which a worker with nothing to do looks again
REJECTIONS = 2  # of one record alone: servers answer 500 when they are busy, too
BEGINNING = datetime.fromtimestamp(0, UTC)  # of the times of files

CONFLICT = Problem(
    "register.conflict",
    "Another program registered different content under this name during the upload.",
    "Run again: the file is then compared with the server's new record.",
)

Key = tuple[DatasetId, str, str]


class Register:
    """The stage that registers; its workers keep several requests in flight.

    These are for different datasets: two that write the same block each other on the server. A
    request that was refused is settled by listing what the server has, then by halves: what is
    refused alone fails alone. One whose answer was lost may still be at work: nothing is written
    to its dataset until a listing shows what became of it, or until it must be over.
    """

    def __init__(
        self, server: ServerAPI, ledger: Ledger, emit: Emit, gate: Gate, filing: "RegisterOptions"
    ) -> None:
        self._server = server
        self._ledger = ledger
        self._emit = emit
        self._gate = gate
        self._clock = gate.clock
        self._box, self._pace, self._writes = filing
        self._waiting = DatasetQueues()
        self._unheard: dict[DatasetId, _Unheard] = {}
        self._begun: dict[DatasetId, float] = {}  # when the last request was sent
        self._failures: Counter[DatasetId] = Counter()  # lost answers in a row
        self._given_up: dict[DatasetId, Problem] = {}  # so many answers were lost
        self._cut_off: dict[DatasetId, frozenset[tuple[str, str]]] = {}  # as of `_Unheard`
        self._refusing: set[DatasetId] = set()  # their last record was refused for good

    def __call__(self, source: StageInput[list[Staged | Registered]]) -> Iterator[list[Registered]]:
        while True:
            items = self._await(source)
            ready = [items or [], *source.take_ready(self._pace.size - len(items or ()))]
            passing: list[Registered] = []
            staged: list[Staged] = []
            for item in chain.from_iterable(ready):
                if isinstance(item, Registered):
                    passing.append(item)
                else:
                    staged.append(item)
            if passing:
                yield passing
            self._waiting.add(staged)
            yield from self._serve_all()
            if source.finished and self._waiting.find_due() == inf:
                return

    def _await(
        self, source: StageInput[list[Staged | Registered]]
    ) -> list[Staged | Registered] | None:
        """Return what has been sent, or None when a dataset that was put off is due."""
        due = self._waiting.find_due()
        rest = None if due == inf else max(0.0, due - self._clock.monotonic())
        if source.finished and rest is not None:  # whose poll would not wait
            self._gate.rest(min(rest, LONGEST_NAP))
            return None
        return source.poll(rest)

    def _serve_all(self) -> Iterator[list[Registered]]:
        """Register what waits of datasets that no other worker has."""
        while True:
            dataset = self._waiting.take(self._clock.monotonic())
            if dataset is not None:
                try:
                    yield from self._serve(dataset)
                finally:
                    self._waiting.release(dataset)
            elif self._waiting.crowded:
                self._gate.rest(NAP)
            else:
                return

    def _serve(self, dataset: DatasetId) -> Iterator[list[Registered]]:
        """Register a batch of a dataset, unless another request may still be writing there."""
        unheard = self._unheard.get(dataset) or self._find_earlier(dataset)
        if unheard is not None:
            yield from self._look_for(dataset, unheard)
            if dataset in self._unheard:
                return
        batch = self._waiting.take_files(dataset, self._pace.size)
        if dataset in self._given_up:
            self._fail(batch, self._given_up[dataset])
        elif self._is_doubtful(dataset, batch):
            yield from self._settle_doubtful(batch)
        elif batch:
            yield from self._settle(batch)

    def _is_doubtful(self, dataset: DatasetId, batch: list[Staged]) -> bool:
        """Return whether the last request of an earlier run may have registered some of these."""
        staged = self._cut_off.get(dataset, frozenset())
        return any((it.wanted.remote, it.checksum) in staged for it in batch)

    def _settle_doubtful(self, batch: list[Staged]) -> Iterator[list[Registered]]:
        try:
            known, others = self._split(batch)
        except ItemError as unknown:
            self._fail(batch, unknown.problem)
            return
        if known:
            yield self._record(known)
        if others:
            yield from self._settle(others)

    def _find_earlier(self, dataset: DatasetId) -> "_Unheard | None":
        """Return a request of an earlier run that may still be at work."""
        rest, earlier = self._writes.find_rest(dataset), self._writes.find_earlier(dataset)
        if earlier is None:
            return None
        self._tell_wait(rest)
        begun = self._clock.monotonic()
        unheard = _Unheard([], begun + rest, begun, earlier.staged)
        self._unheard[dataset] = unheard
        return unheard

    def _look_for(self, dataset: DatasetId, unheard: "_Unheard") -> Iterator[list[Registered]]:
        """Look what became of a request whose answer was lost, and go on where that is clear."""
        now = self._clock.monotonic()
        try:
            over = now >= unheard.end or self._shows(dataset, unheard)
        except ItemError as error:
            logger.info("Dataset %d could not be listed: %s", dataset, error)
            over = False
        if not over:
            interval = min(max(now - unheard.begun, FIRST_LOOK), LONGEST_LOOK)
            self._waiting.put_off(dataset, min(now + interval, unheard.end))
            return
        yield from self._take_up(dataset, unheard)

    def _take_up(self, dataset: DatasetId, unheard: "_Unheard") -> Iterator[list[Registered]]:
        """Keep what a request has done that is over, and let the rest wait to be sent."""
        if unheard.error is None:
            del self._unheard[dataset]
            self._cut_off[dataset] = unheard.staged
            self._writes.end_earlier(dataset)
            return
        try:
            known, others = self._split(unheard.batch)
        except ItemError as unknown:
            # Without knowing what is there nothing may be made: it could be there twice.
            known, others = [], []
            self._fail(unheard.batch, unknown.problem)
        del self._unheard[dataset]
        self._writes.end(dataset)
        if known:
            self._failures[dataset] = 0
            yield self._record(known)
        if others and self._failures[dataset] >= UNHEARD:
            self._given_up[dataset] = unheard.error.problem
        self._waiting.put_back(dataset, others)

    def _shows(self, dataset: DatasetId, unheard: "_Unheard") -> bool:
        """Return whether a listing shows that a request was carried out, which is all or nothing.

        Of an earlier run's it is known what it may have written.
        """
        if unheard.error is None:
            listed = self._gate.call(lambda: self._server.list_datafiles(dataset))
            places = ((it.uri, record.checksum) for record in listed for it in record.replicas)
            return not unheard.staged or any(place in unheard.staged for place in places)
        telling = next(filter(_tells, reversed(unheard.batch)), None)
        if telling is None:
            return False
        name = telling.wanted.file.name.decode()
        found = self._gate.call(lambda: self._server.find_datafiles(dataset, name))
        return any(_is_kept(it, telling) for it in found if _key_of(it) == _key(telling))

    def _settle(self, batch: list[Staged], failures: int = 0) -> Iterator[list[Registered]]:
        dataset = batch[0].wanted.dataset.id
        if dataset in self._unheard:
            self._waiting.put_back(dataset, batch)
            return
        error = self._register(batch)
        if error is None:
            self._failures[dataset] = 0
            yield self._record(batch)
            return
        logger.info("%d records were not registered: %s", len(batch), error)
        if isinstance(error, UnansweredError):
            self._wait_for(dataset, batch, error)
        else:
            yield from self._settle_failed(batch, error, failures)

    def _settle_failed(
        self, batch: list[Staged], error: UploaderError, failures: int
    ) -> Iterator[list[Registered]]:
        """Find out what is there after a request that is over, and send the rest again."""
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

    def _wait_for(self, dataset: DatasetId, batch: list[Staged], error: UnansweredError) -> None:
        """Write nothing to a dataset until it is known what became of a request."""
        self._failures[dataset] += 1
        now = self._clock.monotonic()
        end = self._begun.get(dataset, now) + self._writes.limit
        self._tell_wait(end - now)
        self._unheard[dataset] = _Unheard(batch, end, now, error=error)
        self._waiting.put_off(dataset, min(now, end))

    def _tell_wait(self, seconds: float) -> None:
        if seconds > 0:
            self._emit(Notice(problem=describe_wait(seconds)))

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
        dataset = records[0].dataset
        self._begun[dataset] = self._clock.monotonic()
        self._writes.begin(dataset)
        try:
            with self._pace.measured(len(records)):
                self._server.register(records)
        except UnansweredError as error:
            return error
        except UploaderError as error:
            self._writes.end(dataset)
            if isinstance(error, ItemError | ServerUnavailableError):
                return error
            raise
        self._writes.end(dataset)
        return None

    def _split(self, batch: list[Staged]) -> tuple[list[Staged], list[Staged]]:
        """Ask the server which of these it knows by now; return the known and the others."""
        keys = {_key(item) for item in batch}
        records = self._list(batch[0].wanted.dataset.id, keys)
        known, others = [], []
        for item in batch:
            found = records.get(_key(item))
            if found and _is_kept(found, item):
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
            keyed = ((_key_of(it), it) for it in self._server.list_datafiles(dataset))
            return {key: record for key, record in keyed if key in keys}

        return self._gate.call(choose)

    def _record(self, batch: list[Staged]) -> list[Registered]:
        record_steps(
            self._ledger,
            [LedgerStep(item.wanted, _state(item.wanted), item.checksum) for item in batch],
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


class RegisterOptions(NamedTuple):
    """Into which storage box records go, how many at once, and where it is noted."""

    box: str
    pace: "BatchSizer"
    writes: WriteTracker


class _Unheard(NamedTuple):
    """A request whose answer was lost; it must be over at `end`.

    It carried `batch`. That of an earlier run, whose error nobody knows, carried some of `staged`.
    """

    batch: list[Staged]
    end: float
    begun: float  # when it was first waited for
    staged: frozenset[tuple[str, str]] = frozenset()
    error: UnansweredError | None = None


class BatchSizer:
    """How many records go into one request: as many as the server makes in about a second."""

    def __init__(self, first: int, clock: Clock) -> None:
        self.size = first
        self._clock = clock

    @contextmanager
    def measured(self, records: int) -> Iterator[None]:
        """Learn from how long one request with so many records takes, or that it was too long."""
        begun = self._clock.monotonic()
        try:
            yield
        except UnansweredError:
            self.size = max(1, records // 2)
            raise
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
        wanted.dataset.id,
        file.directory.decode(),
        file.name.decode(),
        file.size,
        item.checksum,
        modified,
        modified,
        None if record and record.replicas else wanted.remote,
        box,
        record.id if record else None,
    )


def _state(wanted: FileToSend) -> EntryState:
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


def _key_of(record: Datafile) -> Key:
    return record.dataset, record.directory or "", record.name


def _tells(item: Staged) -> bool:
    """Return whether its record will look another way once it is registered."""
    before = item.wanted.datafile
    return not item.registered and not (before and _is_kept(before, item))


def _is_kept(record: Datafile, item: Staged) -> bool:
    """Return whether the server has the record that was to be made or changed."""
    return record.checksum == item.checksum and bool(record.replicas)
