"""How much a speed test takes: seconds, bytes, and when it has to end."""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from mydata_like.core.errors import Cancelled, RejectedError
from mydata_like.core.ports import CancelSignal

Act = Callable[[], float]  # does something once, and returns how much of it went


class Effort(NamedTuple):
    """What one measurement may take, at most."""

    seconds: float  # of one look
    looks: int
    flood: int  # bytes that go into nothing, twice as many over several channels
    disk: int  # bytes that are written or read at once
    files: int  # tiny ones
    total: float  # seconds for the whole test; what comes later is left out
    most: int = 1_000_000_000  # bytes that are sent in all
    together: float = 2.0  # seconds in which large files go as a run sends them,
    carried: int = 500_000_000  # and their bytes: moments differ by half where processors are full


FULL: Final = Effort(0.5, 4, 40_000_000, 36_000_000, 1000, 55.0)
QUICK: Final = Effort(0.2, 3, 40_000_000, 46_000_000, 400, 22.0)


class Budget:
    """The time and the bytes that a test has, and whether somebody wants it to end."""

    def __init__(self, effort: Effort, cancel: CancelSignal) -> None:
        self.effort = effort
        self._cancel = cancel
        self.begin()

    def begin(self) -> None:
        """Take the time and the bytes from now on."""
        self.left = self.effort.most  # bytes that may still be sent
        self._end = time.monotonic() + self.effort.total

    def check(self) -> None:
        """Raise `Cancelled` where the test is not wanted any more."""
        if self._cancel.is_set():
            raise Cancelled

    def take(self, size: int) -> None:
        """Set so many bytes apart to be sent; raises `RejectedError` where they are too many."""
        if size > self.left:
            raise RejectedError("The speed test has sent as much as it may.")
        self.left -= size

    def spent(self) -> bool:
        """Return whether nothing more is to be begun."""
        return time.monotonic() >= self._end

    def over_after(self, seconds: float) -> Callable[[], bool]:
        """Return what tells whether so many seconds from now, or the time of the test, are over."""
        end = min(self._end, time.monotonic() + seconds)
        return lambda: time.monotonic() >= end

    def look(self, act: Act, count: int | None = None) -> tuple[float, ...]:
        """Return the rates of several looks, each as many acts as fit into its time.

        A first act, which finds caches and connections cold, does not count.
        """
        self.check()
        act()
        return tuple(self._rate(act) for _ in range(count or self.effort.looks))

    def _rate(self, act: Act) -> float:
        done, began = 0.0, time.perf_counter()
        while True:
            self.check()
            done += act()
            seconds = time.perf_counter() - began
            if seconds >= self.effort.seconds:
                return done / seconds

    def time(self, act: Callable[[], object], count: int) -> tuple[float, ...]:
        """Return how long each of several acts takes, in seconds; the first does not count."""
        act()
        return tuple(self._seconds(act) for _ in range(count))

    def _seconds(self, act: Callable[[], object]) -> float:
        self.check()
        began = time.perf_counter()
        act()
        return time.perf_counter() - began
