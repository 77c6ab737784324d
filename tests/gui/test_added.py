"""What was added, until a run has taken it."""

from datetime import UTC, datetime

import pytest

from mydata_like.core.errors import Problem
from mydata_like.core.events import CommandDone, CommandRefused, RunFinished, RunStarted
from mydata_like.gui.engine_process import (
    FIRST,
    LONGEST,
    PendingSources,
    RestartBackoff,
    split_orders,
)
from tests.fakes.clock import FakeClock

MICE = ("add_source", {"path": "/usb/day 1", "as": ["", "Mice", "day 1"]})
RATS = ("add_source", {"path": "/usb/day 2", "as": ["ada", "Rats", "day 2"]})
AS_IT_WAS = ("add_source", {"path": "/usb/day 3"})
NO_TEXT = ("add_source", {"path": "/usb/day \udcff", "as": ["", "Mice", "day 4"]})
SLASH = ("add_source", {"path": "/usb/day 5", "as": ["", "Mice", "5/6"]})
MICE_WORDS = ["--source=/usb/day 1", "--as=/Mice/day 1"]
NOW = datetime(2027, 1, 31, 12, 0, tzinfo=UTC)
BEGUN = RunStarted(run="1", at=NOW, data_directory=b"/data")
ENDED = RunFinished.of_nothing(NOW, Problem("run.interrupted", "It was stopped."))
DONE = CommandDone(id=7, command="add_source")


def refused(code):
    return CommandRefused(id=7, command="add_source", problem=Problem(code, "Not now."))


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ([], [MICE]),
        ([DONE], [MICE]),
        ([DONE, ENDED], [MICE]),
        ([DONE, BEGUN], []),
        ([BEGUN, DONE], []),
        ([BEGUN], [MICE]),
        ([BEGUN, refused("source.later")], [MICE]),
        ([refused("command.too-late")], [MICE]),
        ([refused("source.gone")], []),
        ([BEGUN, ENDED, DONE], [MICE]),
    ],
)
def test_what_no_run_has_taken_is_taken_back(events, left):
    added = PendingSources()
    added.track_sent(7, MICE)
    for event in events:
        added.follow(event)

    assert added.take_back() == left
    assert added.take_back() == []


def test_what_an_engine_was_started_with_waits_for_its_run():
    added = PendingSources()
    added.track_kept([MICE])
    assert added.waiting

    added.follow(BEGUN)
    assert not added.waiting
    assert added.take_back() == []


@pytest.mark.parametrize(
    ("orders", "options", "rest"),
    [
        ([MICE], MICE_WORDS, []),
        ([MICE, RATS], [*MICE_WORDS, "--source=/usb/day 2", "--as=ada/Rats/day 2"], []),
        ([AS_IT_WAS], ["--source=/usb/day 3"], []),
        ([MICE, AS_IT_WAS], MICE_WORDS, [AS_IT_WAS]),
        ([NO_TEXT, MICE, SLASH], MICE_WORDS, [NO_TEXT, SLASH]),
        ([NO_TEXT], [], [NO_TEXT]),
        ([("start", {}), MICE], [], [MICE]),
        ([("start", {"only": "ann/day 1"})], ["--only=ann/day 1"], []),
        ([("start", {"only": "ann/day 1"}), MICE], [], [MICE]),
    ],
)
def test_a_run_of_its_own_looks_at_nothing_else_where_that_can_be_said(orders, options, rest):
    words, said, left = split_orders(orders)

    assert (words, left) == (options, rest)
    assert len(said) == sum(word.startswith("--source") for word in options)


def test_an_engine_that_dies_repeatedly_is_restarted_after_a_longer_delay():
    clock = FakeClock()
    patience = RestartBackoff(clock.monotonic)
    assert patience.is_over
    waits = []
    for _ in range(12):
        patience.begin()
        assert not patience.is_over
        begun = clock.monotonic()
        while not patience.is_over:
            clock.move(1)
        waits.append(clock.monotonic() - begun)

    assert waits[:3] == [FIRST, 2 * FIRST, 4 * FIRST]
    assert waits[-1] == LONGEST
    patience.forget()
    assert patience.is_over
