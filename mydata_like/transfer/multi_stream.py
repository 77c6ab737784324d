"""Sends one large file over several streams, where the window of one is the limit.

OpenSSH takes 2 MiB per round trip on one stream, whatever the line could carry. So a file is
read once, in order, and dealt out in blocks to streams that write them at their places.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Final, NamedTuple, Protocol

from mydata_like.core.errors import RejectedError, TransientError, UploaderError
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.transfer.worker_messages import LOST, Moving

LARGE: Final = 32 * 1024 * 1024  # what is left to be sent of a file that is worth the trouble
FAR: Final = 0.005  # seconds of a round trip from which on a processor is not the limit
BLOCK: Final = 4 * 1024 * 1024
_LEAST: Final = 0.000_001  # seconds; some clocks tell of none
# Work-around: OpenSSH 9.2 has at most 2 MiB under way in one stream, so a large file is sent over
# several. https://github.com/rapier1/hpn-ssh/issues/89. Remove when the window follows that of TCP.
_WINDOW: Final = 2 * 1024 * 1024  # bytes
_FULL: Final = 0.6  # of what windows allow: then they are the limit, and one more stream helps
_LOOK: Final = 0.5  # seconds between two looks whether one more would help


class StreamLimit:
    """How many streams of a session may carry payloads at once."""

    def __init__(self, streams: int) -> None:
        self._free = Semaphore(streams)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Carry a payload, which needs no asking, while this lasts."""
        taken = self.take()
        try:
            yield
        finally:
            if taken:
                self.give_back()

    def take(self) -> bool:
        """Return whether one more stream may carry something now."""
        return self._free.acquire(blocking=False)

    def give_back(self) -> None:
        """A stream that was taken carries nothing any more."""
        self._free.release()


class StripeStream(Protocol):
    """One stream of a crew, in a thread of its own; what it raises ends all of them.

    Raises `TransientError` where the line broke, something else where its bytes are refused.
    """

    def write(self, offset: int, block: memoryview, moving: Moving) -> None:
        """Send a block to its offset, in pieces, and report each."""

    def finish(self) -> None:
        """Wait until everything has been taken."""


class _Block(NamedTuple):
    offset: int
    buffer: bytearray
    size: int


class _StoppedError(UploaderError):
    """Another stream of the file has failed."""


class StripedWriter:
    """The streams that carry one file: as many as help.

    `open_lane` gets whether the stream is optional; then it may fail if there is no channel.
    Bytes are given in their order, then `finish` is called.
    """

    def __init__(
        self,
        open_lane: Callable[[bool], StripeStream],
        room: StreamLimit,
        round_trip: float,
        moving: Moving,
    ) -> None:
        self._open_lane = open_lane
        self._room = room
        self._each = _WINDOW / max(round_trip, _LEAST)  # bytes a second that one stream can carry
        self._moving = moving
        self._threads: list[Thread] = []
        self._may_grow = True
        self._waiting: SimpleQueue[_Block | None] = SimpleQueue()
        self._buffers: SimpleQueue[bytearray | None] = SimpleQueue()
        self._failure: UploaderError | None = None
        self._given = 0
        self._looked = time.monotonic()
        self._buffers.put(bytearray(BLOCK))
        self._add(helps=False)
        if round_trip >= FAR:
            self._add(helps=True)

    def carry(
        self, chunks: Iterable[memoryview], offset: int = 0, known: Collection[int] = ()
    ) -> None:
        """Deal out what follows a place in the file; ends early when a stream has failed.

        Blocks that are `known` to be there, by their offsets, are not sent.
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

    def dismiss(self) -> None:
        """Let all streams end as they are."""
        self._fail(TransientError("The file was not sent completely.", code=LOST))
        with suppress(UploaderError):
            self.finish()

    def finish(self) -> None:
        """Wait for all streams; raises what the first of them failed with."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def _give(self, block: _Block, known: Collection[int]) -> bytearray | None:
        """Have a block sent; return a buffer for the next one, None when a stream has failed."""
        if block.offset in known:
            self._moving(block.size)
            return block.buffer
        self._waiting.put(block)
        self._moving(0)
        self._given += block.size
        now = time.monotonic()
        if now - self._looked >= _LOOK:
            rate = self._given / (now - self._looked)
            self._given, self._looked = 0, now
            if rate > _FULL * len(self._threads) * self._each:
                self._add(helps=True)
        return self._buffers.get()

    def _add(self, *, helps: bool) -> None:
        """Add a stream: the first one is the payload's own, the others only `helps`."""
        if helps and not (self._may_grow and self._room.take()):
            return
        self._buffers.put(bytearray(BLOCK))
        thread = Thread(target=self._work, args=(helps,), name="stripe", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, helps: bool) -> None:  # noqa: FBT001 - a thread's argument
        try:
            self._take_part(helps)
        except _StoppedError:
            pass  # the first failure was reported
        except UploaderError as error:
            self._fail(error)
        except BaseException:
            self._fail(TransientError("A stream has ended.", code=LOST))
            raise
        finally:
            if helps:
                self._room.give_back()

    def _take_part(self, helps: bool) -> None:  # noqa: FBT001
        try:
            lane = self._open_lane(helps)
        except UploaderError as error:
            refused = isinstance(error, RejectedError) or error.problem_code == NO_CHANNEL
            if not (helps and refused):
                raise
            self._may_grow = False
            return
        while (block := self._waiting.get()) is not None:
            lane.write(block.offset, memoryview(block.buffer)[: block.size], self._moved)
            self._buffers.put(block.buffer)
        lane.finish()

    def _moved(self, count: int) -> None:
        if self._failure is not None:
            raise _StoppedError("Another stream of the file has failed.")
        self._moving(count)

    def _fail(self, failure: UploaderError) -> None:
        told = self._failure is not None and not (
            isinstance(failure, TransientError) and not isinstance(self._failure, TransientError)
        )
        if not told:  # the first counts, but the line counts most
            self._failure = failure
        self._buffers.put(None)  # wakes a thread that waits for one
