"""A host on the way to another: we log in there, and it connects us with the next one."""

import os
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from mydata_like.ssh.master import Master
from mydata_like.ssh.session import Endpoint


class Hop:
    """A login on a host between; it ends when it is let go and no connection leads through it."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self._users = 1  # who has made it, and each connection through it
        self._lock = threading.Lock()

    def dial(self, endpoint: Endpoint) -> socket.socket:
        """Return a connection to the next host; raises `TransientError` where there is none."""
        wire, request = self._master.forward(endpoint.host, endpoint.port)
        with self._lock:
            self._users += 1
        threading.Thread(target=self._attend, args=(request,), name="ssh-hop", daemon=True).start()
        return wire

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()

    def _attend(self, request: int) -> None:
        """Let go when a connection through here has ended."""
        os.set_blocking(request, True)
        with suppress(OSError), open(request, "rb", buffering=0) as ending:
            while ending.read(1):
                continue
        self._release()

    def _release(self) -> None:
        with self._lock:
            self._users -= 1
            unused = self._users == 0
        if unused:
            self._master.cut()
