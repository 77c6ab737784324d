"""Sends the contents of several files over one session, in one thread: a piece of each in turn.

The pieces are hashed together, which takes a fraction of the time, and the threads of the channels
do not compete for the session. While some pieces are written, a second thread reads the next ones.
"""

import time
from collections.abc import Callable, Sequence
from threading import Event, Lock
from typing import TYPE_CHECKING, Final, Protocol

from mydata_like.core.channel_time import TimeByCause
from mydata_like.core.errors import TransientError, UploaderError
from mydata_like.core.token_bucket import TokenBucket
from mydata_like.ssh.session import SessionWriter, Stream
from mydata_like.transfer.shared_reader import Content, ContentReader, read_together
from mydata_like.transfer.worker_messages import LOST, Moving, pack_error, unpack_error

if TYPE_CHECKING:
    from concurrent.futures import Future

_PAUSE: Final = 0.1  # seconds of one wait for the bandwidth limit, at most
_LEAST: Final = 0.001  # seconds of one such wait, at least


class Timer(Protocol):
    """Counts how long a channel works on its payload."""

    def add(self, spent: TimeByCause) -> None: ...

    def answer(self, waited: float) -> TimeByCause: ...


class Transmission(ContentReader):
    """A content that is being sent, and the stream that it is written to."""

    def __init__(
        self, content: Content, stream: Stream, bucket: TokenBucket, timer: Timer, moving: Moving
    ) -> None:
        super().__init__(content)
        self.stream = stream
        self.timer = timer
        self.complete = False  # whether everything was written
        self.woken = Event()  # it is done, or its thread has to do the work
        self._bucket = bucket
        self._moving = moving
        self._granted = 0  # bytes of the first piece that the bandwidth allows

    def next_bytes(self) -> bytes:
        """Return the bytes that may be written now."""
        if self.done or not self.pieces:
            return b""
        piece = self.pieces[0]
        if not self._granted:
            self._granted = self._bucket.take_ready(len(piece))
        return piece if self._granted >= len(piece) else piece[: self._granted]

    @property
    def delay(self) -> float:
        """Seconds until the bandwidth limit allows more."""
        return self._bucket.delay

    def advance(self, size: int | None) -> None:
        """Record that bytes were written; None if the command has ended."""
        if size is None:
            self.end()
            return
        if size:
            piece = self.pieces.popleft()
            self._granted = max(0, self._granted - size)
            if size < len(piece):
                self.pieces.appendleft(piece[size:])
        try:
            self._moving(size)
        except UploaderError as error:
            self.end(error)
            return
        self.check_complete()

    def check_complete(self) -> None:
        """End it if everything was read and written."""
        if self.is_read and not self.pieces and not self.done:
            self.complete = True
            self.end()

    def end(self, error: UploaderError | None = None) -> None:
        """Let its thread return, or raise the error."""
        super().end(error)
        self.woken.set()


class InterleavedSender:
    """The transmissions of one session; the thread of one of them does the work for all.

    `note` is called with the number of bytes after each write, and the seconds that it took.
    """

    def __init__(self, session: SessionWriter, note: Callable[[int, float], None]) -> None:
        self._session = session
        self._note = note
        self._lock = Lock()
        self._active: list[Transmission] = []
        self._is_led = False
        # Imported once there is a session: it imports `logging`, which a starting worker has not.
        from concurrent.futures import ThreadPoolExecutor, wait

        self._threads = ThreadPoolExecutor(1, "read ahead")
        self._wait = wait
        self._reading: Future[TimeByCause] | None = None
        self._moved = 0.0  # when something was last written, or the first content came

    def send(self, own: Transmission) -> bool:
        """Send a content; return False if the command ended before it had all.

        The last bytes are written only if the content is consistent.
        """
        with self._lock:
            if not self._active:
                self._moved = time.monotonic()
            self._active.append(own)
            leads, self._is_led = not self._is_led, True
        if not leads:
            own.woken.wait()
        if not own.done:
            self._lead(own)
        elif reading := self._reading:
            self._wait([reading])  # the content may be closed now
        if own.error is not None:
            raise own.error
        return own.complete

    def _lead(self, own: Transmission) -> None:
        """Do the work for all until our own content is sent; then another thread does it."""
        try:
            while not own.done:
                self._send_round(self._find_active())
        except BaseException:
            for each in self._find_active():
                each.end(TransientError("Another file of the session failed.", code=LOST))
            raise
        finally:
            if self._reading:
                self._wait([self._reading])
            with self._lock:
                self._active = [each for each in self._active if not each.done]
                self._is_led = bool(self._active)
                for each in self._active[:1]:
                    each.woken.set()

    def _find_active(self) -> list[Transmission]:
        with self._lock:
            self._active = [each for each in self._active if not each.done]
            return self._active[:]

    def _send_round(self, active: Sequence[Transmission]) -> None:
        """Write some of each as far as its command takes it; wait when one has nothing left.

        Meanwhile all are read that have room for a piece: the more pieces are hashed together, the
        better.
        """
        while any(each.is_starved for each in active):
            self._read_ahead(active)
            self._await_pieces(active)
        for each in active:
            each.check_complete()
        if any(each.has_room for each in active):
            self._read_ahead(active)
        left = [each for each in active if not each.done]
        may_write = [(each, each.next_bytes()) for each in left]
        ready = [(each, some) for each, some in may_write if some]
        limited = [each for each, some in may_write if not some]
        if (ready and self._write(ready, wait=not limited)) or not limited:
            return
        began = time.monotonic()  # the bandwidth allows nothing now
        time.sleep(min(_PAUSE, max(_LEAST, min(each.delay for each in limited))))
        seconds = time.monotonic() - began
        self._note(0, seconds)
        for each in left:
            each.timer.add(TimeByCause(bandwidth=seconds))
            if not each.done:
                each.advance(0)

    def _read_ahead(self, active: Sequence[Transmission]) -> None:
        """Begin to read a piece of each that has room, unless that goes on already."""
        if self._reading is None or self._reading.done():
            self._await_pieces(())
            self._reading = self._threads.submit(read_together, active)

    def _await_pieces(self, active: Sequence[Transmission]) -> None:
        """Wait for what is being read, and count the time for these; raise what went wrong."""
        if self._reading is None:
            return
        began = time.monotonic()
        spent = self._reading.result()
        share = min(1.0, (time.monotonic() - began) / (spent.in_all or 1.0))
        for each in active:
            each.timer.add(spent.times(share))

    def _write(self, ready: Sequence[tuple[Transmission, bytes]], *, wait: bool) -> bool:
        """Write what the commands take; return whether that was anything, or one has ended."""
        began, worked = time.monotonic(), time.thread_time()
        blocked = self._session.blocked_seconds
        try:
            sizes = self._session.write_some(
                [(each.stream, some) for each, some in ready], self._moved if wait else None
            )
        except UploaderError as error:
            for each in self._find_active():
                each.end(unpack_error(pack_error(error)))  # each thread raises its own
            return False
        seconds, worked = time.monotonic() - began, time.thread_time() - worked
        blocked = self._session.blocked_seconds - blocked
        self._note(sum(size or 0 for size in sizes), seconds)
        spent = TimeByCause(cipher=worked, line=max(0.0, seconds - worked - blocked))
        for (each, _), size in zip(ready, sizes, strict=True):
            each.timer.add(spent.plus(each.timer.answer(blocked)))
            each.advance(size)
        if not any(size != 0 for size in sizes):
            return False
        self._moved = time.monotonic()
        return True
