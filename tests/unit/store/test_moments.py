"""Moments and signs of life that outlive the program, on a real disk."""

from datetime import UTC, datetime

import pytest

from mydata_like.store.heartbeat import Heartbeat, read_heartbeat, write_heartbeat
from mydata_like.store.moments import Moments

NOON = datetime(2026, 6, 3, 12, 0, tzinfo=UTC)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state" / "moments.json"


def test_moments_outlive_the_program(file):
    Moments(file).keep("noticed", NOON)

    assert Moments(file).find("noticed") == NOON
    assert Moments(file).find("other") is None


def test_a_moment_is_forgotten(file):
    Moments(file).keep("trouble", NOON)
    Moments(file).keep("trouble", None)

    assert Moments(file).find("trouble") is None


def test_of_one_word_only_the_last_is_kept(file):
    moments = Moments(file)
    moments.keep("noticed", NOON)
    moments.keep_alone("served daily 02:00", NOON)
    moments.keep_alone("served weekly", NOON)

    kept = Moments(file)
    assert kept.find("served daily 02:00") is None
    assert kept.find("served weekly") == NOON
    assert kept.find("noticed") == NOON


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1}', '{"a": "noon"}', "\0"])
def test_a_damaged_file_remembers_nothing_and_is_replaced(file, content):
    file.parent.mkdir()
    file.write_text(content)
    moments = Moments(file)

    assert moments.find("a") is None
    moments.keep("a", NOON)
    assert Moments(file).find("a") == NOON


def test_a_disk_that_takes_nothing_is_no_reason_to_stop(file):
    file.parent.write_text("no folder")
    moments = Moments(file)
    moments.keep("a", NOON)

    assert moments.find("a") == NOON


def test_a_heartbeat_is_read_as_it_was_written(file):
    beat = Heartbeat(NOON, 7, "0.1", "waiting", NOON, None, {"code": "x"}, {"found": 3})
    write_heartbeat(file, beat)

    assert read_heartbeat(file) == beat
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"at": 1}'])
def test_a_damaged_heartbeat_is_none(file, content):
    file.parent.mkdir()
    file.write_text(content)

    assert read_heartbeat(file) is None
