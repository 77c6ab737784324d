"""Makes things on the server once: looking first, and again whenever a reply was lost."""

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Final, TypeVar

from mydata_like.core.errors import RejectedError, TransientError
from mydata_like.server.client import Client

T = TypeVar("T")

_ATTEMPTS: Final = 3


class Once:
    """However many threads ask for the same thing, it is made once and all are given it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._guard = threading.Lock()
        self._locks: defaultdict[Hashable, threading.Lock] = defaultdict(threading.Lock)

    def ensure(self, key: Hashable, find: Callable[[], T | None], make: Callable[[], T]) -> T:
        """Return what `find` finds, else what `make` makes.

        That something is missing is believed only when we have just proved who we are.
        """
        with self._guard:
            lock = self._locks[key]
        with lock:
            for attempt in range(1, _ATTEMPTS + 1):
                found = find()
                if found is not None:
                    return found
                self._client.prove(within=0)
                try:
                    return make()
                except TransientError as error:
                    lost = error
                    self._client.rest(float(attempt))
            found = find()
            if found is not None:
                return found
            raise _give_up(lost)


def _give_up(lost: TransientError) -> TransientError | RejectedError:
    """A server that answers 500 again and again does not like what it is asked to make."""
    if lost.problem_code != "server.error":
        return lost
    return RejectedError(lost.message, hint=lost.hint, code="server.refused")
