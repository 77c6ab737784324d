"""Totals, rates and the law that every file seen is accounted for."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.errors import Problem
from mydata_like.core.events import (
    ChannelChanged,
    Event,
    FileFailed,
    FileRetried,
    FileSkipped,
    FilesKnown,
    FilesSeen,
    FileStaged,
    FileVerified,
    FileWaiting,
    FileWanted,
    FolderFailed,
    FolderFound,
    FolderSkipped,
    LimitsChanged,
    Notice,
    RunPaused,
    RunResumed,
    RunStarted,
    TransferFinished,
    TransferProgressed,
    TransferRetried,
    TransferStarted,
    event_name,
)
from mydata_like.engine.tally import PROBLEMS_KEPT, Tally
from mydata_like.engine.totals import Totals
from tests.fakes.clock import FakeClock

NOW = datetime(2026, 1, 5, tzinfo=UTC)
ODD = Problem("odd", "Something is odd.")
SUM = "0" * 32


def seen(files: int, size: int = 0) -> FilesSeen:
    return FilesSeen(folder=b"f", files=files, bytes=size)


def wanted(size: int) -> FileWanted:
    return FileWanted(path=b"f/a", size=size)


def started(transfer: int = 1, *, files: int = 1, size: int = 100, attempt: int = 1) -> Event:
    return TransferStarted(
        transfer=transfer, channel=1, name=b"a", files=files, bytes=size, attempt=attempt
    )


def progressed(size: int, transfer: int = 1) -> Event:
    return TransferProgressed(transfer=transfer, channel=1, bytes=size)


def finished(transfer: int = 1, *, files: int = 1, size: int = 100) -> Event:
    return TransferFinished(transfer=transfer, channel=1, files=files, bytes=size, seconds=1)


OUTCOMES = {
    "known": FilesKnown(folder=b"f", files=1, bytes=5),
    "verified": FileVerified(path=b"f/a", size=5, checksum=SUM),
    "waiting": FileWaiting(path=b"f/a", size=5, problem=ODD),
    "skipped": FileSkipped(path=b"f/a", size=5, problem=ODD),
    "failed": FileFailed(path=b"f/a", size=5, problem=ODD),
}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tally(clock: FakeClock) -> Tally:
    return Tally(clock)


def add(tally: Tally, *events: Event) -> None:
    for event in events:
        tally.add(event)


@pytest.mark.parametrize("name", OUTCOMES)
def test_each_outcome_is_counted_and_closes_a_file(tally: Tally, name: str) -> None:
    add(tally, seen(3), OUTCOMES[name])

    assert getattr(tally.totals, name) == 1
    assert tally.totals.open == 2


def test_known_files_count_as_verified(tally: Tally) -> None:
    add(tally, seen(10, 50), FilesKnown(folder=b"f", files=10, bytes=50))

    assert tally.totals == Totals(
        found=10, found_bytes=50, known=10, verified=10, verified_bytes=50, remaining=0.0
    )


@pytest.mark.parametrize(
    ("code", "left_behind"),
    [
        ("skipped.outside-dataset", 1),
        ("skipped.name", 1),
        ("skipped.owner", 1),
        ("skipped.ignored", 0),
        ("skipped.pattern", 0),
    ],
)
def test_what_no_setting_leaves_out_is_left_behind(
    tally: Tally, code: str, left_behind: int
) -> None:
    add(tally, seen(1), FileSkipped(path=b"f/a", size=5, problem=Problem(code, "Out.")))

    assert tally.summary("r", NOW).left_behind == left_behind


def test_a_folder_that_was_not_read_is_left_behind_once(tally: Tally) -> None:
    add(
        tally,
        FolderSkipped(path=b"f", problem=Problem("skipped.layout", "Elsewhere.")),
        FolderFailed(path=b"g", problem=Problem("folder.unreadable", "Closed.")),
        FolderSkipped(path=b"h", problem=Problem("skipped.owner", "Its files are told of, too.")),
        FolderSkipped(path=b"i", problem=Problem("skipped.hidden", "On purpose.")),
    )

    assert tally.summary("r", NOW).left_behind == 2


@given(st.lists(st.sampled_from(sorted(OUTCOMES))), st.integers(0, 20))
def test_the_law_of_conservation_holds_always(outcomes: list[str], unfinished: int) -> None:
    tally = Tally(FakeClock())
    add(tally, seen(len(outcomes) + unfinished), *(OUTCOMES[name] for name in outcomes))

    end = tally.summary("r", NOW)

    assert tally.totals.open == unfinished
    assert end.found == len(outcomes) + unfinished
    assert end.found == end.verified + end.waiting + end.skipped + end.failed


def test_files_open_at_the_end_wait_for_the_next_run(tally: Tally, clock: FakeClock) -> None:
    clock.move(5)
    add(tally, RunStarted(run="r", at=NOW, data_directory=b"/d"), seen(4), OUTCOMES["verified"])
    clock.move(60)

    end = tally.summary("r", NOW, ODD)

    assert (end.found, end.verified, end.waiting, end.seconds) == (4, 1, 3, 60)
    assert end.problem == ODD


def test_totals_handed_out_do_not_change_later(tally: Tally) -> None:
    before = tally.totals
    add(tally, seen(1))

    assert before.found == 0


def test_what_was_sent_is_summed_over_attempts(tally: Tally) -> None:
    add(
        tally,
        started(files=3, size=300),
        finished(files=2, size=200),
        started(files=1, attempt=2),
        finished(),
    )

    end = tally.summary("r", NOW)

    assert (end.sent, end.bytes) == (3, 300)


def test_transfers_under_way_are_shown_until_they_end(tally: Tally) -> None:
    add(tally, started(2), started(1), progressed(60), progressed(40))

    assert [(travel.transfer, travel.done) for travel in tally.travels] == [(1, 60), (2, 0)]

    add(tally, TransferRetried(transfer=1, channel=1, problem=ODD, delay=3), finished(2))

    assert [(travel.transfer, travel.problem) for travel in tally.travels] == [(1, ODD)]


def test_events_of_unknown_transfers_do_no_harm(tally: Tally) -> None:
    add(tally, progressed(5), TransferRetried(transfer=9, channel=1, problem=ODD, delay=3))

    assert tally.travels == []
    assert tally.totals.byte_rate == 0


def test_the_rate_is_that_of_the_last_seconds(tally: Tally, clock: FakeClock) -> None:
    add(tally, started(size=10**6))
    for step in range(1, 31):
        clock.move(1)
        add(tally, progressed(step * 1000))

    assert tally.totals.byte_rate == pytest.approx(1000, rel=0.15)

    clock.move(60)
    assert tally.totals.byte_rate == 0


def test_the_rate_at_the_start_is_not_diluted(tally: Tally, clock: FakeClock) -> None:
    add(tally, started(size=10**6), progressed(0))
    clock.move(1)
    add(tally, progressed(500))
    clock.move(0.1)
    add(tally, progressed(1000))
    clock.move(0.9)

    assert tally.totals.byte_rate == pytest.approx(1000, rel=0.1)


def test_the_remaining_time_follows_from_bytes(tally: Tally, clock: FakeClock) -> None:
    add(tally, wanted(10_000), wanted(10_000), started(size=10_000))
    assert tally.totals.remaining is None
    for step in range(1, 6):
        clock.move(1)
        add(tally, progressed(step * 1000))

    assert tally.totals.remaining == pytest.approx(15, rel=0.3)


def test_the_remaining_time_of_many_tiny_files_follows_from_files(
    tally: Tally, clock: FakeClock
) -> None:
    add(tally, *(wanted(1) for _ in range(100)))
    for number in range(1, 11):
        add(tally, started(number, size=1), progressed(1, number))
        clock.move(1)
        add(tally, finished(number, size=1))

    assert tally.totals.remaining == pytest.approx(90, rel=0.3)


def test_empty_files_have_no_estimate_before_any_is_sent(tally: Tally, clock: FakeClock) -> None:
    add(tally, wanted(0), wanted(0))
    assert tally.totals.remaining is None

    add(tally, started(size=0), finished(size=0))
    clock.move(2)
    assert tally.totals.remaining == pytest.approx(2)


def test_nothing_wanted_takes_no_time(tally: Tally) -> None:
    assert tally.totals.remaining == 0


def test_problems_are_kept_and_counted(tally: Tally) -> None:
    add(
        tally,
        FolderSkipped(path=b"s", problem=ODD),
        FolderFailed(path=b"x", problem=ODD),
        OUTCOMES["failed"],
        OUTCOMES["skipped"],
        OUTCOMES["waiting"],
        Notice(problem=ODD._replace(code="notice")),
    )

    assert [path for path, _ in tally.problems] == [b"s", b"x", b"f/a", b""]
    assert tally.problem_counts == {"odd": 5, "notice": 1}


def test_problems_that_are_kept_are_bounded(tally: Tally) -> None:
    add(tally, *[OUTCOMES["failed"]] * (PROBLEMS_KEPT + 5))

    assert len(tally.problems) == PROBLEMS_KEPT
    assert tally.problem_counts["odd"] == PROBLEMS_KEPT + 5


def test_channels_are_shown_until_they_close(tally: Tally) -> None:
    opened = [ChannelChanged(channel=number, state="open") for number in (2, 1)]
    lost = ChannelChanged(channel=1, state="lost")
    closed = ChannelChanged(channel=2, state="closed")

    add(tally, *opened)
    assert tally.channels == opened[::-1]

    add(tally, lost, closed, closed)
    assert tally.channels == [lost]


def test_pauses_limits_and_the_end_are_shown(tally: Tally) -> None:
    limit = LimitsChanged(channels=2, reason="The server grants no more.")
    end = tally.summary("r", NOW)

    add(tally, RunPaused(problem=ODD), limit)
    assert tally.paused == ODD
    assert tally.limit == limit

    add(tally, RunResumed(), end)
    assert tally.paused is None
    assert tally.finished == end


@pytest.mark.parametrize(
    "event",
    [
        FolderFound(path=b"f", dataset="d", title="t", owner="o"),
        FileStaged(path=b"f/a", size=1, checksum=SUM),
    ],
)
def test_steps_on_the_way_change_no_total(tally: Tally, event: Event) -> None:
    before = tally.totals
    add(tally, event)

    assert all(getattr(tally.totals, f.name) == getattr(before, f.name) for f in fields(Totals))


@pytest.mark.parametrize("outcome", ["failed", "waiting"])
def test_a_file_that_is_sent_again_is_open_again(outcome):
    tally = Tally(FakeClock())
    problem = Problem("link.lost", "The line broke.")
    kind = FileFailed if outcome == "failed" else FileWaiting
    tally.add(FilesSeen(folder=b"f", files=2, bytes=20))
    tally.add(kind(path=b"f/1", size=10, problem=problem))
    tally.add(kind(path=b"f/2", size=10, problem=problem))

    tally.add(FileRetried(path=b"f/1", size=10, outcome=outcome))

    totals = tally.totals
    assert (totals.failed + totals.waiting, totals.open) == (1, 1)
    assert [path for path, _ in tally.problems] == ([b"f/2"] if outcome == "failed" else [])


@pytest.mark.parametrize("kind", get_args(Event), ids=event_name)
def test_every_event_is_taken_into_account(kind):
    assert kind in Tally(FakeClock())._steps
