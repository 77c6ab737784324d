"""TCP connections to SSH servers, to the first address that answers, and their errors.

The errors have the same texts for both SSH libraries.
"""

import re
import select
import selectors
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from mydata_like.core.errors import AccessDeniedError, StagingError, TransientError
from mydata_like.core.formatting import format_path
from mydata_like.ssh.session import Endpoint

_HEAD_START: Final = 0.25  # seconds before the next address is tried as well; RFC 8305, section 8
NOBODY_LISTENS: Final = "the connection was refused"

_Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str | int, ...]]


class NoAnswerError(OSError):
    """No address could be connected to; the message is the reason of the last failure."""


def connect_first(found: Sequence[object], timeout: float) -> socket.socket:
    """Return a socket connected to one of a host's addresses, as `getaddrinfo` lists them.

    The timeout in seconds is for all addresses together. Raises `NoAnswerError`.
    """
    with _Race(_interleave(found), timeout) as race:
        connected = race.run()
    if connected is None:
        raise NoAnswerError(race.reason)
    return connected


def _interleave(found: Sequence[object]) -> list[_Address]:
    """Return the addresses in their order, alternating between the address families."""
    addresses: list[_Address] = [entry for entry in found if isinstance(entry, tuple)]
    first = [entry for entry in addresses if entry[0] == addresses[0][0]]
    others = [entry for entry in addresses if entry[0] != addresses[0][0]]
    mixed: list[_Address] = []
    while first or others:
        mixed += first[:1] + others[:1]
        del first[:1], others[:1]
    return mixed


class _Race:
    """Connects to several addresses with a short delay between them; the first answer wins."""

    def __init__(self, addresses: Sequence[_Address], timeout: float) -> None:
        self._waiting = list(addresses)
        self._timeout = timeout
        self._selector = selectors.DefaultSelector()
        self._attempts: set[socket.socket] = set()
        self.reason = "it does not answer"

    def run(self) -> socket.socket | None:
        """Return the first socket that is connected, or None after the timeout."""
        deadline = time.monotonic() + self._timeout
        while self._waiting or self._attempts:
            if self._waiting:
                self._start(self._waiting.pop(0))
            left = deadline - time.monotonic()
            if left <= 0:
                break
            pause = min(left, _HEAD_START) if self._waiting else left
            if connected := self._wait(pause):
                return connected
        return None

    def _start(self, address: _Address) -> None:
        family, kind, protocol, _, target = address
        try:
            attempt = socket.socket(family, kind, protocol)
        except OSError as error:
            self._note(error)
            return
        self._attempts.add(attempt)
        attempt.settimeout(0)
        try:
            attempt.connect(target)
        except BlockingIOError:
            pass
        except OSError as error:
            self._note(error)
            self._drop(attempt)
            return
        self._selector.register(attempt, selectors.EVENT_WRITE)

    def _wait(self, seconds: float) -> socket.socket | None:
        if not self._attempts:
            return None
        for key, _ in self._selector.select(seconds):
            attempt = key.fileobj
            assert isinstance(attempt, socket.socket)
            self._selector.unregister(attempt)
            failure = attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if not failure:
                self._attempts.discard(attempt)
                return attempt
            self._note(OSError(failure, ""))
            self._drop(attempt)
        return None

    def _note(self, error: OSError) -> None:
        if isinstance(error, ConnectionRefusedError):
            self.reason = NOBODY_LISTENS
        elif error.errno:
            self.reason = "there is no route to it"

    def _drop(self, attempt: socket.socket) -> None:
        self._attempts.discard(attempt)
        attempt.close()

    def __enter__(self) -> "_Race":
        return self

    def __exit__(self, *_: object) -> None:
        for attempt in self._attempts:
            with suppress(OSError):
                attempt.close()
        self._selector.close()


REFUSED: Final = "link.refused"
UNCHECKED: Final = "ssh.unchecked"
NO_AGREEMENT: Final = "ssh.no-agreement"
NO_ALGORITHM: Final = "ssh.no-algorithm"
LOST: Final = "link.lost"
STALLED: Final = "link.stalled"
NO_CHANNEL: Final = "channel.refused"
SECOND_FACTOR: Final = "ssh.second-factor"

