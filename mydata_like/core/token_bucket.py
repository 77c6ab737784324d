"""A rate limit for bytes: smooth, exact over time, and adjustable at any time."""

import time
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Final

_GRAIN: Final = 0.05  # seconds' worth of bytes sent at once
_LEAST: Final = 512  # bytes sent at once, at any rate
_CREDIT: Final = 0.1  # seconds of delay that may be caught up
_GLANCE: Final = 0.1  # seconds of one wait


class TokenBucket:
    """Limits its senders together to a number of bytes per second; 0 is no limit.

    A leaky bucket, stored as the time at which the next bytes are due. While a sender waits,
    `alive` is called ten times per second; an exception from it ends the wait.
    """

    def __init__(
        self,
        alive: Callable[[], None] = lambda: None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._alive = alive
        self._monotonic = monotonic
        self._sleep = sleep
        self._counting = Lock()
        self._asked = 0.0  # the rate, which any thread may set; only senders use the rest
        self._rate = 0.0
        self._due = 0.0

    def limit(self, rate: float) -> None:
        """Set the rate in bytes per second; from any thread, also while bytes wait."""
        self._asked = rate

    def pieces(self, data: memoryview) -> Iterator[memoryview]:
        """Yield all of `data` in pieces, each when it may be sent."""
        while data:
            count = self.take(len(data))
            yield data[:count]
            data = data[count:]

    def take(self, most: int) -> int:
        """Wait until bytes may be sent; return how many, at least one."""
        while (rest := self.delay) > 0:
            self._sleep(min(rest, _GLANCE))
            self._alive()
        with self._counting:
            if not self._rate:
                return most
            count = min(most, max(_LEAST, int(self._rate * _GRAIN)))
            self._due = max(self._due, self._monotonic() - _CREDIT) + count / self._rate
            return count

    def take_ready(self, most: int) -> int:
        """Return how many bytes may be sent now, without waiting; 0 if none."""
        return 0 if self.delay > 0 else self.take(most)

    @property
    def delay(self) -> float:
        """How long to wait at the present rate, in seconds; excess bytes are made up for."""
        with self._counting:
            if self._asked != self._rate:
                now = self._monotonic()
                owed = max(0.0, self._due - now) * self._rate
                self._rate = self._asked
                self._due = now + owed / self._rate if self._rate else now
            return self._due - self._monotonic() if self._rate else 0.0
