"""Queues between stages, and how they end."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mydata_like.core.errors import Cancelled
from mydata_like.engine.pipeline import CancelFlag, WorkQueue


@pytest.fixture
def cancel() -> CancelFlag:
    return CancelFlag()


def test_polling_distinguishes_nothing_yet_from_the_end(cancel: CancelFlag) -> None:
    queue: WorkQueue[str] = WorkQueue(cancel)

    assert queue.poll(0) is None
    assert not queue.finished

    queue.put("last")
    queue.close()

    assert not queue.finished
    assert queue.poll(None) == "last"
    assert queue.poll(None) is None
    assert queue.finished


def test_what_is_ready_is_taken_at_once(cancel: CancelFlag) -> None:
    queue: WorkQueue[int] = WorkQueue(cancel)
    for number in range(5):
        queue.put(number)

    assert queue.take_ready(3) == [0, 1, 2]
    assert queue.take_ready(-1) == []
    assert queue.take_ready(9) == [3, 4]
    assert queue.take_ready(9) == []


def test_an_ordered_queue_gives_the_highest_rank_first(cancel: CancelFlag) -> None:
    queue: WorkQueue[int] = WorkQueue(cancel)
    for number in (0, 1, 0, 3):
        queue.put(number)

    queue.order_by(lambda item: item)
    queue.put(2)
    queue.put(3)

    assert queue.peek() == [3, 3, 2, 1, 0, 0]
    assert queue.take_ready(9) == [3, 3, 2, 1, 0, 0]


def test_items_with_a_rank_have_room_of_their_own(cancel: CancelFlag) -> None:
    queue: WorkQueue[int] = WorkQueue(cancel, limit=2)
    queue.put(0)
    queue.put(0)
    placed = threading.Event()

    def put_more() -> None:
        for item in (0, 1, 1):
            queue.put(item)
        placed.set()
        queue.put(0)

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(put_more)
        queue.order_by(lambda item: item)
        try:
            assert placed.wait(10)
            assert queue.take_ready(9) == [1, 1, 0, 0, 0]
            done.result(10)
        finally:
            queue.close()
            queue.take_ready(9)


def test_only_items_of_that_rank_or_above_take_the_room_of_an_item(cancel: CancelFlag) -> None:
    queue: WorkQueue[int] = WorkQueue(cancel, limit=2)
    queue.order_by(lambda item: item)

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(lambda: [queue.put(item) for item in (0, 0, 1, 1, 2, 3)])
        try:
            done.result(10)
            assert queue.take_ready(9) == [3, 2, 1, 1, 0, 0]
        finally:
            cancel.set()


def test_what_waits_for_room_is_seen(cancel: CancelFlag) -> None:
    queue: WorkQueue[str] = WorkQueue(cancel, limit=1)
    queue.put("first")

    with ThreadPoolExecutor(1) as threads:
        threads.submit(queue.put, "second")
        for _ in range(1000):
            if len(queue.peek()) > 1:
                break
            cancel.wait(0.01)
        seen, taken = queue.peek(), queue.take_ready(1)

    assert (seen, taken) == (["first", "second"], ["first"])
    assert queue.peek() == ["second"]


def test_a_cancelled_queue_gives_and_takes_nothing(cancel: CancelFlag) -> None:
    queue: WorkQueue[int] = WorkQueue(cancel)
    queue.put(1)
    cancel.set()

    for use in (lambda: queue.put(2), lambda: queue.poll(None), lambda: queue.take_ready(1)):
        with pytest.raises(Cancelled):
            use()
