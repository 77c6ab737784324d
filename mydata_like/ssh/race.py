"""One TCP connection to a host with several addresses, of which some may be dead (RFC 8305)."""

import selectors
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

_HEAD_START: Final = 0.25  # seconds before the next address is tried as well; section 8

_Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str | int, ...]]


class NoAnswerError(OSError):
    """No address could be connected to; the message says why the last one could not."""


def connect_first(found: Sequence[object], timeout: float) -> socket.socket:
    """Return a socket connected to one of a host's addresses, as `getaddrinfo` lists them.

    The timeout, in seconds, is for all of them together. Raises `NoAnswerError`.
    """
    with _Race(_interleave(found), timeout) as race:
        winner = race.run()
    if winner is None:
        raise NoAnswerError(race.complaint)
    return winner


def _interleave(found: Sequence[object]) -> list[_Address]:
    """Return the addresses in their order, but with the families taking turns."""
    addresses: list[_Address] = [entry for entry in found if isinstance(entry, tuple)]
    first = [entry for entry in addresses if entry[0] == addresses[0][0]]
    others = [entry for entry in addresses if entry[0] != addresses[0][0]]
    mixed: list[_Address] = []
    while first or others:
        mixed += first[:1] + others[:1]
        del first[:1], others[:1]
    return mixed


class _Race:
    """Connects to several addresses, each with a small head start; the first that answers wins."""

    def __init__(self, addresses: Sequence[_Address], timeout: float) -> None:
        self._waiting = list(addresses)
        self._timeout = timeout
        self._selector = selectors.DefaultSelector()
        self._running: set[socket.socket] = set()
        self.complaint = "it does not answer"

    def run(self) -> socket.socket | None:
        """Return the first socket that is connected, or None after the timeout."""
        deadline = time.monotonic() + self._timeout
        while self._waiting or self._running:
            if self._waiting:
                self._start(self._waiting.pop(0))
            left = deadline - time.monotonic()
            if left <= 0:
                break
            pause = min(left, _HEAD_START) if self._waiting else left
            if winner := self._wait(pause):
                return winner
        return None

    def _start(self, address: _Address) -> None:
        family, kind, protocol, _, target = address
        try:
            runner = socket.socket(family, kind, protocol)
        except OSError as error:
            self._note(error)
            return
        self._running.add(runner)
        runner.settimeout(0)
        try:
            runner.connect(target)
        except BlockingIOError:
            pass
        except OSError as error:
            self._note(error)
            self._drop(runner)
            return
        self._selector.register(runner, selectors.EVENT_WRITE)

    def _wait(self, seconds: float) -> socket.socket | None:
        if not self._running:
            return None
        for key, _ in self._selector.select(seconds):
            runner = key.fileobj
            assert isinstance(runner, socket.socket)
            self._selector.unregister(runner)
            failure = runner.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if not failure:
                self._running.discard(runner)
                return runner
            self._note(OSError(failure, ""))
            self._drop(runner)
        return None

    def _note(self, error: OSError) -> None:
        if isinstance(error, ConnectionRefusedError):
            self.complaint = "nothing listens there"
        elif error.errno:
            self.complaint = "there is no way to it"

    def _drop(self, runner: socket.socket) -> None:
        self._running.discard(runner)
        runner.close()

    def __enter__(self) -> "_Race":
        return self

    def __exit__(self, *_: object) -> None:
        for runner in self._running:
            with suppress(OSError):
                runner.close()
        self._selector.close()
