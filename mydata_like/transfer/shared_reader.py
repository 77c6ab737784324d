"""Reads contents in pieces and hashes those of several channels together.

That takes a fraction of the processor time of hashing each alone.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from threading import Condition
from typing import Final, Protocol

from mydata_like.core import hashing
from mydata_like.core.channel_time import NOTHING_SPENT, TimeByCause
from mydata_like.core.errors import TransientError, UploaderError
from mydata_like.transfer.worker_messages import LOST

PIECE: Final = 256 * 1024  # bytes of a content that are read and hashed at once
_AHEAD: Final = 3  # pieces of a content that are hashed and not yet written, at most


class Content(Protocol):
    """Bytes that are read once, in order."""

    checksum: hashing.Checksum
    remaining: int

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; they are not in `checksum` yet."""

    def finish(self) -> str:
        """Return the checksum; raises `FileChangedError` if the bytes are not consistent."""


class ContentReader:
    """A content that is being read, and its pieces that are hashed and not yet taken."""

    def __init__(self, content: Content) -> None:
        self.pieces: deque[bytes] = deque()
        self.is_read = not content.remaining  # whether the last piece was added
        self.done = False  # nothing is read any more
        self.error: UploaderError | None = None  # why
        self._content = content

    @property
    def checksum(self) -> hashing.Checksum:
        return self._content.checksum

    @property
    def is_starved(self) -> bool:
        """Whether nothing can be taken until something was read."""
        return not (self.pieces or self.is_read or self.done)

    @property
    def has_room(self) -> bool:
        """Whether there is a next piece, and it may be read now."""
        return not (self.done or self.is_read) and len(self.pieces) < _AHEAD

    def read(self) -> bytes:
        """Return the next piece, which is to be hashed; empty if there is none now."""
        if not self.has_room:
            return b""
        try:
            return self._content.read(PIECE)
        except UploaderError as error:
            self.end(error)
            return b""

    def append(self, piece: bytes) -> None:
        """Add a piece that was hashed; the last one only if the content is consistent."""
        is_last = not self._content.remaining
        if is_last:
            try:
                self._content.finish()
            except UploaderError as error:
                self.end(error)
                return
        self.pieces.append(piece)
        self.is_read = is_last

    def end(self, error: UploaderError | None = None) -> None:
        """Read nothing more."""
        self.error = error
        self.done = True


def read_together(readers: Sequence[ContentReader]) -> TimeByCause:
    """Read a piece of each content that has room for one; return the time spent."""
    began = time.monotonic()
    fresh = [(reader, piece) for reader in readers if (piece := reader.read())]
    have_read = time.monotonic()
    hashing.update_all([(reader.checksum, piece) for reader, piece in fresh])
    hashed = time.monotonic()
    for reader, piece in fresh:
        reader.append(piece)
    return TimeByCause(source=have_read - began, hash=hashed - have_read)


class SharedReader:
    """Contents that several threads read: one that has no piece left reads for all.

    Each thread then writes its own pieces, so that one that cannot write holds up no other.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._readers: list[ContentReader] = []
        self._being_read: Sequence[ContentReader] = ()
        self._spent = NOTHING_SPENT  # on the last pieces

    def pieces(
        self, content: Content, wait_for_hash: Callable[[float], None] = lambda seconds: None
    ) -> Generator[memoryview, None, None]:
        """Yield the rest of a content, the last piece only if the content is consistent.

        Close the generator before the content: another thread may be reading it. `wait_for_hash` is
        called with the seconds in which another thread hashed for this one.
        """
        own = ContentReader(content)
        with self._changed:
            self._readers.append(own)
        try:
            while piece := self._take(own, wait_for_hash):
                yield memoryview(piece)
        finally:
            with self._changed:
                self._readers.remove(own)
                self._changed.wait_for(lambda: own not in self._being_read)  # it may be closed now

    def _take(self, own: ContentReader, wait_for_hash: Callable[[float], None]) -> bytes:
        while own.is_starved:
            readers = self._find_work(own, wait_for_hash)
            if not readers:
                continue
            try:
                self._spent = read_together(readers)
            except BaseException:
                # What was read of the others is lost, and a gap must not go unnoticed.
                for each in readers:
                    each.end(TransientError("Another file of the session failed.", code=LOST))
                raise
            finally:
                with self._changed:
                    self._being_read = ()
                    self._changed.notify_all()
        if own.error:
            raise own.error
        return own.pieces.popleft() if own.pieces else b""

    def _find_work(
        self, own: ContentReader, wait_for_hash: Callable[[float], None]
    ) -> Sequence[ContentReader]:
        """Return what this thread has to read; nothing if another thread has read for it."""
        with self._changed:
            if own.is_starved and self._being_read:
                began = time.monotonic()
                self._changed.wait_for(lambda: not (own.is_starved and self._being_read))
                waited = time.monotonic() - began
                wait_for_hash(waited * self._spent.hash / (self._spent.in_all or 1.0))
            if not own.is_starved:
                return ()
            self._being_read = [each for each in self._readers if each.has_room]
            return self._being_read
