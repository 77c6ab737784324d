"""Sending several contents over one session: each arrives whole, and what fails fails alone."""

import hashlib
from threading import Event, Thread

import pytest

from mydata_like.core.channel_time import NOTHING_SPENT, TimeByCause
from mydata_like.core.errors import FileChangedError, TransientError
from mydata_like.core.token_bucket import TokenBucket
from mydata_like.transfer.interleaved_sender import InterleavedSender, Transmission
from mydata_like.transfer.shared_reader import PIECE
from tests.fakes.content import Content

SIZES = [1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 10 * PIECE + 77, 64, 5 * PIECE, 2 * PIECE]


class Stream:
    """What a command has received; it takes `most` bytes at once, and ends after `end` bytes."""

    def __init__(self, content, most=PIECE, end=None):
        self.content = content
        self.received = b""
        self.window = most
        self.end = end
        self.early = False  # whether the last bytes came before the content was checked

    def take(self, data):
        if self.end is not None and len(self.received) >= self.end:
            return None
        taken = data[: self.window]
        self.received += taken
        complete = len(self.received) == len(self.content.data)
        self.early |= complete and not self.content.finished
        return len(taken)


class Session:
    """A session that breaks after a number of writes."""

    def __init__(self, breaks_after=None):
        self.blocked_seconds = 0.0
        self.together = set()
        self.waits = Event()
        self._left = breaks_after

    def write_some(self, pieces, moved=None):
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise TransientError("The connection broke.", code="channel.lost")
        self.together.add(len(pieces))
        sizes = [stream.take(piece) for stream, piece in pieces]
        if moved is not None and not any(size != 0 for size in sizes):
            self.waits.set()
        return sizes


class Sheet:
    def __init__(self):
        self.spent = NOTHING_SPENT

    def add(self, spent):
        self.spent = self.spent.plus(spent)

    def answer(self, waited):
        return TimeByCause(server=waited)


class Channel(Thread):
    """A thread that sends one content; `error` is what it raised."""

    def __init__(self, sender, stream, moving=None, bucket=None):
        super().__init__(daemon=True)
        self.stream = stream
        self.sheet = Sheet()
        self.moved = 0
        self.error = None
        self.complete = None
        self._sender = sender
        self._moving = moving
        self._bucket = bucket or TokenBucket()

    def run(self):
        own = Transmission(self.stream.content, self.stream, self._bucket, self.sheet, self._count)
        try:
            self.complete = self._sender.send(own)
        except (FileChangedError, TransientError) as error:
            self.error = error

    def _count(self, size):
        self.moved += size
        if self._moving:
            self._moving(self.moved)

    @property
    def arrived(self):
        content = self.stream.content
        checksum = hashlib.md5(content.data, usedforsecurity=False).hexdigest()
        return (
            self.error is None
            and self.complete
            and self.stream.received == content.data
            and not self.stream.early
            and self.moved == len(content.data)
            and content.checksum.hexdigest() == checksum
        )


def build(session=None):
    return InterleavedSender(session or Session(), lambda size, seconds: None)


def run(*channels):
    for channel in channels:
        channel.start()
    for channel in channels:
        channel.join(30)
        assert not channel.is_alive()


@pytest.mark.parametrize("most", [PIECE, 1000 * 64 + 1, 2 * PIECE])
def test_contents_of_all_sizes_arrive_whole_and_checked(most):
    sender = build()
    channels = [Channel(sender, Stream(Content(size), most)) for size in SIZES]
    run(*channels)
    assert all(channel.arrived for channel in channels)


def test_one_content_after_another_arrives():
    sender = build()
    for size in SIZES:
        channel = Channel(sender, Stream(Content(size)))
        run(channel)
        assert channel.arrived


@pytest.mark.parametrize("wrong", [0, PIECE, 3 * PIECE])
def test_a_file_that_changes_fails_alone_and_never_gets_its_last_bytes(wrong):
    sender = build()
    bad = Channel(sender, Stream(Content(3 * PIECE, wrong)))
    good = [Channel(sender, Stream(Content(size))) for size in SIZES]
    run(bad, *good)
    assert isinstance(bad.error, FileChangedError)
    assert len(bad.stream.received) < 3 * PIECE
    assert all(channel.arrived for channel in good)


def test_a_payload_that_is_cancelled_ends_alone():
    def cancel(moved):
        if moved > PIECE:
            raise TransientError("It is not wanted any more.", code="file.cancelled")

    sender = build()
    unwanted = Channel(sender, Stream(Content(9 * PIECE)), cancel)
    good = [Channel(sender, Stream(Content(size))) for size in SIZES]
    run(unwanted, *good)
    assert unwanted.error.problem_code == "file.cancelled"
    assert len(unwanted.stream.received) < 9 * PIECE
    assert all(channel.arrived for channel in good)


def test_a_command_that_ends_gets_no_more_and_is_no_error():
    sender = build()
    ended = Channel(sender, Stream(Content(9 * PIECE), end=PIECE))
    good = Channel(sender, Stream(Content(9 * PIECE)))
    run(ended, good)
    assert ended.error is None
    assert not ended.complete
    assert len(ended.stream.received) == PIECE
    assert good.arrived


def test_a_command_that_takes_nothing_holds_up_no_other():
    session = Session()
    sender = build(session)
    stuck = Channel(sender, Stream(Content(9 * PIECE), most=0))
    stuck.start()
    assert session.waits.wait(30)  # it leads, and waits
    good = [Channel(sender, Stream(Content(size))) for size in SIZES]
    run(*good)
    assert all(channel.arrived for channel in good)
    stuck.stream.window = PIECE
    stuck.join(30)
    assert stuck.arrived


def test_when_the_connection_breaks_all_fail_each_with_its_own_error():
    sender = build(Session(breaks_after=3))
    channels = [Channel(sender, Stream(Content(9 * PIECE))) for _ in range(3)]
    run(*channels)
    assert {channel.error.problem_code for channel in channels} == {"channel.lost"}
    assert len({id(channel.error) for channel in channels}) == 3


def test_an_unexpected_error_is_raised_where_it_happened_and_ends_the_others():
    class Faulty(Session):
        def write_some(self, pieces, moved=None):
            if len(pieces) == 2:
                raise BufferError("a mistake")
            return super().write_some(pieces, moved)

    def join(_):
        if other.ident is None:
            other.start()

    sender = build(Faulty())
    other = Channel(sender, Stream(Content(PIECE)))
    content = Content(PIECE)
    own = Transmission(content, Stream(content, most=0), TokenBucket(), Sheet(), join)
    with pytest.raises(BufferError):
        sender.send(own)
    other.join(30)
    assert other.error.problem_code == "channel.lost"


def test_a_limited_channel_keeps_its_rate_and_the_others_theirs():
    sender = build()
    bucket = TokenBucket()
    bucket.limit(2 * PIECE)
    limited = Channel(sender, Stream(Content(PIECE)), bucket=bucket)
    free = Channel(sender, Stream(Content(64 * PIECE)))
    run(limited, free)
    assert limited.arrived
    assert free.arrived


def test_waiting_for_the_bandwidth_limit_counts_as_that():
    bucket = TokenBucket()
    bucket.limit(10 * PIECE)
    channel = Channel(build(), Stream(Content(2 * PIECE)), bucket=bucket)
    run(channel)
    assert channel.arrived
    assert channel.sheet.spent.bandwidth > 0
