"""Totals, rates and the law that every file seen is accounted for."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.errors import HELD, KEPT, OUTSIDE, Problem
from mydata_like.core.events import (
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
    RunPaused,
    RunResumed,
    RunStarted,
    StagesMeasured,
    TransferFinished,
    TransferProgressed,
    TransferRetried,
    TransferStarted,
    event_name,
)
from mydata_like.engine.progress import RunProgress, Totals
from mydata_like.engine.time_left import Work
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


def progressed(size: int, transfer: int = 1, *, omitted: int = 0) -> Event:
    return TransferProgressed(transfer=transfer, channel=1, bytes=size, omitted=omitted)


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
def progress(clock: FakeClock) -> RunProgress:
    return RunProgress(clock)


def add(progress: RunProgress, *events: Event) -> None:
    for event in events:
        progress.add(event)


@pytest.mark.parametrize("name", OUTCOMES)
def test_each_outcome_is_counted_and_closes_a_file(progress: RunProgress, name: str) -> None:
    add(progress, seen(3), OUTCOMES[name])

    assert getattr(progress.totals, name) == 1
    assert progress.totals.open == 2


def test_known_files_count_as_verified(progress: RunProgress) -> None:
    add(progress, seen(10, 50), FilesKnown(folder=b"f", files=10, bytes=50))

    assert progress.totals == Totals(
        found=10, found_bytes=50, known=10, verified=10, verified_bytes=50, remaining=0.0
    )


@pytest.mark.parametrize(
    ("code", "left_behind"),
    [
        ("skipped.layout", 1),
        ("skipped.outside-dataset", 0),
        ("skipped.name", 1),
        ("skipped.owner", 1),
        ("skipped.ignored", 0),
        ("skipped.pattern", 0),
    ],
)
def test_what_no_setting_leaves_out_is_left_behind(
    progress: RunProgress, code: str, left_behind: int
) -> None:
    add(progress, seen(1), FileSkipped(path=b"f/a", size=5, problem=Problem(code, "Out.")))

    assert progress.summary("r", NOW).left_behind == left_behind


def test_the_copies_that_the_user_keeps_are_counted_apart(progress: RunProgress) -> None:
    for code in (KEPT, OUTSIDE, "skipped.hidden"):
        add(progress, seen(1), FileSkipped(path=b"f/a", size=5, problem=Problem(code, "Out.")))

    summary = progress.summary("r", NOW)
    assert (summary.skipped, summary.kept, summary.outside, summary.left_behind) == (3, 1, 1, 0)


def test_what_replaces_other_content_and_what_is_held_is_counted(progress: RunProgress) -> None:
    for code in (HELD, "waiting.settling"):
        add(progress, seen(1), FileWaiting(path=b"f/a", size=5, problem=Problem(code, "Wait.")))
    for changed in (True, False):
        add(progress, seen(1), FileWanted(path=b"f/b", size=5, changed=changed))

    summary = progress.summary("r", NOW)
    assert (summary.held, summary.replacing) == (1, 1)


def test_a_folder_that_was_not_read_is_left_behind_once(progress: RunProgress) -> None:
    add(
        progress,
        FolderSkipped(path=b"f", problem=Problem("skipped.layout", "Elsewhere.")),
        FolderFailed(path=b"g", problem=Problem("folder.unreadable", "Closed.")),
        FolderSkipped(path=b"h", problem=Problem("skipped.owner", "Its files are told of, too.")),
        FolderSkipped(path=b"i", problem=Problem("skipped.hidden", "On purpose.")),
    )

    assert progress.summary("r", NOW).left_behind == 2


@given(st.lists(st.sampled_from(sorted(OUTCOMES))), st.integers(0, 20))
def test_the_law_of_conservation_holds_always(outcomes: list[str], unfinished: int) -> None:
    progress = RunProgress(FakeClock())
    add(progress, seen(len(outcomes) + unfinished), *(OUTCOMES[name] for name in outcomes))

    end = progress.summary("r", NOW)

    assert progress.totals.open == unfinished
    assert end.found == len(outcomes) + unfinished
    assert end.found == end.verified + end.waiting + end.skipped + end.failed


def test_files_open_at_the_end_wait_for_the_next_run(
    progress: RunProgress, clock: FakeClock
) -> None:
    clock.move(5)
    add(progress, RunStarted(run="r", at=NOW, data_directory=b"/d"), seen(4), OUTCOMES["verified"])
    clock.move(60)

    end = progress.summary("r", NOW, ODD)

    assert (end.found, end.verified, end.waiting, end.seconds) == (4, 1, 3, 60)
    assert end.problem == ODD


def test_totals_handed_out_do_not_change_later(progress: RunProgress) -> None:
    before = progress.totals
    add(progress, seen(1))

    assert before.found == 0


def test_what_was_sent_is_summed_over_attempts(progress: RunProgress) -> None:
    add(
        progress,
        started(files=3, size=300),
        finished(files=2, size=200),
        started(files=1, attempt=2),
        finished(),
    )

    end = progress.summary("r", NOW)

    assert (end.sent, end.bytes) == (3, 300)


def test_transfers_under_way_are_shown_until_they_end(progress: RunProgress) -> None:
    add(progress, started(2), started(1), progressed(60), progressed(40))

    assert [(one.number, one.done) for one in progress.transfers] == [(1, 60), (2, 0)]

    add(progress, TransferRetried(transfer=1, channel=1, problem=ODD, delay=3), finished(2))

    assert [(one.number, one.problem) for one in progress.transfers] == [(1, ODD)]


def test_events_of_unknown_transfers_do_no_harm(progress: RunProgress) -> None:
    add(progress, progressed(5), TransferRetried(transfer=9, channel=1, problem=ODD, delay=3))

    assert progress.transfers == []
    assert progress.totals.byte_rate == 0


def test_bytes_are_counted_by_channel_once_only(progress: RunProgress) -> None:
    add(progress, started(1), progressed(60), started(2), progressed(60), progressed(10, 2))
    add(progress, finished(1), progressed(5, 2))

    assert progress.bytes_by_channel == {1: 110}


def test_bytes_that_an_earlier_attempt_left_are_progress_but_no_speed(
    progress: RunProgress, clock: FakeClock
) -> None:
    add(progress, seen(1, 1000), wanted(1000), started(size=1000), progressed(500, omitted=500))
    assert progress.totals.transferred_bytes == 500
    assert progress.totals.byte_rate == 0
    assert progress.totals.done == Work(0, 0.0, 0)

    clock.move(1)
    add(progress, progressed(600, omitted=500))
    assert progress.bytes_by_channel == {1: 100}
    assert progress.totals.byte_rate == 100
    assert progress.totals.done == Work(100, 0.2, 0)

    add(progress, finished(size=1000))
    assert progress.bytes_by_channel == {1: 500}
    assert progress.totals.left == Work(0, 0.0, 1)
    ended = progress.summary("1", NOW)
    assert (ended.bytes, ended.omitted, progress.progress().omitted) == (1000, 500, 500)


def test_what_a_failed_attempt_has_sent_is_work_that_was_done(progress: RunProgress) -> None:
    add(progress, seen(1, 1000), wanted(1000), started(size=1000), progressed(500))
    add(
        progress,
        finished(files=0, size=0),
        started(size=1000, attempt=2),
        progressed(500, omitted=500),
    )

    assert progress.totals.done == Work(500, 0.0, 0)
    assert progress.totals.left == Work(500, 0.5, 1)
    assert (progress.summary("1", NOW).sent, progress.summary("1", NOW).unfinished) == (0, 500)


@pytest.mark.parametrize("end", [[finished(files=0, size=0)], []], ids=["ended", "repeated"])
def test_progress_stays_until_the_next_attempt_has_as_much(
    progress: RunProgress, end: list[Event]
) -> None:
    add(progress, seen(1, 1000), wanted(1000), started(size=1000), progressed(500), *end)
    assert progress.totals.transferred_bytes == 500

    add(progress, started(size=1000, attempt=2), progressed(100))
    assert progress.totals.transferred_bytes == 500

    add(progress, progressed(600), finished(size=1000))
    assert progress.totals.transferred_bytes == 1000


def test_of_a_batch_that_arrived_in_part_the_rest_is_counted_once(progress: RunProgress) -> None:
    add(progress, started(files=3, size=300), progressed(250), finished(files=2, size=200))
    assert progress.totals.transferred_bytes == 250

    add(progress, started(files=1, attempt=2), progressed(80), finished())
    assert progress.totals.transferred_bytes == 300


@pytest.mark.parametrize("end", [[finished(files=0, size=0)], []], ids=["ended", "repeated"])
def test_what_an_attempt_of_this_run_has_left_was_sent_in_it(
    progress: RunProgress, end: list[Event]
) -> None:
    add(progress, seen(1, 1000), wanted(1000), started(size=1000))
    add(progress, progressed(500, omitted=200), *end, started(size=1000, attempt=2))
    add(progress, progressed(600, omitted=500), finished(size=1000))

    assert progress.summary("1", NOW).omitted == 200


def test_what_the_engine_measured_holds_until_a_pause(progress: RunProgress) -> None:
    measured = StagesMeasured(
        stage="send", limit="line", byte_rate=1.0, busy={}, blocked={}, spent={}, processors=0.0
    )
    add(progress, measured)
    assert progress.measured == measured

    add(progress, RunPaused(problem=ODD), RunResumed())
    assert progress.measured is None


def test_without_the_events_of_files_the_sums_are_those_reported(clock: FakeClock) -> None:
    engine, window = RunProgress(clock), RunProgress(clock)
    add(engine, seen(3), wanted(100), *OUTCOMES.values(), started(), progressed(40))

    add(window, engine.progress(), started(), progressed(40))

    assert window.reported == engine.progress()
    assert window.transfers == engine.transfers


def test_the_rate_is_that_of_the_last_seconds(progress: RunProgress, clock: FakeClock) -> None:
    add(progress, started(size=10**6))
    for step in range(1, 31):
        clock.move(1)
        add(progress, progressed(step * 1000))

    assert progress.totals.byte_rate == pytest.approx(1000, rel=0.15)

    clock.move(60)
    assert progress.totals.byte_rate == 0


def test_the_rate_at_the_start_is_not_diluted(progress: RunProgress, clock: FakeClock) -> None:
    add(progress, started(size=10**6), progressed(0))
    clock.move(1)
    add(progress, progressed(500))
    clock.move(0.1)
    add(progress, progressed(1000))
    clock.move(0.9)

    assert progress.totals.byte_rate == pytest.approx(1000, rel=0.1)


def test_a_pause_does_not_count_as_slow_sending(progress: RunProgress, clock: FakeClock) -> None:
    add(progress, started(size=10**6))
    clock.move(1)
    add(progress, progressed(1000), RunPaused(problem=ODD))
    assert progress.totals.byte_rate == 0

    clock.move(8)
    add(progress, progressed(1100), RunResumed(), progressed(1200))
    for step in range(1, 4):
        clock.move(1)
        add(progress, progressed(1200 + step * 1000))

    assert progress.totals.byte_rate == pytest.approx(1000, rel=0.05)


def test_the_remaining_time_is_learnt_from_what_was_done(
    progress: RunProgress, clock: FakeClock
) -> None:
    add(progress, seen(2, 20_000), wanted(10_000), wanted(10_000), started(size=10_000))
    assert progress.totals.remaining is None
    for step in range(1, 6):
        clock.move(1)
        add(progress, progressed(step * 1000))
        assert progress.totals.done == Work(step * 1000, step / 10, 0)

    assert progress.totals.left == Work(15_000, 1.5, 2)
    assert progress.totals.remaining == pytest.approx(15, rel=0.3)


def test_files_that_are_not_checked_yet_are_expected_to_be_like_the_others(
    progress: RunProgress,
) -> None:
    add(
        progress,
        seen(400, 4000),
        FilesKnown(folder=b"f", files=50, bytes=500),
        *(wanted(10) for _ in range(50)),
    )

    assert progress.totals.left == Work(500 + 1500, 200.0, 200)


def test_the_time_of_a_pause_counts_for_nothing(progress: RunProgress, clock: FakeClock) -> None:
    add(progress, seen(2, 20_000), wanted(10_000), wanted(10_000), started(size=10_000))
    for step in range(1, 6):
        clock.move(1)
        add(progress, progressed(step * 1000))
        before = progress.totals.remaining
    add(progress, RunPaused(problem=ODD))
    for _ in range(20):
        clock.move(1)
        assert progress.totals.remaining == pytest.approx(before, rel=0.2)


def test_nothing_wanted_takes_no_time(progress: RunProgress) -> None:
    assert progress.totals.remaining == 0


@pytest.mark.parametrize(
    "event",
    [
        FolderFound(path=b"f", dataset="d", title="t", owner="o"),
        FileStaged(path=b"f/a", size=1, checksum=SUM),
    ],
)
def test_steps_on_the_way_change_no_total(progress: RunProgress, event: Event) -> None:
    before = progress.totals
    add(progress, event)

    assert all(getattr(progress.totals, f.name) == getattr(before, f.name) for f in fields(Totals))


@pytest.mark.parametrize("outcome", ["failed", "waiting"])
def test_a_file_that_is_sent_again_is_open_again(outcome):
    progress = RunProgress(FakeClock())
    problem = Problem("link.lost", "The line broke.")
    kind = FileFailed if outcome == "failed" else FileWaiting
    progress.add(FilesSeen(folder=b"f", files=2, bytes=20))
    progress.add(kind(path=b"f/1", size=10, problem=problem))
    progress.add(kind(path=b"f/2", size=10, problem=problem))

    progress.add(FileRetried(path=b"f/1", size=10, outcome=outcome))

    totals = progress.totals
    assert (totals.failed + totals.waiting, totals.open) == (1, 1)


@pytest.mark.parametrize("kind", get_args(Event), ids=event_name)
def test_every_event_is_taken_into_account(kind):
    assert kind in RunProgress(FakeClock())._handlers
