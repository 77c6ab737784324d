"""Values that are computed once, for all callers."""

import threading
from collections.abc import Iterable, Iterator

from mydata_like.core.errors import TransientError
from mydata_like.engine.pipeline import CancelFlag, SingleFlight, WorkerGroup, stage

SOON = 5.0  # seconds no test should ever need


def test_a_value_is_computed_once_however_many_ask() -> None:
    once: SingleFlight[str, int] = SingleFlight()
    computed = []
    ready = threading.Barrier(8, timeout=SOON)

    def compute() -> int:
        computed.append(1)
        return 42

    def ask(numbers: Iterable[int]) -> Iterator[int]:
        for _ in numbers:
            ready.wait()
            yield once("key", compute)

    with WorkerGroup(CancelFlag()) as group:
        answers = list(stage(group, ask, range(8), workers=8))

    assert answers == [42] * 8
    assert len(computed) == 1


def test_an_error_reaches_all_waiting_callers_and_is_not_kept() -> None:
    once: SingleFlight[str, int] = SingleFlight()
    entered, release = threading.Event(), threading.Event()

    def fail() -> int:
        entered.set()
        release.wait(SOON)
        raise TransientError("not now")

    def ask(numbers: Iterable[int]) -> Iterator[str]:
        for _ in numbers:
            try:
                once("key", fail)
            except TransientError as error:
                yield error.message

    with WorkerGroup(CancelFlag()) as group:
        answers = stage(group, ask, range(2), workers=2)
        entered.wait(SOON)
        release.set()
        assert list(answers) == ["not now"] * 2

    assert once("key", lambda: 7) == 7


def test_keys_do_not_wait_for_one_another() -> None:
    once: SingleFlight[str, int] = SingleFlight()

    assert once("outer", lambda: once("inner", lambda: 1) + 1) == 2


def test_a_forgotten_key_is_computed_again() -> None:
    once: SingleFlight[str, int] = SingleFlight()
    once("key", lambda: 1)

    once.forget("key")

    assert once("key", lambda: 2) == 2


def test_what_is_forgotten_while_computed_is_not_kept() -> None:
    once: SingleFlight[str, int] = SingleFlight()

    def compute() -> int:
        once.forget("key")
        return 1

    assert once("key", compute) == 1
    assert once("key", lambda: 2) == 2
