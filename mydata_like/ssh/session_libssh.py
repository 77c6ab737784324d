"""SSH sessions by libssh (the package ssh-python), which gives up the interpreter lock.

The library is used without blocking: each call is repeated until it is done, and between two
calls we wait for the socket ourselves, never longer than the stall timeout. The streams of a
session may belong to different threads, which take turns at the library.
"""

import base64
import os
import socket
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn

from ssh import options
from ssh.channel import Channel
from ssh.exceptions import EOF, AuthenticationDenied, AuthenticationPartial, BaseSSHError
from ssh.key import import_privkey_base64
from ssh.session import SSH_AUTH_AGAIN, SSH_WRITE_PENDING
from ssh.session import Session as Foreign

from mydata_like.core.errors import TransientError
from mydata_like.ssh import links
from mydata_like.ssh.algorithms import CIPHERS, HOST_KEYS, KEY_EXCHANGES, MACS
from mydata_like.ssh.keys import KeyPair, PublicKey
from mydata_like.ssh.session import Endpoint, Finished
from mydata_like.ssh.sftp import Sftp
from mydata_like.ssh.stream_libssh import LibsshStream
from mydata_like.ssh.vigil import Vigil
from mydata_like.ssh.watchdog import Watchdog

_AGAIN: Final = -2  # SSH_AGAIN of libssh.h
_NEAR: Final = 0.001  # seconds of a round trip, in which no line carries more than this:
_AHEAD: Final = 512 * 1024  # bytes; see `Line.open_stream`
_IN_A_ROW: Final = 3  # answers, the longest of which takes less than so many times the shortest,
_ALIKE: Final = 1.25  # tell of a far host;
_ANSWERS: Final = 8  # so many, the longest of which takes more than so many times the shortest,
_UNLIKE: Final = 2.0  # of a busy one


class LibsshSession:
    """One authenticated connection; see `Session`."""

    stack = "libssh"

    def __init__(self, line: "Line") -> None:
        self._line = line

    @property
    def cipher(self) -> str:
        """The cipher agreed on for what we send."""
        with self._line.turn():
            name: bytes = self._line.foreign.get_cipher_out()
        return name.decode()

    def start(self, command: bytes) -> LibsshStream:
        """Start a remote command; raises `TransientError` where no channel is granted."""
        stream = self._line.open_stream()
        if not stream.execute(command):
            stream.close()
            raise links.exec_refused(self._line.endpoint)
        return stream

    def run(self, command: bytes, stdin: bytes = b"") -> Finished:
        """Run a remote command to its end."""
        stream = self.start(command)
        stream.write(stdin)
        return stream.finish()

    def open_sftp(self) -> Sftp:
        """Open the SFTP subsystem; raises `RejectedError` where refused."""
        stream = self._line.open_stream()
        if not stream.enter(b"sftp"):
            stream.close()
            raise links.sftp_refused(self._line.endpoint)
        return Sftp(stream)

    def close(self) -> None:
        """Close the connection; from any thread, at any time, again and again."""
        self._line.cut()


