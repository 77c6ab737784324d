"""Threads and how they end."""

# ruff: noqa: PT012 - a flow that fails is more than one statement

import threading
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from mydata_like.core.errors import Cancelled, TransientError
from mydata_like.engine.pipeline import CancelFlag, StageInput, WorkerGroup, map_concurrently, stage

SOON = 5.0  # seconds no test should ever need


def double(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        yield number * 2


def pass_on(numbers: Iterable[int]) -> Iterator[int]:
    yield from numbers


def fail_at_three(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        if number == 3:
            raise TransientError("three")
        yield number


def endless() -> Iterator[int]:
    while True:
        yield 1


@pytest.fixture
def cancel() -> CancelFlag:
    return CancelFlag()


def test_items_pass_all_stages_in_their_order(cancel: CancelFlag) -> None:
    with WorkerGroup(cancel) as group:
        doubled = stage(group, double, range(1000), limit=3)
        result = list(stage(group, double, doubled, limit=2))

    assert result == [number * 4 for number in range(1000)]
    assert not cancel.is_set()


def test_several_workers_share_a_source_and_lose_nothing(cancel: CancelFlag) -> None:
    with WorkerGroup(cancel) as group:
        passed = stage(group, pass_on, range(5000), workers=4, limit=2)
        result = Counter(stage(group, pass_on, passed, workers=3, limit=2))

    assert result == Counter(range(5000))


def test_several_workers_work_at_once(cancel: CancelFlag) -> None:
    both = threading.Barrier(2, timeout=SOON)

    def meet(numbers: Iterable[int]) -> Iterator[int]:
        for number in numbers:
            both.wait()
            yield number

    with WorkerGroup(cancel) as group:
        assert sorted(stage(group, meet, range(2), workers=2)) == [0, 1]


def test_the_first_error_stops_all_and_is_raised_in_the_callers_thread(
    cancel: CancelFlag,
) -> None:
    with pytest.raises(TransientError, match="three"), WorkerGroup(cancel) as group:
        failing = stage(group, fail_at_three, iter(lambda: 3, None), workers=2)
        list(stage(group, pass_on, failing))

    assert cancel.is_set()
    assert "TransientError" in cancel.reason


def test_an_error_of_the_source_is_an_error_of_the_run(cancel: CancelFlag) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise RuntimeError("unreadable")

    with pytest.raises(RuntimeError, match="unreadable"), WorkerGroup(cancel) as group:
        list(stage(group, pass_on, broken()))


def test_a_worker_that_exits_does_not_look_like_success(cancel: CancelFlag) -> None:
    def leave(numbers: Iterable[int]) -> Iterator[int]:
        yield from numbers
        raise SystemExit(0)

    with pytest.raises(SystemExit), WorkerGroup(cancel) as group:
        list(stage(group, leave, range(3)))


def test_an_error_wakes_workers_that_wait_to_put(cancel: CancelFlag) -> None:
    waiting = threading.Event()

    def fail_late(numbers: Iterable[int]) -> Iterator[int]:
        waiting.wait(SOON)
        raise TransientError("late")
        yield from numbers

    def fill(numbers: Iterable[int]) -> Iterator[int]:
        for number in numbers:
            if number == 3:  # two wait in queues, one in the stage between
                waiting.set()
            yield number

    with pytest.raises(TransientError, match="late"), WorkerGroup(cancel) as group:
        filled = stage(group, fill, range(10**9), limit=1)
        list(stage(group, fail_late, stage(group, pass_on, filled, limit=1)))


def test_errors_while_stopping_are_logged_only(
    cancel: CancelFlag, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_when_stopped(numbers: Iterable[int]) -> Iterator[int]:
        cancel.wait(SOON)
        raise OSError("torn down")
        yield from numbers

    with pytest.raises(TransientError, match="three"), WorkerGroup(cancel) as group:
        stage(group, fail_when_stopped, range(1))
        list(stage(group, fail_at_three, range(9)))

    assert "torn down" in caplog.text


def test_a_request_to_stop_ends_the_flow_as_cancelled(cancel: CancelFlag) -> None:
    def stop_at_nine(numbers: Iterable[int]) -> Iterator[int]:
        for index, number in enumerate(numbers):
            if index == 9:
                cancel.set("a person asked")
            yield number

    with pytest.raises(Cancelled), WorkerGroup(cancel) as group:
        list(stage(group, stop_at_nine, endless()))

    assert cancel.reason == "a person asked"


def test_a_stage_that_is_cancelled_by_others_ends_the_flow(cancel: CancelFlag) -> None:
    def give_up(numbers: Iterable[int]) -> Iterator[int]:
        yield from numbers
        raise Cancelled

    with pytest.raises(Cancelled), WorkerGroup(cancel) as group:
        list(stage(group, give_up, range(3)))

    assert cancel.reason == "a worker was cancelled"


def test_cancelled_work_without_a_reader_is_cancelled_too(cancel: CancelFlag) -> None:
    with pytest.raises(Cancelled), WorkerGroup(cancel) as group:
        stage(group, pass_on, endless(), limit=1)
        cancel.set()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError, Cancelled])
def test_leaving_with_an_exception_stops_and_joins(
    cancel: CancelFlag, kind: type[BaseException]
) -> None:
    with pytest.raises(kind), WorkerGroup(cancel) as group:
        next(iter(stage(group, pass_on, endless())))
        raise kind

    assert not [thread for thread in threading.enumerate() if thread.daemon]


def test_an_error_of_the_caller_wins_over_a_workers(
    cancel: CancelFlag, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ValueError, match="mine"), WorkerGroup(cancel) as group:
        stage(group, fail_at_three, [3])
        cancel.wait(SOON)
        raise ValueError("mine")

    assert "three" in caplog.text


def test_a_worker_that_does_not_stop_is_left_behind(
    cancel: CancelFlag, caplog: pytest.LogCaptureFixture
) -> None:
    release = threading.Event()

    def hang(numbers: Iterable[int]) -> Iterator[int]:
        release.wait(SOON)
        yield from numbers

    with pytest.raises(ValueError, match="mine"), WorkerGroup(cancel, patience=0.05) as group:
        stage(group, hang, range(1))
        raise ValueError("mine")

    assert "hang-1 did not stop in time" in caplog.text
    release.set()
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(SOON)


def test_a_stage_cleans_up_before_the_group_is_left(cancel: CancelFlag) -> None:
    cleaned = []

    def tidy(numbers: Iterable[int]) -> Iterator[int]:
        try:
            yield from numbers
        finally:
            cleaned.append(threading.current_thread().name)

    with pytest.raises(ValueError, match="enough"), WorkerGroup(cancel) as group:
        next(iter(stage(group, tidy, endless(), workers=2)))
        raise ValueError("enough")

    assert sorted(cleaned) == ["tidy-1", "tidy-2"]


def test_back_pressure_bounds_what_is_made_in_advance(cancel: CancelFlag) -> None:
    made = []

    def count(numbers: Iterable[int]) -> Iterator[int]:
        for number in numbers:
            made.append(number)
            yield number

    with WorkerGroup(cancel) as group:
        results = stage(group, count, range(100), limit=2)
        for index, _ in enumerate(results):
            assert len(made) <= index + 1 + 2 + 1
    assert len(made) == 100


def test_what_is_heavy_is_bounded_by_its_weight(cancel: CancelFlag) -> None:
    made = []

    def make(sizes: Iterable[int]) -> Iterator[list[int]]:
        for size in sizes:
            made.append(size)
            yield [0] * size

    with WorkerGroup(cancel) as group:
        sizes = group.open_queue(100)
        for size in (0, 1, 1000, 1000, 1, 0) * 10:
            sizes.put(size)
        sizes.close()
        taken = []
        for item in stage(group, make, sizes, limit=2000, weigh=len):
            taken.append(len(item))
            # What waits, with the one that was let in last, and one that waits to be let in.
            assert sum(made) - sum(taken) <= 2000 + 1000 + 1000
    assert taken == made == [0, 1, 1000, 1000, 1, 0] * 10


def test_a_stage_learns_that_the_next_one_starves(cancel: CancelFlag) -> None:
    def hold_back(source: StageInput[int]) -> Iterator[int]:
        held = []
        while not source.finished:
            number = source.poll(0.01)
            if number is not None:
                held.append(number)
            elif source.starving and held:
                yield sum(held)
                held.clear()

    with WorkerGroup(cancel) as group:
        numbers = group.open_queue(5)
        sums = iter(stage(group, hold_back, numbers))
        numbers.put(1)
        numbers.put(2)
        total = next(sums)
        while total < 3:
            total += next(sums)
        numbers.close()
        assert list(sums) == []


def test_the_first_reason_to_stop_is_remembered(cancel: CancelFlag) -> None:
    cancel.set("first")
    cancel.set("second")

    assert cancel.reason == "first"
    assert cancel.wait(0)


def test_a_group_reports_how_long_the_workers_of_each_stage_have_waited():
    go_on, seen = threading.Event(), threading.Event()

    def hold(numbers: Iterable[int]) -> Iterator[int]:
        for number in numbers:
            go_on.wait(SOON)
            yield number

    def read() -> tuple[float, ...]:
        waits = group.stage_waits()
        return waits["source"].blocked, waits["pass_on"].starved, waits["hold"].blocked

    with WorkerGroup(CancelFlag()) as group:
        passed = stage(group, pass_on, stage(group, hold, range(5), limit=1))
        while not (read()[0] and read()[1]):
            seen.wait(0.01)
        go_on.set()
        assert list(passed) == [0, 1, 2, 3, 4]

    assert group.stage_waits()["source"].workers == 0
    assert read()[2] < read()[0]


def test_concurrent_calls_return_their_results_in_order() -> None:
    both = threading.Barrier(2, timeout=30)

    def double(number: int) -> int:
        both.wait()
        return 2 * number

    assert map_concurrently(double, range(6), 2) == [0, 2, 4, 6, 8, 10]
    assert map_concurrently(abs, [], 2) == []


def test_after_an_error_of_a_concurrent_call_no_further_one_is_begun() -> None:
    begun: list[int] = []

    def fail(number: int) -> None:
        begun.append(number)
        if number == 1:
            raise TransientError("It failed.")

    with pytest.raises(TransientError):
        map_concurrently(fail, range(100), 1)

    assert begun == [0, 1]
