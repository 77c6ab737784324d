"""What may still be being written on the server: by us, or by a run that was cut off."""

from collections import Counter
from datetime import timedelta

from mydata_like.core.model import DatasetId, EarlierWrite
from mydata_like.core.ports import Clock, Ledger
from mydata_like.engine.workers import Lock


class Writes:
    """Notes in the ledger which datasets are being written to, and until when at most.

    `limit` is how many seconds a request that writes may last, heard of or not. What earlier
    runs had noted is read once, before anything of this run is noted.
    """

    def __init__(self, ledger: Ledger, clock: Clock, limit: float) -> None:
        self.limit = limit
        self._ledger = ledger
        self._clock = clock
        self._lock = Lock()
        self._running: Counter[DatasetId] = Counter()
        self._earlier = dict(ledger.find_writes())
        for dataset in list(self._earlier):
            self.find_rest(dataset)  # which forgets what must be over

    def begin(self, dataset: DatasetId) -> None:
        """Note that a request is about to write to a dataset."""
        with self._lock:
            self._running[dataset] += 1
            until = self._clock.now() + timedelta(seconds=self.limit)
            self._ledger.note_write(dataset, until)

    def end(self, dataset: DatasetId) -> None:
        """Note that its answer was heard, or that it must be over."""
        with self._lock:
            self._running[dataset] -= 1
            if self._running[dataset] <= 0 and dataset not in self._earlier:
                self._ledger.forget_write(dataset)

    def find_rest(self, dataset: DatasetId) -> float:
        """Return for how many seconds a request of an earlier run may still be writing there."""
        earlier = self.find_earlier(dataset)
        if earlier is None:
            return 0.0
        rest = (earlier.until - self._clock.now()).total_seconds()
        if rest <= 0:
            self.end_earlier(dataset)
        return min(max(rest, 0.0), self.limit)  # the clock may have been set

    def find_earlier(self, dataset: DatasetId) -> EarlierWrite | None:
        """Return a request of an earlier run which may still be writing to a dataset."""
        return self._earlier.get(dataset)

    def end_earlier(self, dataset: DatasetId) -> None:
        """Note that the request of an earlier run is over."""
        with self._lock:
            if self._earlier.pop(dataset, None) and self._running[dataset] <= 0:
                self._ledger.forget_write(dataset)
