"""Into which folders files were sent, and when last, is remembered across starts."""

from datetime import timedelta

import pytest

from mydata_like.store.visited import VisitedFolders
from tests.fakes.clock import FakeClock

WEEK = timedelta(days=7)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state" / "folders.jsonl"


def test_the_last_time_counts(file, clock):
    began = clock.now()
    VisitedFolders(file, clock).note({"a", "b"})
    clock.move(WEEK.total_seconds())
    VisitedFolders(file, clock).note({"b", "odd \n name \udcff"})

    found = VisitedFolders(file, clock).find(clock.now() - WEEK)

    assert found == {"a": began}
    assert set(VisitedFolders(file, clock).find(clock.now())) == {"a", "b", "odd \n name \udcff"}


def test_what_is_forgotten_is_found_no_more(file, clock):
    visited = VisitedFolders(file, clock)
    visited.note({"a", "b"})

    visited.forget({"a"})

    assert set(visited.find(clock.now())) == {"b"}


def test_a_line_that_was_cut_off_is_left_out(file, clock):
    visited = VisitedFolders(file, clock)
    visited.note({"a"})
    file.write_bytes(file.read_bytes() + b'{"at": "2026-\nnone\n{}\n')

    assert set(visited.find(clock.now())) == {"a"}


def test_without_a_file_there_is_nothing(file, clock):
    assert VisitedFolders(file, clock).find(clock.now()) == {}
