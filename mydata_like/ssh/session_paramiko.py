"""SSH sessions on paramiko, for systems without libssh, agents and jump hosts.

Paramiko waits without limit in several places. Its socket is therefore one that gives up when
somebody waits and no byte has moved for the stall timeout; that ends the library's own thread,
and with it every wait. The streams of a session may belong to different threads.
"""

import errno
import io
import logging
import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Lock
from typing import Any, Final, Self

import paramiko
from paramiko.common import (
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EOF,
)
from paramiko.packet import Packetizer

from mydata_like.core.errors import SettingsError, TransientError
from mydata_like.ssh import dialing
from mydata_like.ssh.agent import FIDO_KEYS, Agent, AgentKey
from mydata_like.ssh.dialing import hurry
from mydata_like.ssh.keys import KeyPair, PublicKey
from mydata_like.ssh.session import (
    CIPHERS,
    KEY_EXCHANGES,
    MACS,
    CommandResult,
    Endpoint,
    signatures,
)
from mydata_like.ssh.sftp import Sftp

FAILURES: Final = (paramiko.SSHException, OSError, EOFError)
_WRITE: Final = 32_704  # bytes; with their head and the cipher's tag they are one packet
_READ: Final = 64 * 1024
_PAUSE: Final = 0.02  # seconds between looks at output while the server takes no more input


