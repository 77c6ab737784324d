"""Doing something again and again beside a run."""

import threading

from mydata_like.engine.ticker import repeated

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
