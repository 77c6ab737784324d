"""Makes things on the server once: looking first, and again whenever a reply was lost."""

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Final, TypeVar
from zlib import crc32

from mydata_like.core.errors import Cancelled, RejectedError, TransientError, UnansweredError
from mydata_like.core.model import DatasetId
from mydata_like.server.client import ApiClient

T = TypeVar("T")

_ATTEMPTS: Final = 3


class GetOrCreate:
    """However many threads ask for the same thing, it is made once and all are given it."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._guard = threading.Lock()
        self._locks: defaultdict[Hashable, threading.Lock] = defaultdict(threading.Lock)
        self._unanswered: dict[Hashable, float] = {}  # since when; they may still be at work

    def ensure(self, key: Hashable, find: Callable[[], T | None], make: Callable[[], T]) -> T:
        """Return what `find` finds, else what `make` makes.

        That something is missing is believed only when we have just proved who we are, and when
        no request is under way that makes it, of this run or of an earlier one.
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
            raise _give_up(lost)

    def _write(self, key: Hashable, make: Callable[[], T]) -> T:
        writes, begun = self._client.writes, self._client.now()
        if writes:
            writes.begin(number_of(key))
        try:
            return make()
        except (UnansweredError, Cancelled):
            self._unanswered[key] = begun
            raise
        finally:
            if writes and key not in self._unanswered:
                writes.end(number_of(key))

    def _outlast(self, key: Hashable, find: Callable[[], T | None]) -> T | None:
        """Return what is found until a request that may be making it must be over."""
        writes, begun = self._client.writes, self._unanswered.get(key)
        if begun is None:
            rest = writes.find_rest(number_of(key)) if writes else 0.0
            if not rest:
                return None
            begun = self._client.now() + rest - self._client.write_timeout
        found = self._client.outlast(begun, find)
        if self._unanswered.pop(key, None) is not None and writes:
            writes.end(number_of(key))
        return found


def number_of(key: Hashable) -> DatasetId:
    """Return what stands for a thing that is in no dataset, the same in every run."""
    return DatasetId(-1 - crc32(repr(key).encode("utf-8", "surrogatepass")))


def _give_up(lost: TransientError) -> TransientError | RejectedError:
    """A server that answers 500 again and again does not like what it is asked to make."""
    if lost.problem_code != "server.error":
        return lost
    return RejectedError(lost.message, hint=lost.hint, code="server.refused")
