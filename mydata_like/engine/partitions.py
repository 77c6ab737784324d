"""What waits to be registered, by dataset: one worker at a time has a dataset."""

from collections import deque
from collections.abc import Iterable
from math import inf

from mydata_like.core.model import DatasetId, Staged
from mydata_like.engine.workers import Lock

CROWD = 4000  # files that may wait here


class Partitions:
    """Staged files by dataset, and which datasets are free; all methods from any thread.

    A dataset that was taken is nobody else's until it is released. One may be put off: it is
    not given before its time, with or without files.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._files: dict[DatasetId, deque[Staged]] = {}
        self._taken: set[DatasetId] = set()
        self._due: dict[DatasetId, float] = {}  # of those that were put off
        self._count = 0

    def add(self, files: Iterable[Staged]) -> None:
        """Let files wait behind the others of their dataset."""
        with self._lock:
            for file in files:
                self._files.setdefault(file.wanted.dataset.id, deque()).append(file)
                self._count += 1

    def take(self, now: float) -> DatasetId | None:
        """Take a dataset that is free and has something to be done; None where there is none."""
        with self._lock:
            for dataset in self._files | self._due:
                if dataset not in self._taken and self._due.get(dataset, now) <= now:
                    self._taken.add(dataset)
                    self._due.pop(dataset, None)
                    return dataset
        return None

    def take_files(self, dataset: DatasetId, most: int) -> list[Staged]:
        """Return at most so many files of a dataset that was taken."""
        with self._lock:
            waiting = self._files.get(dataset)
            if waiting is None:
                return []
            files = [waiting.popleft() for _ in range(min(most, len(waiting)))]
            self._count -= len(files)
            if not waiting:
                del self._files[dataset]
            return files

    def put_back(self, dataset: DatasetId, files: Iterable[Staged]) -> None:
        """Let files of a dataset wait before the others."""
        with self._lock:
            returned = [*files]
            if returned:
                self._files.setdefault(dataset, deque()).extendleft(reversed(returned))
                self._count += len(returned)

    def put_off(self, dataset: DatasetId, due: float) -> None:
        """Give a dataset that was taken to nobody before `due`."""
        with self._lock:
            self._due[dataset] = due

    def release(self, dataset: DatasetId) -> None:
        """Let others take a dataset."""
        with self._lock:
            self._taken.discard(dataset)

    @property
    def crowded(self) -> bool:
        """Whether no more should come."""
        return self._count >= CROWD

    def find_due(self) -> float:
        """Return when the first of those that were put off is to be taken up again."""
        with self._lock:
            waiting = (due for dataset, due in self._due.items() if dataset not in self._taken)
            return min(waiting, default=inf)
