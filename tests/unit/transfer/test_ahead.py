"""Reading ahead: the same chunks in the same order, and no thread that stays behind."""

import threading

import pytest

from mydata_like.core.errors import FileChangedError
from mydata_like.transfer.single_file import read_ahead


def chunks(count: int, taken: list[int] | None = None):
    """Yield views of one buffer, each valid until the next, as a source does."""
    buffer = bytearray(1000)
    for number in range(count):
        if taken is not None:
            taken.append(number)
        buffer[:] = bytes([number % 256]) * 1000
        yield memoryview(buffer)[: 1000 - number % 7]


def ignore(_: int) -> None: ...


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "ahead"]


@pytest.mark.parametrize("count", [0, 1, 300])
def test_chunks_come_as_they_were_taken(count):
    signs: list[int] = []
    with read_ahead(chunks(count), signs.append) as ahead:
        found = [bytes(chunk) for chunk in ahead]
    assert signs == [0] * count
    assert found == [bytes(chunk) for chunk in chunks(count)]
    assert readers() == []


def test_what_taking_them_raises_is_raised_in_its_place():
    def fail():
        yield from chunks(3)
        raise FileChangedError("It has changed.")

    with read_ahead(fail(), ignore) as ahead:
        assert [len(next(ahead)) for _ in range(3)] == [1000, 999, 998]
        with pytest.raises(FileChangedError):
            next(ahead)
    assert readers() == []


def test_an_early_exit_leaves_no_thread_and_few_unused_chunks():
    taken = []
    with read_ahead(chunks(1000, taken), ignore) as ahead:
        next(ahead)
    assert readers() == []
    assert len(taken) < 10