DAMAGED: Final = "a packet was damaged or changed on the way"
# What libssh and paramiko say of such a packet.
_OF_DAMAGE: Final = frozenset(
    {"HMAC error", "Decryption error", "Mismatched MAC", "Invalid packet blocking"}
)

# Bytes of a command's unread output. The longest useful output names 10,000 members of a batch; of
# error output, only the last lines are used.
MOST_OUTPUT: Final = 32 * 1024 * 1024
MOST_ERRORS: Final = 16 * 1024 * 1024

# Seconds between requests for a channel: a server at its limit needs a moment to notice that the
# previous command has ended.
GRACE: Final = (0.02, 0.1, 0.0)


EXPIRED: Final = "ssh.expired"
RENEW: Final = (
    "The uploader's key is not the problem. The host's administrator can renew the account or its "
    "password."
)
# What libssh and paramiko say of a connection that the host has closed.
_CLOSED: Final = re.compile(
    r"disconnected|reset by peer|aborted|forcibly closed|broken pipe|reading SSH protocol banner",
    re.IGNORECASE,
).search
_NO_ALGORITHMS: Final = ("kex-strict-", "ext-info-")  # names of extensions in lists of algorithms
_MOST_NAMES: Final = 300  # characters of a host's text in a message
_MOST_READ: Final = 64 * 1024  # bytes
# What OpenSSH (auth-pam.c, auth-shadow.c, session.c) and Linux-PAM's pam_unix print.
_EXPIRED: Final = re.compile(
    rb"(account|password)[^.\n]{0,40} expired|password change required"
    rb"|required to change your password",
    re.IGNORECASE,
).search


def dial(endpoint: Endpoint) -> socket.socket:
    """Return a connected socket; raises `TransientError` if no address answers in time."""
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = "its name cannot be resolved"
        raise refused(
            endpoint, why, "Check the host's name for typing errors, and the network."
        ) from error
    return dial_any(endpoint, found)


def dial_any(endpoint: Endpoint, found: Sequence[object]) -> socket.socket:
    """Return a socket connected to one of the host's addresses, as `getaddrinfo` lists them."""
    try:
        connected = connect_first(found, endpoint.connect_timeout)
    except NoAnswerError as error:
        raise refused(endpoint, str(error)) from error
    connected.settimeout(None)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def find_round_trip(connection: socket.socket) -> float | None:
    """Return the minimum round trip of the network in seconds, if the system measures it.

    The remote kernel answers, however busy its programs are: `tcpi_min_rtt` of Linux, in
    microseconds (struct tcp_info in linux/tcp.h).
    """
    if sys.platform != "linux":
        return None
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 152)
    except OSError:  # not a TCP connection, but one through a jump host
        return None
    return int.from_bytes(info[148:], sys.byteorder) / 1e6 or None  # old systems return less


_MEASUREMENTS: Final = 8  # a host is busy if so many answers come late,
_IN_A_ROW: Final = 3  # and far if so many in a row
_CONSTANT: Final = 1.25  # differ by less than this factor
_VARYING: Final = 2.0  # a busy host's answers take times that differ by more than this factor


class AnswerTimes(NamedTuple):
    """The seconds of several answers; `constant` if the last ones took the same time."""

    seconds: tuple[float, ...]
    constant: bool

    def round_trip(self, network: float | None) -> float:
        """Return the round trip to the host in seconds.

        `network` is the one that the system has measured. It counts for a busy host, but not if
        answers are late by a constant time: then the TCP connection ends nearby at a proxy.
        """
        least = min(self.seconds)
        varying = not self.constant and max(self.seconds) > _VARYING * least
        return least if network is None or not varying else min(least, network)


