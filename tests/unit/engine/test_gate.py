"""Waiting before the next attempt, and pausing a whole run."""

import itertools
import random
import threading
from collections.abc import Callable, Iterable, Iterator

import pytest

from mydata_like.core.errors import (
    Cancelled,
    HostKeyError,
    Problem,
    RunError,
    ServerUnavailableError,
    SettingsError,
    StagingError,
    TransientError,
    WaitRequestedError,
)
from mydata_like.core.events import Event, RetryScheduled, RunPaused, RunResumed
from mydata_like.engine.gate import FIRST_PROBE, LONGEST_PROBE, Gate
from mydata_like.engine.pipeline import CancelFlag, WorkerGroup, stage
from tests.fakes.clock import FakeCancel, FakeClock

AWAY = ServerUnavailableError("The server is away.")
BY_HAND = Problem("run.paused", "Paused by hand.")
QUIET = Problem("run.quiet", "These are quiet hours.")


class Yard:
    """A gate with its surroundings."""

    def __init__(self, **gate: Callable[[RunError], float]) -> None:
        self.clock = FakeClock()
        self.cancel = FakeCancel(self.clock)
        self.events: list[Event] = []  # but for the next ones
        self.tries: list[RetryScheduled] = []
        self.gate = Gate(self.clock, self.cancel, self._take, random.Random(1), **gate)

    def _take(self, event: Event) -> None:
        (self.tries if isinstance(event, RetryScheduled) else self.events).append(event)

    @property
    def told(self) -> list[str]:
        return [
            event.problem.code if isinstance(event, RunPaused) else type(event).__name__
            for event in self.events
        ]


@pytest.fixture
def yard() -> Yard:
    return Yard()


def test_a_condition_of_the_staging_hosts_stops_only_those_that_use_them(yard):
    full = StagingError("Full.", code="staging.full")
    seen = []

    def send() -> str:
        seen.append(yard.gate.call(lambda: "registered"))
        if len(seen) < 3:
            raise full
        return "sent"

    assert yard.gate.call(send, staging=True) == "sent"
    assert seen == ["registered"] * 3
    assert yard.told == ["staging.full", "RunResumed"]
    assert yard.gate.stopped == 0.0


def raising(*errors: BaseException) -> Callable[[], str]:
    """Return an action that raises these one after another, then succeeds."""
    left = iter(errors)

    def action() -> str:
        for error in left:
            raise error
        return "done"

    return action


def test_what_succeeds_passes_without_a_word(yard: Yard) -> None:
    assert yard.gate.call(raising()) == "done"
    assert yard.events == []


def test_a_condition_pauses_once_and_ends_automatically(yard: Yard) -> None:
    assert yard.gate.call(raising(AWAY, AWAY, AWAY)) == "done"

    assert yard.told == ["server.unavailable", "RunResumed"]
    assert yard.clock.monotonic() == pytest.approx(5 + 10 + 20)


def test_each_try_is_announced_with_its_time(yard: Yard) -> None:
    begun, tried = yard.clock.now(), []

    def ask() -> None:
        tried.append(yard.clock.now())
        if len(tried) < 4:
            raise AWAY

    yard.gate.call(ask)
    yard.gate.hold("person", BY_HAND)

    assert tried == [begun, *(it.at for it in yard.tries)]


def test_the_gate_knows_for_how_long_it_was_closed(yard: Yard) -> None:
    yard.gate.hold("person", BY_HAND)
    yard.clock.move(1000)
    yard.gate.release("person")
    yard.gate.call(raising(AWAY, AWAY, AWAY))
    yard.clock.move(1000)
    yard.gate.call(raising(AWAY))

    assert yard.gate.stopped == pytest.approx(5 + 10 + 20 + 5)


def test_probes_become_rarer_up_to_a_limit(yard: Yard) -> None:
    asked_at: list[float] = []

    def ask() -> None:
        asked_at.append(yard.clock.monotonic())
        if len(asked_at) < 9:
            raise AWAY

    yard.gate.call(ask)

    intervals = [later - earlier for earlier, later in itertools.pairwise(asked_at)]
    assert intervals[0] == pytest.approx(FIRST_PROBE)
    assert intervals == sorted(intervals)
    assert intervals[-1] == pytest.approx(LONGEST_PROBE)


def asking(rest: float) -> WaitRequestedError:
    return WaitRequestedError(f"Wait for {rest:g} seconds.", rest=rest)


def test_a_server_that_asks_us_to_wait_is_asked_once_a_minute_and_when_that_is_over(
    yard: Yard,
) -> None:
    asked_at: list[float] = []

    def ask() -> None:
        asked_at.append(yard.clock.monotonic())
        rest = 150 - yard.clock.monotonic()
        if rest > 0:
            raise asking(rest)

    yard.gate.call(ask)

    assert asked_at == pytest.approx([0, 60, 120, 150])
    assert yard.told == ["server.wait-requested", "RunResumed"]