class Line(Vigil):
    """The library's session and its socket, made to wait within bounds and to fail in our words.

    All that its threads share is used in turns; what follows says where a caller must have one.
    """

    def __init__(self, endpoint: Endpoint, wire: socket.socket) -> None:
        wire.settimeout(0)
        # The library owns and closes its descriptor; ours is for waiting, and for cutting.
        self._socket = wire.dup()
        super().__init__(self._socket)
        self.endpoint = endpoint
        self.foreign = Foreign()
        self._watchdog = Watchdog(self._socket, endpoint.stall_timeout)
        weakref.finalize(self, self._watchdog.stop)
        weakref.finalize(self, self._socket.close)
        self.foreign.set_socket(wire.detach())
        self._pump: Channel | None = None
        self.most_ahead = sys.maxsize  # bytes of a stream under way, if its window is wider
        self._is_measured = False

    def greet(self, host_keys: tuple[str, ...]) -> PublicKey:
        """Shake hands and return the server's key; nothing is trusted yet."""
        self._set_options(host_keys)
        self.foreign.set_blocking(0)
        try:
            self._until(self.foreign.connect, _AGAIN)
        except BaseSSHError as error:
            reason = _reason(error)
            failed = links.disagreed if "no match for method" in reason else links.refused
            raise failed(self.endpoint, reason) from error
        blob = base64.b64decode(self.foreign.get_server_publickey().export_pubkey_base64())
        length = int.from_bytes(blob[:4], "big")
        return PublicKey(blob[4 : 4 + length].decode(), blob)

    def authenticate(self, key: KeyPair) -> None:
        """Prove who we are with this key and nothing else; raises `AccessDeniedError`."""
        private = import_privkey_base64(key.text, None)
        try:
            self._until(lambda: self.foreign.userauth_publickey(private), SSH_AUTH_AGAIN)
        except (AuthenticationDenied, AuthenticationPartial) as error:
            raise links.key_refused(self.endpoint) from error
        except BaseSSHError as error:
            raise self._broken(error) from error

    def session(self) -> LibsshSession:
        """Return the session of an authenticated line."""
        # A channel that is never opened: polling it makes the library take in what came.
        self._pump = self.call(self.foreign.channel_new)
        self.tend()
        return LibsshSession(self)

    def open_stream(self) -> LibsshStream:
        """Open a channel for a command; raises `TransientError` where none is granted.

        OpenSSH's sshd moves all that waits in a window about whenever some of it is taken, so a
        near host that gets a full one is slowed down. Far away all of the window is needed; and
        other servers may let a window shrink to its half before they widen it again, where
        OpenSSH takes 96 KiB.
        """
        for pause in links.GRACE:
            with self.turn():
                stream = LibsshStream(self, self.call(self.foreign.channel_new))
            if stream.open():
                if not self._is_measured:  # the first answer comes late from any host
                    self._is_measured = True
                    self.most_ahead = _AHEAD if self._is_near(stream) else sys.maxsize
                return stream
            time.sleep(pause)
        raise links.no_channel(self.endpoint)

    def _is_near(self, stream: LibsshStream) -> bool:
        """Return whether the host is near by.

        A busy one answers late, and not alike. One that answers late and alike is far, though the
        network may end close by, at something that speaks TCP for it. A variable that no host has
        a use for is looked at by sshd alone, which starts nothing.
        """
        network = links.find_round_trip(self._socket)
        if not self.foreign.get_openssh_version() or (network is not None and network >= _NEAR):
            return False
        answers: list[float] = []
        while len(answers) < _ANSWERS:
            asked = time.perf_counter()
            stream.offer(b"MYDATA_LIKE", b"")
            answers.append(time.perf_counter() - asked)
            latest = answers[-_IN_A_ROW:]
            if answers[-1] < _NEAR:
                return True
            if len(latest) == _IN_A_ROW and max(latest) < _ALIKE * min(latest):
                return False
        return network is not None and max(answers) > _UNLIKE * min(answers)

    def grants(self, request: Callable[[], int]) -> bool:
        """Make a request and return whether the server grants it."""
        try:
            self._until(request, _AGAIN)
        except BaseSSHError as error:
            if self.foreign.is_connected():
                return False
            raise self._broken(error) from error
        return True

    def repeat(self, request: Callable[[], int]) -> None:
        """Repeat a call of the library until it is done."""
        try:
            self._until(request, _AGAIN)
        except BaseSSHError as error:
            raise self._broken(error) from error

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call the library, in a turn; raises `TransientError` when the connection broke."""
        try:
            return function(*arguments)
        except BaseSSHError as error:
            raise self._broken(error) from error

    def write(self, send: Callable[[], object]) -> bool:
        """Write what a channel's window has room for, in a turn; return whether it was taken."""
        with self._watchdog:
            try:
                send()
            except BaseSSHError as error:
                if self.foreign.is_connected():
                    return False
                raise self._broken(error) from error
        return True

    def read(self, receive: Callable[[], tuple[int, bytes]]) -> bytes:
        """Return output of a channel that has arrived, or nothing; in a turn."""
        try:
            _, more = receive()
        except EOF:
            return b""
        except BaseSSHError as error:
            if self.foreign.is_connected():
                return b""  # the command has ended and all of it was read
            raise self._broken(error) from error
        return more

    def pump(self) -> None:
        """Let the library take in what has arrived; raises `TransientError` if it is the end."""
        if self._pump is None:
            return
        try:
            self._pump.poll()
        except BaseSSHError as error:
            raise self._broken(error) from error
        if not self.foreign.is_connected():
            raise links.lost(self.endpoint)

    def is_pending(self) -> bool:
        return bool(self.foreign.get_poll_flags() & SSH_WRITE_PENDING)

    def has_flushed(self) -> bool:
        """Return whether what was written has left the library's buffer; in a turn."""
        return not self.foreign.get_poll_flags() & SSH_WRITE_PENDING

    def await_news(self, is_ready: Callable[[], bool]) -> None:
        """Wait until something is ready; raises `TransientError` when no byte moves for too long.

        It is asked for in turns, by whichever thread has taken something in.
        """
        if not self.wait(is_ready, self.endpoint.stall_timeout):
            self._stall()

    def cut(self) -> None:
        """Break the connection; whoever waits for it is woken and fails."""
        self._watchdog.stop()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _until(self, request: Callable[[], int], again: int) -> None:
        """Repeat a request that shows no progress until it is done; all of it is bounded."""
        if not self.wait(lambda: request() != again, self.endpoint.stall_timeout, in_all=True):
            self._stall()

    def _stall(self) -> NoReturn:
        self.cut()
        raise links.stalled(self.endpoint, self.endpoint.stall_timeout)

    def _broken(self, error: BaseSSHError) -> TransientError:
        self.cut()
        if self._watchdog.has_bitten:
            return links.stalled(self.endpoint, self.endpoint.stall_timeout)
        return links.lost(self.endpoint, _reason(error))

    def _set_options(self, host_keys: tuple[str, ...]) -> None:
        ciphers = ",".join(self.endpoint.ciphers or CIPHERS)
        macs = ",".join(MACS)
        chosen = (
            (options.HOST, self.endpoint.host),
            (options.USER, self.endpoint.username),
            (options.KNOWNHOSTS, os.devnull),  # keys are checked by us
            (options.GLOBAL_KNOWNHOSTS, os.devnull),
            (options.KEY_EXCHANGE, ",".join(KEY_EXCHANGES)),
            (options.HOSTKEYS, ",".join(host_keys)),
            (options.PUBLICKEY_ACCEPTED_TYPES, ",".join(HOST_KEYS)),
            (options.CIPHERS_C_S, ciphers),
            (options.CIPHERS_S_C, ciphers),
            (options.HMAC_C_S, macs),
            (options.HMAC_S_C, macs),
            (options.COMPRESSION_C_S, "none"),
            (options.COMPRESSION_S_C, "none"),
        )
        # Somebody's ~/.ssh/config can name commands to be run.
        self.foreign.options_set_int_val(options.PROCESS_CONFIG, 0)
        self.foreign.options_set_port(self.endpoint.port)
        for option, value in chosen:
            self.foreign.options_set(option, value)


def _reason(error: BaseSSHError) -> str:
    """Return what the library complained of."""
    text = error.args[-1] if error.args else b""
    plain = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else str(text)
    return plain.strip().rstrip(".")[:200]
