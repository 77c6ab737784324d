"""What is computed once, however many threads ask for it."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from mydata_like.engine.workers import Lock

K = TypeVar("K")
V = TypeVar("V")


class KeyedOnce(Generic[K, V]):
    """Computes a value once per key, however many threads ask; the others wait.

    An error goes to everybody who asked meanwhile and is forgotten: the next one tries again.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[K, V] = {}
        self._pending: dict[K, Future[V]] = {}

    def __call__(self, key: K, compute: Callable[[], V]) -> V:
        with self._lock:
            if key in self._values:
                return self._values[key]
            future = self._pending.get(key)
            asked = future is not None
            if future is None:
                future = self._pending[key] = Future()
        if not asked:
            self._compute(key, compute, future)
        return future.result()

    def forget(self, key: K) -> None:
        """Compute anew when asked next; what is being computed now is not kept."""
        with self._lock:
            self._values.pop(key, None)
            self._pending.pop(key, None)

    def _compute(self, key: K, compute: Callable[[], V], future: "Future[V]") -> None:
        try:
            value = compute()
        except BaseException as error:  # noqa: BLE001 - everybody who asked gets it
            self._settle(key, future)
            future.set_exception(error)
            return
        with self._lock:
            if self._pending.get(key) is future:
                self._values[key] = value
        self._settle(key, future)
        future.set_result(value)

    def _settle(self, key: K, future: "Future[V]") -> None:
        with self._lock:
            if self._pending.get(key) is future:
                del self._pending[key]