def test_a_server_that_asks_us_to_wait_longer_is_reported_when_the_first_time_is_over(
    yard: Yard,
) -> None:
    yard.gate.call(raising(asking(90), asking(91), asking(92), asking(93)))

    assert yard.told == ["server.wait-requested"] * 2 + ["RunResumed"]
    assert yard.clock.monotonic() == pytest.approx(4 * 60)


def test_a_pause_lasts_no_longer_than_the_patience() -> None:
    yard = Yard(patience=lambda error: 100.0)

    with pytest.raises(WaitRequestedError):
        yard.gate.call(raising(*[asking(3600)] * 9))

    assert yard.clock.monotonic() == pytest.approx(100)


def test_a_pause_within_another_call_ends_as_soon_as_a_look_succeeds(yard: Yard) -> None:
    def read() -> str:
        yard.gate.pause(asking(600), raising(asking(500), asking(400)))
        return "read"

    assert yard.gate.call(read) == "read"
    assert yard.told == ["server.wait-requested", "RunResumed"]
    assert yard.clock.monotonic() == pytest.approx(3 * 60)


def test_who_finds_out_the_same_while_another_one_probes_leaves_that_to_it(yard: Yard) -> None:
    seen: list[str] = []

    def look() -> None:
        with pytest.raises(WaitRequestedError):
            yard.gate.pause(asking(600), lambda: seen.append("twice"))

    yard.gate.pause(asking(600), look)

    assert seen == []


def test_a_condition_that_becomes_another_is_reported_again(yard: Yard) -> None:
    yard.gate.call(raising(AWAY, AWAY, HostKeyError("Another key."), HostKeyError("Another key.")))

    assert yard.told == ["server.unavailable", "host-key.unknown", "RunResumed"]


def test_the_same_condition_is_reported_again_when_it_comes_back(yard: Yard) -> None:
    yard.gate.call(raising(AWAY))
    yard.gate.call(raising(AWAY))

    assert yard.told == ["server.unavailable", "RunResumed"] * 2


@pytest.mark.parametrize("error", [TransientError("later"), SettingsError("wrong"), OSError()])
def test_errors_that_pause_nothing_are_the_callers(yard: Yard, error: Exception) -> None:
    with pytest.raises(type(error)):
        yard.gate.call(raising(error))

    assert yard.events == []


def test_an_error_of_one_file_ends_the_pause_of_all(yard: Yard) -> None:
    with pytest.raises(TransientError):
        yard.gate.call(raising(AWAY, TransientError("only this file")))

    assert yard.told == ["server.unavailable", "RunResumed"]
    assert yard.gate.call(raising()) == "done"


def test_a_request_to_stop_ends_the_wait(yard: Yard) -> None:
    yard.cancel.set_after(11)

    with pytest.raises(Cancelled):
        yard.gate.call(raising(AWAY, AWAY, AWAY))

    assert yard.told == ["server.unavailable"]
    assert yard.clock.monotonic() == pytest.approx(11)


def test_nothing_begins_once_stopping_was_asked_for(yard: Yard) -> None:
    yard.cancel.set()

    with pytest.raises(Cancelled):
        yard.gate.call(raising())


def test_an_error_while_stopping_is_not_a_condition(yard: Yard) -> None:
    def break_off() -> None:
        yard.cancel.set()
        raise AWAY

    with pytest.raises(Cancelled):
        yard.gate.call(break_off)

    assert yard.events == []


def test_patience_ends_with_the_condition_itself() -> None:
    yard = Yard(patience=lambda error: 100.0)

    with pytest.raises(ServerUnavailableError):
        yard.gate.call(raising(*[AWAY] * 9))

    assert 100 <= yard.clock.monotonic() <= 300
    again = "The run tries again automatically, 60 seconds later at most."
    outage = AWAY.problem._replace(hint=again)
    assert yard.events == [RunPaused(problem=outage)]  # the run ends, it does not go on


def test_only_a_pause_says_that_the_run_tries_again() -> None:
    full = StagingError("The staging area is full.", hint="Free space.", code="staging.full")
    yard = Yard(patience=lambda error: 100.0)

    with pytest.raises(StagingError) as ended:
        yard.gate.call(raising(*[full] * 9), staging=True)

    again = "Free space. The run tries again automatically, 60 seconds later at most."
    assert yard.events == [RunPaused(problem=full.problem._replace(hint=again))]
    assert ended.value.hint == "Free space."


def test_a_hold_keeps_from_sending_until_it_is_released(yard: Yard) -> None:
    yard.gate.hold("person", BY_HAND)
    yard.gate.hold("person", BY_HAND)
    yard.cancel.set_after(10)

    with pytest.raises(Cancelled):
        yard.gate.wait_released()

    assert yard.clock.monotonic() == 10
    assert yard.told == ["run.paused"]


