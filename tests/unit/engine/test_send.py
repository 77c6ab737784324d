"""Sending: only what is proven counts; the rest is sent again, alone if need be."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from random import Random
from threading import Barrier, Event, Semaphore

import pytest

from mydata_like.core.errors import (
    Cancelled,
    HostKeyError,
    Problem,
    ServerUnavailableError,
    StagingError,
    TransientError,
)
from mydata_like.core.events import (
    FileFailed,
    FileStaged,
    FileWaiting,
    LimitsChanged,
    RunPaused,
    RunResumed,
    TransferFinished,
    TransferRetried,
    TransferStarted,
)
from mydata_like.core.model import EntryState, Payload
from mydata_like.core.ports import SentFile, UnsentFile
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import WorkerGroup, stage
from mydata_like.engine.send import BLAMELESS, FULL_FOR, GAIN, SMALL, Send
from tests.fakes.clock import FakeClock
from tests.fakes.context import make_context
from tests.fakes.ledger import MemoryLedger
from tests.fakes.source import ListSource
from tests.unit.engine.files import CHECKSUM, a_staged, a_wanted, as_registered

CUT = Problem("link.lost", "The line was cut.")
UNPROVEN = Problem("staging.unproven", "The file did not arrive.")
CHANGED = Problem("file.changed", "The file changed while it was read.")
FULL = Problem("staging.full", "The staging area has no space for it.")
DENIED = Problem("staging.denied", "The staging area refuses this name.")


class ScriptedTransport:
    """Answers each send by the next entry of its script; after that all is well."""

    def __init__(self, *script, openings=(), reopenings=(), capacity=2):
        self.script = list(script)
        self.reopenings = list(reopenings)
        self.openings = list(openings)
        self.sent = []
        self.capacity = capacity
        self.round_trip = 0.0
        self.opened = 0

    def open_channel(self, wanted=0):
        if self.openings:
            opening = self.openings.pop(0)
            raise opening() if callable(opening) else opening
        self.opened += 1
        return ScriptedChannel(self, self.opened)

    def close(self):
        pass


class ScriptedChannel:
    def __init__(self, transport, number):
        self.transport = transport
        self.number = number
        self.closed = False
        self.is_cut = False

    def open(self):
        if self.transport.reopenings and (error := self.transport.reopenings.pop(0)):
            raise error

    def cut(self):
        self.is_cut = True

    def limit(self, rate):
        self.rate = rate

    def close(self):
        self.closed = True

    def send(self, payload, progress):
        self.transport.sent.append([member.file.name.decode() for member in payload.members])
        answer = self.transport.script.pop(0) if self.transport.script else {}
        if callable(answer):
            answer = answer(progress) or {}
        if self.is_cut:
            self.is_cut = False
            raise TransientError("The process ended.", code="channel.lost")
        if isinstance(answer, BaseException):
            raise answer
        progress(payload.size)
        if isinstance(answer, list):
            return answer
        return [
            UnsentFile(index, *answer[index]) if index in answer else SentFile(index, CHECKSUM)
            for index in range(len(payload.members))
        ]


class Bench:
    def __init__(self, *script, attempts=4, patience=100.0, transport=None, **options):
        self.clock = FakeClock()
        self.clock_cancel = self.clock.cancel()
        self.events = []
        self.hear = id  # called with each event
        self.ledger = MemoryLedger()
        self.transport = transport or ScriptedTransport(*script, **options)
        gate = Gate(
            self.clock,
            self.clock_cancel,
            self.emit,
            Random(1),
            patience=lambda error: 0.0 if isinstance(error, HostKeyError) else patience,
        )
        emit = self.emit
        self.context = make_context(gate, emit, transport=self.transport, ledger=self.ledger)
        self.channels, self.choices = self.context.channels, self.context.choices
        self.send = Send(self.context, attempts)

    def emit(self, event):
        self.events.append(event)
        self.hear(event)

    def __call__(self, *payloads):
        source = ListSource(list(payloads), self.clock)
        return [item for items in self.send(source) for item in items]

    def of_kind(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def batch(*names):
    return Payload(1, tuple(a_wanted(name) for name in names), batched=len(names) > 1)


def file_of(name, size):
    wanted = a_wanted(name)
    return Payload(1, (replace(wanted, file=wanted.file._replace(size=size)),), batched=False)


def names(staged):
    return [item.file.name.decode() for item in staged]


def test_what_is_proven_is_staged_and_kept_in_the_ledger():
    bench = Bench()

    staged = bench(batch("a", "b"))

    assert staged == [a_staged("a"), a_staged("b")]
    assert {entry.state for entry in bench.ledger.history} == {EntryState.STAGED}
    assert len(bench.of_kind(FileStaged)) == 2
    assert bench.of_kind(TransferFinished)[0].files == 2


def test_only_the_unproven_members_of_a_batch_are_sent_again():
    bench = Bench({1: (CUT, True)})

    staged = bench(batch("a", "b", "c"))

    assert bench.transport.sent == [["a", "b", "c"], ["b"]]
    assert sorted(names(staged)) == ["a", "b", "c"]


def test_what_fails_twice_together_travels_alone():
    bench = Bench({0: (CUT, True), 1: (CUT, True)}, {0: (CUT, True), 1: (CUT, True)})

    staged = bench(batch("a", "b"))

    assert bench.transport.sent == [["a", "b"], ["a", "b"], ["a"], ["b"]]
    assert len(staged) == 2


def test_a_broken_line_repeats_the_payload_after_a_rest():
    bench = Bench(TransientError("cut", code="link.lost"))

    staged = bench(batch("a", "b"))

    assert names(staged) == ["a", "b"]
    assert [event.attempt for event in bench.of_kind(TransferStarted)] == [1, 2]
    assert bench.of_kind(TransferRetried)[0].delay > 0


def test_a_file_that_moved_under_us_waits_for_the_next_run():
    bench = Bench({0: (CHANGED, False)})

    assert names(bench(batch("a", "b"))) == ["b"]
    assert bench.of_kind(FileWaiting)[0].problem == CHANGED
    assert bench.of_kind(FileFailed) == []


def test_a_file_that_the_staging_area_refuses_fails_alone():
    bench = Bench({0: (DENIED, False)})

    assert names(bench(batch("a", "b"))) == ["b"]
    assert bench.of_kind(FileFailed)[0].problem == DENIED


def test_attempts_are_bounded():
    bench = Bench(*[{0: (UNPROVEN, True)}] * 9, attempts=3)

    assert bench(batch("a")) == []
    assert len(bench.transport.sent) == 3
    assert bench.of_kind(FileFailed)[0].problem == UNPROVEN


def test_a_file_whose_line_was_cut_too_often_waits_for_a_better_one():
    bench = Bench(*[{0: (CUT, True)}] * 9, attempts=3)

    assert bench(batch("a")) == []
    assert bench.of_kind(FileFailed) == []
    assert bench.of_kind(FileWaiting)[0].problem == CUT


def breaking_at(size):
    """Return what breaks a line after so many bytes of a payload, as an entry of a script."""

    def send(progress):
        progress(size)
        raise TransientError("The line broke.", code="channel.lost")

    return send


def test_a_large_file_that_gets_further_each_time_does_not_use_its_attempts_up():
    bench = Bench(*[breaking_at(n * GAIN) for n in range(1, 20)], attempts=3)
    large = Payload(1, (a_wanted("large", size=20 * GAIN),), batched=False)

    assert names(bench(large)) == ["large"]
    assert bench.of_kind(TransferStarted)[-1].attempt == 20


def test_attempts_that_get_no_further_than_one_before_count():
    ends = [3 * GAIN, 2 * GAIN, 3 * GAIN, 3 * GAIN + GAIN // 2]
    bench = Bench(*map(breaking_at, ends), attempts=3)

    assert bench(Payload(1, (a_wanted("large", size=20 * GAIN),), batched=False)) == []
    assert len(bench.transport.sent) == 4


def test_what_another_channel_broke_off_is_not_held_against_a_file():
    dropped = TransientError("Another channel failed.", code="channel.dropped")
    bench = Bench(*[dropped] * 10, attempts=3)

    assert sorted(names(bench(batch("a", "b")))) == ["a", "b"]
    assert bench.transport.sent == [["a", "b"]] * 11


def test_not_even_blameless_attempts_go_on_for_ever():
    dropped = TransientError("Another channel failed.", code="channel.dropped")
    bench = Bench(*[dropped] * 1000, attempts=3)

    assert bench(batch("a")) == []
    assert len(bench.transport.sent) == 3 * BLAMELESS


def test_a_full_staging_area_pauses_the_run_once_and_goes_on_automatically():
    full = StagingError("The disk is full.", code="staging.full")
    bench = Bench(full, full)

    assert names(bench(batch("a"))) == ["a"]
    assert len(bench.of_kind(RunPaused)) == len(bench.of_kind(RunResumed)) == 1
    assert bench.of_kind(FileFailed) == []


def test_a_host_that_cannot_be_reached_pauses_the_run():
    away = TransientError("No answer.", code="link.refused")
    bench = Bench(openings=[away, away])

    assert names(bench(batch("a"))) == ["a"]
    assert bench.of_kind(RunPaused)[0].problem.code == "link.refused"


def test_the_run_goes_on_as_soon_as_a_lost_channel_stands_again():
    lost, away = TransientError("cut"), TransientError("No answer.", code="link.refused")
    bench = Bench(lost, reopenings=[None, away, away])
    told = []
    bench.transport.script.append(lambda _: told.extend(map(type, bench.events)))

    assert names(bench(batch("a"))) == ["a"]
    assert [kind for kind in told if kind in (RunPaused, RunResumed)] == [RunPaused, RunResumed]
    assert bench.of_kind(RunPaused)[0].problem.code == "link.refused"
    assert [event.attempt for event in bench.of_kind(TransferStarted)] == [1, 2]


def test_when_a_host_stays_away_nothing_more_is_sent_and_the_run_finishes():
    away = TransientError("No answer.", code="link.refused")
    bench = Bench(openings=[away] * 99)

    assert bench(batch("a"), batch("b")) == []
    assert isinstance(bench.choices.failure, ServerUnavailableError)
    assert bench.choices.finishing
    waiting = bench.of_kind(FileWaiting)
    assert [(event.path, event.problem.code) for event in waiting] == [
        (a_wanted(name).file.key, "run.stopping") for name in ("a", "b")
    ]


def test_a_changed_host_key_ends_sending_at_once():
    bench = Bench(openings=[HostKeyError("Another key.")])

    assert bench(batch("a")) == []
    assert isinstance(bench.choices.failure, HostKeyError)
    assert bench.of_kind(RunPaused) == []


def test_what_arrived_before_the_staging_area_was_full_goes_on():
    full = StagingError("The staging area is full.", code="staging.full")
    bench = Bench({}, *[full] * 99)

    assert names(bench(batch("a"), batch("b"))) == ["a"]
    assert bench.choices.failure is full
    assert [event.files for event in bench.of_kind(TransferFinished)] == [1, 0]


def test_what_does_not_fit_waits_and_smaller_files_are_sent():
    unfit = {0: (FULL, True)}
    bench = Bench(unfit, unfit)

    staged = bench(file_of("large", 2 * SMALL), file_of("larger", 3 * SMALL), file_of("small", 9))

    assert bench.transport.sent == [["large"], ["large"], ["small"]]
    assert names(staged) == ["small"]
    assert [event.problem.code for event in bench.of_kind(FileWaiting)] == ["staging.full"] * 2
    assert bench.choices.failure.problem_code == "staging.full"
    assert bench.of_kind(RunPaused) == []


def test_where_not_even_a_small_file_fits_the_run_waits():
    unfit = {0: (FULL, True)}
    bench = Bench(unfit, unfit)

    assert names(bench(file_of("small", 9))) == ["small"]
    assert [event.problem.code for event in bench.of_kind(RunPaused)] == ["staging.full"]
    assert bench.choices.failure is None


def test_what_fits_of_a_batch_is_sent_first():
    sizes = {"a": 300, "b": 200, "c": 100}
    members = tuple(file_of(name, size).members[0] for name, size in sizes.items())
    bench = Bench({n: (FULL, True) for n in range(3)}, {2: (FULL, True)})

    staged = bench(Payload(1, members, batched=True))

    assert bench.transport.sent == [["a", "b", "c"], ["c", "b", "a"], ["a"]]
    assert sorted(names(staged)) == ["a", "b", "c"]
    assert bench.of_kind(RunPaused) == []


def test_after_a_while_large_files_are_tried_again():
    unfit = {0: (FULL, True)}
    bench = Bench(unfit, unfit)
    bench(file_of("large", 2 * SMALL))
    bench.clock.move(FULL_FOR)

    assert names(bench(file_of("larger", 3 * SMALL))) == ["larger"]


def test_a_full_staging_area_is_no_limit_of_channels_even_if_two_are_opened_at_once():
    both = Barrier(2, timeout=5)
    full = StagingError("The staging area is full.", code="staging.full")

    def open_both():
        both.wait()
        return full

    bench = Bench(openings=[open_both, open_both])
    with ThreadPoolExecutor(2) as threads:
        opened = [*threads.map(lambda _: bench.channels.open_another(), range(2))]

    assert None not in opened
    assert {event.problem.code for event in bench.of_kind(RunPaused)} == {"staging.full"}
    assert bench.of_kind(LimitsChanged) == []


class SlowTransport(ScriptedTransport):
    """Opens the first channel at once, and others when `released` is set."""

    def __init__(self, *script, **options):
        super().__init__(*script, **options)
        self.asked, self.released = Semaphore(0), Event()

    def open_channel(self, wanted=0):
        if self.opened:
            self.asked.release()
            assert self.released.wait(5)
        return super().open_channel(wanted)


def test_an_open_channel_sends_what_waits_for_one_that_is_being_opened():
    def wait(_):
        assert transport.asked.acquire(timeout=5)

    transport = SlowTransport(wait, lambda _: transport.released.set())
    transport.round_trip = 0.04
    bench = Bench(transport=transport)

    with WorkerGroup(bench.clock_cancel) as group:
        staged = stage(group, bench.send, [batch("a"), batch("b")], workers=2)
        sent = sorted(names(chain.from_iterable(staged)))

    assert sent == ["a", "b"]
    assert [event.channel for event in bench.of_kind(TransferFinished)] == [1, 1]


def test_a_worker_whose_payload_was_sent_opens_no_channel():
    bench = Bench(capacity=1)
    wanted = ["the payload"]
    with bench.channels.borrowed(), ThreadPoolExecutor(1) as thread:

        def wait():
            with bench.channels.borrowed_while(lambda: wanted) as channel:
                return channel

        waiting = thread.submit(wait)
        wanted.clear()

        assert waiting.result(timeout=5) is None


def test_at_most_two_channels_to_a_far_host_are_opened_at_once():
    bench = Bench(transport=SlowTransport(capacity=4))
    bench.transport.round_trip = 0.04
    with bench.channels.borrowed(), ThreadPoolExecutor(2) as threads:
        opening = [threads.submit(bench.channels.open_another) for _ in range(2)]
        for _ in opening:
            assert bench.transport.asked.acquire(timeout=5)

        assert bench.channels.open_another() is None
        bench.transport.released.set()
        assert None not in [it.result() for it in opening]
    assert bench.channels.open_another()


def test_fewer_channels_than_workers_are_no_failure():
    bench = Bench()
    refused = TransientError("No more sessions.", code="channel.refused")
    with bench.channels.borrowed() as first:
        number = first.number
    with bench.channels.borrowed() as lent:
        bench.transport.openings = [refused]
        other = bench.channels.open_another()

    assert other is None
    assert lent.number == number
    assert bench.of_kind(LimitsChanged)[0].channels == 1
    assert bench.channels.limit == 1
    bench.clock.move(31)
    assert bench.channels.limit == 2


def test_a_lost_channel_that_the_host_refuses_gives_way_to_another():
    refused = TransientError("Too many logins.", code="channel.refused")
    bench = Bench(attempts=1)
    with bench.channels.borrowed() as lost, bench.channels.borrowed() as other:
        pass
    bench.transport.reopenings = [refused] * 3

    staged = bench(batch("a"), batch("b"))

    assert names(staged) == ["a", "b"]
    assert sorted([lost.closed, other.closed]) == [False, True]
    assert [event.channels for event in bench.of_kind(LimitsChanged)] == [1]
    assert bench.of_kind(RunPaused) == []


def test_the_last_channel_that_the_host_refuses_waits_for_it():
    refused = TransientError("Too many logins.", code="channel.refused")
    bench = Bench(attempts=9, reopenings=[None, refused, refused, refused, refused])

    assert names(bench(batch("a"), batch("b"))) == ["a", "b"]
    assert bench.of_kind(LimitsChanged) == []


def test_a_small_staging_host_gets_no_more_channels_than_it_has_processors():
    bench = Bench(capacity=2)
    with bench.channels.borrowed():
        bench.transport.capacity = 1

        assert bench.channels.open_another() is None
    assert bench.transport.opened == 1


def test_what_needs_no_transfer_opens_no_channel():
    bench = Bench()
    registered = as_registered(a_wanted("r"), CHECKSUM)

    assert bench([a_staged("s"), registered]) == [a_staged("s"), registered]
    assert bench.transport.opened == 0
    assert a_staged("s").state is EntryState.STAGED


def test_a_channel_that_was_idle_for_long_is_replaced():
    bench = Bench()

    for idle, opened in [(0, 1), (100, 1), (150, 2), (100, 2)]:
        bench.clock.move(idle)
        bench(batch("a"))
        assert bench.transport.opened == opened


def test_a_cancelled_member_is_left_and_the_others_are_sent_at_once():
    bench = Bench()
    bench.transport.script = [lambda _: bench.choices.cancel("alice/Set 1/b")]

    staged = bench(batch("a", "b", "c"))

    assert bench.transport.sent == [["a", "b", "c"], ["a", "c"]]
    assert sorted(names(staged)) == ["a", "c"]
    assert [event.problem.code for event in bench.of_kind(FileWaiting)] == ["file.cancelled"]
    assert bench.of_kind(TransferRetried) == bench.of_kind(FileFailed) == []
    assert bench.clock.monotonic() == 0
    started, finished = bench.of_kind(TransferStarted), bench.of_kind(TransferFinished)
    assert [event.attempt for event in started] == [1, 1]
    assert [event.files for event in finished] == [0, 2]


def test_a_cancelled_transfer_is_left_with_all_of_its_members():
    bench = Bench()
    both = batch("a", "b"), replace(batch("c"), id=2)
    bench.transport.script = [lambda _: bench.choices.cancel_transfer(both[0].id)]

    staged = bench(*both)

    assert bench.transport.sent == [["a", "b"], ["c"]]
    assert names(staged) == ["c"]
    assert [event.problem.code for event in bench.of_kind(FileWaiting)] == ["file.cancelled"] * 2
    assert [event.files for event in bench.of_kind(TransferFinished)] == [0, 1]
    assert bench.choices.cancel_transfer(both[0].id).code == "command.no-transfer"


def test_a_transfer_can_be_cancelled_while_the_run_waits_for_its_host():
    bench = Bench(StagingError("The disk is full.", code="staging.full"))

    def cancel(event):
        if isinstance(event, RunPaused):
            bench.choices.cancel_transfer(1)

    bench.hear = cancel
    assert bench(batch("a", "b")) == []

    assert len(bench.of_kind(FileWaiting)) == 2
    assert len(bench.of_kind(TransferStarted)) == len(bench.of_kind(TransferFinished)) == 1


def test_what_a_cancelled_transfer_left_can_be_wanted_again():
    bench = Bench()
    bench.transport.script = [lambda _: bench.choices.cancel_transfer(1)]
    bench(batch("a"))

    assert bench.choices.retry("alice/Set 1/a") is None
    again = bench.choices.take_again()
    assert names(bench(Payload(2, tuple(again), batched=False))) == ["a"]


@pytest.mark.parametrize(
    ("cancel", "release"),
    [
        (lambda it: it.cancel("alice"), lambda it: it.retry("alice")),
        (lambda it: it.cancel_transfer(1), lambda it: it.retry_transfer(1)),
    ],
    ids=["path", "transfer"],
)
def test_what_is_released_before_it_was_left_is_sent_again_at_once(cancel, release):
    bench = Bench()
    refused = []

    def change_mind(_):
        cancel(bench.choices)
        refused.append(release(bench.choices))

    bench.transport.script = [change_mind]
    staged = bench(batch("a", "b"))

    assert (names(staged), refused) == (["a", "b"], [None])
    assert bench.transport.sent == [["a", "b"]] * 2
    assert all(item.interrupted for item in staged)
    assert bench.of_kind(FileWaiting) == bench.of_kind(TransferRetried) == []
    assert bench.clock.monotonic() == 0


def test_what_a_cancelled_transfer_left_can_be_released_by_its_number():
    bench = Bench()
    bench.transport.script = [lambda _: bench.choices.cancel_transfer(1)]
    bench(batch("a", "b"))

    assert bench.choices.retry_transfer(1) is None

    again = bench.choices.take_again()
    assert names(bench(Payload(2, tuple(again), batched=True))) == ["a", "b"]


def test_what_was_cancelled_before_its_turn_opens_no_channel():
    bench = Bench()
    bench.choices.cancel("alice")

    assert bench(batch("a")) == []
    assert (bench.transport.opened, len(bench.of_kind(FileWaiting))) == (0, 1)


def test_what_failed_can_be_wanted_again():
    bench = Bench({0: (DENIED, False)})
    bench(batch("a"))

    assert bench.choices.retry("alice/Set 1") is None
    assert [wanted.file.name for wanted in bench.choices.take_again()] == [b"a"]


def test_nothing_is_begun_while_the_run_is_held():
    bench = Bench()
    bench.context.gate.hold("person", CUT)
    bench.clock_cancel.set_after(60)

    with pytest.raises(Cancelled):
        bench(batch("a"))

    assert (bench.transport.opened, bench.of_kind(TransferStarted)) == (0, [])


def test_fewer_channels_close_those_too_many():
    bench = Bench(capacity=3)
    with bench.channels.borrowed() as one, bench.channels.borrowed() as two:
        with bench.channels.borrowed() as three:
            pass
        bench.channels.set_channels(1)
        assert (one.closed, two.closed, three.closed) == (False, False, True)

    assert sorted([one.closed, two.closed]) == [False, True]
    bench.channels.set_channels(2)
    with bench.channels.borrowed(), bench.channels.borrowed():
        assert bench.transport.opened == 4


def test_only_as_many_workers_as_channels_have_a_turn():
    bench = Bench(capacity=3)
    bench.channels.set_channels(1)
    bench.clock_cancel.set()

    with bench.channels.turn(), pytest.raises(Cancelled), bench.channels.turn():
        raise AssertionError


def test_a_sender_that_is_left_by_a_run_that_ends_says_nothing():
    bench = Bench()
    sending = bench.send(ListSource([batch("a")], bench.clock))
    next(sending)
    bench.clock_cancel.set()

    sending.close()  # as the interpreter does: errors raised then are only printed


def test_a_batch_is_noted_until_all_of_it_has_arrived():
    noted = []

    def look(_):
        noted.append(dict(bench.ledger.batches))

    bench = Bench(look)
    members = batch("a", "b").members

    assert names(bench(batch("a", "b"))) == ["a", "b"]
    assert noted == [{1: [member.file.key for member in members]}]
    assert bench.ledger.batches == {}


def test_a_batch_of_which_a_part_is_given_up_stays_noted():
    bench = Bench({0: (DENIED, False)})

    assert names(bench(batch("a", "b"))) == ["b"]
    assert len(bench.ledger.batches) == 1


def test_a_single_file_is_not_noted():
    bench = Bench(lambda _: noted.append(dict(bench.ledger.batches)))
    noted = []

    bench(batch("a"))

    assert noted == [{}]


def test_members_of_a_batch_that_an_earlier_run_began_may_have_arrived():
    bench = Bench()
    bench.ledger.note_batch([member.file.key for member in batch("b", "c").members])
    send = Send(bench.context, 4)

    staged = [item for items in send(ListSource([batch("a", "b")], bench.clock)) for item in items]

    begun = {item.file.name: item.interrupted for item in staged}
    assert begun == {b"a": False, b"b": True}
    assert len(bench.ledger.batches) == 1  # its other file may come later
    send.end()
    assert bench.ledger.batches == {}


def test_after_a_lost_line_the_members_of_a_batch_may_have_arrived():
    bench = Bench(TransientError("The line was cut."))

    assert all(item.interrupted for item in bench(batch("a", "b")))
