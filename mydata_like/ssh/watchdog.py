"""Breaks a connection when one call of a library takes too long."""

import socket
import threading
import time
from contextlib import suppress
from typing import Final

_LOOKS: Final = 4  # within the time that a call may take


class Watchdog:
    """Shuts a socket down when what happens inside the context takes longer than `patience`.

    For calls that may keep to themselves: libssh's binding repeats a write for as long as keys
    are being renewed, without asking us. The thread ends with `stop`.
    """

    def __init__(self, line: socket.socket, patience: float) -> None:
        self._line = line
        self._patience = patience
        self._since: float | None = None
        self._stopped = threading.Event()
        self.has_bitten = False
        threading.Thread(target=self._watch, name="ssh-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopped.set()

    def __enter__(self) -> None:
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._since = None

    def _watch(self) -> None:
        while not self._stopped.wait(self._patience / _LOOKS):
            since = self._since
            if since is not None and time.monotonic() - since > self._patience:
                self.has_bitten = True
                with suppress(OSError):
                    self._line.shutdown(socket.SHUT_RDWR)
                return
