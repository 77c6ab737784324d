"""The number of concurrent requests follows the speed of the server."""

from threading import Thread

import pytest

from mydata_like.catalogues.mytardis.request_limit import RequestLimit
from mydata_like.core.errors import Cancelled
from mydata_like.engine.pipeline import CancelFlag
from tests.fakes.clock import FakeClock


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def limit(clock):
    return RequestLimit(4, clock.monotonic, CancelFlag())


def run_two(limit, clock, seconds):
    with limit.turn(waits=True), limit.turn(waits=True):
        clock.move(seconds)


def test_requests_that_are_slow_together_become_fewer_and_more_again(limit, clock):
    run_two(limit, clock, 1.5)
    assert limit.now_allowed == 1

    for _ in range(9):
        with limit.turn(waits=True):
            clock.move(0.1)
    assert limit.now_allowed == 4


def test_a_request_that_is_slow_alone_is_not_the_fault_of_others(limit, clock):
    with limit.turn(waits=True):
        clock.move(20.0)

    assert limit.now_allowed == 4


def test_a_read_waits_for_the_one_that_runs_and_a_write_does_not(limit, clock):
    run_two(limit, clock, 1.5)
    done = []

    def read():
        with limit.turn(waits=True):
            done.append("read")

    with limit.turn(waits=True):
        thread = Thread(target=read)
        thread.start()
        with limit.turn(waits=False):
            clock.move(0.7)
            done.append("write")
        thread.join(0.3)
        assert done == ["write"]
    thread.join()

    assert done == ["write", "read"]


def test_a_request_without_an_answer_keeps_others_waiting_for_a_limited_time(limit, clock):
    run_two(limit, clock, 1.5)

    with limit.turn(waits=True):
        clock.move(31.0)
        with limit.turn(waits=True):
            pass


def test_a_wait_ends_when_the_run_is_stopped(clock):
    cancel = CancelFlag()
    limit = RequestLimit(1, clock.monotonic, cancel)

    with limit.turn(waits=True):
        cancel.set("stopped")
        with pytest.raises(Cancelled), limit.turn(waits=True):
            pytest.fail("it did not wait")
