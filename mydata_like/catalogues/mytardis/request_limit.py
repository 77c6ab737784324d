"""The number of requests to the server that run at once; fewer do while the server is slow."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from typing import Final

from mydata_like.core.errors import Cancelled
from mydata_like.core.ports import CancelSignal

_SLOW: Final = 1.0  # seconds of a request that ran together with others
_FAST: Final = 0.5
_STUCK: Final = 30.0  # seconds after which a request keeps no other waiting
_CHECK: Final = 0.1  # seconds between two checks by those who wait


@dataclass(slots=True, eq=False)
class _Running:
    """A request: when it was begun, and whether others ran at the same time."""

    begun: float
    together: bool = False


class RequestLimit:
    """A limit for all threads, which adapts between one and `most`.

    Requests at the same time slow down each other and everyone else on the server.
    """

    def __init__(self, most: int, now: Callable[[], float], cancel: CancelSignal) -> None:
        self.now_allowed = most
        self._most = most
        self._now = now
        self._cancel = cancel
        self._changed = Condition()
        self._running: list[_Running] = []

    @contextmanager
    def turn(self, *, waits: bool) -> Iterator[None]:
        """Run a request in this context, after a wait for the others if it `waits`."""
        with self._changed:
            while waits:
                now = self._now()
                if sum(now - it.begun < _STUCK for it in self._running) < self.now_allowed:
                    break
                if self._cancel.is_set():
                    raise Cancelled
                self._changed.wait(_CHECK)
            ours = _Running(self._now())
            self._running.append(ours)
            if len(self._running) > 1:
                for each in self._running:
                    each.together = True
        try:
            yield
        finally:
            with self._changed:
                self._running.remove(ours)
                seconds = self._now() - ours.begun
                if ours.together and seconds > _SLOW:
                    self.now_allowed = max(1, self.now_allowed // 2)
                elif seconds < _FAST:
                    self.now_allowed = min(self.now_allowed + 1, self._most)
                self._changed.notify_all()
