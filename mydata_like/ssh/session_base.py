"""What the sessions of both SSH libraries, and their streams, have in common."""

from typing import Protocol

from mydata_like.core.errors import RejectedError
from mydata_like.ssh.session import CommandResult, Endpoint, Stream
from mydata_like.ssh.sftp import Sftp
from mydata_like.ssh.sftp_protocol import REFUSED


class NewStream(Stream, Protocol):
    """A channel in which a command or a subsystem is started first."""

    def execute(self, command: bytes) -> bool:
        """Start the command; return whether that is granted."""

    def start_subsystem(self, subsystem: bytes) -> bool:
        """Start a subsystem instead of a command; return whether that is granted."""


class AuthenticatedTransport(Protocol):
    """An authenticated connection of either library."""

    endpoint: Endpoint

    @property
    def network_round_trip(self) -> float | None: ...

    def open_stream(self) -> NewStream: ...

    def abort(self) -> None: ...


class StreamOutput:
    """The unread output of a stream, and the time that writing to it has waited."""

    def __init__(self) -> None:
        self._output = bytearray()
        self._errors = bytearray()
        self.blocked_seconds = 0.0

    def _take(self, size: int) -> bytes:
        taken = bytes(memoryview(self._output)[:size])
        del self._output[:size]
        return taken

    def _conclude(self, status: int) -> CommandResult:
        """Return the result of an ended command; a killed one has a negative status."""
        output = self._take(len(self._output))
        return CommandResult(None if status < 0 else status, output, bytes(self._errors))


class SessionBase:
    """What an `OpenSession` does in the same way with both libraries."""

    def __init__(self, connection: AuthenticatedTransport) -> None:
        self._opened_on = connection
        self.blocked_seconds = 0.0

    @property
    def network_round_trip(self) -> float | None:
        return self._opened_on.network_round_trip

    def run_ahead(self) -> None:
        """Do nothing, where the library waits for each answer; see `OpenSession`."""

    def start(self, command: bytes) -> Stream:
        """Start a remote command; raises `TransientError` if no channel is granted."""
        stream = self._opened_on.open_stream()
        if not stream.execute(command):
            stream.close()
            host = self._opened_on.endpoint.host
            raise RejectedError(f"{host} does not run commands.", code="ssh.exec-refused")
        return stream

    def run(self, command: bytes, stdin: bytes = b"") -> CommandResult:
        """Run a remote command until it ends."""
        stream = self.start(command)
        stream.write(stdin)
        return stream.finish()

    def open_sftp(self) -> Sftp:
        """Open the SFTP subsystem; raises `RejectedError` if it is refused."""
        stream = self._opened_on.open_stream()
        if not stream.start_subsystem(b"sftp"):
            stream.close()
            host = self._opened_on.endpoint.host
            raise RejectedError(f"{host} does not offer SFTP.", code=REFUSED)
        return Sftp(stream)

    def close(self) -> None:
        """Close the connection; can be called repeatedly, at any time, from any thread."""
        self._opened_on.abort()
