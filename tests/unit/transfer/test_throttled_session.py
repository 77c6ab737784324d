"""Where a channel's time goes, by clocks that the tests move."""

import time
from threading import Thread

import pytest

from mydata_like.core.channel_time import TimeByCause
from mydata_like.core.token_bucket import TokenBucket
from mydata_like.ssh.session import CommandResult
from mydata_like.transfer.interleaved_sender import InterleavedSender
from mydata_like.transfer.shared_reader import SharedReader
from mydata_like.transfer.throttled_session import ChannelTimer, ThrottledSession


class Hands:
    """Two clocks: waiting moves the one on the wall, working both."""

    def __init__(self):
        self.wall = 100.0
        self.work = 7.0

    def wait(self, seconds):
        self.wall += seconds

    def toil(self, seconds):
        self.wall += seconds
        self.work += seconds


class Server:
    """A session with scripted times; a write's time is (work, line, shut)."""

    stack, cipher = "none", ""

    def __init__(self, hands, *, start=0.0, write=(0.0, 0.0, 0.0), finish=0.0):
        self.hands = hands
        self.times = start, write, finish
        self.blocked_seconds = 0.0

    def start(self, command):
        self.hands.wait(self.times[0])
        return self

    def write(self, data):
        work, line, shut = self.times[1]
        self.hands.toil(work)
        self.hands.wait(line + shut)
        self.blocked_seconds += shut

    def finish(self):
        self.hands.wait(self.times[2])
        return CommandResult(0, b"", b"")

    def read_ready(self):
        return b""

    def close(self):
        pass


def throttled(server, sheet):
    sender = InterleavedSender(server, lambda size, seconds: None)
    return ThrottledSession(server, TokenBucket(), sheet, sender, SharedReader())


class Desk:
    """A channel's timesheet, and the clocks it looks at."""

    def __init__(self):
        self.hands = Hands()
        self.sheet = ChannelTimer(lambda: self.hands.wall, lambda: self.hands.work)

    def carry(self, **times):
        """Return what a payload spent: read for 3 s, hashed for 2 s, sent to this server."""
        session = throttled(Server(self.hands, **times), self.sheet)
        before = self.sheet.spent
        self.sheet.begin()
        stream = session.start(b"take")
        self.hands.wait(3.0)
        self.hands.toil(2.0)
        stream.write(b"bytes")
        stream.finish()
        self.sheet.end()
        return rounded(self.sheet.spent.minus(before))


def rounded(spent):
    return TimeByCause(*(round(seconds, 6) for seconds in spent))


def test_every_second_counts_once_and_for_what_it_was_needed():
    spent = Desk().carry(write=(0.5, 0.25, 4.0), finish=1.0)

    assert spent == TimeByCause(source=3.0, hash=2.0, cipher=0.5, line=0.25, server=5.0)


@pytest.mark.parametrize(
    ("start", "channels", "server"),
    [
        (0.002, 0.0, 0.002 + 0.1 + 1.0),  # near: what takes so long is the server
        (0.2, 0.2 + 0.1 + 0.15, 1.0 - 0.15),  # far: an answer takes a round trip of 0.1 s
    ],
)
def test_an_answer_that_comes_as_soon_as_it_can_is_a_matter_of_the_way(start, channels, server):
    spent = Desk().carry(start=start, write=(0.0, 0.0, 0.1), finish=1.0)

    assert spent == rounded(TimeByCause(source=3.0, hash=2.0, channels=channels, server=server))


def test_what_was_spent_adds_up_over_payloads_and_counts_nothing_between_them():
    context = Desk()
    once = context.carry(finish=1.0)
    context.hands.wait(1000.0)

    assert context.carry(finish=1.0) == once
    assert rounded(context.sheet.spent) == rounded(once.times(2))


def test_a_payload_under_way_is_known_until_now():
    context = Desk()
    context.sheet.begin()
    context.hands.toil(2.0)
    assert context.sheet.spent == TimeByCause(hash=2.0)
    context.hands.wait(1.0)
    assert context.sheet.spent == TimeByCause(hash=2.0, source=1.0)


def test_waiting_for_a_thread_that_hashes_for_this_one_counts_as_hashing():
    context = Desk()
    context.sheet.begin()
    context.hands.wait(3.0)
    context.sheet.wait_for_hash(2.0)
    context.hands.toil(0.5)
    context.sheet.end()

    assert rounded(context.sheet.spent) == TimeByCause(source=1.0, hash=2.5)


def test_a_channel_waits_for_what_other_threads_of_its_payload_wait_for():
    context = Desk()
    session = throttled(Server(context.hands, write=(0.0, 8.0, 0.0)), context.sheet)
    context.sheet.begin()
    stripe = Thread(target=lambda: session.start(b"take").write(b"bytes"))
    stripe.start()
    stripe.join()
    context.sheet.end()

    assert context.sheet.spent == TimeByCause(line=8.0)


def test_the_work_of_another_thread_does_not_count_as_waiting_for_the_disk():
    context = Desk()
    context.hands.work = 0.0  # as for a thread that was made for the payload
    context.sheet.begin()

    def read_ahead():
        context.hands.wait(1.0)
        context.hands.toil(3.0)
        assert context.sheet.spent == TimeByCause()

    reader = Thread(target=read_ahead)
    reader.start()
    reader.join()
    context.hands.work = 0.0  # each thread has a clock of its own
    context.sheet.end()

    assert context.sheet.spent == TimeByCause(hash=3.0, source=1.0)


def test_nested_timings_are_not_counted_twice():
    context = Desk()

    def make():
        context.hands.toil(2.0)
        yield b"one"
        context.hands.wait(3.0)
        yield b"two"

    context.sheet.begin()
    with context.sheet.timed(lambda waited: TimeByCause(line=waited)):
        for _ in context.sheet.exclude(make()):
            context.hands.wait(0.5)
    context.sheet.end()

    assert context.sheet.spent == TimeByCause(hash=2.0, source=3.0, line=1.0)


def test_being_held_back_by_a_bandwidth_is_distinguished():
    sheet = ChannelTimer()
    sheet.begin()
    sheet.throttle(0.03)
    sheet.end()

    tick = time.get_clock_info("monotonic").resolution  # on Windows, half of that
    assert sheet.spent.bandwidth >= 0.03 - tick
