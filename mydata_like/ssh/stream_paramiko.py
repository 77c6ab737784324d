"""Remote commands at work over paramiko: what is written to them, and what they say."""

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import paramiko

from mydata_like.ssh import links
from mydata_like.ssh.session import Finished

if TYPE_CHECKING:
    from mydata_like.ssh.session_paramiko import Line

FAILURES: Final = (paramiko.SSHException, OSError, EOFError)
_WRITE: Final = 32_704  # bytes; with their head and the cipher's tag they are one packet
_READ: Final = 64 * 1024
_PAUSE: Final = 0.02  # seconds between looks at output while the server takes no more input


class ParamikoStream:
    """A remote command at work; see `Stream`."""

    def __init__(self, line: "Line", channel: paramiko.Channel) -> None:
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

    def finish(self) -> Finished:
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
        finished = Finished(
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
                links.keep_errors(self._errors, channel.recv_stderr(_READ))
        self._line.check()

    def _keep(self, more: bytes) -> None:
        links.keep_output(self._line.endpoint, self._output, more)

    def _is_silent(self) -> bool:
        """Return whether no more output will come."""
        done = bool(self._channel.eof_received or self._channel.closed)
        return done and not self._channel.recv_ready()

    def _take(self, size: int) -> bytes:
        taken = bytes(self._output[:size])
        del self._output[:size]
        return taken
