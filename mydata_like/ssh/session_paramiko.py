"""SSH sessions on paramiko, for systems without libssh, FIDO keys and jump hosts.

Paramiko waits without a timeout in several places. Its socket therefore raises an error if a thread
waits and no byte is transferred for the stall timeout. This ends the library's own thread, and with
it every wait. The streams of a session may belong to different threads.
"""

import errno
import io
import logging
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from queue import SimpleQueue
from threading import Condition, Lock
from typing import Any, Final, Self
from weakref import WeakSet

import paramiko
from paramiko.buffered_pipe import PipeTimeout
from paramiko.common import (
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EOF,
)
from paramiko.packet import Packetizer

from mydata_like.core.errors import SettingsError, TransientError
from mydata_like.settings.values import CIPHERS
from mydata_like.ssh import dialing
from mydata_like.ssh.agent import FIDO_KEYS, Agent
from mydata_like.ssh.credentials import ATTEMPTS, LoginCredentials
from mydata_like.ssh.dialing import acknowledge_at_once
from mydata_like.ssh.keys import KeyPair, PublicKey
from mydata_like.ssh.session import (
    KEY_EXCHANGES,
    MACS,
    CommandResult,
    Endpoint,
    OpenSession,
    Stream,
    signatures,
)
from mydata_like.ssh.session_base import SessionBase, StreamOutput

FAILURES: Final = (paramiko.SSHException, OSError, EOFError)
_WRITE: Final = 32_704  # bytes; with header and authentication tag they are one packet
_READ: Final = 64 * 1024
_WINDOW: Final = 2 * 1024 * 1024
# For a command beside at most one other: a host sends at most a window for each round trip.
_WIDE: Final = 4 * _WINDOW
_AT_ONCE: Final = 256 * 1024  # bytes that are received at once
_PAUSE: Final = 0.02  # seconds between reads of output while the server accepts no input


