"""Repeated work in the background of a run."""

import threading

import pytest

from mydata_like.engine.pipeline import begin, repeated

SOON = 5.0  # seconds no test should ever need


def test_an_action_is_done_at_once_and_again_until_the_end() -> None:
    again = threading.Barrier(2, timeout=SOON)
    calls: list[str] = []

    def act() -> None:
        calls.append(threading.current_thread().name)
        if len(calls) == 3:
            again.wait()

    with repeated(act, 0.001):
        assert calls[0] == threading.current_thread().name
        again.wait()
    done = len(calls)

    assert set(calls[1:]) == {"ticker"}
    assert len(calls) == done


def test_an_action_that_fails_is_done_again() -> None:
    recovered = threading.Event()
    calls: list[int] = []

    def act() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("a strange process")
        if len(calls) == 3:
            recovered.set()

    with repeated(act, 0.001):
        assert recovered.wait(SOON)


def test_a_begun_call_runs_in_the_background_and_returns_its_result():
    allowed = threading.Event()

    def work():
        assert allowed.wait(60)
        return 7

    wait = begin(work)
    allowed.set()

    assert wait() == wait() == 7


def test_a_background_failure_is_raised_where_it_is_awaited():
    def work():
        raise OSError("no such ledger")

    with pytest.raises(OSError, match="no such ledger"):
        begin(work)()