def test_a_hold_lets_what_is_under_way_be_finished(yard: Yard) -> None:
    yard.gate.hold("person", BY_HAND)

    assert yard.gate.call(raising()) == "done"


def test_what_nothing_holds_is_sent_at_once(yard: Yard) -> None:
    yard.gate.wait_released()

    assert (yard.clock.monotonic(), yard.events) == (0, [])


def test_the_run_goes_on_when_the_last_hold_is_released(yard: Yard) -> None:
    yard.gate.hold("person", BY_HAND)
    yard.gate.hold("quiet", QUIET)
    yard.gate.release("person")
    assert yard.gate.held

    yard.gate.release("quiet")
    yard.gate.release("quiet")

    assert not yard.gate.held
    assert yard.told == ["run.paused", "run.quiet", "RunResumed"]


def test_the_newest_hold_that_is_left_is_reported(yard: Yard) -> None:
    yard.gate.hold("quiet", QUIET)
    yard.gate.hold("person", BY_HAND)
    yard.gate.release("person")

    assert yard.told == ["run.quiet", "run.paused", "run.quiet"]


def test_a_hold_with_another_reason_is_reported_again(yard: Yard) -> None:
    yard.gate.hold("programs", QUIET)
    yard.gate.hold("programs", QUIET._replace(message="Another program runs."))
    yard.gate.release("programs")

    assert yard.told == ["run.quiet", "run.quiet", "RunResumed"]


def test_hurrying_looks_at_once_whether_the_condition_is_gone(yard: Yard) -> None:
    attempts: list[float] = []

    def note() -> str:
        attempts.append(yard.clock.monotonic())
        if len(attempts) == 2:
            yard.gate.hurry()
        if len(attempts) < 4:
            raise AWAY
        return "done"

    yard.gate.call(note)

    assert attempts[2] == attempts[1]
    assert attempts[3] - attempts[2] > FIRST_PROBE


def test_a_hold_outlasts_a_condition(yard: Yard) -> None:
    attempts = iter([AWAY, None])

    def ask() -> None:
        error = next(attempts)
        if error is None:
            yard.gate.hold("person", BY_HAND)
            return
        raise error

    yard.gate.call(ask)
    assert yard.told == ["server.unavailable", "run.paused"]

    yard.gate.release("person")
    assert yard.told[-1] == "RunResumed"


def test_a_condition_within_a_hold_is_reported_and_then_the_hold_again(yard: Yard) -> None:
    yard.gate.hold("person", BY_HAND)

    yard.gate.call(raising(AWAY))

    assert yard.told == ["run.paused", "server.unavailable", "run.paused"]


def test_resting_is_cut_short_by_a_request_to_stop(yard: Yard) -> None:
    yard.gate.rest(5)
    yard.cancel.set_after(1)

    with pytest.raises(Cancelled):
        yard.gate.rest(5)

    assert yard.clock.monotonic() == 6


def test_delays_grow_at_random(yard: Yard) -> None:
    first = [yard.gate.backoff(1) for _ in range(200)]
    late = [yard.gate.backoff(50) for _ in range(200)]

    assert min(first) >= 1
    assert max(first) <= 3
    assert len(set(first)) > 100
    assert 150 < max(late) <= 300


class Assembly(FakeCancel):
    """A request to stop on which so many threads must wait before the first one goes on."""

    def __init__(self, clock: FakeClock, threads: int) -> None:
        super().__init__(clock)
        self._all = threading.Barrier(threads, timeout=60)
        self._mine = threading.local()

    def wait(self, timeout: float) -> bool:
        if not hasattr(self._mine, "waited"):
            self._mine.waited = True
            self._all.wait()
        return super().wait(timeout)


def test_many_callers_pause_once_and_one_of_them_probes() -> None:
    clock, cancel, events = FakeClock(), CancelFlag(), list[Event]()
    gate = Gate(clock, Assembly(clock, 8), events.append, random.Random(1))
    together = threading.Barrier(8, timeout=60)
    asked: list[int] = []

    def ask_all(numbers: Iterable[int]) -> Iterator[str]:
        for number in numbers:
            yield gate.call(lambda number=number: ask(number))  # type: ignore[misc]

    def ask(number: int) -> str:
        asked.append(number)
        if asked.count(number) > 1:
            return "done"
        together.wait()
        raise AWAY

    with WorkerGroup(cancel) as group:
        results = list(stage(group, ask_all, range(8), workers=8))

    assert results == ["done"] * 8
    assert [type(event) for event in events] == [RunPaused, RetryScheduled, RunResumed]
    assert len(asked) == 16
