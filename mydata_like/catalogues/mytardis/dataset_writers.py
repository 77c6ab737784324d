"""The queues of files to register, by dataset; one worker at a time writes to a dataset."""

from collections import Counter, deque
from collections.abc import Iterable
from datetime import timedelta
from math import inf

from mydata_like.core.model import DatasetId, EarlierWrite, FileRecord
from mydata_like.core.ports import Clock, Ledger
from mydata_like.engine.pipeline import Lock

CROWD = 4000  # files that may wait here


class DatasetQueues:
    """Files to register by dataset, and the datasets that are free; safe to use from any thread.

    A dataset belongs to the worker that took it until it is released. A dataset can be postponed:
    it is not offered before its time, with or without files.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._files: dict[DatasetId, deque[FileRecord]] = {}
        self._taken: set[DatasetId] = set()
        self._due: dict[DatasetId, float] = {}  # of the postponed datasets
        self._count = 0

    def add(self, files: Iterable[FileRecord]) -> None:
        """Add files to the end of a dataset's queue."""
        with self._lock:
            for file in files:
                self._files.setdefault(file.dataset.id, deque()).append(file)
                self._count += 1

    def take(self, now: float) -> DatasetId | None:
        """Take a dataset that is free and has work to do; None if there is none."""
        with self._lock:
            for dataset in self._files | self._due:
                if dataset not in self._taken and self._due.get(dataset, now) <= now:
                    self._taken.add(dataset)
                    self._due.pop(dataset, None)
                    return dataset
        return None

    def take_files(self, dataset: DatasetId, most: int) -> list[FileRecord]:
        """Return up to `most` files of a dataset that was taken."""
        with self._lock:
            waiting = self._files.get(dataset)
            if waiting is None:
                return []
            files = [waiting.popleft() for _ in range(min(most, len(waiting)))]
            self._count -= len(files)
            if not waiting:
                del self._files[dataset]
            return files

    def put_back(self, dataset: DatasetId, files: Iterable[FileRecord]) -> None:
        """Put files back at the front of a dataset's queue."""
        with self._lock:
            returned = [*files]
            if returned:
                self._files.setdefault(dataset, deque()).extendleft(reversed(returned))
                self._count += len(returned)

    def postpone(self, dataset: DatasetId, due: float) -> None:
        """Postpone a dataset that was taken until `due`."""
        with self._lock:
            self._due[dataset] = due

    def release(self, dataset: DatasetId) -> None:
        """Release a dataset for other workers."""
        with self._lock:
            self._taken.discard(dataset)

    @property
    def crowded(self) -> bool:
        """Whether no more files should be added."""
        return self._count >= CROWD

    def find_due(self) -> float:
        """Return when the first postponed dataset is due."""
        with self._lock:
            waiting = (due for dataset, due in self._due.items() if dataset not in self._taken)
            return min(waiting, default=inf)


class WriteTracker:
    """A record in the ledger of the datasets that are being written to, with a time limit.

    `limit` is how many seconds a write request may last, even if its answer is lost. The notes of
    earlier runs are read once, before the first of this run is added.
    """

    def __init__(self, ledger: Ledger, clock: Clock, limit: float) -> None:
        self.limit = limit
        self._ledger = ledger
        self._clock = clock
        self._lock = Lock()
        self._running: Counter[DatasetId] = Counter()
        self._earlier = dict(ledger.find_writes())
        for dataset in list(self._earlier):
            self.find_rest(dataset)  # removes notes of requests that must have ended

    def begin(self, dataset: DatasetId) -> None:
        """Record that a request is about to write to a dataset."""
        with self._lock:
            self._running[dataset] += 1
            until = self._clock.now() + timedelta(seconds=self.limit)
            self._ledger.note_write(dataset, until)

    def end(self, dataset: DatasetId) -> None:
        """Record that its answer arrived, or that it must have ended."""
        with self._lock:
            self._running[dataset] -= 1
            if self._running[dataset] <= 0 and dataset not in self._earlier:
                self._ledger.forget_write(dataset)

    def find_rest(self, dataset: DatasetId) -> float:
        """Return for how many seconds an earlier run's request may still write there."""
        earlier = self.find_earlier(dataset)
        if earlier is None:
            return 0.0
        rest = (earlier.until - self._clock.now()).total_seconds()
        if rest <= 0:
            self.end_earlier(dataset)
        return min(max(rest, 0.0), self.limit)  # the clock may have been changed

    def find_earlier(self, dataset: DatasetId) -> EarlierWrite | None:
        """Return a request of an earlier run that may still be writing to a dataset."""
        return self._earlier.get(dataset)

    def end_earlier(self, dataset: DatasetId) -> None:
        """Record that the request of an earlier run has ended."""
        with self._lock:
            if self._earlier.pop(dataset, None) and self._running[dataset] <= 0:
                self._ledger.forget_write(dataset)