def time_answers(
    answer: Callable[[], object], near: float, known: Sequence[float] = ()
) -> AnswerTimes:
    """Return how long a host takes to answer, repeated until it is known to be near or far.

    An answer within `near` seconds shows a near host. Several that are late by the same time show a
    far one. A busy host answers late, with varying times. `known` has the times of earlier answers;
    the first ones of a near host are always slow.
    """
    times = [*known]
    constant = False
    for _ in range(_MEASUREMENTS):
        began = time.perf_counter()
        answer()
        times.append(time.perf_counter() - began)
        latest = times[-_IN_A_ROW:]
        constant = len(latest) == _IN_A_ROW and max(latest) < _CONSTANT * min(latest)
        if times[-1] < near or constant:
            break
    return AnswerTimes(tuple(times[-_MEASUREMENTS:]), constant)


def acknowledge_at_once(connection: socket.socket) -> None:
    """Acknowledge received data at once, and the next data as well.

    OpenSSH leaves Nagle's algorithm on until it runs a command, so the answer to the first request
    of a connection would wait for our delayed acknowledgement, about 40 ms. The kernel soon resets
    this option, so it is set before each wait at the start of a connection.
    """
    if hasattr(socket, "TCP_QUICKACK"):
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def refused(
    endpoint: Endpoint, why: str, hint: str = "Check the network; the staging host may be down."
) -> TransientError:
    """Return the error for a host that cannot be connected to."""
    return TransientError(
        f"{endpoint.host} cannot be reached on port {endpoint.port}: {why}.",
        hint=hint,
        code=REFUSED,
    )


def handshake_failed(endpoint: Endpoint, why: str) -> TransientError:
    """Return the error for a host that was connected to, but did not complete the key exchange."""
    host, port = endpoint.host, endpoint.port
    closed = not why or _CLOSED(why) is not None
    return TransientError(
        f"{host} closed the connection on port {port} during the key exchange."
        if closed
        else f"The key exchange with {host} on port {port} failed: {why}.",
        hint="The host answers, but it may limit logins (MaxStartups of sshd) or block this "
        "computer (fail2ban, TCP wrappers, a firewall), or the port is not that of its SSH server. "
        "Its administrator finds the reason in the log of sshd.",
        code=REFUSED,
    )


class Disagreement(NamedTuple):
    """The kind of algorithm that host and library do not have in common, and what each offers.

    `inward` is whether it is only for what the host sends.
    """

    kind: str
    theirs: Sequence[str]
    ours: Sequence[str]
    inward: bool = False


def no_common_algorithm(endpoint: Endpoint, stack: str, found: Disagreement) -> StagingError:
    """Return the error for a host without a common algorithm, which is permanent."""
    theirs = ", ".join(name for name in found.theirs if not name.startswith(_NO_ALGORITHMS))
    return StagingError(
        f"{endpoint.host} and {stack} have no {found.kind} in common. The host offers "
        f"{format_path(theirs.encode())[:_MOST_NAMES] or 'none'}; mydata-like offers "
        f"{', '.join(found.ours)}.",
        hint="Its administrator can allow an algorithm that docs/ssh.md names.",
        code=NO_AGREEMENT,
    )


def unchecked(endpoint: Endpoint) -> StagingError:
    """Return the error for a host whose packets the loaded libssh would not check."""
    return StagingError(
        "The installed libssh does not check what it receives with AES-GCM (CVE-2026-59847), and "
        f"transfer.ciphers and {endpoint.host} have no other cipher in common.",
        hint='Set transfer.ssh to "auto", which uses paramiko then, or add aes128-ctr to '
        "transfer.ciphers, if the host offers it.",
        code=UNCHECKED,
    )


def lost(endpoint: Endpoint, why: str = "") -> TransientError:
    """Return the error for a broken connection."""
    reason = f": {DAMAGED if why in _OF_DAMAGE else why}" if why else ""
    return TransientError(f"The connection to {endpoint.host} was lost{reason}.", code=LOST)


def stalled(endpoint: Endpoint, seconds: float) -> TransientError:
    """Return the error for a connection without any progress."""
    return TransientError(
        f"No data was exchanged with {endpoint.host} for {seconds:g} seconds.", code=STALLED
    )


