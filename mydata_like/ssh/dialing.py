"""TCP connections to SSH servers, with time limits, to whichever address answers first.

Also the words for what goes wrong with them, the same from both SSH stacks.
"""

import select
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from mydata_like.core.errors import AccessDeniedError, RejectedError, StagingError, TransientError
from mydata_like.ssh.session import Endpoint

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


REFUSED: Final = "link.refused"
LOST: Final = "link.lost"
STALLED: Final = "link.stalled"
NO_CHANNEL: Final = "channel.refused"

# Bytes of a command's output that nobody has read yet. The longest that is wanted names 10,000
# members of a batch; nobody reads more of a complaint than its last lines.
MOST_OUTPUT: Final = 32 * 1024 * 1024
MOST_ERRORS: Final = 16 * 1024 * 1024

# Seconds between requests for a channel: a server at its limit needs a moment to notice that
# the command before has ended.
GRACE: Final = (0.02, 0.1, 0.0)


def dial(endpoint: Endpoint) -> socket.socket:
    """Return a connected socket; raises `TransientError` when no address answers in time."""
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise refused(endpoint, "its name is not known") from error
    return dial_any(endpoint, found)


def dial_any(endpoint: Endpoint, found: Sequence[object]) -> socket.socket:
    """Return a socket connected to one of the host's addresses, as `getaddrinfo` lists them."""
    try:
        winner = connect_first(found, endpoint.connect_timeout)
    except NoAnswerError as error:
        raise refused(endpoint, str(error)) from error
    winner.settimeout(None)
    winner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return winner


def find_round_trip(line: socket.socket) -> float | None:
    """Return the fewest seconds that the network has taken there and back, where a system tells.

    It is the other system that answers, however busy its programs are: `tcpi_min_rtt` of Linux,
    in microseconds (struct tcp_info in linux/tcp.h).
    """
    if sys.platform != "linux":
        return None
    try:
        told = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 152)
    except OSError:  # this is no TCP connection, but the way through a host between
        return None
    return int.from_bytes(told[148:], sys.byteorder) / 1e6 or None  # old systems tell less


def hurry(line: socket.socket) -> None:
    """Acknowledge what has come at once, and what comes next.

    OpenSSH leaves Nagle's algorithm on until it runs a command, so the answer to the first
    request of a connection would wait some 40 ms for our delayed acknowledgement. The kernel
    soon forgets this wish, so it is renewed before each wait of a connection's beginning.
    """
    if hasattr(socket, "TCP_QUICKACK"):
        with suppress(OSError):
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def refused(endpoint: Endpoint, why: str) -> TransientError:
    """Return the error of a host that no connection can be made to."""
    return TransientError(
        f"{endpoint.host} cannot be reached on port {endpoint.port}: "
        f"{why or 'it ended the connection'}.",
        hint="Check the network; the staging host may be down.",
        code=REFUSED,
    )


def disagreed(endpoint: Endpoint, why: str) -> StagingError:
    """Return the error of a host that speaks only what we do not: it will tomorrow, too."""
    return StagingError(
        f"{endpoint.host} and we have no way of encryption in common: {why}.",
        hint="The host is probably very old; see docs/ssh.md.",
        code="ssh.no-agreement",
    )


def not_let_through(endpoint: Endpoint, host: str, port: int) -> TransientError:
    """Return the error of a host between that makes no connection to the next one."""
    return TransientError(
        f"{endpoint.host} does not connect us with {host}, port {port}.",
        hint="The next host may be down, or the one before it may not allow forwarding.",
        code=REFUSED,
    )


def lost(endpoint: Endpoint, why: str = "") -> TransientError:
    """Return the error of a connection that broke."""
    reason = f": {why}" if why else ""
    return TransientError(f"The connection to {endpoint.host} was lost{reason}.", code=LOST)


def stalled(endpoint: Endpoint, seconds: float) -> TransientError:
    """Return the error of a connection over which nothing moves any more."""
    return TransientError(
        f"No data was exchanged with {endpoint.host} for {seconds:g} seconds.", code=STALLED
    )


def keep_output(endpoint: Endpoint, kept: bytearray, more: bytes) -> None:
    """Add what a command has printed; raises `TransientError` where there is no end of it."""
    kept += more
    if len(kept) > MOST_OUTPUT:
        raise TransientError(
            f"{endpoint.host} prints more than any command of ours does.",
            hint="A login script of the staging account may print endlessly.",
            code="staging.flood",
        )


def keep_errors(kept: bytearray, more: bytes) -> None:
    """Add what a command complains of; of a flood its end is kept."""
    kept += more
    if len(kept) > MOST_ERRORS:
        del kept[: -MOST_ERRORS // 2]


def exec_refused(endpoint: Endpoint) -> RejectedError:
    """Return the error of a server that runs no commands for us."""
    return RejectedError(f"{endpoint.host} runs no commands for us.", code="ssh.exec-refused")


def sftp_refused(endpoint: Endpoint) -> RejectedError:
    """Return the error of a server that does not speak SFTP with us."""
    return RejectedError(f"{endpoint.host} offers no SFTP.", code="ssh.sftp-refused")


def no_channel(endpoint: Endpoint) -> TransientError:
    """Return the error of a server that grants this session no further channel."""
    return TransientError(f"{endpoint.host} grants no further channel.", code=NO_CHANNEL)


def key_refused(endpoint: Endpoint) -> AccessDeniedError:
    """Return the error of a server that does not accept our key."""
    return AccessDeniedError(
        f"{endpoint.host} does not accept the uploader's key for {endpoint.username}.",
        hint="The registration may have been withdrawn; ask the server's administrator.",
        code="ssh.key-refused",
    )


def not_signed(endpoint: Endpoint, why: str) -> AccessDeniedError:
    """Return the error of a key that an agent holds and that did not sign."""
    return AccessDeniedError(
        f"The uploader's key for {endpoint.host} cannot be used: {why}.",
        hint="The agent or the device with the key did not sign.",
        code="ssh.key-refused",
    )


def wait_ready(line: socket.socket, bell: socket.socket, *, writable: bool, seconds: float) -> bool:
    """Wait until bytes have come through a line (or, if so wished, can go), or the bell rings.

    Return whether it was the line.
    """
    if not hasattr(select, "poll"):  # Windows, where select has no trouble with large numbers
        readers, writers, _ = select.select([line, bell], [line] if writable else [], [], seconds)
        return line in readers or line in writers
    poll = select.poll()
    poll.register(line, select.POLLIN | (select.POLLOUT if writable else 0))
    poll.register(bell, select.POLLIN)
    return line.fileno() in dict(poll.poll(seconds * 1000))
