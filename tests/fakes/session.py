"""A session without SSH: commands run in local shells, and the connection can be cut."""

import os
import select
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Event

from mydata_like.core.errors import TransientError
from mydata_like.core.token_bucket import TokenBucket
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import CommandResult, SftpSession, SshSession
from mydata_like.transfer.compression import Compression
from mydata_like.transfer.interleaved_sender import InterleavedSender
from mydata_like.transfer.shared_reader import SharedReader
from mydata_like.transfer.ssh.multi_stream import StreamLimit
from mydata_like.transfer.ssh.remote_shell import SessionState, SpareShells
from mydata_like.transfer.throttled_session import ChannelTimer, ThrottledSession
from tests.fakes.local_sftp import LocalSftp


class LocalStream:
    """A local process instead of a remote command; `allow` returns how much of a write arrives."""

    blocked_seconds = 0.0

    def __init__(
        self, command: bytes, allow: Callable[[int], int], path: str | None = None
    ) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=None if path is None else {**os.environ, "PATH": path},
        )
        self._allow = allow
        self._kept = b""
        self._broken = False

    def write(self, data) -> None:
        self._check()
        allowed = self._allow(len(data))
        view = memoryview(data)[:allowed]
        while view:
            ready, writable, _ = select.select(
                [self._process.stdout], [self._process.stdin], [], 10
            )
            if ready:
                self._kept += os.read(self._process.stdout.fileno(), 65536)
            if writable:
                view = view[self._pass_on(view[:4096]) :]
        if allowed < len(data):
            self.cut()
            raise TransientError("The line was cut.")

    def _pass_on(self, view: memoryview) -> int:
        try:
            return os.write(self._process.stdin.fileno(), view)
        except BrokenPipeError as error:
            raise TransientError("The command has ended.") from error

    def cut(self) -> None:
        """Cut the connection; output that the command wrote before still arrives."""
        self._process.stdin.close()
        self._kept += self._process.stdout.read()
        self._process.stderr.read()
        self.close()

    def read(self, size: int, least: int = 1) -> bytes:
        self._check()
        if not self._kept:
            self._kept = os.read(self._process.stdout.fileno(), size)
        taken, self._kept = self._kept[:size], self._kept[size:]
        return taken

    def read_ready(self) -> bytes:
        if not self._broken:
            while select.select([self._process.stdout], [], [], 0)[0]:
                more = os.read(self._process.stdout.fileno(), 65536)
                if not more:
                    break
                self._kept += more
        taken, self._kept = self._kept, b""
        return taken

    def finish(self) -> CommandResult:
        self._check()
        self._process.stdin.close()
        output = self._kept + self._process.stdout.read()
        errors = self._process.stderr.read()
        status = self._process.wait(10)
        self.close()
        return CommandResult(status, output, errors)

    def close(self) -> None:
        self._broken = True
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            pipe.close()
        self._process.wait(10)

    def _check(self) -> None:
        if self._broken:
            raise TransientError("The line was cut.")


class SlowToAnswer:
    """A stream that delays the answers to short writes by some seconds."""

    def __init__(self, stream: LocalStream, seconds: float) -> None:
        self._stream = stream
        self._seconds = seconds
        self._asked = False
        self.read_ready = stream.read_ready
        self.finish = stream.finish
        self.close = stream.close

    def write(self, data) -> None:
        self._asked = len(data) < 1000
        self._stream.write(data)

    def read(self, size: int, least: int = 1) -> bytes:
        if self._asked:
            Event().wait(self._seconds)
        return self._stream.read(size)


class LocalSession:
    """A session that runs commands locally; the connection breaks after `limit` bytes.

    `path` replaces the search path of commands.
    """

    stack = "local"
    cipher = ""
    blocked_seconds = 0.0
    network_round_trip = None

    def __init__(self, limit: int | None = None, path: str | None = None) -> None:
        self.limit = limit
        self.path = path
        self.commands: list[bytes] = []
        self.written = 0

    def start(self, command: bytes) -> LocalStream:
        self.commands.append(command)
        return LocalStream(command, self._allow, self.path)

    def run(self, command: bytes, stdin: bytes = b"") -> CommandResult:
        stream = self.start(command)
        stream.write(stdin)
        return stream.finish()

    def write_some(self, pieces, moved=None) -> list[int | None]:
        for stream, piece in pieces:
            stream.write(piece)
        return [len(piece) for _, piece in pieces]

    def open_sftp(self) -> SftpSession:
        return LocalSftp(self._allow)

    def close(self) -> None: ...

    def throttled(self) -> ThrottledSession:
        """Return this session as the senders of a channel get it."""
        return throttled(self)

    def _allow(self, count: int) -> int:
        allowed = count if self.limit is None else max(0, min(count, self.limit - self.written))
        self.written += allowed
        return allowed


def state(
    location: bytes | Path, capabilities: HostCapabilities, *, limit=None, **options
) -> SessionState:
    """Return the state of a session, with at most `limit` streams of payloads."""
    return SessionState(
        os.fsencode(location),
        capabilities,
        Compression(available=False),
        limit or StreamLimit(0),
        SpareShells(),
        **options,
    )


def throttled(session: SshSession) -> ThrottledSession:
    """Return a session as the senders of a channel get it, without a limit."""
    interleaved = InterleavedSender(session, lambda size, seconds: None)
    return ThrottledSession(session, TokenBucket(), ChannelTimer(), interleaved, SharedReader())
