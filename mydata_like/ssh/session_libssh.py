"""SSH sessions on libssh (package ssh-python), which releases the interpreter lock.

The library is used without blocking: each call is repeated until it is done, and between two
calls we wait for the socket ourselves, never longer than the stall timeout. The streams of a
session may belong to different threads, which take turns at the library.
"""

import base64
import os
import socket
import sys
import threading
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
from mydata_like.ssh import dialing
from mydata_like.ssh.keys import KeyPair, PublicKey
from mydata_like.ssh.session import CIPHERS, HOST_KEYS, KEY_EXCHANGES, MACS, CommandResult, Endpoint
from mydata_like.ssh.sftp import Sftp
from mydata_like.ssh.shared_socket import SharedSocket

_READ: Final = 64 * 1024
_WRITE: Final = 256 * 1024  # a quarter faster than 64 KiB


class LibsshStream:
    """A remote command at work; see `Stream`.

    It begins as a new channel, which is to be opened and then to be given its command.

    To free a channel uses what all channels of the line share, so it must happen in a turn. No
    reference to the channel may therefore be in a frame, which errors keep: the stream hands
    functions of its own to the line, never methods of the channel.
    """

    def __init__(self, line: "LibsshTransport", channel: Channel) -> None:
        self._line = line
        self._held = [channel]
        self._output = bytearray()
        self._errors = bytearray()
        self._widest = 0  # bytes, of the window
        self.shut = 0.0

    @property
    def _channel(self) -> Channel:
        return self._held[0]

    def open(self) -> bool:
        """Open the channel; return whether that is granted."""
        return self._line.grants(lambda: self._channel.open_session())

    def offer(self, variable: bytes, value: bytes) -> bool:
        """Offer a variable to the command that is to be started; return whether it is taken."""
        return self._line.grants(lambda: self._channel.request_env(variable, value))

    def execute(self, command: bytes) -> bool:
        """Start the command; return whether that is granted."""
        return self._line.grants(lambda: self._channel.request_exec(command))

    def enter(self, subsystem: bytes) -> bool:
        """Start a subsystem in a command's place; return whether that is granted."""
        return self._line.grants(lambda: self._channel.request_subsystem(subsystem))

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`; what a command that has ended does not read is dropped."""
        view = memoryview(data).cast("B")
        while view:
            with self._line.turn():
                self._drain()
                if self._channel.is_closed():
                    return
                # More than the window would keep the library busy until the window grows.
                count = min(self._find_room(), len(view), _WRITE)
                if count and not self._send(bytes(view[:count])):
                    self._require_end()
                    return
            view = view[count:]
            if count:
                self._line.await_news(self._line.has_flushed)
            else:
                self._await_room()

    def read(self, size: int) -> bytes:
        """Wait for output and return at most `size` bytes of it; empty at its end."""
        with self._line.turn():
            self._drain()
        self._line.await_news(self._has_output)
        return self._take(size)

    def read_ready(self) -> bytes:
        """Return the output that has arrived, without waiting; possibly nothing."""
        with self._line.turn():
            self._drain()
            return self._take(len(self._output))

    def finish(self) -> CommandResult:
        """Close the standard input, wait for the end."""
        with self._line.turn():
            self._drain()
            open_still = not self._channel.is_closed()
        if open_still:
            self._line.repeat(lambda: self._channel.send_eof())
        self._line.await_news(self._has_ended)
        with self._line.turn():
            self._drain()
            status = self._channel.get_exit_status()
        finished = CommandResult(
            None if status < 0 else status, self._take(len(self._output)), bytes(self._errors)
        )
        self.close()
        return finished

    def close(self) -> None:
        """Drop the stream without waiting."""
        with self._line.turn(), suppress(BaseSSHError):
            self._channel.close()

    def __del__(self) -> None:
        """Have the channel freed in a turn."""
        self._line.retire(self._held)

    def _send(self, data: bytes) -> bool:
        return self._line.write(lambda: self._channel.write(data))

    def _receive(self, *, from_errors: bool) -> bytes:
        return self._line.read(lambda: self._channel.read_nonblocking(_READ, from_errors))

    def _take(self, size: int) -> bytes:
        taken = bytes(self._output[:size])
        del self._output[:size]
        return taken

    def _require_end(self) -> None:
        """Raise `TransientError` unless the command has ended; in a turn.

        What is written is refused from then on, but the library calls a channel closed only
        when the last words, which may have come in while they were looked for, have been read.
        """
        self._take_in()
        if not self._channel.is_closed():
            raise dialing.lost(self._line.endpoint, "written data is not accepted")

    def _await_room(self) -> None:
        """Wait until the command has taken some of what it was sent."""
        begun = time.monotonic()
        self._line.await_news(self._has_room)
        self.shut += time.monotonic() - begun

    def _has_room(self) -> bool:
        self._take_in()
        return bool(self._channel.is_closed()) or self._find_room() > 0

    def _find_room(self) -> int:
        """Return how many bytes may be written now; in a turn."""
        window: int = self._channel.window_size()
        self._widest = max(self._widest, window)
        return max(0, window - max(0, self._widest - self._line.most_ahead))

    def _has_output(self) -> bool:
        self._take_in()
        return bool(self._output or self._channel.is_eof() or self._channel.is_closed())

    def _has_ended(self) -> bool:
        """Return whether nothing more can come; a killed command has no status."""
        self._take_in()
        if self._channel.is_closed():
            return True
        return bool(self._channel.is_eof()) and self._channel.get_exit_status() >= 0

    def _drain(self) -> None:
        """Let the library work, and take in what has arrived."""
        self._line.pump()
        self._take_in()

    def _take_in(self) -> None:
        """Take in what the library has for us.

        To read one kind makes the library take in the other, too. The output comes last, so
        that none of it stays there while we wait for more to arrive.
        """
        while more := self._receive(from_errors=True):
            dialing.keep_errors(self._errors, more)
        while more := self._receive(from_errors=False):
            dialing.keep_output(self._line.endpoint, self._output, more)


_LOOKS: Final = 4  # within the time that a call may take


class CallTimeout:
    """Shuts a socket down when what happens inside the context takes longer than `patience`.

    For calls that may keep to themselves: libssh's binding repeats a write for as long as keys
    are being renewed, without asking us. The thread ends with `stop`.
    """

    def __init__(self, line: socket.socket, patience: float) -> None:
        self._line = line
        self._patience = patience
        self._since: float | None = None
        self._stopped = threading.Event()
        self.has_bitten = False
        threading.Thread(target=self._watch, name="ssh-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopped.set()

    def __enter__(self) -> None:
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._since = None

    def _watch(self) -> None:
        while not self._stopped.wait(self._patience / _LOOKS):
            since = self._since
            if since is not None and time.monotonic() - since > self._patience:
                self.has_bitten = True
                with suppress(OSError):
                    self._line.shutdown(socket.SHUT_RDWR)
                return


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

    def __init__(self, line: "LibsshTransport") -> None:
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
            raise dialing.exec_refused(self._line.endpoint)
        return stream

    def run(self, command: bytes, stdin: bytes = b"") -> CommandResult:
        """Run a remote command to its end."""
        stream = self.start(command)
        stream.write(stdin)
        return stream.finish()

    def open_sftp(self) -> Sftp:
        """Open the SFTP subsystem; raises `RejectedError` where refused."""
        stream = self._line.open_stream()
        if not stream.enter(b"sftp"):
            stream.close()
            raise dialing.sftp_refused(self._line.endpoint)
        return Sftp(stream)

    def close(self) -> None:
        """Close the connection; can be called repeatedly, at any time, from any thread."""
        self._line.cut()


class LibsshTransport(SharedSocket):
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
        self._watchdog = CallTimeout(self._socket, endpoint.stall_timeout)
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
            failed = dialing.disagreed if "no match for method" in reason else dialing.refused
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
            raise dialing.key_refused(self.endpoint) from error
        except BaseSSHError as error:
            raise self._broken(error) from error

    def session(self) -> LibsshSession:
        """Return the session of an authenticated line."""
        # Work-around: ssh-python 1.2.0 has no call that only processes what has arrived; polling a
        # channel that is never opened does it.
        # No report known; see test_a_keepalive_of_the_host_is_answered_while_nothing_is_read.
        # Remove when the binding has `ssh_event_dopoll` for one session.
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
        for pause in dialing.GRACE:
            with self.turn():
                stream = LibsshStream(self, self.call(self.foreign.channel_new))
            if stream.open():
                if not self._is_measured:  # the first answer comes late from any host
                    self._is_measured = True
                    self.most_ahead = _AHEAD if self._is_near(stream) else sys.maxsize
                return stream
            time.sleep(pause)
        raise dialing.no_channel(self.endpoint)

    def _is_near(self, stream: LibsshStream) -> bool:
        """Return whether the host is near by.

        A busy one answers late, and not alike. One that answers late and alike is far, though the
        network may end close by, at something that speaks TCP for it. A variable that no host has
        a use for is looked at by sshd alone, which starts nothing.
        """
        network = dialing.find_round_trip(self._socket)
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
            raise dialing.lost(self.endpoint)

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
        """Break the connection; threads that wait for it are woken and fail."""
        self._watchdog.stop()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _until(self, request: Callable[[], int], again: int) -> None:
        """Repeat a request that shows no progress until it is done; all of it is bounded."""
        if not self.wait(lambda: request() != again, self.endpoint.stall_timeout, in_all=True):
            self._stall()

    def _stall(self) -> NoReturn:
        self.cut()
        raise dialing.stalled(self.endpoint, self.endpoint.stall_timeout)

    def _broken(self, error: BaseSSHError) -> TransientError:
        self.cut()
        if self._watchdog.has_bitten:
            return dialing.stalled(self.endpoint, self.endpoint.stall_timeout)
        return dialing.lost(self.endpoint, _reason(error))

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
