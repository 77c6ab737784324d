"""A jump host: a session to it opens a connection to the next host."""

import socket
from contextlib import suppress
from threading import Lock, Thread
from types import TracebackType
from typing import Final, Self

import paramiko

from mydata_like.ssh.session import Endpoint
from mydata_like.ssh.session_paramiko import FAILURES, ParamikoTransport

_CHUNK: Final = 256 * 1024


class JumpHost:
    """A login on a jump host; it ends when it is released and has no connections.

    A connection through it is a socket, as both SSH libraries need. Two threads relay its bytes.
    They end with the socket, or if the jump host accepts nothing for twice the stall timeout. The
    connection through it has reported the stall by then.
    """

    def __init__(self, connection: ParamikoTransport) -> None:
        self._connection = connection
        self._users = 1  # the creator, and each connection through it
        self._lock = Lock()

    def dial(self, endpoint: Endpoint) -> socket.socket:
        """Return a connection to the next host; raises `TransientError` if that fails."""
        channel = self._connection.open_tunnel(endpoint.host, endpoint.port)
        # Limits the wait for a full window; reading continues after it.
        channel.settimeout(self._connection.extend_timeout())
        ours, theirs = socket.socketpair()
        with self._lock:
            self._users += 1
        Thread(target=self._relay, args=(theirs, channel), name="ssh-jump-out", daemon=True).start()
        return ours

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()

    def _relay(self, wire: socket.socket, channel: paramiko.Channel) -> None:
        """Relay bytes in both directions until one side ends."""
        inward = Thread(target=_receive_all, args=(channel, wire), name="ssh-jump-in", daemon=True)
        inward.start()
        with suppress(*FAILURES):
            while data := wire.recv(_CHUNK):
                with self._connection.watched():
                    channel.sendall(data)
        _shut_down(wire)
        with suppress(*FAILURES), self._connection.watched():
            channel.close()
        inward.join()
        wire.close()
        self._release()

    def _release(self) -> None:
        with self._lock:
            self._users -= 1
            unused = self._users == 0
        if unused:
            self._connection.abort()


def _receive_all(channel: paramiko.Channel, wire: socket.socket) -> None:
    """Relay bytes of the next host until one side ends."""
    with suppress(*FAILURES):
        while data := _receive(channel):
            wire.sendall(data)
    _shut_down(wire)


def _receive(channel: paramiko.Channel) -> bytes:
    while True:
        with suppress(TimeoutError):
            return channel.recv(_CHUNK)


def _shut_down(wire: socket.socket) -> None:
    with suppress(OSError):
        wire.shutdown(socket.SHUT_RDWR)
