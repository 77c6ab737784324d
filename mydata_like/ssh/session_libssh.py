"""SSH sessions on libssh (package ssh-python), which releases the interpreter lock.

The library is used without blocking, except for writing what fits into a window: each call is
repeated until it is done. Between calls, this module waits for the socket, at most for the stall
timeout. The streams of a session may belong to different threads, which use the library in turns.
"""

import base64
import os
import re
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NoReturn

from ssh import options
from ssh.channel import Channel
from ssh.exceptions import EOF, AuthenticationDenied, AuthenticationPartial, BaseSSHError
from ssh.key import import_privkey_base64
from ssh.session import SSH_AUTH_AGAIN, SSH_CLOSED_ERROR, SSH_WRITE_PENDING
from ssh.session import Session as LibrarySession

from mydata_like.core.errors import AccessDeniedError, TransientError
from mydata_like.settings.values import CIPHERS
from mydata_like.ssh import dialing
from mydata_like.ssh.agent import Agent, OneKeyAgent
from mydata_like.ssh.keys import KeyPair, PublicKey
from mydata_like.ssh.libssh_version import select_inward
from mydata_like.ssh.session import (
    HOST_KEYS,
    KEY_EXCHANGES,
    MACS,
    CommandResult,
    Endpoint,
    Stream,
)
from mydata_like.ssh.session_base import SessionBase, StreamOutput
from mydata_like.ssh.shared_socket import SharedSocket

_READ: Final = 64 * 1024
_LARGEST: Final = 256 * 1024  # bytes of one write; a quarter faster than 64 KiB
_SMALLEST: Final = 32 * 1024  # bytes of one write, where the network is slow
_LONG: Final = 0.1  # seconds of one write, after which the next one is smaller


