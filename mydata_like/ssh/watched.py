"""A socket for a library that waits without limit: it breaks when nothing moves any more."""

import errno
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Self

from mydata_like.ssh.links import hurry


class WatchedSocket(socket.socket):
    """A socket that gives up when somebody waits and no byte moves for so many seconds."""

    patience: float
    _counting: Lock
    _due = 0.0  # when to give up, while somebody waits
    _waiting = 0  # threads that do
    _hurried = False

    @classmethod
    def adopt(cls, connected: socket.socket, patience: float) -> Self:
        """Return a connected socket as one of these; the given one is used up."""
        family, kind, protocol = connected.family, connected.type, connected.proto
        adopted = cls(family, kind, protocol, fileno=connected.detach())
        adopted.patience = patience
        adopted._counting = Lock()
        return adopted

    def watch(self) -> None:
        """One more waits from now on."""
        with self._counting:
            self._waiting += 1
            self._due = time.monotonic() + self.patience

    def unwatch(self) -> None:
        """One less waits."""
        with self._counting:
            self._waiting -= 1

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """Acknowledge at once what comes while this lasts."""
        self._hurried = True
        try:
            yield
        finally:
            self._hurried = False

    @property
    def has_stalled(self) -> bool:
        return self._waiting > 0 and time.monotonic() > self._due

    def send(self, data: Any, flags: int = 0) -> int:
        """Send what can be sent; raises OSError when nothing has moved for too long."""
        try:
            count = super().send(data, flags)
        except TimeoutError:
            self._give_up_if_stalled()
            raise
        self._postpone()
        return count

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receive what is there; raises OSError when nothing has moved for too long."""
        if self._hurried:
            hurry(self)
        try:
            data = super().recv(size, flags)
        except TimeoutError:
            self._give_up_if_stalled()
            raise
        self._postpone()
        return data

    def _give_up_if_stalled(self) -> None:
        if self.has_stalled:
            raise ConnectionAbortedError(errno.ECONNABORTED, "nothing moved")

    def _postpone(self) -> None:
        self._due = time.monotonic() + self.patience
