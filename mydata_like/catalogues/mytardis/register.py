"""The stage that registers staged files on the server, many files in one request."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from itertools import chain
from math import inf
from typing import NamedTuple

from mydata_like.catalogues.mytardis.dataset_writers import DatasetQueues, WriteTracker
from mydata_like.catalogues.mytardis.server_api import ServerAPI
from mydata_like.core.errors import (
    ItemError,
    Problem,
    RejectedError,
    ServerUnavailableError,
    TransientError,
    UnansweredError,
    UploaderError,
    describe_strange_record,
    describe_wait,
)
from mydata_like.core.events import FileFailed, FileRegistered, FileWaiting, Notice
from mydata_like.core.model import (
    Batch,
    Datafile,
    DatasetId,
    EntryState,
    FileRecord,
    Registration,
)
from mydata_like.core.parsing import moment_of_ns
from mydata_like.core.ports import Clock, Emit, Ledger
from mydata_like.engine.gate import Gate
from mydata_like.engine.outcome_recorder import record_states
from mydata_like.engine.pipeline import Lock, StageInput

logger = logging.getLogger(__name__)

# A request that takes longer than five seconds loses the verifications that the server
# queues inside its transaction, so requests are kept far below that.
WANTED_SECONDS = 1.0
LONGEST_SECONDS = 2.5
LARGEST_REQUEST = 1000
STUCK_SECONDS = 30.0  # of a request, after which another may run in its place
LEAST_RECORDS = 8  # with fewer, a slow request is hardly faster, but there are many more of them
FASTER = 0.75  # of the time of a larger request, below which a smaller one was clearly faster
LARGE_GROWTH = 8  # growth of the next request if it is certain to be fast enough
FAILURES = 6  # of the connection or the server, for one request, before its files fail
LOST_ANSWERS = 3  # in a row for one dataset before the files of the last request fail
FIRST_LOOK, LONGEST_LOOK = 1.0, 5.0  # seconds between checks after a lost answer
LONGEST_LISTING = 30.0  # the same for a request of an earlier run, which takes a whole listing
IDLE_WAIT, LONGEST_IDLE_WAIT = 0.05, 0.5  # seconds after which an idle worker checks again
REJECTIONS = 2  # of a single record: busy servers answer 500 as well

CONFLICT = Problem(
    "register.conflict",
    "Another program registered different content under this name during the upload.",
    "Run again: the file is then compared with the server's new record.",
)

Key = tuple[DatasetId, str, str]


class Register:
    """The stage that registers files, with several concurrent requests.

    Each request is for a different dataset, since two writes to the same dataset block each other
    on the server. After a rejected request, the server's records are listed and the rest is sent in
    halves, so that a record that is rejected alone fails alone. A request whose answer was lost may
    still be in progress: nothing is written to its dataset until a listing shows its result, or
    until it must have ended.
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
        self._lost_answers: dict[DatasetId, _LostAnswer] = {}
        self._begun: dict[DatasetId, float] = {}  # when the last request was sent
        self._failures: Counter[DatasetId] = Counter()  # consecutive lost answers
        self._given_up: dict[DatasetId, Problem] = {}  # after too many lost answers
        self._interrupted: dict[DatasetId, frozenset[tuple[str, str]]] = {}  # as in `_LostAnswer`
        self._refusing: set[DatasetId] = set()  # their last record was rejected for good

    def __call__(self, source: StageInput[Batch]) -> Iterator[Batch]:
        while True:
            first = self._await(source) or []
            more = source.take_ready(self._pace.size - len(first))
            items = [*first, *chain.from_iterable(more)]
            staged = [item for item in items if item.state is EntryState.STAGED]
            passing = [item for item in items if item.state is EntryState.REGISTERED]
            if passing:
                yield passing
            self._waiting.add(staged)
            yield from self._serve_all()
            if source.finished and self._waiting.find_due() == inf:
                return

    def _await(self, source: StageInput[Batch]) -> Batch | None:
        """Return what has been sent, or None when a postponed dataset is due."""
        due = self._waiting.find_due()
        rest = None if due == inf else max(0.0, due - self._clock.monotonic())
        if source.finished and rest is not None:  # a finished source does not wait
            self._gate.rest(min(rest, LONGEST_IDLE_WAIT))
            return None
        return source.poll(rest)

    def _serve_all(self) -> Iterator[Batch]:
        """Register the waiting files of datasets that no other worker has."""
        while True:
            dataset = self._waiting.take(self._clock.monotonic())
            if dataset is not None:
                try:
                    yield from self._serve(dataset)
                finally:
                    self._waiting.release(dataset)
            elif self._waiting.crowded:
                self._gate.rest(IDLE_WAIT)
            else:
                return

    def _serve(self, dataset: DatasetId) -> Iterator[Batch]:
        """Register a batch of a dataset, unless another request may still be writing to it."""
        lost = self._lost_answers.get(dataset) or self._find_earlier(dataset)
        if lost is not None:
            yield from self._check_request(dataset, lost)
            if dataset in self._lost_answers:
                return
        batch = self._waiting.take_files(dataset, self._pace.size)
        if dataset in self._given_up:
            self._fail(batch, self._given_up[dataset])
        elif self._is_doubtful(dataset, batch):
            yield from self._settle_doubtful(batch)
        elif batch:
            yield from self._settle(batch)

    def _is_doubtful(self, dataset: DatasetId, batch: Batch) -> bool:
        """Return whether an earlier run's last request may have registered some of these."""
        staged = self._interrupted.get(dataset, frozenset())
        return any((it.remote, it.checksum) in staged for it in batch)

    def _settle_doubtful(self, batch: Batch) -> Iterator[Batch]:
        try:
            known, others = self._split(batch)
        except ItemError as unknown:
            self._fail(batch, unknown.problem)
            return
        if known:
            yield self._record(known)
        if others:
            yield from self._settle(others)

    def _find_earlier(self, dataset: DatasetId) -> "_LostAnswer | None":
        """Return a request of an earlier run that may still be in progress."""
        rest, earlier = self._writes.find_rest(dataset), self._writes.find_earlier(dataset)
        if earlier is None:
            return None
        self._report_wait(rest, None)
        begun = self._clock.monotonic()
        lost = _LostAnswer([], begun + rest, begun, earlier.staged)
        self._lost_answers[dataset] = lost
        return lost

    def _check_request(self, dataset: DatasetId, lost: "_LostAnswer") -> Iterator[Batch]:
        """Check the result of a request with a lost answer, and continue if it is clear."""
        try:
            over = self._clock.monotonic() >= lost.end or self._was_executed(dataset, lost)
        except ItemError as error:
            logger.info("Dataset %d could not be listed: %s", dataset, error)
            over = False
        now, end, longest = self._clock.monotonic(), lost.end, LONGEST_LISTING
        if over and now < end and lost.error is not None:
            self._pace.compare(len(lost.batch), now - lost.sent, answered=False)
        if lost.error is not None:  # the check may have shown that the server went down
            end, longest = self._server.find_end(lost.sent, lost.error), LONGEST_LOOK
        if not over and now < end:
            interval = min(max(now - lost.begun, FIRST_LOOK), longest)
            self._waiting.postpone(dataset, min(now + interval, end))
            return
        yield from self._finish_request(dataset, lost)

    def _finish_request(self, dataset: DatasetId, lost: "_LostAnswer") -> Iterator[Batch]:
        """Record the results of a request that has ended, and let the rest wait to be sent."""
        if lost.error is None:
            del self._lost_answers[dataset]
            self._interrupted[dataset] = lost.staged
            self._writes.end_earlier(dataset)
            return
        try:
            known, others = self._split(lost.batch)
        except ItemError as unknown:
            # Without a listing no record may be created: it could exist already.
            known, others = [], []
            self._fail(lost.batch, unknown.problem)
        del self._lost_answers[dataset]
        self._writes.end(dataset)
        if known:
            self._failures[dataset] = 0
            yield self._record(known)
        if others and self._failures[dataset] >= LOST_ANSWERS:
            self._given_up[dataset] = lost.error.problem
        self._waiting.put_back(dataset, others)

    def _was_executed(self, dataset: DatasetId, lost: "_LostAnswer") -> bool:
        """Return whether a listing shows that a request, which is atomic, was executed.

        For a request of an earlier run, the records that it may have written are known.
        """
        if lost.error is None:
            listed = self._gate.call(lambda: self._server.list_datafiles(dataset))
            places = ((it.uri, record.checksum) for record in listed for it in record.replicas)
            return not lost.staged or any(place in lost.staged for place in places)
        telling = next(filter(_changes_record, reversed(lost.batch)), None)
        if telling is None:
            return False
        name = telling.file.name.decode()
        found = self._gate.call(lambda: self._server.find_datafiles(dataset, name))
        return any(_is_kept(it, telling) for it in found if _key_of(it) == _key(telling))

    def _settle(self, batch: Batch, failures: int = 0) -> Iterator[Batch]:
        dataset = batch[0].dataset.id
        if dataset in self._lost_answers:
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

    def _settle_failed(self, batch: Batch, error: UploaderError, failures: int) -> Iterator[Batch]:
        """List the records after a request that has ended, and send the rest again."""
        try:
            known, batch = self._split(batch)
        except ItemError as unknown:
            # Without a listing no record may be created: it could exist already.
            self._fail(batch, unknown.problem)
            return
        if known:
            yield self._record(known)
        if len(batch) > 1 and isinstance(error, RejectedError):
            middle = len(batch) // 2
            yield from self._settle(batch[:middle])
            yield from self._settle(batch[middle:])
        elif batch and failures < self._allowed_failures(batch[0], error):
            self._gate.rest(self._gate.backoff(failures + 1))
            yield from self._settle(batch, failures + 1)
        elif batch:
            if isinstance(error, RejectedError):
                self._refusing.add(batch[0].dataset.id)
            self._fail(batch, error.problem)

    def _wait_for(self, dataset: DatasetId, batch: Batch, error: UnansweredError) -> None:
        """Write nothing to a dataset until the result of a request is known."""
        self._failures[dataset] += 1
        now = self._clock.monotonic()
        sent = self._begun.get(dataset, now)
        end = sent + self._writes.limit
        self._report_wait(end - now, error)
        self._lost_answers[dataset] = _LostAnswer(batch, end, now, error=error, sent=sent)
        self._waiting.postpone(dataset, min(now, end))

    def _report_wait(self, seconds: float, lost: UnansweredError | None) -> None:
        if seconds > 0:
            self._emit(Notice(problem=describe_wait(seconds, lost)))

    def _allowed_failures(self, item: FileRecord, error: UploaderError) -> int:
        """Return the number of retries: none if the dataset rejects everything."""
        if not isinstance(error, RejectedError):
            return FAILURES
        return 0 if item.dataset.id in self._refusing else REJECTIONS

    def _register(self, batch: Batch) -> UploaderError | None:
        """Send one request; return its error, which may leave the result unknown."""
        records = [_registration(item, self._box) for item in batch if not item.placed_by_server]
        if not records:
            return None
        with self._pace.turn(self._gate.rest):
            return self._request(records)

    def _request(self, records: list[Registration]) -> UploaderError | None:
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

    def _split(self, batch: Batch) -> tuple[Batch, Batch]:
        """Split a batch by the server's current records; return the known files and the others."""
        keys = {_key(item) for item in batch}
        records = self._list(batch[0].dataset.id, keys)
        known, others = [], []
        for item in batch:
            found = records.get(_key(item))
            if found and _is_kept(found, item):
                known.append(item)
            elif found and found.fault:
                self._leave_waiting(item, describe_strange_record(found.fault))
            elif found and found.replicas and not found.copies_at(item.remote):
                self._fail([item], CONFLICT)
            else:
                item.earlier = found
                others.append(item)
        return known, others

    def _list(self, dataset: DatasetId, keys: Set[Key]) -> dict[Key, Datafile]:
        for failures in range(1, FAILURES):
            try:
                return self._fetch(dataset, keys)
            except TransientError as error:
                logger.info("Dataset %d could not be listed: %s", dataset, error)
                self._gate.rest(self._gate.backoff(failures))
        return self._fetch(dataset, keys)

    def _fetch(self, dataset: DatasetId, keys: Set[Key]) -> dict[Key, Datafile]:
        """Return the records of these keys from a listing of any length."""

        def choose() -> dict[Key, Datafile]:
            keyed = ((_key_of(it), it) for it in self._server.list_datafiles(dataset))
            return {key: record for key, record in keyed if key in keys}

        return self._gate.call(choose)

    def _record(self, batch: Batch) -> Batch:
        for item in batch:
            item.state = EntryState.REGISTERED
            if item.earlier:
                item.datafile, item.looks = item.earlier.id, item.earlier.looks
        record_states(self._ledger, batch)
        for item in batch:
            self._refusing.discard(item.dataset.id)
            for file in item.files:
                self._emit(FileRegistered(path=file.key, size=file.size))
        return batch

    def _leave_waiting(self, item: FileRecord, problem: Problem) -> None:
        for file in item.files:
            self._emit(FileWaiting.of(file, problem))

    def _fail(self, batch: Batch, problem: Problem) -> None:
        for item in batch:
            for file in item.files:
                self._emit(FileFailed.of(file, problem))


