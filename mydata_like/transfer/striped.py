"""One large file over several streams of a session, where a single one is held to its window.

OpenSSH takes 2 MiB per round trip on one stream, whatever the line could carry. So a file is
read once, in order, and dealt out in blocks to streams that write them at their places. What has
arrived is noted beside the file, for an attempt that has to go on where this one broke off.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Final, NamedTuple

from mydata_like.core.errors import TransientError
from mydata_like.ssh.links import NO_CHANNEL
from mydata_like.ssh.session import Finished, Stream
from mydata_like.transfer.protocol import LOST, Moving
from mydata_like.transfer.shell import finish_refused

LARGE: Final = 32 * 1024 * 1024  # what is left to be sent of a file that is worth the trouble
FAR: Final = 0.005  # seconds of a round trip from which on a processor is not the limit
_WINDOW: Final = 2 * 1024 * 1024  # bytes that OpenSSH lets be on their way in one stream
_FULL: Final = 0.6  # of what windows allow: then they are the limit, and one more stream helps
_LOOK: Final = 0.5  # seconds between two looks whether one more would help
_BLOCK: Final = 4 * 1024 * 1024
_UNIT: Final = 256 * 1024  # bytes that go together

UNABLE: Final = 97  # this dd knows too little
UNWRITTEN: Final = 95  # bytes could not be written
_PROBE: Final = (
    b"dd of=/dev/null bs=1 count=0 seek=0 status=none oflag=seek_bytes iflag=fullblock "
    b"</dev/null 2>/dev/null || exit %d; "
) % UNABLE
BEGIN: Final = _PROBE + b'rm -f -- "./$t" "./$t.at"'
GO_ON: Final = (
    _PROBE + b'[ "$(%b < "./$t" | cut -c -32)" = %b ] || exit 94; echo "0 %d" > "./$t.at"'
)
# A block is only noted when the line after it came: what a broken line ends is a part of one.
TAKE: Final = (
    b'while IFS=" " read -r o b c; do '
    b'dd of="./$t" bs="$b" count="$c" seek="$o" status=none '
    b"oflag=seek_bytes iflag=fullblock conv=notrunc || exit 95; "
    b'IFS= read -r e && [ "$e" = . ] || exit 94; '
    b'echo "$o $((b * c))" >> "./$t.at"; done'
)
# Leaves of a file what is known to be there from its start on.
MEND: Final = (
    b'p=$(sort -n "./$t.at" | { p=0; while IFS=" " read -r o l; do [ "$o" -le "$p" ] || break; '
    b'[ $((o + l)) -le "$p" ] || p=$((o + l)); done; echo "$p"; }); '
    b'dd of="./$t" bs=1 count=0 seek="$p" </dev/null 2>/dev/null || rm -f -- "./$t"; '
    b'rm -f -- "./$t.at"; '
)


class Room:
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


class _Block(NamedTuple):
    offset: int
    buffer: bytearray
    size: int


class Crew:
    """The streams that carry one file: as many as help, each in a thread.

    `start` starts the script `TAKE`; it need not be patient for a stream that only helps. Bytes
    are given in their order, then `finish` is called.
    """

    def __init__(
        self, start: Callable[[bool], Stream], room: Room, round_trip: float, moving: Moving
    ) -> None:
        self._start = start
        self._room = room
        self._each = _WINDOW / round_trip  # bytes a second that one stream can carry
        self._moving = moving
        self._threads: list[Thread] = []
        self._may_grow = True
        self._waiting: SimpleQueue[_Block | None] = SimpleQueue()
        self._buffers: SimpleQueue[bytearray | None] = SimpleQueue()
        self._failure: Finished | TransientError | None = None
        self._given = 0
        self._looked = time.monotonic()
        self._buffers.put(bytearray(_BLOCK))
        self._add(helps=False)
        self._add(helps=True)

    def carry(self, chunks: Iterable[memoryview], offset: int) -> None:
        """Deal out what follows a place in the file; ends early when a stream has failed."""
        buffer, size = self._buffers.get(), 0
        for chunk in chunks:
            while chunk and buffer is not None:
                count = min(len(chunk), _BLOCK - size)
                buffer[size : size + count] = chunk[:count]
                chunk, size = chunk[count:], size + count
                if size == _BLOCK:
                    self._give(_Block(offset, buffer, size))
                    offset, size = offset + size, 0
                    buffer = self._buffers.get()
            if buffer is None:
                return
        if buffer is not None and size:
            self._give(_Block(offset, buffer, size))

    def dismiss(self) -> None:
        """Let all streams end as they are."""
        self._fail(TransientError("The file is not sent to its end.", code=LOST))
        with suppress(TransientError):
            self.finish()

    def finish(self) -> Finished | None:
        """Wait for all streams; return how one failed, or raise what kept it from going on."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        if isinstance(self._failure, TransientError):
            raise self._failure
        return self._failure

    def _give(self, block: _Block) -> None:
        self._waiting.put(block)
        self._given += block.size
        now = time.monotonic()
        if now - self._looked >= _LOOK:
            rate = self._given / (now - self._looked)
            self._given, self._looked = 0, now
            if rate > _FULL * len(self._threads) * self._each:
                self._add(helps=True)

    def _add(self, *, helps: bool) -> None:
        """Add a stream: the first one is the payload's own, the others only `helps`."""
        if helps and not (self._may_grow and self._room.take()):
            return
        self._buffers.put(bytearray(_BLOCK))
        thread = Thread(target=self._work, args=(helps,), name="stripe", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, helps: bool) -> None:  # noqa: FBT001 - a thread's argument
        try:
            self._take_part(helps)
        except BaseException:
            self._fail(TransientError("A stream has ended.", code=LOST))
            raise
        finally:
            if helps:
                self._room.give_back()

    def _take_part(self, helps: bool) -> None:  # noqa: FBT001
        try:
            stream = self._start(helps)
        except TransientError as error:
            if helps and error.problem_code == NO_CHANNEL:
                self._may_grow = False
            else:
                self._fail(error)
            return
        try:
            while (block := self._waiting.get()) is not None:
                self._send(stream, block)
                self._buffers.put(block.buffer)
            finished = stream.finish()
        except TransientError as error:
            self._fail(_find_reason(stream, error))
            return
        if finished.status != 0:
            self._fail(finished)

    def _send(self, stream: Stream, block: _Block) -> None:
        whole, rest = divmod(block.size, _UNIT)
        view = memoryview(block.buffer)[: block.size]
        if whole:
            stream.write(b"%d %d %d\n" % (block.offset, _UNIT, whole))
            for start in range(0, whole * _UNIT, _UNIT):
                self._pass_on(stream, view[start : start + _UNIT])
            stream.write(b".\n")
        if rest:
            stream.write(b"%d %d 1\n" % (block.offset + whole * _UNIT, rest))
            self._pass_on(stream, view[whole * _UNIT :])
            stream.write(b".\n")

    def _pass_on(self, stream: Stream, piece: memoryview) -> None:
        if self._failure is not None:
            raise TransientError("Another stream of the file has failed.", code=LOST)
        stream.write(piece)
        self._moving(len(piece))

    def _fail(self, failure: Finished | TransientError) -> None:
        if self._failure is None or isinstance(failure, TransientError):  # the line counts most
            self._failure = failure
        self._buffers.put(None)  # whoever waits for one waits in vain


def _find_reason(stream: Stream, error: TransientError) -> Finished | TransientError:
    """Return how a script ended that took no more, or the error where it was the line."""
    try:
        return finish_refused(stream, error)
    except TransientError as broken:
        return broken
