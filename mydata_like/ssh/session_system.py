"""SSH sessions by the system's `ssh`: for hosts behind others, and keys that are kept elsewhere.

One ssh is logged in for a session and shares its connection; a command is a request to it and
three pipes. The streams of a session may belong to different threads.
"""

import fcntl
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from mydata_like.core.errors import TransientError
from mydata_like.ssh import links
from mydata_like.ssh.master import Ends, Master
from mydata_like.ssh.mux import parse_exit
from mydata_like.ssh.session import Finished
from mydata_like.ssh.sftp import Sftp

_GLANCE: Final = 0.1  # seconds of one wait
_CHUNK: Final = 256 * 1024
_PIPE: Final = 1024 * 1024  # bytes on their way to ssh, where the system lets us choose


class SystemSession:
    """One authenticated connection; see `Session`."""

    stack = "system"

    def __init__(self, master: Master) -> None:
        self._master = master

    @property
    def cipher(self) -> str:
        """The cipher agreed on for what we send."""
        return self._master.cipher

    def start(self, command: bytes) -> "SystemStream":
        """Start a remote command; raises `TransientError` where no channel is granted."""
        return SystemStream(self._master, self._master.start(command))

    def run(self, command: bytes, stdin: bytes = b"") -> Finished:
        """Run a remote command to its end."""
        stream = self.start(command)
        stream.write(stdin)
        return stream.finish()

    def open_sftp(self) -> Sftp:
        """Open the SFTP subsystem; raises `RejectedError` where refused."""
        return Sftp(SystemStream(self._master, self._master.start(b"sftp", subsystem=True)))

    def close(self) -> None:
        """Close the connection; from any thread, at any time, again and again."""
        self._master.cut()


class SystemStream:
    """A remote command at work; see `Stream`."""

    shut = 0.0

    def __init__(self, master: Master, ends: Ends) -> None:
        self._master = master
        self._stdin: int | None = ends.stdin
        self._stdout = ends.stdout
        self._gathered = {end: bytearray() for end in ends[1:]}
        self._output, self._errors, self._request = self._gathered.values()
        self._open = set(self._gathered)
        for end in ends:
            os.set_blocking(end, False)
        _widen(ends.stdin)

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`; what a command that has ended does not read is dropped."""
        view = memoryview(data).cast("B")
        with self._at_work():
            while view and self._stdin is not None:
                view = view[self._send(self._stdin, view[:_CHUNK]) :]

    def read(self, size: int) -> bytes:
        """Wait for output and return at most `size` bytes of it; empty at its end."""
        with self._at_work():
            while not self._output and self._stdout in self._open:
                self._wait()
            if not self._output:
                self._master.check()
        return self._take(size)

    def read_ready(self) -> bytes:
        """Return the output that has arrived, without waiting; possibly nothing."""
        with self._at_work():
            for end in tuple(self._open):
                self._take_in(end)
        return self._take(len(self._output))

    def finish(self) -> Finished:
        """Close the standard input, wait for the end."""
        with self._at_work():
            self._end_input()
            while self._open:
                self._wait()
            status = parse_exit(bytes(self._request))
            if status is None:
                self._master.check()
        return Finished(status, self._take(len(self._output)), bytes(self._errors))

    def close(self) -> None:
        """Drop the stream without waiting."""
        self._end_input()
        for end in tuple(self._open):
            self._end_output(end)

    def __del__(self) -> None:
        """Give the descriptors back of a stream that nobody has ended."""
        self.close()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Give the descriptors back when the connection fails."""
        try:
            self._master.begin()
            yield
        except TransientError:
            self.close()
            raise

    def _send(self, stdin: int, data: memoryview) -> int:
        """Write what ssh takes now, or wait a moment; return how much it took."""
        try:
            count = os.write(stdin, data)
        except BlockingIOError:
            self._wait(to_write=True)
            return 0
        except BrokenPipeError:
            self._master.check()
            self._end_input()
            return 0
        self._master.note_movement()
        return count

    def _wait(self, *, to_write: bool = False) -> None:
        """Wait a moment for something to move; raises `TransientError` if that lasts too long."""
        poll = select.poll()
        if to_write and self._stdin is not None:
            poll.register(self._stdin, select.POLLOUT)
        for end in self._open:
            poll.register(end, select.POLLIN)
        ready = poll.poll(_GLANCE * 1000)
        if not ready:
            self._master.watch()
        for end, _ in ready:
            if end in self._open:
                self._take_in(end)

    def _take_in(self, end: int) -> None:
        """Take in what has arrived at one of the outputs."""
        with suppress(BlockingIOError):
            with suppress(ConnectionResetError):  # of a request whose ssh is gone
                while more := os.read(end, _CHUNK):
                    self._keep(end, more)
                    self._master.note_movement()
            self._end_output(end)

    def _keep(self, end: int, more: bytes) -> None:
        if end == self._stdout:
            links.keep_output(self._master.endpoint, self._output, more)
        else:
            links.keep_errors(self._gathered[end], more)

    def _end_input(self) -> None:
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None

    def _end_output(self, end: int) -> None:
        self._open.discard(end)
        os.close(end)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._output[:size])
        del self._output[:size]
        return taken


def _widen(pipe: int) -> None:
    """Let more bytes be on their way: ssh then seldom has to wait for us."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # there is a limit to what one user may have
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
