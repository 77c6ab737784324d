"""SSH sessions by paramiko: everywhere, and where libssh is not installed.

Paramiko waits without limit in several places. Its socket is therefore one that gives up when
somebody waits and no byte has moved for the stall timeout; that ends the library's own thread,
and with it every wait. The streams of a session may belong to different threads.
"""

import io
import logging
import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

import paramiko
from paramiko.common import (
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EOF,
)
from paramiko.packet import Packetizer

from mydata_like.core.errors import SettingsError, TransientError
from mydata_like.ssh import links
from mydata_like.ssh.agent import FIDO_KEYS, Agent, AgentKey
from mydata_like.ssh.algorithms import CIPHERS, KEY_EXCHANGES, MACS, signatures
from mydata_like.ssh.keys import KeyPair, PublicKey
from mydata_like.ssh.session import Endpoint, Finished
from mydata_like.ssh.sftp import Sftp
from mydata_like.ssh.stream_paramiko import FAILURES, ParamikoStream
from mydata_like.ssh.watched import WatchedSocket

# What goes wrong is told by the errors that are raised; the library would print it as well.
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

    def __init__(self, line: "Line") -> None:
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
            raise links.exec_refused(self._line.endpoint) from error
        return ParamikoStream(self._line, channel)

    def run(self, command: bytes, stdin: bytes = b"") -> Finished:
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
            raise links.sftp_refused(self._line.endpoint) from error
        return Sftp(ParamikoStream(self._line, channel))

    def close(self) -> None:
        """Close the connection; from any thread, at any time, again and again."""
        self._line.cut()


class _Packets(Packetizer):
    """Packets under one key for as long as AES with 128-bit blocks allows (RFC 4344, 3.2)."""

    REKEY_BYTES = 64 * 1024**3
    REKEY_PACKETS = 2**31


class _Transport(paramiko.Transport):
    """Sends nothing on a channel that it has closed, for which sshd would end the connection.

    The library makes a message while it holds the channel, and sends it when it holds it no more;
    in between its own thread may answer that the host has closed the channel.
    """

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


class Line:
    """The library's transport, made to wait within bounds and to fail in our words."""

    def __init__(self, endpoint: Endpoint, wire: socket.socket) -> None:
        self.endpoint = endpoint
        self._socket = WatchedSocket.adopt(wire, endpoint.stall_timeout)
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
                raise links.stalled(self.endpoint, patience) from error
            if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
                raise links.disagreed(self.endpoint, _reason(error)) from error
            raise links.refused(self.endpoint, _reason(error)) from error
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
            links.not_signed(self.endpoint, failure)
            if failure
            else links.key_refused(self.endpoint)
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
        for pause in links.GRACE:
            if (channel := self._try_channel()) is not None:
                return channel
            time.sleep(pause)
        raise links.no_channel(self.endpoint)

    def open_tunnel(self, host: str, port: int) -> paramiko.Channel:
        """Have this host connect us with another; raises `TransientError` where it does not."""
        patience = self.endpoint.stall_timeout
        try:
            with self.watched():
                return self.transport.open_channel(
                    "direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=patience
                )
        except paramiko.ChannelException as error:
            raise links.not_let_through(self.endpoint, host, port) from error
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
        """Break the connection; whoever waits for it is woken and fails."""
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
            return links.stalled(self.endpoint, self.endpoint.stall_timeout)
        return links.lost(self.endpoint, _reason(error))

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
