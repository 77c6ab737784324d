"""Creates objects on the server once: checks before creating, and after a lost reply."""

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Final, TypeVar
from zlib import crc32

from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.core.errors import Cancelled, RejectedError, TransientError, UnansweredError
from mydata_like.core.model import DatasetId

T = TypeVar("T")

_ATTEMPTS: Final = 3


class GetOrCreate:
    """Creates an object once for any number of threads, which all receive it."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._guard = threading.Lock()
        self._locks: defaultdict[Hashable, threading.Lock] = defaultdict(threading.Lock)
        self._unanswered: dict[Hashable, tuple[float, UnansweredError | None]] = {}

    def ensure(self, key: Hashable, find: Callable[[], T | None], make: Callable[[], T]) -> T:
        """Return the result of `find`, else of `make`.

        An object only counts as missing if our authentication was just checked, and if no
        request of this or an earlier run may still create it.
        """
        with self._guard:
            lock = self._locks[key]
        with lock:
            for attempt in range(1, _ATTEMPTS + 1):
                found = find() or self._outlast(key, find)
                if found is not None:
                    return found
                self._client.prove(within=0)
                try:
                    return self._write(key, make)
                except TransientError as error:
                    lost = error
                    self._client.rest(float(attempt))
            found = find() or self._outlast(key, find)
            if found is not None:
                return found
            if lost.problem_code == "server.error":  # repeatedly: it rejects the object
                raise RejectedError(lost.message, hint=lost.hint, code="server.refused")
            raise lost

    def _write(self, key: Hashable, make: Callable[[], T]) -> T:
        writes, begun = self._client.writes, self._client.now()
        if writes:
            writes.begin(number_of(key))
        try:
            return make()
        except UnansweredError as error:
            self._unanswered[key] = begun, error
            raise
        except Cancelled:
            self._unanswered[key] = begun, None
            raise
        finally:
            if writes and key not in self._unanswered:
                writes.end(number_of(key))

    def _outlast(self, key: Hashable, find: Callable[[], T | None]) -> T | None:
        """Return the object if it is found before a request that may create it must have ended."""
        writes, lost = self._client.writes, self._unanswered.get(key)
        if lost is None:
            rest = writes.find_rest(number_of(key)) if writes else 0.0
            if not rest:
                return None
            lost = self._client.now() + rest - self._client.write_timeout, None
        found = self._client.outlast(*lost, find)
        if self._unanswered.pop(key, None) is not None and writes:
            writes.end(number_of(key))
        return found


def number_of(key: Hashable) -> DatasetId:
    """Return a number for an object outside of datasets, the same in every run."""
    return DatasetId(-1 - crc32(repr(key).encode("utf-8", "surrogatepass")))
