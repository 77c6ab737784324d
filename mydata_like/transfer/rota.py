"""Which of the hosts before the staging area the next channel goes to."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from threading import Lock
from typing import Final

from mydata_like.ssh.session import Endpoint

REST: Final = 60.0  # seconds for which a host that failed comes last


class Rota:
    """Spreads channels evenly over the hosts; one that failed rests while others work.

    May be asked from any thread. A host that rests is still better than none, so a host that
    is alone is always asked.
    """

    def __init__(
        self, endpoints: Sequence[Endpoint], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.endpoints = tuple(endpoints)
        self._now = now
        self._lock = Lock()
        self._channels: Counter[str] = Counter()
        self._rests_until: dict[str, float] = {}

    def take(self, tried: Collection[Endpoint] = ()) -> Endpoint | None:
        """Return the host for one more channel, but none of those tried; None after the last."""
        with self._lock:
            left = [endpoint for endpoint in self.endpoints if endpoint not in tried]
            if not left:
                return None
            now = self._now()
            taken = min(left, key=lambda it: self._burden(it.host, now))
            self._channels[taken.host] += 1
            return taken

    def leave(self, endpoint: Endpoint, *, failed: bool) -> None:
        """Give a channel back that the host had, or was to have."""
        with self._lock:
            self._channels[endpoint.host] -= 1
            if failed:
                self._rests_until[endpoint.host] = self._now() + REST

    def _burden(self, host: str, now: float) -> tuple[float, int]:
        rest = max(self._rests_until.get(host, now) - now, 0.0)
        return rest, self._channels[host]