class ParamikoStream(StreamOutput):
    """A running remote command; see `Stream`."""

    def __init__(self, connection: "ParamikoTransport", channel: paramiko.Channel) -> None:
        super().__init__()
        self._connection = connection
        self._channel = channel
        self._arriving = _Output()
        channel.in_buffer = self._arriving  # type: ignore[assignment]
        # Each message that extends it takes 0.1 ms.
        channel.in_window_threshold = channel.in_window_size // 4
        channel.settimeout(_PAUSE)

    def execute(self, command: bytes) -> bool:
        """Start the command; return whether that is granted."""
        return self._connection.grants(lambda: self._channel.exec_command(command))

    def start_subsystem(self, subsystem: bytes) -> bool:
        """Start a subsystem instead of a command; return whether that is granted."""
        return self._connection.grants(lambda: self._channel.invoke_subsystem(subsystem.decode()))

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`; input that an ended command did not read is dropped."""
        view = memoryview(data).cast("B")
        with self._connection.watched():
            while view:
                self._drain()
                count = self._send(view[:_WRITE])
                if count is None:
                    return
                view = view[count:]

    def write_some(self, data: bytes) -> int | None:
        """Write as much as the window allows; return None if the command has ended."""
        self._drain()
        written = 0
        while written < len(data) and self._channel.out_window_size:
            count = self._send(memoryview(data)[written : written + _WRITE])
            if count is None:
                return None
            if not count:
                break
            written += count
        return None if self._channel.closed and not written else written

    def await_window(self) -> None:
        """Wait briefly until the command has read some of its input."""
        self._send(memoryview(b""))

    def read(self, size: int, least: int = 1) -> bytes:
        """Wait for output and return at most `size` bytes of it; empty at its end."""
        with self._connection.watched(), self._connection.errors_translated():
            self._drain_errors()
            while not self._output and not self._is_silent():
                with suppress(TimeoutError), self._arriving.awaited(least):
                    if more := self._channel.recv(size):
                        return more
                self._drain_errors()
                self._connection.check()
        self._connection.check()
        return self._take(size)

    def read_ready(self) -> bytes:
        """Return the output that has arrived, without waiting; possibly nothing."""
        self._drain()
        return self._take(len(self._output))

    def finish(self) -> CommandResult:
        """Close the standard input and wait for the end."""
        with self._connection.watched():
            if not self._channel.closed:
                with self._connection.errors_translated():
                    self._channel.shutdown_write()
            while not self._is_silent() or not self._channel.status_event.is_set():
                self._receive()
                self._channel.status_event.wait(0 if not self._is_silent() else _PAUSE)
        self._drain()
        self._connection.check()
        finished = self._conclude(self._channel.exit_status)
        self.close()
        return finished

    def close(self) -> None:
        """Close the stream without waiting."""
        with suppress(*FAILURES):
            self._channel.close()

    def _send(self, piece: memoryview) -> int | None:
        """Send as much as the server accepts now; None if the command has ended."""
        if self._channel.out_window_size:
            return self._send_on(piece)
        begun = time.monotonic()
        count = self._send_on(piece)
        self.blocked_seconds += time.monotonic() - begun
        return count

    def _send_on(self, piece: memoryview) -> int | None:
        try:
            return self._channel.send(piece)  # type: ignore[arg-type] # views are accepted
        except TimeoutError:
            return 0
        except FAILURES as error:
            self._connection.raise_if_broken(error)
            return None

    def _receive(self) -> None:
        """Wait briefly for output, and read all that has arrived."""
        with self._connection.errors_translated(), suppress(TimeoutError):
            self._keep(self._channel.recv(_READ))
        self._drain()

    def _drain(self) -> None:
        """Read the output that has arrived."""
        channel = self._channel
        with self._connection.errors_translated(), suppress(TimeoutError):
            while channel.recv_ready():
                self._keep(channel.recv(_READ))
            self._drain_errors()
        self._connection.check()

    def _drain_errors(self) -> None:
        while self._channel.recv_stderr_ready():
            dialing.keep_errors(self._errors, self._channel.recv_stderr(_READ))

    def _keep(self, more: bytes) -> None:
        dialing.keep_output(self._connection.endpoint, self._output, more)

    def _is_silent(self) -> bool:
        """Return whether no more output will come."""
        done = bool(self._channel.eof_received or self._channel.closed)
        return done and not self._channel.recv_ready()


class _Output:
    """Output that has arrived, in place of paramiko's `BufferedPipe`, which copies it four times.

    It belongs to one reader; the library's thread feeds it.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._pieces = deque[bytes | memoryview]()
        self._size = 0
        self._least = 1  # bytes for which the reader waits
        self._closed = False

    @contextmanager
    def awaited(self, least: int) -> Iterator[None]:
        """Wait for so many bytes in this context, not only for the next ones."""
        self._least = least
        try:
            yield
        finally:
            self._least = 1

    def feed(self, data: bytes | memoryview) -> None:
        """Append output."""
        with self._changed:
            self._pieces.append(data)
            self._size += len(data)
            if self._size >= self._least:
                self._changed.notify()

    def read_ready(self) -> bool:
        """Return whether there is output."""
        return self._size > 0

    def read(self, size: int, timeout: float) -> bytes:
        """Return at most `size` bytes; raises `PipeTimeout`."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._closed or self._size >= self._least, timeout
            ):
                raise PipeTimeout
            taken = []
            left = size
            while left and self._pieces:
                piece = self._pieces.popleft()
                if len(piece) > left:
                    self._pieces.appendleft(piece[left:])
                    piece = piece[:left]
                left -= len(piece)
                taken.append(piece)
            self._size -= size - left
            return b"".join(taken)

    def close(self) -> None:
        """End the output."""
        with self._changed:
            self._closed = True
            self._changed.notify()


# Work-around: paramiko 5.1.0 waits without limit in several places.
# https://github.com/paramiko/paramiko/issues/515. Remove when every wait of it has a time limit.
class TimeoutSocket(socket.socket):
    """A socket that raises an error if a thread waits `stall_timeout` seconds without progress.

    More is received at once than is asked for: `arrived` has what was not read yet.
    """

    stall_timeout: float
    arrived = memoryview(b"")
    _buffer: memoryview
    _counting: Lock
    _deadline = 0.0  # the deadline, while a thread waits
    _waiting = 0  # number of waiting threads
    _quick_ack = False

    @classmethod
    def adopt(cls, connected: socket.socket, timeout: float) -> Self:
        """Return a connected socket as one of this class; the given one is detached."""
        family, kind, protocol = connected.family, connected.type, connected.proto
        adopted = cls(family, kind, protocol, fileno=connected.detach())
        adopted.stall_timeout = timeout
        adopted._counting = Lock()
        adopted._buffer = memoryview(bytearray(_AT_ONCE))
        return adopted

    def watch(self) -> None:
        """Add a waiting thread."""
        with self._counting:
            self._waiting += 1
            self._deadline = time.monotonic() + self.stall_timeout

    def unwatch(self) -> None:
        """Remove a waiting thread."""
        with self._counting:
            self._waiting -= 1

    @contextmanager
    def quick_acknowledgement(self) -> Iterator[None]:
        """Acknowledge received data at once in this context."""
        self._quick_ack = True
        try:
            yield
        finally:
            self._quick_ack = False

    @property
    def has_stalled(self) -> bool:
        return self._waiting > 0 and time.monotonic() > self._deadline

    def send(self, data: Any, flags: int = 0) -> int:
        """Send as much as possible; raises OSError after a timeout without progress."""
        try:
            count = super().send(data, flags)
        except TimeoutError:
            self._give_up_if_stalled()
            raise
        self._reset_deadline()
        return count

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receive available data; raises OSError after a timeout without progress."""
        if not self.arrived:
            if self._quick_ack:
                acknowledge_at_once(self)
            try:
                self.arrived = self._buffer[: self.recv_into(self._buffer, flags=flags)]
            except TimeoutError:
                self._give_up_if_stalled()
                raise
            self._reset_deadline()
        data = bytes(self.arrived[:size])
        self.arrived = self.arrived[size:]
        return data

    def _give_up_if_stalled(self) -> None:
        if self.has_stalled:
            raise ConnectionAbortedError(errno.ECONNABORTED, "nothing moved")

    def _reset_deadline(self) -> None:
        self._deadline = time.monotonic() + self.stall_timeout


# Failures raise exceptions; the library would print them as well.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)

_PACKET: Final = 32 * 1024
_TAG: Final = 16  # bytes of a packet of AES-GCM
_MOST: Final = 1024 * 1024  # bytes of a packet; OpenSSH sends at most 256 KiB (packet.c)
_Buffer = bytes | memoryview
_IV: Final = struct.Struct(">4sQ")  # of AES-GCM: fixed bytes and a counter (RFC 5647, 7.1)
_HEAD: Final = struct.Struct(">BI")  # type and recipient of a channel message (RFC 4254, 5)
_DATA_MESSAGES: Final = (MSG_CHANNEL_DATA, MSG_CHANNEL_EOF)
_CLOSE_TIMEOUT: Final = 1.0  # seconds for the library's thread to notice that its socket is closed
_ASKING: Final = frozenset({"keyboard-interactive", "password"})
_TYPING: Final = 300.0  # seconds for all answers of a user; sshd usually waits 120 s
_KEYS: Final[dict[str, type[paramiko.PKey]]] = {
    "ssh-ed25519": paramiko.Ed25519Key,
    "ssh-rsa": paramiko.RSAKey,
}


class ParamikoSession(SessionBase):
    """An authenticated connection; see `OpenSession`."""

    stack = "paramiko"

    def __init__(self, connection: "ParamikoTransport") -> None:
        super().__init__(connection)
        self._connection = connection
        self.gcm_only = connection.gcm_only

    @property
    def cipher(self) -> str:
        """The negotiated cipher for sent data."""
        return self._connection.transport.local_cipher

    def write_some(
        self, pieces: Sequence[tuple[Stream, bytes]], moved: float | None = None
    ) -> list[int | None]:
        """See `SessionWriter`."""
        streams = [stream for stream, _ in pieces if isinstance(stream, ParamikoStream)]
        with self._connection.watched():
            sizes = [it.write_some(some) for it, (_, some) in zip(streams, pieces, strict=True)]
            if moved is not None and not any(size != 0 for size in sizes):
                begun = time.monotonic()
                streams[0].await_window()
                self.blocked_seconds += time.monotonic() - begun
                self._connection.check_progress(moved)
        return sizes

    @contextmanager
    def limit_waits(self, seconds: float) -> Iterator[None]:
        """Reduce the stall timeout to `seconds` in this context."""
        usual = self._connection.stall_timeout
        self._connection.stall_timeout = min(seconds, usual)
        try:
            yield
        finally:
            self._connection.stall_timeout = usual


class AgentKey(paramiko.PKey):
    """A key for paramiko's authentication that signs with an agent.

    `failure` is the reason why signing failed.
    """

    def __init__(self, agent: Agent, public: PublicKey) -> None:
        self._agent = agent
        self._public = public
        self.failure = ""

    def get_name(self) -> str:
        """Return the type of the key."""
        return self._public.type

    def asbytes(self) -> bytes:
        """Return the public key in SSH's wire format."""
        return self._public.blob

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> paramiko.Message:
        """Return a signature, or an empty one on failure, which the host refuses."""
        # Work-around: paramiko 5.1.0 ends the connection when a key cannot sign, although another
        # key may be accepted on it. No report known; see
        # test_a_key_that_is_not_signed_with_does_not_keep_others_from_being_tried.
        # Remove when an error of a key only ends the attempt with this key.
        try:
            return paramiko.Message(self._agent.sign(self._public, data, algorithm or ""))
        except OSError as error:
            self.failure = str(error)
            return paramiko.Message()


class SharedSession(ParamikoSession):
    """One of several sessions over one login; closing it closes its streams only."""

    def __init__(self, connection: "ParamikoTransport") -> None:
        super().__init__(connection)
        self._opened_on = _OwnStreams(connection)


class _OwnStreams:
    """A connection on which `abort` closes only the streams that were opened through this."""

    def __init__(self, connection: "ParamikoTransport") -> None:
        self._connection = connection
        self.endpoint = connection.endpoint
        self._streams: WeakSet[ParamikoStream] = WeakSet()

    @property
    def network_round_trip(self) -> float | None:
        return self._connection.network_round_trip

    def open_stream(self) -> ParamikoStream:
        stream = self._connection.open_stream()
        self._streams.add(stream)
        return stream

    def abort(self) -> None:
        for stream in tuple(self._streams):
            stream.close()


class _Packets(Packetizer):
    """Packets with one key for as long as AES with 128-bit blocks allows (RFC 4344, 3.2).

    Those that arrive with AES-GCM are decrypted here, without the copies that the library makes.
    """

    REKEY_BYTES = 64 * 1024**3
    REKEY_PACKETS = 2**31

    def __init__(self, wire: TimeoutSocket) -> None:
        super().__init__(wire)
        self._wire = wire
        # Of a message for a channel, without the library if it is for one of ours.
        self.find_output: Callable[[bytes], _Output | None] = lambda _: None
        self._decrypt: Callable[[bytes, _Buffer, _Buffer], bytes] | None = None
        self._fixed, self._counter = b"", 0  # of an IV
        self._packets = self._bytes = 0  # received with this key

    def set_inbound_cipher(self, block_engine: Any, *others: Any, **options: Any) -> None:
        """Use another key for what arrives from now on."""
        super().set_inbound_cipher(block_engine, *others, **options)
        self._decrypt = block_engine.decrypt if options["aead"] else None
        if self._decrypt:
            self._fixed, self._counter = _IV.unpack(options["iv_in"])
        self._packets = self._bytes = 0

    def read_message(self) -> tuple[int, paramiko.Message]:
        """Return the type and the rest of the next message, as the library does."""
        if self._decrypt is None:
            return super().read_message()
        plain = self._read_plain()
        while plain[1] == MSG_CHANNEL_DATA and (output := self.find_output(plain[2:6])):
            # The library would take as long for this as decrypting does.
            output.feed(memoryview(plain)[10 : 10 + int.from_bytes(plain[6:10], "big")])
            plain = self._read_plain()
        message = paramiko.Message(plain[2 : len(plain) - plain[0]])
        message.seqno = self._packets - 1
        return plain[1], message

    def _read_plain(self) -> bytes:
        """Receive and decrypt a packet; it begins with the length of its padding and its type."""
        head, packet = self._read_packet()
        # RFC 5647, 7.1: the last eight bytes count the packets.
        iv = _IV.pack(self._fixed, (self._counter + self._packets) % 2**64)
        assert self._decrypt
        plain = self._decrypt(iv, packet, head)
        self._packets += 1
        self._bytes += len(packet)
        if self._packets >= self.REKEY_PACKETS or self._bytes >= self.REKEY_BYTES:
            if self._bytes >= self.REKEY_BYTES + self.REKEY_BYTES_OVERFLOW_MAX:
                raise paramiko.SSHException("the host does not renew its key")
            self._trigger_rekey()  # type: ignore[attr-defined]
        return plain

    def _read_packet(self) -> "tuple[_Buffer, _Buffer]":
        """Return the length of a packet, and the packet with its tag."""
        arrived = self._wire.arrived
        end = 4 + int.from_bytes(arrived[:4], "big") + _TAG
        if len(arrived) >= end:
            self._wire.arrived = arrived[end:]
            return arrived[:4], arrived[4:end]
        head = self.read_all(4, check_rekey=True)
        size = int.from_bytes(head, "big")
        if size > _MOST:
            raise paramiko.SSHException(f"the host sent a packet of {size} bytes")
        return head, self.read_all(size + _TAG)


class _Transport(paramiko.Transport):
    """Sends nothing on a closed channel, for which sshd would end the connection.

    It fails of `FAILURES` only.
    """

    # Work-around: paramiko 5.1.0 builds a message while it holds the lock of the channel, but sends
    # it after releasing the lock. In between, its own thread may close the channel.
    # https://github.com/paramiko/paramiko/issues/1115. Remove when that is fixed.

    def __init__(self, wire: socket.socket) -> None:
        self._order = threading.Lock()
        self._closed: set[int] = set()  # channels, by the host's numbers
        self.offered: dict[str, Any] = {}  # the host's algorithms, by the library's names of lists
        super().__init__(
            wire,
            default_window_size=_WINDOW,
            default_max_packet_size=_PACKET,
            packetizer_class=_Packets,
        )
        self.packetizer.find_output = self._find_output  # type: ignore[attr-defined]

    def _parse_kex_init(self, m: paramiko.Message) -> None:
        """Keep what the host offers: the library's error does not name it."""
        self.offered = self._really_parse_kex_init(paramiko.Message(m.asbytes()))  # type: ignore[attr-defined]
        super()._parse_kex_init(m)  # type: ignore[misc]

    # Work-around: paramiko 5.1.0 raises what its thread failed of in threads that wait, of whatever
    # kind: `cryptography.exceptions.InvalidTag`, without a text, for a changed AES-GCM packet.
    # No report known; see test_a_damaged_packet_is_a_lost_connection_and_prints_nothing.
    # Remove when its thread fails of `SSHException` for a packet with any content.
    def get_exception(self) -> Exception | None:
        """Return why the library's thread has failed, as one of `FAILURES`."""
        error = super().get_exception()
        if error is None or isinstance(error, FAILURES):
            return error
        failure = paramiko.SSHException(dialing.DAMAGED)
        failure.__cause__ = error
        return failure

    @property
    def is_busy(self) -> bool:
        """Whether several channels are open."""
        return len(self._channels) > 1  # type: ignore[attr-defined]

    def _find_output(self, channel: bytes) -> "_Output | None":
        """Return what takes the output of a channel, unless the library has to see what comes."""
        if not self.active or self._expected_packet or self.packetizer.need_rekey():  # type: ignore[attr-defined]
            return None
        found = self._channels.get(int.from_bytes(channel, "big"))  # type: ignore[attr-defined]
        pipe = found.in_buffer if found else None
        return pipe if isinstance(pipe, _Output) else None

    def open_channel(self, *args: Any, **options: Any) -> paramiko.Channel:
        """Open a channel; the host may reuse the number of a closed one."""
        channel = super().open_channel(*args, **options)
        with self._order:
            self._closed.discard(channel.remote_chanid)
        return channel

    def _send_user_message(self, data: paramiko.Message) -> None:
        kind, channel = _HEAD.unpack(bytes(data.packet.getbuffer()[: _HEAD.size]))
        with self._order:
            if kind in _DATA_MESSAGES and channel in self._closed:
                return
            super()._send_user_message(data)  # type: ignore[misc]
            if kind == MSG_CHANNEL_CLOSE:
                self._closed.add(channel)


class ParamikoTransport:
    """The library's transport, with timeouts and our own errors."""

    def __init__(self, endpoint: Endpoint, wire: socket.socket, *, gcm_only: bool = False) -> None:
        self.endpoint = endpoint
        self._socket = TimeoutSocket.adopt(wire, endpoint.stall_timeout)
        self.transport = _Transport(self._socket)
        self.gcm_only = gcm_only  # see `OpenSession`
        self._stalled = False

    @property
    def network_round_trip(self) -> float | None:
        return dialing.find_round_trip(self._socket)

    @property
    def stall_timeout(self) -> float:
        """Seconds without progress after which a wait ends; a jump host's may be longer."""
        return self._socket.stall_timeout

    @stall_timeout.setter
    def stall_timeout(self, seconds: float) -> None:
        self._socket.stall_timeout = seconds

    def handshake(self, host_keys: tuple[str, ...]) -> PublicKey:
        """Perform the handshake and return the server's key, which is not trusted yet."""
        self._set_options(host_keys)
        transport, timeout = self.transport, self.endpoint.stall_timeout
        transport.banner_timeout = transport.handshake_timeout = timeout
        transport.channel_timeout = timeout
        transport.auth_timeout = 2 * timeout  # an agent may wait for a touch first
        deadline = time.monotonic() + timeout
        try:
            with self.watched():
                transport.start_client(timeout=timeout)
            key = transport.get_remote_server_key()
        except FAILURES as error:
            self.abort()
            if self._stalled or time.monotonic() > deadline:
                raise dialing.stalled(self.endpoint, timeout) from error
            if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
                found = _find_disagreement(transport)
                raise dialing.no_common_algorithm(self.endpoint, "paramiko", found) from error
            raise dialing.handshake_failed(self.endpoint, _reason(error)) from error
        return PublicKey(key.get_name(), key.asbytes())

    def authenticate(self, key: KeyPair | None) -> None:
        """Authenticate with this key, or with `any_key`, also with the agent's keys.

        What the host asks besides, or without a key, is answered with the `credentials`. Raises
        `AccessDeniedError` if nothing is accepted, `StagingError` if a key is not enough.
        """
        if key is None:
            methods = self._find_methods()
            if not _ASKING.intersection(methods):
                raise dialing.key_refused(self.endpoint)
            self._answer(methods)
            return
        failure = ""
        tried = False
        with ExitStack() as held:
            for private in self._find_keys(key, held):
                if self._try_key(private, tried=tried):
                    return
                tried = True
                failure = getattr(private, "failure", "")
                if not self.transport.is_active():  # too many attempts
                    break
        if not tried:
            failure = "the agent does not have it"
        if failure:
            raise dialing.not_signed(self.endpoint, failure)
        raise dialing.key_refused(self.endpoint)

    def _find_keys(self, key: KeyPair, held: ExitStack) -> Iterator[paramiko.PKey]:
        """Yield the keys to try; the agent is used only if necessary."""
        if key.whole:
            kind = _KEYS.get(key.public.type, paramiko.ECDSAKey)
            yield kind.from_private_key(io.StringIO(key.text.decode("ascii", "replace")))
            if not (self.endpoint.any_key and self.endpoint.agent):
                return
        agent = Agent(self.endpoint.agent, self.endpoint.stall_timeout)
        held.callback(agent.close)
        # Paramiko signs before the host has accepted the key, and a device needs a touch.
        for public in sorted(agent.keys, key=lambda it: (it != key.public, it.type in FIDO_KEYS)):
            ours = public == key.public and not key.whole
            other = public != key.public and self.endpoint.any_key
            if (ours or other) and (signatures(public.type) or public.type in FIDO_KEYS):
                yield AgentKey(agent, public)

    def _try_key(self, key: paramiko.PKey, *, tried: bool) -> bool:
        """Return whether the host accepts a key; raises `TransientError` if the connection broke.

        After other keys were `tried`, the host may close the connection because of their number.
        """
        try:
            with self.watched():
                wanted = self.transport.auth_publickey(self.endpoint.username, key)
        except FAILURES as error:
            login = self.transport.auth_handler
            banner = (login and login.banner) or b""
            text = banner if isinstance(banner, bytes) else banner.encode("utf-8", "replace")
            if dialing.says_expired(text):
                self.abort()
                raise dialing.expired(self.endpoint, text) from error
            if not isinstance(error, paramiko.AuthenticationException):
                raise self._broken(error) from error
            if not tried:
                self.raise_if_broken(error)
            return False
        if wanted:
            self._answer(wanted)
        return True

    def _find_methods(self) -> Sequence[str]:
        """Return the methods of authentication that the host allows."""
        try:
            with self.watched():
                return self.transport.auth_none(self.endpoint.username)
        except paramiko.BadAuthenticationType as error:
            return error.allowed_types
        except FAILURES as error:
            raise self._broken(error) from error

    def _answer(self, methods: Sequence[str]) -> None:
        """Answer what the host asks, until it asks for nothing more; else raise `StagingError`."""
        endpoint, credentials = self.endpoint, self.endpoint.credentials
        known = credentials is not None and credentials.has_answers(endpoint.account)
        refusals = 0
        while methods:
            possible = _ASKING.intersection(methods)
            if not (credentials and possible and (known or credentials.ask)):
                raise dialing.second_factor_wanted(endpoint, methods)
            try:
                methods, refusals = self._answer_once(methods, credentials), 0
            except paramiko.AuthenticationException as error:
                self.raise_if_broken(error)
                if known:
                    raise dialing.fresh_answer_wanted(endpoint) from error
                credentials.forget_answers(endpoint.account)
                refusals += 1
                if refusals == ATTEMPTS:
                    raise dialing.answer_refused(endpoint) from error
            except FAILURES as error:
                raise self._broken(error) from error

    def _answer_once(self, methods: Sequence[str], credentials: LoginCredentials) -> Sequence[str]:
        """Return what the host wants besides; the questions are asked in this thread.

        The library calls its handler in another one, where Ctrl+C would not end a question.
        """
        account, name = self.endpoint.account, self.endpoint.username
        if "keyboard-interactive" not in methods:
            (password,) = credentials.answer(account, "", [("Password:", False)])
            with self.watched():
                return self.transport.auth_password(name, password, fallback=False)
        asked: SimpleQueue[tuple[str, list[tuple[str, bool]]] | None] = SimpleQueue()
        answers: SimpleQueue[list[str]] = SimpleQueue()

        def pass_on(title: str, text: str, questions: list[tuple[str, bool]]) -> list[str]:
            asked.put((f"{title} {text}", questions))
            return answers.get()

        if not credentials.has_answers(account):
            self.transport.auth_timeout = _TYPING
        with ThreadPoolExecutor(1) as executor:
            login = executor.submit(self.transport.auth_interactive, name, pass_on)
            login.add_done_callback(lambda _: asked.put(None))
            try:
                while (asking := asked.get()) is not None:
                    answers.put(credentials.answer(account, *asking))
            except BaseException:
                answers.put([])
                self.abort()
                raise
            return login.result()

    def session(self) -> ParamikoSession:
        """Return the session of an authenticated connection."""
        return ParamikoSession(self)

    @property
    def is_open(self) -> bool:
        return self.transport.is_active()

    def share(self) -> OpenSession:
        """Return one of several sessions over this login, which outlives it."""
        return SharedSession(self)

    def open_stream(self) -> ParamikoStream:
        """Open a channel for a command; raises `TransientError` if none is granted."""
        for pause in dialing.GRACE:
            try:
                with self.watched(), self._socket.quick_acknowledgement():
                    channel = self.transport.open_session(
                        window_size=_WINDOW if self.transport.is_busy else _WIDE,
                        timeout=self.stall_timeout,
                    )
                return ParamikoStream(self, channel)
            except paramiko.ChannelException:  # it is not granted
                pass
            except FAILURES as error:
                raise self._broken(error) from error
            time.sleep(pause)
        raise dialing.no_channel(self.endpoint)

    def open_tunnel(self, host: str, port: int) -> paramiko.Channel:
        """Open a connection from this host to another; raises `TransientError` if that fails."""
        timeout = self.endpoint.stall_timeout
        try:
            with self.watched():
                return self.transport.open_channel(
                    "direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=timeout
                )
        except paramiko.ChannelException as error:
            raise TransientError(
                f"{self.endpoint.host} refused to connect to {host}, port {port}.",
                hint="The next host may be down, or the one before it may not allow forwarding.",
                code=dialing.REFUSED,
            ) from error
        except FAILURES as error:
            raise self._broken(error) from error

    def extend_timeout(self) -> float:
        """Double the timeout from now on, for a jump host, and return it."""
        self.stall_timeout = 2 * self.endpoint.stall_timeout
        return self.stall_timeout

    def grants(self, request: Callable[[], object]) -> bool:
        """Make a request for a channel and return whether the host grants it."""
        try:
            with self.watched():
                request()
        except FAILURES as error:
            self.raise_if_broken(error)
            return False
        return True

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Close the connection if there is no progress in this context."""
        self._socket.watch()
        try:
            yield
        finally:
            self._stalled = self._stalled or self._socket.has_stalled
            self._socket.unwatch()

    @contextmanager
    def errors_translated(self) -> Iterator[None]:
        """Convert errors of the library to ours."""
        try:
            yield
        except TimeoutError:
            raise
        except FAILURES as error:
            raise self._broken(error) from error

    def check(self) -> None:
        """Check that the connection is open; raises `TransientError`."""
        if not self.transport.is_active():
            raise self._broken(None)

    def check_progress(self, moved: float) -> None:
        """Raise `TransientError` if nothing has moved since then for the stall timeout.

        `moved` is the monotonic time of the last progress that the caller knows.
        """
        if time.monotonic() - moved > self.stall_timeout:
            self._stalled = True
            raise self._broken(None)

    def raise_if_broken(self, error: Exception) -> None:
        """Raise `TransientError` if the connection broke, and not only a request failed."""
        if not self.transport.is_active():
            raise self._broken(error) from error

    def abort(self) -> None:
        """Break the connection; threads that wait for it are woken and fail."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self.transport.packetizer.complete_handshake()  # ends the library's timer for the handshake
        self.transport.close()
        self._socket.close()
        if self.transport.is_alive() and threading.current_thread() is not self.transport:
            self.transport.join(_CLOSE_TIMEOUT)

    def _broken(self, error: Exception | None) -> TransientError:
        stalled = self._stalled or self._socket.has_stalled
        self.abort()
        if stalled:
            return dialing.stalled(self.endpoint, self.stall_timeout)
        return dialing.lost(self.endpoint, _reason(error))

    def _set_options(self, host_keys: tuple[str, ...]) -> None:
        chosen = self.transport.get_security_options()
        ciphers = self.endpoint.ciphers or CIPHERS
        chosen.ciphers = _known(ciphers, chosen.ciphers, self.endpoint)
        chosen.kex = _known(KEY_EXCHANGES, chosen.kex, self.endpoint)
        chosen.digests = _known(MACS, chosen.digests, self.endpoint)
        chosen.key_types = _known(host_keys, chosen.key_types, self.endpoint)


def _known(wanted: Iterable[str], supported: Iterable[str], endpoint: Endpoint) -> tuple[str, ...]:
    """Return the wanted algorithms that the library supports."""
    supported = frozenset(supported)
    if known := tuple(name for name in wanted if name in supported):
        return known
    raise SettingsError(
        f"paramiko has none of the ciphers or algorithms that are allowed for {endpoint.host}.",
        hint="Allow one of the AES ciphers, or use the other SSH implementation.",
        code=dialing.NO_ALGORITHM,
    )


def _find_disagreement(transport: _Transport) -> dialing.Disagreement:
    """Return what the library and the host have not in common."""
    ours = transport.get_security_options()
    lists = (
        ("key exchange", "kex_algo_list", ours.kex),
        ("host key algorithm", "server_key_algo_list", ours.key_types),
        ("cipher", "client_encrypt_algo_list", ours.ciphers),
        ("MAC", "client_mac_algo_list", ours.digests),
    )
    for kind, name, names in lists:
        theirs = transport.offered.get(name, [])
        if not set(theirs) & set(names):
            return dialing.Disagreement(kind, theirs, tuple(names))
    return dialing.Disagreement("algorithm", (), ())


def _reason(error: Exception | None) -> str:
    """Return the library's error message."""
    return str(error or "").strip().rstrip(".")[:200]