class RegisterOptions(NamedTuple):
    """The storage box of new records, the pace, and the tracker of write requests."""

    box: str
    pace: "RequestPace"
    writes: WriteTracker


class _LostAnswer(NamedTuple):
    """A request whose answer was lost; it must have ended at `end`.

    It contained `batch`. A request of an earlier run, whose error is unknown, contained some of
    `staged`.
    """

    batch: Batch
    end: float
    begun: float  # when the wait for it began
    staged: frozenset[tuple[str, str]] = frozenset()
    error: UnansweredError | None = None
    sent: float = 0.0  # when it was sent; for a request of this run


class RequestPace:
    """How many records one request has, and how many requests run at once.

    A request has as many records as the server creates in about a second. Requests at the same time
    slow down each other and everyone else on the server: if they are slow, fewer run at once. Only
    one that is slow alone has too many records. If one with fewer was not clearly faster, the
    server needs the same time for any number: then requests do not shrink below the larger number
    until one is fast.
    """

    def __init__(self, first: int, most: int, clock: Clock) -> None:
        self.size = first
        self.parallel = most
        self._least = min(first, LEAST_RECORDS)
        self._enough = 1  # records; requests with fewer were not clearly faster
        # Records and seconds of the last slow request, by whether it was answered.
        self._slow: dict[bool, tuple[int, float]] = {}
        self._most = most
        self._clock = clock
        self._lock = Lock()
        self._running: list[float] = []  # when each was begun

    @contextmanager
    def turn(self, rest: Callable[[float], object]) -> Iterator[None]:
        """Wait, with `rest`, until one more request may run.

        One that has been running for long, perhaps without an answer, keeps no other waiting.
        """
        while (begun := self._begin()) is None:
            rest(IDLE_WAIT)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(begun)

    def _begin(self) -> float | None:
        with self._lock:
            now = self._clock.monotonic()
            if sum(now - begun < STUCK_SECONDS for begun in self._running) >= self.parallel:
                return None
            self._running.append(now)
            return now

    @contextmanager
    def measured(self, records: int) -> Iterator[None]:
        """Adapt to how long a request with so many records takes, or to its timeout."""
        begun, others = self._clock.monotonic(), len(self._running) > 1
        try:
            yield
        except UnansweredError:
            self.size = min(self.size, max(1, self._enough, records // 2))
            self.parallel = 1
            raise
        seconds = self._clock.monotonic() - begun
        others = others or len(self._running) > 1
        if seconds > WANTED_SECONDS and others:
            self.parallel = max(1, self.parallel // 2)
        elif seconds > LONGEST_SECONDS:
            self.size = min(self.size, max(self._least, self._enough, records // 2))
            self.compare(records, seconds, answered=True)
        elif seconds < WANTED_SECONDS / 2:
            self._enough = 1
            self._slow.clear()
            self.parallel = min(self.parallel + 1, self._most)
            if records >= self.size:
                growth = LARGE_GROWTH if seconds * LARGE_GROWTH < WANTED_SECONDS / 2 else 2
                self.size = min(records * growth, LARGEST_REQUEST)

    def compare(self, records: int, seconds: float, *, answered: bool) -> None:
        """Compare a slow request with the last one that had more records, and perhaps go back.

        The time of a request without an answer is known once its result is seen.
        """
        larger, longer = self._slow.get(answered, (records, seconds))
        if records < larger and seconds > longer * FASTER:
            self.size = self._enough = max(self.size, larger)
        else:
            self._slow[answered] = records, seconds


def _registration(item: FileRecord, box: str) -> Registration:
    file, record = item.file, item.earlier
    modified = moment_of_ns(file.modified_ns).isoformat()
    return Registration(
        item.dataset.id,
        file.directory.decode(),
        file.name.decode(),
        file.size,
        item.checksum,
        modified,
        modified,
        None if item.repairs else item.remote,
        box,
        record.id if record else None,
    )


def _key(item: FileRecord) -> Key:
    file = item.file
    return item.dataset.id, file.directory.decode(), file.name.decode()


def _key_of(record: Datafile) -> Key:
    return record.dataset, record.directory or "", record.name


def _changes_record(item: FileRecord) -> bool:
    """Return whether its record will be visibly different once it is registered."""
    before = item.earlier
    return not item.placed_by_server and not (before and _is_kept(before, item))


def _is_kept(record: Datafile, item: FileRecord) -> bool:
    """Return whether the server has the record that was to be created or changed."""
    return record.checksum == item.checksum and bool(record.replicas)