def keep_output(endpoint: Endpoint, kept: bytearray, more: bytes) -> None:
    """Append output of a command; raises `TransientError` if it is too much."""
    kept += more
    if len(kept) > MOST_OUTPUT:
        raise TransientError(
            f"{endpoint.host} prints more output than expected.",
            hint="A login script of the staging account may print endlessly.",
            code="staging.flood",
        )


def keep_errors(kept: bytearray, more: bytes) -> None:
    """Append error output of a command; only the end of very long output is kept."""
    kept += more
    if len(kept) > MOST_ERRORS:
        del kept[: -MOST_ERRORS // 2]


def no_channel(endpoint: Endpoint) -> TransientError:
    """Return the error for a server that allows no further channel in this session."""
    return TransientError(f"{endpoint.host} does not allow another channel.", code=NO_CHANNEL)


def key_refused(endpoint: Endpoint) -> AccessDeniedError:
    """Return the error for a server that does not accept our key."""
    return AccessDeniedError(
        f"{endpoint.host} does not accept the uploader's key for {endpoint.username}.",
        hint="The registration may have been withdrawn; ask the server's administrator.",
        code="ssh.key-refused",
    )


def not_signed(endpoint: Endpoint, why: str) -> AccessDeniedError:
    """Return the error for a key that an agent does not sign with."""
    return AccessDeniedError(
        f"The uploader's key for {endpoint.host} cannot be used: {why}.",
        hint="The agent or the device with the key did not sign.",
        code="ssh.key-refused",
    )


def second_factor_wanted(endpoint: Endpoint, methods: Sequence[str]) -> StagingError:
    """Return the error for a server that accepts our key, but wants another proof as well."""
    return StagingError(
        f"{endpoint.host} accepts the uploader's key for {endpoint.username}, but wants "
        f"{' or '.join(sorted(methods)) or 'another proof'} as well.",
        hint="Run the command on a terminal, where the host's questions can be answered, or ask "
        "its administrator to exempt this account from them."
        if endpoint.user_known_hosts
        else "No one is there to answer during an upload. The host's administrator can exempt this "
        "account from the second factor, or renew its password if that has expired.",
        code=SECOND_FACTOR,
    )


def answer_refused(endpoint: Endpoint) -> StagingError:
    """Return the error for a host that does not accept what the user has typed."""
    return StagingError(
        f"{endpoint.host} did not accept the answers for {endpoint.username}.",
        hint="Run the same command again.",
        code=SECOND_FACTOR,
    )


def fresh_answer_wanted(endpoint: Endpoint) -> StagingError:
    """Return the error for a host that does not accept the same answers again."""
    return StagingError(
        f"The session with {endpoint.host} has ended, and the host wants a new code for another.",
        hint="Run the same command again. It sends only what is missing.",
        code=SECOND_FACTOR,
    )


def says_expired(text: bytes) -> bool:
    """Return whether a host reports that an account or its password is no longer valid."""
    return _EXPIRED(text[:_MOST_READ]) is not None


def expired(endpoint: Endpoint, text: bytes) -> StagingError:
    """Return the error for a host that reports with this text that the account has expired."""
    shown = format_path(b" ".join(text.split()))[:_MOST_NAMES].rstrip(".")
    return StagingError(
        f"{endpoint.host} refuses the account {endpoint.username}: {shown}.",
        hint=RENEW,
        code=EXPIRED,
    )


def wait_ready(
    connection: socket.socket, wake: socket.socket, *, writable: bool, seconds: float
) -> bool:
    """Wait until the connection is readable (or optionally writable), or `wake` is readable.

    Return whether it was the connection.
    """
    if not hasattr(select, "poll"):  # Windows, where `select` accepts large descriptors
        readers, writers, _ = select.select(
            [connection, wake], [connection] if writable else [], [], seconds
        )
        return connection in readers or connection in writers
    poll = select.poll()
    poll.register(connection, select.POLLIN | (select.POLLOUT if writable else 0))
    poll.register(wake, select.POLLIN)
    return connection.fileno() in dict(poll.poll(seconds * 1000))
