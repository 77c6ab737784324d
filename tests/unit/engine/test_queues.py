"""Queues between stages, and how they end."""

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


def test_a_cancelled_queue_gives_and_takes_nothing(cancel: CancelFlag) -> None:
    queue: WorkQueue[int] = WorkQueue(cancel)
    queue.put(1)
    cancel.set()

    for use in (lambda: queue.put(2), lambda: queue.poll(None), lambda: queue.take_ready(1)):
        with pytest.raises(Cancelled):
            use()
