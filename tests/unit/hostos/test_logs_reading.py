"""A log is read as it grows, each line once, also when it is put aside in the meantime."""

import logging

import pytest

from mydata_like.hostos.logs import (
    LogFollower,
    LogStyle,
    Redaction,
    logging_to,
    parse_line,
    read_end,
)

logger = logging.getLogger("somewhere.else")


@pytest.fixture
def log(tmp_path):
    with logging_to(tmp_path, Redaction(), LogStyle(name="it")):
        yield tmp_path / "it.log"


@pytest.fixture
def follower(log):
    return LogFollower(log.parent, "it", 1000)


def put_aside(log):
    """Do what the log does when its file is full."""
    (handler,) = [h for h in logging.getLogger().handlers if hasattr(h, "doRollover")]
    handler.doRollover()


def texts(lines):
    return [line.text for line in lines]


def test_lines_are_read_once_with_their_level_and_origin(log, follower):
    logger.warning("one: of %d", 2)
    (line,) = follower.read()
    assert (line.level, line.origin, line.text) == ("WARNING", "somewhere.else", "one: of 2")
    assert follower.read() == []

    logger.info("two")
    assert texts(follower.read()) == ["two"]


def test_lines_that_continue_a_message_have_its_level(log, follower):
    try:
        int("no")
    except ValueError:
        logger.exception("It failed")
    lines = follower.read()
    assert texts(lines)[0] == "It failed"
    assert texts(lines)[-1] == "ValueError: invalid literal for int() with base 10: 'no'"
    assert {line.level for line in lines} == {"ERROR"}
    assert {line.at for line in lines[1:]} == {""}


def test_nothing_is_lost_or_shown_twice_when_the_log_is_rotated(log, follower):
    logger.info("one")
    follower.read()
    logger.info("two")
    put_aside(log)
    logger.info("three")

    assert texts(follower.read()) == ["two", "three"]
    assert texts(LogFollower(log.parent, "it", 1000).read()) == ["one", "two", "three"]


def test_only_complete_lines_are_reported(log, follower):
    with log.open("a") as half:
        half.write("half a ")
        half.flush()
        assert follower.read() == []
        half.write("line\n")
        half.flush()
        assert texts(follower.read()) == ["half a line"]


def test_no_more_than_wanted_is_kept(log):
    for number in range(20):
        logger.info("%d", number)
    assert texts(LogFollower(log.parent, "it", 3).read()) == ["17", "18", "19"]


def test_a_log_that_is_not_there_has_no_lines_until_it_is(tmp_path):
    follower = LogFollower(tmp_path, "none", 10)
    assert follower.read() == []
    (tmp_path / "none.log").write_text("a\n")
    assert texts(follower.read()) == ["a"]
    assert read_end(tmp_path / "gone.log", 10) == ""


def test_the_end_of_a_log_begins_with_a_whole_line(tmp_path):
    (tmp_path / "it.log").write_text("one\ntwo\nthree\n")
    assert read_end(tmp_path / "it.log", 10) == "three\n"
    assert read_end(tmp_path / "it.log", 100) == "one\ntwo\nthree\n"


def test_names_of_threads_may_have_spaces():
    line = parse_line("2026-01-05 09:00:00,123 INFO     channel 1 a.b: c: d", "")
    assert line == ("2026-01-05 09:00:00", "INFO", "a.b", "c: d")
