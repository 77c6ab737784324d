"""Reading contents in several threads: each gets its own bytes, checked, and none waits for all."""

import hashlib
from contextlib import closing
from threading import Event, Thread

import pytest

from mydata_like.core.errors import FileChangedError, TransientError
from mydata_like.transfer.shared_reader import PIECE, SharedReader
from tests.fakes.content import Content

SIZES = [1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 10 * PIECE + 77, 64, 5 * PIECE, 2 * PIECE]
TIMEOUT = 30  # seconds


class Channel(Thread):
    """A thread that reads one content; `error` is what reading raised."""

    def __init__(self, reader, content, take=lambda piece: None):
        super().__init__(daemon=True)
        self.content = content
        self.received = b""
        self.early = False  # whether the last bytes came before the content was checked
        self.error = None
        self.waited = 0.0
        self._reader = reader
        self._take = take

    def run(self):
        try:
            with closing(self._reader.pieces(self.content, self._wait)) as pieces:
                for piece in pieces:
                    self._take(piece)
                    self.received += piece
                    complete = len(self.received) == len(self.content.data)
                    self.early |= complete and not self.content.finished
        except FileChangedError as error:
            self.error = error

    def _wait(self, seconds):
        self.waited += seconds

    @property
    def arrived(self):
        data = self.content.data
        return (
            self.error is None
            and self.received == data
            and not self.early
            and self.content.checksum.hexdigest()
            == hashlib.md5(data, usedforsecurity=False).hexdigest()
        )


def run(*channels):
    for channel in channels:
        channel.start()
    join(*channels)


def join(*channels):
    for channel in channels:
        channel.join(TIMEOUT)
        assert not channel.is_alive()


def test_contents_of_all_sizes_are_read_whole_and_checked():
    reader = SharedReader()
    channels = [Channel(reader, Content(size)) for size in SIZES * 3]
    run(*channels)
    assert all(channel.arrived for channel in channels)


def test_an_empty_content_has_no_pieces():
    assert list(SharedReader().pieces(Content(0))) == []


def test_who_needs_a_piece_reads_one_of_each_content_that_has_room():
    reader = SharedReader()
    contents = [Content(size * PIECE) for size in (10, 2, 10)]
    with closing(reader.pieces(contents[0])) as first, closing(reader.pieces(contents[1])) as other:
        assert next(first) == contents[0].data[:PIECE]
        assert next(other) == contents[1].data[:PIECE]
        assert contents[0].remaining == 8 * PIECE  # one taken, and one read for it
        assert list(reader.pieces(contents[2]))
        assert contents[0].remaining == 6 * PIECE  # no more than three ahead
        assert contents[1].finished
        assert b"".join(first) == contents[0].data[PIECE:]
        assert b"".join(other) == contents[1].data[PIECE:]


@pytest.mark.parametrize("wrong", [0, 2 * PIECE, 4 * PIECE])
def test_a_content_that_changes_fails_alone_and_never_gets_its_last_bytes(wrong):
    reader = SharedReader()
    good = [Channel(reader, Content(size)) for size in SIZES]
    bad = Channel(reader, Content(4 * PIECE, wrong=wrong))
    run(bad, *good)
    assert bad.error is not None
    assert len(bad.received) < len(bad.content.data)
    assert all(channel.arrived for channel in good)


def test_a_channel_that_cannot_write_holds_up_no_other():
    reader, may_go_on, blocked = SharedReader(), Event(), Event()

    def block(_):
        blocked.set()
        may_go_on.wait(TIMEOUT)

    stuck = Channel(reader, Content(20 * PIECE), block)
    stuck.start()
    assert blocked.wait(TIMEOUT)
    other = Channel(reader, Content(20 * PIECE))
    run(other)
    assert other.arrived
    may_go_on.set()
    join(stuck)
    assert stuck.arrived


def test_a_content_is_not_read_any_more_once_its_generator_is_closed():
    reader, may_go_on, reads, closed = SharedReader(), Event(), Event(), Event()

    class Slow(Content):
        def read(self, size):
            if may_go_on.is_set():
                reads.set()
                closed.wait(0.1)  # must not come: this thread reads the other content next
            return super().read(size)

    class Left(Content):
        late = False

        def read(self, size):
            self.late |= closed.is_set()
            return super().read(size)

    slow = Channel(reader, Slow(20 * PIECE), lambda piece: may_go_on.wait(TIMEOUT))
    slow.start()
    left = Left(20 * PIECE)
    pieces = reader.pieces(left)
    assert next(pieces)
    may_go_on.set()
    assert reads.wait(TIMEOUT)
    pieces.close()
    closed.set()
    join(slow)
    assert slow.arrived
    assert not left.late


def test_what_is_read_to_its_end_is_closed_while_another_content_cannot_be_read():
    reader, may_go_on, blocked = SharedReader(), Event(), Event()

    class Hanging(Content):
        def read(self, size):
            blocked.set()
            may_go_on.wait(TIMEOUT)
            return super().read(size)

    whole = Content(PIECE)
    pieces = reader.pieces(whole)
    assert next(pieces) == whole.data
    hanging = Channel(reader, Hanging(PIECE))
    hanging.start()
    assert blocked.wait(TIMEOUT)
    assert list(pieces) == []
    assert hanging.is_alive()  # so nothing waited for it
    may_go_on.set()
    join(hanging)
    assert hanging.arrived


@pytest.mark.parametrize("size", [2 * PIECE, 9 * PIECE])
def test_what_was_read_by_a_thread_that_failed_is_not_missing_unnoticed(size):
    reader = SharedReader()

    class Broken(Content):
        def read(self, size):
            raise MemoryError

    with closing(reader.pieces(Content(size))) as pieces:
        assert next(pieces)
        with pytest.raises(MemoryError):
            next(reader.pieces(Broken(PIECE)))
        with pytest.raises(TransientError, match="Another file of the session failed"):
            list(pieces)
    after = Channel(reader, Content(9 * PIECE))
    run(after)
    assert after.arrived