class LibsshStream(StreamOutput):
    """A running remote command; see `Stream`.

    It starts as a new channel: open it, then execute a command.

    Freeing a channel uses data that all channels of the connection share, so it must happen in a
    turn. Errors keep frames alive, so no frame may refer to the channel: the stream passes
    functions of its own to the connection, never methods of the channel.
    """

    def __init__(self, connection: "LibsshTransport", channel: Channel) -> None:
        super().__init__()
        self._connection = connection
        self._held = [channel]
        self._widest = 0  # bytes, the maximum window so far
        self._asked: Callable[[], int] | None = None  # starts the command, not answered yet

    @property
    def _channel(self) -> Channel:
        return self._held[0]

    def open(self) -> bool:
        """Open the channel; return whether that is granted."""
        return self._connection.grants(lambda: self._channel.open_session())

    def offer(self, variable: bytes, value: bytes) -> bool:
        """Send an environment variable for the command; return whether it is accepted."""
        return self._connection.grants(lambda: self._channel.request_env(variable, value))

    def execute(self, command: bytes) -> bool:
        """Start the command; return whether that is granted.

        With `runs_ahead`, a host that has run one is not waited for: if it refuses this one, the
        next call that waits raises `TransientError`.
        """

        def request() -> int:
            return int(self._channel.request_exec(command))

        if not self._connection.runs_commands:
            granted = self._connection.grants(request)
            self._connection.runs_commands = granted and self._connection.opens_ahead
            return granted
        self._asked = request
        with self._connection.turn():
            self._check_answer()
        return True

    def start_subsystem(self, subsystem: bytes) -> bool:
        """Start a subsystem instead of a command; return whether that is granted."""
        return self._connection.grants(lambda: self._channel.request_subsystem(subsystem))

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`; input that an ended command did not read is dropped."""
        view = memoryview(data).cast("B")
        while view:
            with self._connection.turn():
                self._drain()
                if self._channel.is_closed():
                    return
                # Writing more than the window would block the library until the window grows.
                count = min(self._find_window(), len(view), self._connection.write_size)
                if count and not self._send(bytes(view[:count])):
                    self._require_end()
                    return
            view = view[count:]
            if not count:
                begun = time.monotonic()
                self._connection.wait_until(lambda: self._find_window() > 0 or self.has_ended())
                self.blocked_seconds += time.monotonic() - begun

    def write_some(self, data: bytes) -> int | None:
        """Write as much as the window allows, in a turn; return None if the command has ended."""
        if self._channel.is_closed():
            return None
        count = min(self._find_window(), len(data), self._connection.write_size)
        if count and not self._send(data if count == len(data) else data[:count]):
            self._require_end()
            return None
        return count

    def is_ready(self, size: int) -> bool:
        """Return whether to write so many bytes, or the command has ended; in a turn.

        After each small part that a command reads, its window grows. Writing as little each time
        takes several times as much processor time, so this waits for half of the usual window.
        """
        window = self._find_window()
        return (window > 0 and window >= min(size, self._usual_window // 2)) or self.has_ended()

    def has_ended(self) -> bool:
        """Return whether the command has ended; in a turn."""
        self._receive_all()
        return bool(self._channel.is_closed())

    def read(self, size: int, least: int = 1) -> bytes:
        """Wait for output and return at most `size` bytes of it; empty at its end."""
        with self._connection.turn():
            self._drain(size)
        if not self._output:
            self._connection.wait_until(
                lambda: self.has_ended() or len(self._output) >= least or self._channel.is_eof()
            )
        return self._take(size)

    def read_ready(self) -> bytes:
        """Return the output that has arrived, without waiting; possibly nothing."""
        with self._connection.turn():
            self._drain()
            return self._take(len(self._output))

    def finish(self) -> CommandResult:
        """Close the standard input and wait for the end."""
        with self._connection.turn():
            self._drain()
            open_still = not self._channel.is_closed()
        if open_still:
            self._connection.repeat(lambda: self._channel.send_eof())
        self._connection.wait_until(self._has_ended)
        with self._connection.turn():
            self._drain()
            status = self._channel.get_exit_status()
        finished = self._conclude(status)
        self.close()
        return finished

    def close(self) -> None:
        """Close the stream without waiting."""
        with self._connection.turn(), suppress(BaseSSHError):
            self._channel.close()

    def __del__(self) -> None:
        """Free the channel in a turn."""
        self._connection.retire(self._held)

    def _send(self, data: bytes) -> bool:
        return self._connection.write(lambda: self._channel.write(data))

    def _receive(self, *, from_errors: bool) -> bytes:
        return self._connection.read(lambda: self._channel.read_nonblocking(_READ, from_errors))

    def _require_end(self) -> None:
        """Raise `TransientError` unless the command has ended; in a turn.

        After the end, writes are refused, but the library reports a channel as closed only after
        the last output was read, which may just have arrived.
        """
        self._receive_all()
        if not self._channel.is_closed():
            raise dialing.lost(self._connection.endpoint, "written data is not accepted")

    @property
    def _usual_window(self) -> int:
        return min(self._widest, self._connection.max_in_flight)

    def _find_window(self) -> int:
        """Return the number of bytes that may be written now; in a turn."""
        window: int = self._channel.window_size()
        self._widest = max(self._widest, window)
        return max(0, window - self._widest + self._usual_window)

    def _has_ended(self) -> bool:
        """Return whether no more output can arrive; a killed command has no status."""
        self._receive_all()
        if self._channel.is_closed():
            return True
        return bool(self._channel.is_eof()) and self._channel.get_exit_status() >= 0

    def _check_answer(self) -> None:
        """Raise `TransientError` if the host has refused the command; in a turn."""
        if self._asked is None:
            return
        answer = self._connection.ask(self._asked)
        if answer is not None:
            self._asked = None
        if answer is False:
            raise dialing.no_channel(self._connection.endpoint)

    def _drain(self, size: int = sys.maxsize) -> None:
        """Let the library process its socket, and read the output that has arrived."""
        self._connection.pump()
        self._receive_all(size)

    def _receive_all(self, size: int = sys.maxsize) -> None:
        """Read the output that the library has buffered, until at least `size` bytes are here.

        Reading one kind of output makes the library receive the other as well. Standard output is
        read last, so that nothing stays buffered while we wait for more.
        """
        self._check_answer()
        while more := self._receive(from_errors=True):
            dialing.keep_errors(self._errors, more)
        while len(self._output) < size and (more := self._receive(from_errors=False)):
            dialing.keep_output(self._connection.endpoint, self._output, more)


_CHECKS: Final = 4  # checks per timeout


class CallTimeout:
    """Shuts down a socket if a call in this context takes longer than `timeout` seconds.

    For calls that may not return: libssh's binding repeats a write during key renewal without a
    check by us. The thread ends with `stop`.
    """

    def __init__(self, connection: socket.socket, timeout: float) -> None:
        self._connection = connection
        self._timeout = timeout
        self._since: float | None = None
        self._stopped = threading.Event()
        self.has_expired = False
        threading.Thread(target=self._watch, name="ssh-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop watching."""
        self._stopped.set()

    def __enter__(self) -> None:
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._since = None

    def _watch(self) -> None:
        while not self._stopped.wait(self._timeout / _CHECKS):
            since = self._since
            if since is not None and time.monotonic() - since > self._timeout:
                self.has_expired = True
                with suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)
                return


_BRIEFLY: Final = 0.1  # seconds of one wait in `write_some`
_AGAIN: Final = -2  # SSH_AGAIN of libssh.h
_NEAR: Final = 0.001  # seconds; within such a round trip, no network transfers more than this:
_NEAR_IN_FLIGHT: Final = 512 * 1024  # bytes; see `LibsshTransport.open_stream`
_LOGIN: Final = 2  # round trips of a login, for the service and the signature


class LibsshSession(SessionBase):
    """An authenticated connection; see `OpenSession`."""

    stack = "libssh"
    gcm_only = False

    def __init__(self, connection: "LibsshTransport") -> None:
        super().__init__(connection)
        self._connection = connection

    @property
    def cipher(self) -> str:
        """The negotiated cipher for sent data."""
        with self._connection.turn():
            name: bytes = self._connection.library.get_cipher_out()
        return name.decode()

    def write_some(
        self, pieces: Sequence[tuple[Stream, bytes]], moved: float | None = None
    ) -> list[int | None]:
        """See `SessionWriter`; not to be called by several threads at once."""
        wanted = [(it, piece) for it, piece in pieces if isinstance(it, LibsshStream)]
        ready = self._find_ready(wanted)
        if moved is not None and not any(ready):
            begun = time.monotonic()
            moves = self._connection.wait(
                lambda: any(it.is_ready(len(piece)) for it, piece in wanted), _BRIEFLY
            )
            self.blocked_seconds += time.monotonic() - begun
            if not moves:
                self._connection.check_progress(moved)
            ready = self._find_ready(wanted)
            if not any(ready):  # a host may let a window grow only when little of it is left
                ready = [True] * len(wanted)
        sizes: list[int | None] = []
        for (stream, piece), is_ready in zip(wanted, ready, strict=True):
            if not is_ready:
                sizes.append(0)
                continue
            with self._connection.turn():
                sizes.append(stream.write_some(piece))
        return sizes

    def _find_ready(self, wanted: Sequence[tuple[LibsshStream, bytes]]) -> list[bool]:
        with self._connection.turn():
            self._connection.pump()
            return [it.is_ready(len(piece)) for it, piece in wanted]

    def run_ahead(self) -> None:
        """See `OpenSession`."""
        self._connection.runs_ahead = True

    @contextmanager
    def limit_waits(self, seconds: float) -> Iterator[None]:
        """Reduce the stall timeout to `seconds` in this context."""
        endpoint = self._connection.endpoint
        shortest = min(seconds, endpoint.stall_timeout)
        self._connection.endpoint = endpoint._replace(stall_timeout=shortest)
        try:
            yield
        finally:
            self._connection.endpoint = endpoint


class LibsshTransport(SharedSocket):
    """The library's session and its socket, with timeouts and our own errors.

    Threads share it in turns. Docstrings mark the methods that must be called in a turn.
    """

    def __init__(self, endpoint: Endpoint, wire: socket.socket) -> None:
        wire.settimeout(0)
        # The library owns and closes its descriptor; ours is for waiting and shutting down.
        self._socket = wire.dup()
        super().__init__(self._socket)
        self.endpoint = endpoint
        self.library = LibrarySession()
        self._watchdog = CallTimeout(self._socket, endpoint.stall_timeout)
        weakref.finalize(self, self._watchdog.stop)
        weakref.finalize(self, self._socket.close)
        self.library.set_socket(wire.detach())
        self._pump: Channel | None = None
        self._next: list[Channel] = []  # at most one, which opens while earlier ones are used
        self.runs_ahead = False  # whether that is wanted, and no channel was refused since
        self._is_far = False  # an OpenSSH server; others may drop what they did not ask for
        self.runs_commands = False  # a host that opens ahead, and has run one
        self.max_in_flight = sys.maxsize  # bytes in flight of a stream, if its window is larger
        self.write_size = _SMALLEST * 2  # bytes of the next write, at most
        self._is_measured = False
        self._inward = select_inward(endpoint.allowed_inward)
        self._banner = b""
        self._login_round_trip = 0.0  # seconds, or what a busy host made of it

    def handshake(self, host_keys: tuple[str, ...]) -> PublicKey:
        """Perform the handshake and return the server's key, which is not trusted yet."""
        self._set_options(host_keys)
        self.library.set_blocking(0)
        try:
            self._until(self.library.connect, _AGAIN)
        except BaseSSHError as error:
            if found := _find_disagreement(error):
                unchecked = set(self.endpoint.allowed_inward).difference(self._inward)
                if found.kind == "cipher" and found.inward and unchecked.intersection(found.theirs):
                    raise dialing.unchecked(self.endpoint) from error
                raise dialing.no_common_algorithm(self.endpoint, "libssh", found) from error
            raise dialing.handshake_failed(self.endpoint, _reason(error)) from error
        self._check_inward()
        blob = base64.b64decode(self.library.get_server_publickey().export_pubkey_base64())
        length = int.from_bytes(blob[:4], "big")
        return PublicKey(blob[4 : 4 + length].decode(), blob)

    def authenticate(self, key: KeyPair | None) -> None:
        """Authenticate with this key only, or the agent's; raises `AccessDeniedError`."""
        assert key is not None
        if key.whole:
            private = import_privkey_base64(key.text, None)
            self._log_in(lambda: self.library.userauth_publickey(private))
            return
        agent = Agent(self.endpoint.agent, self.endpoint.stall_timeout)
        if key.public not in agent.keys:
            agent.close()
            raise dialing.not_signed(self.endpoint, "the agent does not have it")
        only = OneKeyAgent(agent, key.public)
        try:
            self.library.set_agent_socket(only.remote.detach())
            self._log_in(lambda: self.library.userauth_agent(self.endpoint.username))
        except (AccessDeniedError, TransientError) as error:  # the latter: "Out of memory"
            if only.failure:
                raise dialing.not_signed(self.endpoint, only.failure) from error
            raise
        finally:
            only.close()

    def _log_in(self, offer: Callable[[], int]) -> None:
        begun = time.perf_counter()
        try:
            self._until(lambda: self._offer(offer), SSH_AUTH_AGAIN)
        except AuthenticationPartial as error:
            wanted = self.library.userauth_list()
            methods = [name for bit, name in _METHODS.items() if wanted & bit]
            raise dialing.second_factor_wanted(self.endpoint, methods) from error
        except BaseSSHError as error:
            self._keep_banner()
            if dialing.says_expired(self._banner):
                raise dialing.expired(self.endpoint, self._banner) from error
            if isinstance(error, AuthenticationDenied):
                raise dialing.key_refused(self.endpoint) from error
            raise self._broken(error) from error
        self._login_round_trip = (time.perf_counter() - begun) / _LOGIN

    def _check_inward(self) -> None:
        """Check the cipher of received data, which a key renewal may change.

        Raises `TransientError` if what has arrived must not be used.
        """
        cipher: str = self.library.get_cipher_in().decode()
        if cipher not in self._inward:
            self.abort()
            raise dialing.lost(self.endpoint, f"it sends with {cipher}, which is not checked")

    def _offer(self, offer: Callable[[], int]) -> int:
        """Continue to authenticate, in a turn; return the library's status."""
        status = offer()
        if status == SSH_AUTH_AGAIN:
            self._keep_banner()
        return status

    def _keep_banner(self) -> None:
        """Keep the text that the host sends during a login; the library drops it at the end."""
        with suppress(BaseSSHError):
            self._banner = self.library.get_issue_banner() or self._banner

    @property
    def network_round_trip(self) -> float | None:
        return dialing.find_round_trip(self._socket)

    def session(self) -> LibsshSession:
        """Return the session of an authenticated connection."""
        # Work-around: ssh-python 1.2.0 has no call that only processes what has arrived; polling a
        # channel that is never opened does it.
        # No report known; see test_a_keepalive_of_the_host_is_answered_while_nothing_is_read.
        # Remove when the binding has `ssh_event_dopoll` for one session.
        self._pump = self.call(self.library.channel_new)
        self.start_pump()
        return LibsshSession(self)

    @property
    def opens_ahead(self) -> bool:
        """Whether channels are opened before they are needed, at a far host."""
        return self.runs_ahead and self._is_far

    def open_stream(self) -> LibsshStream:
        """Open a channel for a command; raises `TransientError` if none is granted.

        Each time some of the data in a full window is read, OpenSSH's sshd moves the rest of it in
        memory. So a near host is faster with less data in flight. A far host needs the whole
        window. Other servers may let the window shrink by half before they extend it, OpenSSH by 96
        KiB.

        With `opens_ahead`, the channel of the next command is opened while this one is used.
        """
        if (stream := self._take_next()) is not None:
            return stream
        for pause in dialing.GRACE:
            with self.turn():
                stream = LibsshStream(self, self.call(self.library.channel_new))
            begun = time.perf_counter()
            if stream.open():
                if not self._is_measured:
                    self._is_measured = True
                    times = self._login_round_trip, time.perf_counter() - begun
                    near = self._is_near(stream, times)
                    self.max_in_flight = _NEAR_IN_FLIGHT if near else sys.maxsize
                    self._is_far = not near and bool(self.library.get_openssh_version())
                self._open_next()
                return stream
            time.sleep(pause)
        raise dialing.no_channel(self.endpoint)

    def _take_next(self) -> LibsshStream | None:
        """Return the channel that was opened ahead; None if there is none, or the host ended it."""
        with self.turn():
            if not self._next:
                return None
            stream = LibsshStream(self, self._next.pop())
        if stream.open():
            self._open_next()
            return stream
        self.runs_ahead = False  # it takes the room of others
        return None

    def _open_next(self) -> None:
        """Ask for the channel of the next command."""
        with self.turn():
            if self.opens_ahead and not self._next:
                self._next.append(self.call(self.library.channel_new))
                self.ask(lambda: self._next[0].open_session())

    def _is_near(self, stream: LibsshStream, times: Sequence[float]) -> bool:
        """Return whether the host is near; `times` are those of the answers that are known.

        The measurement sets an unused environment variable, which only sshd processes, without
        starting a program.
        """
        network = self.network_round_trip
        if not self.library.get_openssh_version() or (network is not None and network >= _NEAR):
            return False
        measured = dialing.time_answers(lambda: stream.offer(b"MYDATA_LIKE", b""), _NEAR, times)
        return measured.round_trip(network) < _NEAR

    def grants(self, request: Callable[[], int]) -> bool:
        """Make a request and return whether the server grants it."""
        try:
            self._until(request, _AGAIN)
        except BaseSSHError as error:
            if self._is_usable():
                return False
            raise self._broken(error) from error
        return True

    def ask(self, request: Callable[[], int]) -> bool | None:
        """Make a request in a turn; return whether it is granted, None while that is unknown."""
        try:
            return True if request() != _AGAIN else None
        except BaseSSHError as error:
            if self._is_usable():
                return False
            raise self._broken(error) from error

    def repeat(self, request: Callable[[], int]) -> None:
        """Repeat a call of the library until it is done."""
        try:
            self._until(request, _AGAIN)
        except BaseSSHError as error:
            raise self._broken(error) from error

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call the library, in a turn; raises `TransientError` if the connection broke."""
        try:
            return function(*arguments)
        except BaseSSHError as error:
            raise self._broken(error) from error

    def write(self, send: Callable[[], object]) -> bool:
        """Write data that fits into a channel's window, in a turn; return whether it was sent.

        The library waits for the socket itself, which takes a fraction of the processor time. So
        that other threads have their turns, less is written at once where the network is slow.
        """
        begun = time.monotonic()
        with self._watchdog:
            self.library.set_blocking(1)
            try:
                send()
            except BaseSSHError as error:
                if self._is_usable():
                    return False
                raise self._broken(error) from error
            finally:
                self.library.set_blocking(0)
        self.moved = time.monotonic()
        if self.moved - begun > _LONG:
            self.write_size = max(_SMALLEST, self.write_size // 2)
        elif self.write_size < _LARGEST and self.moved - begun < _LONG / 4:
            self.write_size *= 2
        return True

    def read(self, receive: Callable[[], tuple[int, bytes]]) -> bytes:
        """Return output of a channel that has arrived, possibly nothing; in a turn."""
        try:
            _, more = receive()
        except EOF:
            return b""
        except BaseSSHError as error:
            if self._is_usable():
                return b""  # the command has ended and all output was read
            raise self._broken(error) from error
        self._check_inward()
        return more

    def pump(self) -> None:
        """Let the library process arrived data; raises `TransientError` if the connection ended."""
        if self._pump is None:
            return
        try:
            self._pump.poll()
        except BaseSSHError as error:
            raise self._broken(error) from error
        if not self._is_usable():
            failed = self.library.get_status() & SSH_CLOSED_ERROR
            raise dialing.lost(self.endpoint, self.library.get_error() if failed else "")

    def _is_usable(self) -> bool:
        """Return whether the connection is open; the library keeps it so after a damaged packet."""
        return (
            bool(self.library.is_connected()) and not self.library.get_status() & SSH_CLOSED_ERROR
        )

    def is_pending(self) -> bool:
        return bool(self.library.get_poll_flags() & SSH_WRITE_PENDING)

    def wait_until(self, is_ready: Callable[[], bool]) -> None:
        """Wait until `is_ready`; raises `TransientError` after a timeout without progress.

        `is_ready` is called in turns, by any thread that has processed data.
        """
        if not self.wait(is_ready, self.endpoint.stall_timeout):
            self._stall()

    def check_progress(self, moved: float) -> None:
        """Raise `TransientError` if nothing has moved since then for the stall timeout.

        `moved` is the monotonic time of the last progress that the caller knows.
        """
        if time.monotonic() - max(moved, self.moved) > self.endpoint.stall_timeout:
            self._stall()

    def abort(self) -> None:
        """Break the connection; threads that wait for it are woken and fail."""
        self._watchdog.stop()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _until(self, request: Callable[[], int], again: int) -> None:
        """Repeat a request until it is done; the timeout is for all of it."""
        if not self.wait(lambda: request() != again, self.endpoint.stall_timeout, in_all=True):
            self._stall()

    def _stall(self) -> NoReturn:
        self.abort()
        raise dialing.stalled(self.endpoint, self.endpoint.stall_timeout)

    def _broken(self, error: BaseSSHError) -> TransientError:
        self.abort()
        if self._watchdog.has_expired:
            return dialing.stalled(self.endpoint, self.endpoint.stall_timeout)
        return dialing.lost(self.endpoint, _reason(error))

    def _set_options(self, host_keys: tuple[str, ...]) -> None:
        macs = ",".join(MACS)
        chosen = (
            (options.HOST, self.endpoint.host),
            (options.USER, self.endpoint.username),
            (options.KNOWNHOSTS, os.devnull),  # keys are checked by `check_host_key`
            (options.GLOBAL_KNOWNHOSTS, os.devnull),
            (options.KEY_EXCHANGE, ",".join(KEY_EXCHANGES)),
            (options.HOSTKEYS, ",".join(host_keys)),
            (options.PUBLICKEY_ACCEPTED_TYPES, ",".join(HOST_KEYS)),
            (options.CIPHERS_C_S, ",".join(self.endpoint.ciphers or CIPHERS)),
            (options.CIPHERS_S_C, ",".join(self._inward)),
            (options.HMAC_C_S, macs),
            (options.HMAC_S_C, macs),
            (options.COMPRESSION_C_S, "none"),
            (options.COMPRESSION_S_C, "none"),
        )
        # A user's ~/.ssh/config can contain commands to be run.
        self.library.options_set_int_val(options.PROCESS_CONFIG, 0)
        self.library.options_set_port(self.endpoint.port)
        for option, value in chosen:
            self.library.options_set(option, value)


_METHODS: Final = {
    2: "password",
    8: "hostbased",
    16: "keyboard-interactive",
    32: "gssapi",
}  # libssh.h
_KINDS: Final = {  # the names of libssh's kex.c
    "kex algos": "key exchange",
    "server host key algo": "host key algorithm",
    "encryption": "cipher",
    "mac algo": "MAC",
}
_DISAGREEMENT: Final = re.compile(
    r"no match for method (.*?)(?: client->server| (server->client))?: "
    r"server \[(.*?)\], client \[(.*?)\]"
).search


def _find_disagreement(error: BaseSSHError) -> dialing.Disagreement | None:
    """Return what the library and the host have not in common, if that is the error."""
    found = _DISAGREEMENT(_message(error))
    if found is None:
        return None
    kind, inward, theirs, ours = found.groups()
    return dialing.Disagreement(
        _KINDS.get(kind, kind), theirs.split(","), ours.split(","), inward=inward is not None
    )


def _reason(error: BaseSSHError) -> str:
    """Return the library's error message, as far as it is shown."""
    return _message(error).rstrip(".")[:200]


def _message(error: BaseSSHError) -> str:
    text = error.args[-1] if error.args else b""
    plain = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else str(text)
    return plain.strip()
