"""A limit on how fast bytes go: smooth, exact in the long run, changed at any moment."""

import time
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Final

_GRAIN: Final = 0.05  # seconds' worth of bytes that go at once
_LEAST: Final = 512  # bytes that go at once, however slow
_CREDIT: Final = 0.1  # seconds of delay that may be made up for
_GLANCE: Final = 0.1  # seconds of one wait


class TokenBucket:
    """Lets its senders together send no more than so many bytes a second; 0 sets no limit.

    A leaky bucket kept as the time at which the next bytes are due. While a sender waits,
    `alive` is called ten times a second; what it raises ends the wait.
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
        self._asked = 0.0  # the rate as any thread may set it; the rest is the senders' own
        self._rate = 0.0
        self._due = 0.0

    def limit(self, rate: float) -> None:
        """Allow so many bytes a second from now on; from any thread, also while bytes wait."""
        self._asked = rate

    def pieces(self, data: memoryview) -> Iterator[memoryview]:
        """Yield all of `data`, each piece when it may go."""
        while data:
            count = self.take(len(data))
            yield data[:count]
            data = data[count:]

    def take(self, most: int) -> int:
        """Wait until bytes may go; return how many, one at least."""
        while (rest := self._delay()) > 0:
            self._sleep(min(rest, _GLANCE))
            self._alive()
        with self._counting:
            if not self._rate:
                return most
            count = min(most, max(_LEAST, int(self._rate * _GRAIN)))
            self._due = max(self._due, self._monotonic() - _CREDIT) + count / self._rate
            return count

    def _delay(self) -> float:
        """Return how long to wait at the rate as it is now; what was sent too much stays owed."""
        with self._counting:
            if self._asked != self._rate:
                now = self._monotonic()
                owed = max(0.0, self._due - now) * self._rate
                self._rate = self._asked
                self._due = now + owed / self._rate if self._rate else now
            return self._due - self._monotonic() if self._rate else 0.0
