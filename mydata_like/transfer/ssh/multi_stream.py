"""Sends one large file over several streams, where the window of one stream is the limit.

OpenSSH accepts 2 MiB per round trip on one stream, however fast the network is. The file is read
once, in order, and its blocks are distributed to streams that write them at their offsets.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import Final, NamedTuple, Protocol

from mydata_like.core.errors import RejectedError, TransientError, UploaderError
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.transfer.worker_messages import LOST, Moving

LARGE: Final = 32 * 1024 * 1024  # bytes; smaller remainders of a file use one stream
FAR: Final = 0.005  # seconds; from this round trip on, the processor is not the limit
BLOCK: Final = 4 * 1024 * 1024
_LEAST: Final = 0.000_001  # seconds; some clocks measure 0
# Work-around: OpenSSH 9.2 allows at most 2 MiB in flight on one stream, so a large file is sent
# over several. https://github.com/rapier1/hpn-ssh/issues/89.
# Remove when the window follows that of TCP.
_WINDOW: Final = 2 * 1024 * 1024  # bytes
_LONG: Final = 10.0  # seconds; a file that takes longer is likely to be sent alone at its end
_FULL: Final = 0.6  # above this part of the window's limit, one more stream helps
_CHECK_INTERVAL: Final = 0.5  # seconds between two checks whether one more stream helps


def takes_long(size: int, round_trip: float) -> bool:
    """Return whether one stream takes so long for a file that others may be sent by then."""
    return size * round_trip > _LONG * _WINDOW


class StreamLimit:
    """The limit of streams of a session that carry payloads at once."""

    def __init__(self, streams: int) -> None:
        self._free = Semaphore(streams)
        self._lock = Lock()
        self._payloads = 0

    @property
    def is_shared(self) -> bool:
        """Whether several payloads are being sent.

        Their streams fill the connection together, and take less processor time than several
        streams of one file.
        """
        return self._payloads > 1

    @contextmanager
    def used(self) -> Iterator[None]:
        """Count one payload's own stream; it is allowed even above the limit."""
        taken = self._free.acquire(blocking=False)
        with self._lock:
            self._payloads += 1
        try:
            yield
        finally:
            with self._lock:
                self._payloads -= 1
            if taken:
                self.release()

    def take(self) -> bool:
        """Reserve one more stream for a payload; return False if it is not needed or allowed."""
        return not self.is_shared and self._free.acquire(blocking=False)

    def release(self) -> None:
        """Release a reserved stream."""
        self._free.release()


class StripeStream(Protocol):
    """One stream of a `StripedWriter`, in its own thread; an error in it ends all streams.

    Raises `TransientError` if the connection broke, another error if its bytes were refused.
    """

    def write(self, offset: int, block: memoryview, moving: Moving) -> None:
        """Send a block to its offset in pieces, and report each piece."""

    def finish(self) -> None:
        """Wait until the host has received everything."""


class _Block(NamedTuple):
    offset: int
    buffer: bytearray
    size: int


class _StoppedError(UploaderError):
    """Another stream of the file has failed."""


class StripedWriter:
    """The streams that send one file: as many as increase the speed.

    `open_stream` receives whether the stream is optional; an optional stream may fail if there is
    no channel. Pass the bytes in order to `write`, then call `finish`.
    """

    def __init__(
        self,
        open_stream: Callable[[bool], StripeStream],
        limit: StreamLimit,
        round_trip: float,
        moving: Moving,
    ) -> None:
        self._open_stream = open_stream
        self._limit = limit
        self._rate = _WINDOW / max(round_trip, _LEAST)  # bytes per second of one stream
        self._moving = moving
        self._threads: list[Thread] = []
        self._may_grow = True
        self._waiting: SimpleQueue[_Block | None] = SimpleQueue()
        self._buffers: SimpleQueue[bytearray | None] = SimpleQueue()
        self._failure: UploaderError | None = None
        self._given = 0
        self._checked_at = time.monotonic()
        self._buffers.put(bytearray(BLOCK))
        self._add(optional=False)
        if round_trip >= FAR:
            self._add(optional=True)

    def write(
        self, chunks: Iterable[memoryview], offset: int = 0, known: Collection[int] = ()
    ) -> None:
        """Distribute the chunks from an offset on; return early if a stream has failed.

        Blocks whose offset is in `known` have arrived before and are not sent.
        """
        buffer, size = self._buffers.get(), 0
        for chunk in chunks:
            while chunk and buffer is not None:
                count = min(len(chunk), BLOCK - size)
                buffer[size : size + count] = chunk[:count]
                chunk, size = chunk[count:], size + count
                if size == BLOCK:
                    buffer = self._give(_Block(offset, buffer, size), known)
                    offset, size = offset + size, 0
            if buffer is None:
                return
        if buffer is not None and size:
            self._give(_Block(offset, buffer, size), known)

    def abort(self) -> None:
        """End all streams without completing the file."""
        self._fail(TransientError("The file was not sent completely.", code=LOST))
        with suppress(UploaderError):
            self.finish()

    def finish(self) -> None:
        """Wait for all streams; raises the first failure."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def _give(self, block: _Block, known: Collection[int]) -> bytearray | None:
        """Queue a block; return a buffer for the next one, or None if a stream has failed."""
        if block.offset in known:
            self._moving(0, block.size)
            return block.buffer
        self._waiting.put(block)
        self._moving(0)
        self._given += block.size
        now = time.monotonic()
        if now - self._checked_at >= _CHECK_INTERVAL:
            rate = self._given / (now - self._checked_at)
            self._given, self._checked_at = 0, now
            if rate > _FULL * len(self._threads) * self._rate:
                self._add(optional=True)
        return self._buffers.get()

    def _add(self, *, optional: bool) -> None:
        """Add a stream: the payload's own one, or an additional one that only `optional`."""
        if optional and not (self._may_grow and self._limit.take()):
            return
        self._buffers.put(bytearray(BLOCK))
        thread = Thread(target=self._work, args=(optional,), name="stripe", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, optional: bool) -> None:  # noqa: FBT001 - a thread's argument
        try:
            try:
                stream = self._open_stream(optional)
            except UploaderError as error:
                refused = isinstance(error, RejectedError) or error.problem_code == NO_CHANNEL
                if not (optional and refused):
                    raise
                self._may_grow = False
                return
            while (block := self._waiting.get()) is not None:
                stream.write(block.offset, memoryview(block.buffer)[: block.size], self._moved)
                self._buffers.put(block.buffer)
            stream.finish()
        except _StoppedError:
            pass  # the first failure was reported
        except UploaderError as error:
            self._fail(error)
        except BaseException:
            self._fail(TransientError("A stream has ended.", code=LOST))
            raise
        finally:
            if optional:
                self._limit.release()

    def _moved(self, count: int, omitted: int = 0, /) -> None:
        if self._failure is not None:
            raise _StoppedError("Another stream of the file has failed.")
        self._moving(count, omitted)

    def _fail(self, failure: UploaderError) -> None:
        is_reported = self._failure is not None and not (
            isinstance(failure, TransientError) and not isinstance(self._failure, TransientError)
        )
        if not is_reported:  # the first failure counts, but a broken connection overrides others
            self._failure = failure
        self._buffers.put(None)  # wakes a thread that waits for a buffer