class ParamikoStream:
    """A remote command at work; see `Stream`."""

    def __init__(self, line: "ParamikoTransport", channel: paramiko.Channel) -> None:
        self._line = line
        self._channel = channel
        self._output = bytearray()
        self._errors = bytearray()
        self.shut = 0.0
        channel.settimeout(_PAUSE)

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`; what a command that has ended does not read is dropped."""
        view = memoryview(data).cast("B")
        with self._line.watched():
            while view:
                self._drain()
                count = self._send(view[:_WRITE])
                if count is None:
                    return
                view = view[count:]

    def read(self, size: int) -> bytes:
        """Wait for output and return at most `size` bytes of it; empty at its end."""
        with self._line.watched():
            self._drain()
            while not self._output and not self._is_silent():
                self._receive()
        return self._take(size)

    def read_ready(self) -> bytes:
        """Return the output that has arrived, without waiting; possibly nothing."""
        self._drain()
        return self._take(len(self._output))

    def finish(self) -> CommandResult:
        """Close the standard input, wait for the end."""
        with self._line.watched():
            if not self._channel.closed:
                with self._line.failures():
                    self._channel.shutdown_write()
            while not self._is_silent() or not self._channel.status_event.is_set():
                self._receive()
                self._channel.status_event.wait(0 if not self._is_silent() else _PAUSE)
        self._drain()
        self._line.check()
        status = self._channel.exit_status
        finished = CommandResult(
            None if status < 0 else status, self._take(len(self._output)), bytes(self._errors)
        )
        self.close()
        return finished

    def close(self) -> None:
        """Drop the stream without waiting."""
        with suppress(*FAILURES):
            self._channel.close()

    def _send(self, piece: memoryview) -> int | None:
        """Send what the server takes now; None when the command has ended."""
        if self._channel.out_window_size:
            return self._send_on(piece)
        begun = time.monotonic()
        count = self._send_on(piece)
        self.shut += time.monotonic() - begun
        return count

    def _send_on(self, piece: memoryview) -> int | None:
        try:
            return self._channel.send(piece)  # type: ignore[arg-type] # views are taken as they are
        except TimeoutError:
            return 0
        except FAILURES as error:
            self._line.raise_if_broken(error)
            return None

    def _receive(self) -> None:
        """Wait a moment for output, and take in all that is there."""
        with self._line.failures(), suppress(TimeoutError):
            self._keep(self._channel.recv(_READ))
        self._drain()

    def _drain(self) -> None:
        """Take in what has arrived."""
        channel = self._channel
        with self._line.failures(), suppress(TimeoutError):
            while channel.recv_ready():
                self._keep(channel.recv(_READ))
            while channel.recv_stderr_ready():
                dialing.keep_errors(self._errors, channel.recv_stderr(_READ))
        self._line.check()

    def _keep(self, more: bytes) -> None:
        dialing.keep_output(self._line.endpoint, self._output, more)

    def _is_silent(self) -> bool:
        """Return whether no more output will come."""
        done = bool(self._channel.eof_received or self._channel.closed)
        return done and not self._channel.recv_ready()

    def _take(self, size: int) -> bytes:
        taken = bytes(self._output[:size])
        del self._output[:size]
        return taken


# Work-around: paramiko 5.1.0 waits without limit in several places.
# https://github.com/paramiko/paramiko/issues/515. Remove when every wait of it has a time limit.
class TimeoutSocket(socket.socket):
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


# Failures are reported by exceptions; the library would print them as well.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)

_WINDOW: Final = 2 * 1024 * 1024
_PACKET: Final = 32 * 1024
_HEAD: Final = struct.Struct(">BI")  # what a message of a channel is, and for which (RFC 4254, 5)
_CARRYING: Final = (MSG_CHANNEL_DATA, MSG_CHANNEL_EOF)
_FAREWELL: Final = 1.0  # seconds for the library's thread to notice that its socket is closed
_KEYS: Final[dict[str, type[paramiko.PKey]]] = {
    "ssh-ed25519": paramiko.Ed25519Key,
    "ssh-rsa": paramiko.RSAKey,
}


class ParamikoSession:
    """One authenticated connection; see `Session`."""

    stack = "paramiko"

    def __init__(self, line: "ParamikoTransport") -> None:
        self._line = line

    @property
    def cipher(self) -> str:
        """The cipher agreed on for what we send."""
        return self._line.transport.local_cipher

    def start(self, command: bytes) -> ParamikoStream:
        """Start a remote command; raises `TransientError` where no channel is granted."""
        channel = self._line.open_channel()
        try:
            with self._line.watched():
                channel.exec_command(command)
        except FAILURES as error:
            self._line.raise_if_broken(error)
            raise dialing.exec_refused(self._line.endpoint) from error
        return ParamikoStream(self._line, channel)

    def run(self, command: bytes, stdin: bytes = b"") -> CommandResult:
        """Run a remote command to its end."""
        stream = self.start(command)
        stream.write(stdin)
        return stream.finish()

    def open_sftp(self) -> Sftp:
        """Open the SFTP subsystem; raises `RejectedError` where refused."""
        channel = self._line.open_channel()
        try:
            with self._line.watched():
                channel.invoke_subsystem("sftp")
        except FAILURES as error:
            self._line.raise_if_broken(error)
            raise dialing.sftp_refused(self._line.endpoint) from error
        return Sftp(ParamikoStream(self._line, channel))

    def close(self) -> None:
        """Close the connection; can be called repeatedly, at any time, from any thread."""
        self._line.cut()


class _Packets(Packetizer):
    """Packets under one key for as long as AES with 128-bit blocks allows (RFC 4344, 3.2)."""

    REKEY_BYTES = 64 * 1024**3
    REKEY_PACKETS = 2**31


class _Transport(paramiko.Transport):
    """Sends nothing on a channel that it has closed, for which sshd would end the connection."""

    # Work-around: paramiko 5.1.0 builds a message while it holds the lock of the channel, but sends
    # it after releasing the lock. In between its own thread may close the channel.
    # https://github.com/paramiko/paramiko/issues/1115. Remove when that is fixed.

    def __init__(self, wire: socket.socket) -> None:
        self._order = threading.Lock()
        self._closed: set[int] = set()  # channels, by the host's numbers
        super().__init__(
            wire,
            default_window_size=_WINDOW,
            default_max_packet_size=_PACKET,
            packetizer_class=_Packets,
        )

    def open_channel(self, *words: Any, **options: Any) -> paramiko.Channel:
        """Open a channel; the host may give it the number of one that was closed."""
        channel = super().open_channel(*words, **options)
        with self._order:
            self._closed.discard(channel.remote_chanid)
        return channel

    def _send_user_message(self, data: paramiko.Message) -> None:
        kind, channel = _HEAD.unpack(bytes(data.packet.getbuffer()[: _HEAD.size]))
        with self._order:
            if kind in _CARRYING and channel in self._closed:
                return
            super()._send_user_message(data)  # type: ignore[misc]
            if kind == MSG_CHANNEL_CLOSE:
                self._closed.add(channel)


class ParamikoTransport:
    """The library's transport, made to wait within bounds and to fail in our words."""

    def __init__(self, endpoint: Endpoint, wire: socket.socket) -> None:
        self.endpoint = endpoint
        self._socket = TimeoutSocket.adopt(wire, endpoint.stall_timeout)
        self.transport = _Transport(self._socket)
        self._stalled = False

    def greet(self, host_keys: tuple[str, ...]) -> PublicKey:
        """Shake hands and return the server's key; nothing is trusted yet."""
        self._set_options(host_keys)
        transport, patience = self.transport, self.endpoint.stall_timeout
        transport.banner_timeout = transport.handshake_timeout = patience
        transport.channel_timeout = patience
        transport.auth_timeout = 2 * patience  # an agent may have to wait for a touch first
        deadline = time.monotonic() + patience
        try:
            with self.watched():
                transport.start_client(timeout=patience)
            key = transport.get_remote_server_key()
        except FAILURES as error:
            self.cut()
            if self._stalled or time.monotonic() > deadline:
                raise dialing.stalled(self.endpoint, patience) from error
            if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
                raise dialing.disagreed(self.endpoint, _reason(error)) from error
            raise dialing.refused(self.endpoint, _reason(error)) from error
        return PublicKey(key.get_name(), key.asbytes())

    def authenticate(self, key: KeyPair) -> None:
        """Prove who we are: with this key, or where `any_key` may do, also with the agent's.

        Raises `AccessDeniedError` where none lets us in.
        """
        failure = ""
        tried = False
        with ExitStack() as held:
            for private in self._find_keys(key, held):
                if self._is_let_in(private, tried=tried):
                    return
                tried = True
                failure = getattr(private, "failure", "")
                if not self.transport.is_active():  # we have tried too often
                    break
        if not tried:
            failure = "the agent does not hold it"
        raise (
            dialing.not_signed(self.endpoint, failure)
            if failure
            else dialing.key_refused(self.endpoint)
        )

    def _find_keys(self, key: KeyPair, held: ExitStack) -> Iterator[paramiko.PKey]:
        """Yield what may let us in; the agent is asked only when nothing else does."""
        if key.whole:
            yield _private_key(key)
            if not (self.endpoint.any_key and self.endpoint.agent):
                return
        agent = Agent(self.endpoint.agent, self.endpoint.stall_timeout)
        held.callback(agent.close)
        # Paramiko has a key sign before it is known to be of use, and a device wants a touch.
        for public in sorted(agent.keys, key=lambda it: (it != key.public, it.type in FIDO_KEYS)):
            ours = public == key.public and not key.whole
            other = public != key.public and self.endpoint.any_key
            if (ours or other) and (signatures(public.type) or public.type in FIDO_KEYS):
                yield AgentKey(agent, public)

    def _is_let_in(self, key: paramiko.PKey, *, tried: bool) -> bool:
        """Return whether a key lets us in; raises `TransientError` where the connection broke.

        After keys that were `tried`, the host may end it for their number.
        """
        try:
            with self.watched():
                return not self.transport.auth_publickey(self.endpoint.username, key)
        except paramiko.AuthenticationException as error:
            if not tried:
                self.raise_if_broken(error)
            return False
        except FAILURES as error:
            raise self._broken(error) from error

    def session(self) -> ParamikoSession:
        """Return the session of an authenticated line."""
        return ParamikoSession(self)

    def open_channel(self) -> paramiko.Channel:
        """Open a channel; raises `TransientError` where none is granted."""
        for pause in dialing.GRACE:
            if (channel := self._try_channel()) is not None:
                return channel
            time.sleep(pause)
        raise dialing.no_channel(self.endpoint)

    def open_tunnel(self, host: str, port: int) -> paramiko.Channel:
        """Have this host connect us with another; raises `TransientError` where it does not."""
        patience = self.endpoint.stall_timeout
        try:
            with self.watched():
                return self.transport.open_channel(
                    "direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=patience
                )
        except paramiko.ChannelException as error:
            raise dialing.not_let_through(self.endpoint, host, port) from error
        except FAILURES as error:
            raise self._broken(error) from error

    def extend_timeout(self) -> float:
        """Wait longer from now on than what goes through this host does; return how long."""
        self._socket.patience = 2 * self.endpoint.stall_timeout
        return self._socket.patience

    def _try_channel(self) -> paramiko.Channel | None:
        """Open a channel; None where it is not granted."""
        try:
            with self.watched(), self._socket.hurried():
                return self.transport.open_session(timeout=self.endpoint.stall_timeout)
        except paramiko.ChannelException:
            return None
        except FAILURES as error:
            raise self._broken(error) from error

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Give the connection up when nothing moves while this lasts."""
        self._socket.watch()
        try:
            yield
        finally:
            self._stalled = self._stalled or self._socket.has_stalled
            self._socket.unwatch()

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn what the library raises into what we say."""
        try:
            yield
        except TimeoutError:
            raise
        except FAILURES as error:
            raise self._broken(error) from error

    def check(self) -> None:
        """Return if the connection stands; raises `TransientError`."""
        if not self.transport.is_active():
            raise self._broken(None)

    def raise_if_broken(self, error: Exception) -> None:
        """Return if only a request failed; raises `TransientError` if the connection did."""
        if not self.transport.is_active():
            raise self._broken(error) from error

    def cut(self) -> None:
        """Break the connection; threads that wait for it are woken and fail."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self.transport.packetizer.complete_handshake()  # ends the library's timer of it
        self.transport.close()
        self._socket.close()
        if self.transport.is_alive() and threading.current_thread() is not self.transport:
            self.transport.join(_FAREWELL)

    def _broken(self, error: Exception | None) -> TransientError:
        stalled = self._stalled or self._socket.has_stalled
        self.cut()
        if stalled:
            return dialing.stalled(self.endpoint, self.endpoint.stall_timeout)
        return dialing.lost(self.endpoint, _reason(error))

    def _set_options(self, host_keys: tuple[str, ...]) -> None:
        chosen = self.transport.get_security_options()
        ciphers = self.endpoint.ciphers or CIPHERS
        chosen.ciphers = _known(ciphers, chosen.ciphers, self.endpoint)
        chosen.kex = _known(KEY_EXCHANGES, chosen.kex, self.endpoint)
        chosen.digests = _known(MACS, chosen.digests, self.endpoint)
        chosen.key_types = _known(host_keys, chosen.key_types, self.endpoint)


def _known(wanted: Iterable[str], had: Iterable[str], endpoint: Endpoint) -> tuple[str, ...]:
    """Return those of the wanted algorithms that the library has."""
    had = frozenset(had)
    if known := tuple(name for name in wanted if name in had):
        return known
    raise SettingsError(
        f"paramiko has none of the ciphers or algorithms that are allowed for {endpoint.host}.",
        hint="Allow one of the AES ciphers, or use the other SSH implementation.",
        code="ssh.no-algorithm",
    )


def _private_key(key: KeyPair) -> paramiko.PKey:
    kind = _KEYS.get(key.public.type, paramiko.ECDSAKey)
    return kind.from_private_key(io.StringIO(key.text.decode("ascii", "replace")))


def _reason(error: Exception | None) -> str:
    """Return what the library complained of."""
    return str(error or "").strip().rstrip(".")[:200]
