"""The sockets of HTTP requests: their time limits, and whether the way to the server still exists.

A firewall that forgets a connection, or a VPN that returns with another address, leaves sockets
that look connected. So a connection that was idle is not used again, and a request that waits for
its answer checks whether the other host confirms its bytes (decision 58).
"""

import errno
import io
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any, Final

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError

from mydata_like.core.errors import Cancelled
from mydata_like.core.ports import CancelSignal, Clock
from mydata_like.ssh.dialing import NoAnswerError, connect_first

if sys.platform == "linux":
    import fcntl
    import termios

_LONGEST_DIAL: Final = 60.0  # seconds, if the caller gives none
_SLICE: Final = 0.25  # seconds within which a blocked read notices a request to stop
_LONGEST_IDLE: Final = 10.0  # seconds; firewalls forget connections after a minute or more
_SO_NWRITE: Final = 0x1024  # bytes in the send buffer; sys/socket.h of macOS
# Seconds of silence before the first probe, seconds between probes, and their number.
_KEEP_ALIVE: Final = {
    "TCP_KEEPIDLE": 15,
    "TCP_KEEPALIVE": 15,  # its name on macOS
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 3,
}


class UndeliveredError(ConnectionError):
    """The other host has not confirmed a request; it will not get the rest of it."""


@dataclass(slots=True, eq=False)
class RequestDeadline:
    """The time limit for a whole answer, counted from the first wait for it.

    `heard` is called when bytes have arrived. If none of the request's bytes are confirmed for
    `delivery` seconds, it is given up.
    """

    clock: Clock
    cancel: CancelSignal
    silence: float
    total: float
    delivery: float
    heard: Callable[[], None]
    end: float | None = None
    unconfirmed: int = 0  # bytes of the request
    unchanged_since: float = 0.0

    def receive(self, sock: socket.socket, buffer: Any) -> int:
        """Read the next bytes; a slow server gets no more time than a silent one."""
        now = self.clock.monotonic()
        if self.end is None:
            self.end = now + self.total
        silent_until = now + self.silence
        try:
            while True:
                if self.cancel.is_set():
                    raise Cancelled
                left = min(self.end, silent_until) - self.clock.monotonic()
                if left <= 0:
                    raise TimeoutError("the answer took too long")
                sock.settimeout(min(left, _SLICE))
                try:
                    received = sock.recv_into(buffer)
                except TimeoutError as error:
                    if error.errno:  # of the system: the other host is not there any more
                        raise ConnectionAbortedError(str(error)) from error
                    self._check_way(sock)
                    continue
                if received:  # and not the end
                    self.heard()
                return received
        finally:
            sock.settimeout(self.silence)

    def _check_way(self, sock: socket.socket) -> None:
        """Raise `UndeliveredError` or `ConnectionAbortedError` if no answer can arrive."""
        now, unconfirmed = self.clock.monotonic(), count_unconfirmed(sock)
        if unconfirmed != self.unconfirmed:
            self.unconfirmed, self.unchanged_since = unconfirmed, now
        lost = not has_local_address(sock)
        if unconfirmed and (lost or now - self.unchanged_since >= self.delivery):
            # With a normal close, the system would go on to send it.
            linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            raise UndeliveredError("the request was not received")
        if lost:
            raise ConnectionAbortedError("this computer has another address now")


def count_unconfirmed(sock: socket.socket) -> int:
    """Return how many sent bytes the other host has not confirmed; 0 if the system cannot tell."""
    with suppress(OSError):
        if sys.platform == "linux":
            count = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
            return int.from_bytes(count, sys.byteorder)
        if sys.platform == "darwin":
            return sock.getsockopt(socket.SOL_SOCKET, _SO_NWRITE)
    return 0


def has_local_address(sock: socket.socket) -> bool:
    """Return whether this computer still has the address that a connection uses."""
    host, _, *scope = sock.getsockname()
    with socket.socket(sock.family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0, *scope))
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL
    return True


current_limit: ContextVar[RequestDeadline] = ContextVar("limit")


class _LimitedReader(io.RawIOBase):
    """The receiving end of a socket, under the time limit of the current request."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._sock = sock
        self._raw = raw  # keeps the socket open until the reply is read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return current_limit.get().receive(self._sock, buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _LimitedResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp.close()
        raw: Any = sock.makefile("rb", buffering=0)
        self.fp = io.BufferedReader(_LimitedReader(sock, raw))


class _Dialled(HTTPConnection):
    """A connection with one time limit for all addresses of the host."""

    idle_since = 0.0

    def _new_conn(self) -> socket.socket:
        timeout = self.timeout if isinstance(self.timeout, int | float) else _LONGEST_DIAL
        try:
            found = socket.getaddrinfo(self._dns_host, self.port, type=socket.SOCK_STREAM)
            sock = connect_first(found, timeout)
        except (socket.gaierror, UnicodeError) as error:
            raise NewConnectionError(self, "its name cannot be resolved") from error
        except NoAnswerError as error:
            raise NewConnectionError(self, str(error)) from error
        for option in self.socket_options or ():
            sock.setsockopt(*option)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if option_number := getattr(socket, name, None):
                with suppress(OSError):  # an older system, or Wine, does not take it
                    sock.setsockopt(socket.IPPROTO_TCP, option_number, value)
        sock.settimeout(timeout)
        return sock


class _HttpConnection(_Dialled):
    response_class = _LimitedResponse


class _HttpsConnection(_Dialled, HTTPSConnection):
    response_class = _LimitedResponse


class _FreshPool(HTTPConnectionPool):
    """A pool that does not use connections again that were idle for long, or cannot work."""

    clock: Clock

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection: Any = super()._get_conn(timeout)
        if connection.sock is not None:
            idle = self.clock.monotonic() - connection.idle_since
            if idle > _LONGEST_IDLE or not has_local_address(connection.sock):
                connection.close()  # it connects again
        return connection

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            conn.idle_since = self.clock.monotonic()
        super()._put_conn(conn)


class HttpPool(_FreshPool):
    """The pool of connections without encryption."""

    ConnectionCls = _HttpConnection


class HttpsPool(_FreshPool, HTTPSConnectionPool):
    """The pool of encrypted connections."""

    ConnectionCls = _HttpsConnection
