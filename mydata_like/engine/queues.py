"""The bounded queues between stages."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Generic, Protocol, TypeVar

from mydata_like.core.errors import Cancelled
from mydata_like.core.ports import CancelSignal

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

TICK = 0.1  # seconds after which every wait looks again whether it should go on


class Source(Protocol[T_co]):
    """What a stage reads from; the workers of the stage share it. Items are never None."""

    def __iter__(self) -> Iterator[T_co]: ...

    def poll(self, timeout: float | None) -> T_co | None:
        """Wait so long (None: as long as it takes) for an item; None for none.

        `finished` tells whether one may come later.
        """

    def take_ready(self, most: int) -> Sequence[T_co]:
        """Return at most so many of the items that are there already."""

    @property
    def finished(self) -> bool:
        """Whether all items have been taken and no more will come."""

    @property
    def starving(self) -> bool:
        """Whether a worker of the next stage waits for what this stage may hold back."""


def count_one(_: object) -> int:
    """Count an item as one, whatever is in it."""
    return 1


class WorkQueue(Generic[T]):
    """A bounded queue that ends when it is closed and empty, and breaks when cancelled.

    What it holds is bounded by its weight: an item more is let in while that is below `limit`.
    Every method that takes or puts raises `Cancelled` once `cancel` is set. `starved` and
    `blocked` are the seconds for which takers have waited for items, and putters for room.
    """

    def __init__(
        self, cancel: CancelSignal, limit: int = 16, weigh: Callable[[T], int] = count_one
    ) -> None:
        self._cancel = cancel
        self._limit = max(1, limit)
        self._weigh = weigh
        self._items: deque[tuple[T, int]] = deque()
        self._weight = 0
        self._closed = False
        self._lock = threading.Lock()
        self._filled = threading.Condition(self._lock)
        self._drained = threading.Condition(self._lock)
        self._takers = 0
        self._putters = 0
        self.starved = 0.0
        self.blocked = 0.0

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        while (item := self.poll(None)) is not None:
            yield item

    def put(self, item: T) -> None:
        """Add an item as soon as there is room."""
        weight = max(1, self._weigh(item))
        with self._lock:
            self._check()
            while self._weight >= self._limit:
                self._putters += 1
                waited = _wait(self._drained, TICK)
                self.blocked += waited
                self._putters -= 1
                self._check()
            self._items.append((item, weight))
            self._weight += weight
            if self._takers:
                self._filled.notify()
            if self._putters and self._weight < self._limit:
                self._drained.notify()  # what was taken may have made room for several

    def poll(self, timeout: float | None) -> T | None:
        """Return the next item, or None at the end and when the time is over."""
        with self._lock:
            self._check()
            if not self._items and not self._closed:
                self._wait_filled(timeout)
            return self._take() if self._items else None

    def take_ready(self, most: int) -> list[T]:
        """Return at most so many of the items that are there already."""
        with self._lock:
            self._check()
            return [self._take() for _ in range(min(most, len(self._items)))]

    def close(self) -> None:
        """Say that no more items come."""
        with self._lock:
            self._closed = True
            self._filled.notify_all()

    def wake(self) -> None:
        """Let everybody who waits look again whether to go on."""
        with self._lock:
            self._filled.notify_all()
            self._drained.notify_all()

    @property
    def finished(self) -> bool:
        return self._closed and not self._items

    @property
    def starving(self) -> bool:
        """Whether somebody waits for an item and there is none."""
        return self._takers > 0 and not self._items

    def _check(self) -> None:
        if self._cancel.is_set():
            raise Cancelled

    def _take(self) -> T:
        item, weight = self._items.popleft()
        self._weight -= weight
        if self._putters:
            self._drained.notify()
        return item

    def _wait_filled(self, timeout: float | None) -> None:
        deadline = None if timeout is None else monotonic() + timeout
        while not self._items and not self._closed:
            rest = TICK if deadline is None else min(TICK, deadline - monotonic())
            if rest <= 0:
                return
            self._takers += 1
            waited = _wait(self._filled, rest)  # others may have counted theirs meanwhile
            self.starved += waited
            self._takers -= 1
            self._check()


def _wait(condition: threading.Condition, timeout: float) -> float:
    """Wait to be notified; return how many seconds that took."""
    begun = monotonic()
    condition.wait(timeout)
    return monotonic() - begun
