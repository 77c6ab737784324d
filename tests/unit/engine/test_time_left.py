"""The estimate of the time left: both costs are learnt, whatever the order of the files."""

import math
from statistics import median

import pytest

from mydata_like.engine.time_left import (
    MOST,
    RISE,
    SHORT,
    Costs,
    TimeLeft,
    Work,
    find_costs,
    record_costs,
)
from tests.trials.time_left import MEDIAN, NINE_TENTHS, list_recordings, nine_tenths, replay

MB = 1_000_000
TRUE = Costs(0.5 / MB, 0.1, 0.01)  # 2 MB a second, ten files a second, a hundred records


def work(size, files):
    return Work(size, files, files)


NOTHING = work(0, 0)


def ask(model, now, done, left, **options):
    return model.estimate(now, done, left, **{"backlog": 0, "paused": False, **options})


def follow(model, *steps, left=NOTHING):
    """Let a run do work after work, as fast as `TRUE`; return all estimates with the truth."""
    now, done, found = 0.0, NOTHING, []
    for number, step in enumerate(steps):
        rest = [*steps[number + 1 :], left]
        seconds = int(TRUE.seconds_for(step))
        for second in range(1, seconds + 1):
            size, files = step.bytes * second // seconds, step.records * second // seconds
            here = work(done.bytes + size, done.records + files)
            more = work(
                sum(it.bytes for it in rest) + step.bytes - size,
                sum(it.records for it in rest) + step.records - files,
            )
            now += 1
            found.append((ask(model, now, here, more), TRUE.seconds_for(more)))
        done = here
    return found


def test_nothing_left_takes_no_time():
    assert ask(TimeLeft(), 1.0, NOTHING, NOTHING) == 0.0


def test_nothing_is_said_before_anything_is_known():
    assert ask(TimeLeft(), 1.0, NOTHING, work(MB, 1)) is None


def test_an_earlier_run_gives_the_first_estimate():
    model = TimeLeft()
    model.history = TRUE
    assert ask(model, 1.0, NOTHING, work(2 * MB, 30)) == pytest.approx(4.0)


