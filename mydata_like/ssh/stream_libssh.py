"""Remote commands at work over libssh: what is written to them, and what they say."""

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ssh.channel import Channel
from ssh.exceptions import BaseSSHError

from mydata_like.ssh import links
from mydata_like.ssh.session import Finished

if TYPE_CHECKING:
    from mydata_like.ssh.session_libssh import Line

_READ: Final = 64 * 1024
_WRITE: Final = 256 * 1024  # a quarter faster than 64 KiB


class LibsshStream:
    """A remote command at work; see `Stream`.

    It begins as a new channel, which is to be opened and then to be given its command.

    To free a channel uses what all channels of the line share, so it must happen in a turn. No
    reference to the channel may therefore be in a frame, which errors keep: the stream hands
    functions of its own to the line, never methods of the channel.
    """

    def __init__(self, line: "Line", channel: Channel) -> None:
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

    def finish(self) -> Finished:
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
        finished = Finished(
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
            raise links.lost(self._line.endpoint, "what was written is not taken")

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
            links.keep_errors(self._errors, more)
        while more := self._receive(from_errors=False):
            links.keep_output(self._line.endpoint, self._output, more)