@pytest.mark.parametrize(
    "steps",
    [
        (work(0, 600), work(120 * MB, 6), work(0, 300), work(60 * MB, 3)),
        (work(120 * MB, 6), work(0, 600), work(60 * MB, 3), work(0, 300)),
    ],
    ids=["small first", "large first"],
)
def test_both_costs_are_learnt_from_a_run_with_both_kinds(steps):
    found = follow(TimeLeft(), *steps)
    later = found[len(found) * 3 // 5 : -5]
    assert all(abs(estimate - truth) < 0.3 * truth for estimate, truth in later)


def test_a_pause_changes_no_cost():
    model = TimeLeft()
    follow(model, work(40 * MB, 4), left=work(40 * MB, 4))
    before = model.measured
    now = TRUE.seconds_for(work(40 * MB, 4))
    for second in range(600):
        ask(model, now + second, work(40 * MB, 4), work(40 * MB, 4), paused=True)
    assert model.measured is not None
    assert before is not None
    assert model.measured.byte == pytest.approx(before.byte, rel=0.2)


def test_an_estimate_rises_slowly_unless_there_is_more_work():
    model = TimeLeft()
    follow(model, work(40 * MB, 4), left=work(40 * MB, 4))
    now, done, left = 21.0, work(40 * MB, 4), work(40 * MB, 4)
    before = ask(model, now, done, left)
    for second in range(1, 200):  # nothing moves any more
        estimate = ask(model, now + second, done, left)
        assert estimate <= max(before * RISE, SHORT) + 1e-9
        before = estimate
    more = work(400 * MB, 4)
    assert ask(model, now + 201, done, more) > before * 5


def test_a_slow_server_is_noticed_while_files_wait_for_it():
    model, fast = TimeLeft(), 100
    for second in range(
        1, 31
    ):  # all is sent after ten seconds; the server takes 5 records a second
        sent, verified = min(1000, second * fast), second * 5
        done, left = Work(sent, sent, verified), Work(1000 - sent, 1000 - sent, 1000 - verified)
        estimate = ask(model, second, done, left, backlog=sent - verified)
    assert estimate == pytest.approx(850 / 5, rel=0.3)


def test_the_server_works_longest_after_files_that_come_behind_large_ones():
    model, slow = TimeLeft(), Costs(0.5 / MB, 0.001, 0.1)
    model.history = slow
    for second in range(1, 21):  # large files; the 400 small ones come last
        done, left = Work(second * 2 * MB, 0, 0), Work((40 - second) * 2 * MB, 400, 400)
        estimate = ask(model, second, done, left)
    assert estimate == pytest.approx(20 + 400 * slow.record, rel=0.1)


def test_a_slow_answer_for_a_few_files_says_little_about_many():
    model = TimeLeft()
    model.history = TRUE
    for second in range(1, 61):  # twelve files at a time, of which the server takes ten seconds
        done = Work(second * MB, second * 1.2, second // 10 * 12)
        estimate = ask(model, second, done, Work(0, 0, 1000), backlog=12)
    assert estimate < 1000 * 0.3


def test_the_time_until_a_large_file_is_verified_is_no_speed_of_the_server():
    model = TimeLeft()
    for second in range(1, 61):  # a file of 20 MB takes ten seconds, and its verification five
        done = Work(second * 2 * MB, second / 10, (second - 5) // 10)
        left = Work(10 * MB, 1000, 1000)
        estimate = ask(model, second, done, left, backlog=second % 10 < 5)
    assert estimate < 20


def copy_at(model, rates, left, *, limits=None, size=MB):
    """Send files of a size at these rates in MB/s, one a second; return the estimates."""
    sent, found = 0, []
    for second, rate in enumerate(rates, 1):
        sent += rate * MB
        done, rest = (Work(it, it / size, int(it / size)) for it in (sent, left - sent))
        limit = limits[second - 1] if limits else 0.0
        found.append((ask(model, second, done, rest, limit=limit), rest.bytes))
    return found


def test_an_earlier_run_counts_only_until_this_one_has_sent_for_some_seconds():
    model = TimeLeft()
    model.history = Costs(0.5 / MB, 0.005, 0.001)  # 2 MB a second; this run sends 30
    found = copy_at(model, [30] * 15, 1_500 * MB)
    assert found[0][0] > 500
    assert all(estimate <= MOST * left / (30 * MB) + 1 for estimate, left in found[5:])
    assert found[10][0] == pytest.approx(found[10][1] / (30 * MB), rel=0.3)


def test_an_earlier_run_of_large_files_says_nothing_about_tiny_ones():
    model = TimeLeft()
    model.history = Costs(0.5 / MB, 0.1, 0.1)
    found = copy_at(model, [0.8] * 12, 80 * MB, size=1_000)  # 800 files a second
    assert all(estimate <= MOST * left / 800_000 + 1 for estimate, left in found[5:])


def test_a_limit_that_is_set_counts_at_once():
    model = TimeLeft()
    limits = [40.0 * MB] * 10 + [4.0 * MB] * 5
    found = copy_at(model, [40] * 10 + [4] * 5, 900 * MB, limits=limits)
    assert all(estimate >= left / (4 * MB) - 1 for estimate, left in found[10:])


def test_what_is_compressed_passes_a_limit_faster():
    model = TimeLeft()
    found = copy_at(model, [12] * 20, 600 * MB, limits=[4.0 * MB] * 20)
    assert found[-1][0] == pytest.approx(found[-1][1] / (12 * MB), rel=0.2)


def test_an_estimate_follows_a_line_that_becomes_slower_and_faster():
    model = TimeLeft()
    found = copy_at(model, [6] * 20 + [1.5] * 30 + [6] * 15, 400 * MB)
    for second, rate in ((15, 6), (31, 1.5), (45, 1.5), (62, 6)):
        estimate, left = found[second]
        assert estimate == pytest.approx(left / (rate * MB), rel=0.4)
    assert found[-1][0] == pytest.approx(found[-1][1] / (6 * MB), rel=0.25)


def test_the_costs_of_the_latest_run_that_has_some_are_found():
    costs = Costs(1e-6, 0.1, 0.2)
    assert find_costs([{}, {"byte_cost": "x"}, record_costs(costs), record_costs(TRUE)]) == costs
    wrong = record_costs(costs._replace(file=0.0)), record_costs(costs._replace(byte=math.inf))
    assert find_costs(wrong) is None
    assert find_costs([]) is None


@pytest.mark.parametrize("first", [False, True], ids=["after another run", "first run"])
def test_estimates_of_recorded_runs_are_near_the_truth(first):
    replays = [replay(file, first=first) for file in list_recordings()]
    errors = [error for each in replays for error in each.each]
    assert len(replays) == 14
    assert median(errors) <= MEDIAN
    assert max(nine_tenths(each.each) for each in replays) <= NINE_TENTHS
    assert max(each.rise for each in replays) <= RISE
