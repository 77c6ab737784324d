"""The watch, living through a year of clock changes, sleeps, restarts and wrong clocks."""

from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mydata_like.core.events import RunScheduled
from mydata_like.engine.scheduler import Rule, RunResult, ScheduleSnapshot, next_start
from tests.fakes.watch import Computer, Life

BERLIN = ZoneInfo("Europe/Berlin")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")
BEGIN = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
YEAR = BEGIN + timedelta(days=365)
HOUR = timedelta(hours=1)
NIGHTLY = Rule("daily", time=time(2, 30))
RULES = [
    NIGHTLY,
    Rule("weekly", time=time(2, 0), days=frozenset({1, 6})),
    Rule("timer", minutes=45, opens=time(22, 0), shuts=time(3, 15)),
    Rule("once", date=date(2026, 3, 29), time=time(2, 15)),
]


def plan(rule, settle=60.0):
    return ScheduleSnapshot(rule, settle)


def starts_between(rule, begin, end, zone):
    found, after = [], begin
    while (start := next_start(rule, after, zone)) is not None and start < end:
        found.append(start)
        after = start
    return found


def at(moment, act):
    return (moment, act)


@pytest.mark.slow
@pytest.mark.parametrize("zone", [BERLIN, LORD_HOWE], ids=str)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
def test_every_start_of_a_quiet_year_is_made_at_its_time(rule, zone):
    life = Life(Computer(BEGIN, YEAR), plan(rule), zone).live()

    assert life.starts == starts_between(rule, BEGIN, YEAR, zone)
    assert life.starts


@pytest.mark.parametrize("kind", ["manual", "saved"])
def test_nothing_starts_without_a_request(kind):
    assert Life(Computer(BEGIN, YEAR), plan(Rule(kind))).live().runs == []


def test_a_start_with_the_program_is_made_at_each_start():
    restart = at(BEGIN + HOUR, Computer.restart)
    life = Life(Computer(BEGIN, YEAR, [restart]), plan(Rule("startup"))).live()

    assert life.reasons == ["startup", "startup"]


def test_after_a_long_sleep_one_start_is_made_up_for():
    asleep = at(datetime(2026, 6, 1, 12, 0, tzinfo=UTC), lambda pc: pc.sleep(timedelta(days=5)))
    life = Life(Computer(BEGIN, YEAR, [asleep]), plan(NIGHTLY), BERLIN).live()
    quiet = starts_between(NIGHTLY, BEGIN, YEAR, BERLIN)
    awake = datetime(2026, 6, 6, 12, 0, tzinfo=UTC)
    missed = [start for start in quiet if asleep[0] < start < awake]

    assert len(missed) == 5
    assert [start for start in life.starts if asleep[0] < start <= awake] == [awake]
    assert set(quiet) - set(missed) <= set(life.starts)


def test_a_start_that_fell_into_a_restart_is_made_up_for():
    down = at(datetime(2026, 6, 1, 0, 0, tzinfo=UTC), lambda pc: (pc.sleep(HOUR), pc.restart()))
    life = Life(Computer(BEGIN, YEAR, [down]), plan(NIGHTLY), BERLIN).live()

    assert len(life.runs) == len(starts_between(NIGHTLY, BEGIN, YEAR, BERLIN))


def test_a_clock_set_back_makes_no_start_twice():
    back = at(datetime(2026, 6, 1, 0, 35, tzinfo=UTC), lambda pc: pc.set_clock(-HOUR))
    life = Life(Computer(BEGIN, YEAR, [back]), plan(NIGHTLY), BERLIN).live()

    assert len(life.runs) == len(starts_between(NIGHTLY, BEGIN, YEAR, BERLIN))


def test_a_clock_that_was_a_year_ahead_does_not_silence_the_schedule():
    incidents = [
        at(BEGIN + timedelta(days=10), lambda pc: pc.set_clock(timedelta(days=400))),
        at(BEGIN + timedelta(days=11), lambda pc: pc.set_clock(timedelta(days=-400))),
    ]
    life = Life(Computer(BEGIN, YEAR, incidents), plan(NIGHTLY), BERLIN).live()
    afterwards = BEGIN + timedelta(days=11)

    expected = starts_between(NIGHTLY, afterwards, YEAR, BERLIN)
    assert [start for start in life.starts if afterwards < start < YEAR] == expected


INCIDENTS = st.lists(
    st.tuples(
        st.integers(0, 60 * 24 * 55).map(lambda minutes: BEGIN + timedelta(minutes=minutes)),
        st.one_of(
            st.integers(1, 4000).map(
                lambda minutes: lambda pc: pc.sleep(timedelta(minutes=minutes))
            ),
            st.integers(-1300, 1300).map(
                lambda minutes: partial(Computer.set_clock, by=timedelta(minutes=minutes))
            ),
            st.just(Computer.restart),
        ),
    ),
    max_size=6,
)


def set_back(incidents):
    """Return how far the clock is set back in all: beyond a day it is unknown what was."""
    sets = (act.keywords["by"] for _, act in incidents if isinstance(act, partial))
    return -sum((min(by, timedelta()) for by in sets), timedelta())


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    INCIDENTS.filter(lambda incidents: set_back(incidents) < timedelta(days=1)),
    st.sampled_from(RULES[:3]),
    st.sampled_from([0.0, 600.0, 5000.0]),
)
def test_whatever_happens_no_start_is_made_twice_and_none_is_forgotten(incidents, rule, duration):
    end = BEGIN + timedelta(days=60)
    computer = Computer(BEGIN, end, incidents)
    life = Life(computer, plan(rule), BERLIN, duration=duration).live()

    # The latest start that each run makes; the clock is never wrong by a day at once.
    made = [
        starts_between(rule, shown - timedelta(days=9), shown + HOUR / 3600, BERLIN)[-1]
        for shown in life.starts
    ]
    assert made == sorted(set(made))
    if rule.kind != "timer":  # which lets go what it misses while its window is shut
        left = starts_between(rule, made[-1], computer.now(), BERLIN)
        assert len(left) <= (duration > 0)  # the run that makes it may be at work


def test_a_run_that_takes_too_long_is_followed_by_one_that_makes_up():
    rule = Rule("timer", minutes=30, opens=time(0, 0), shuts=time(0, 0))
    life = Life(Computer(BEGIN, BEGIN + 6 * HOUR), plan(rule), BERLIN, duration=4000).live()

    gaps = [later - early for early, later in zip(life.starts, life.starts[1:], strict=False)]
    assert set(gaps) == {timedelta(seconds=4000)}


def test_a_run_that_could_not_begin_is_tried_again_later_and_later():
    ends = [RunResult(complete=False)] * 3
    life = Life(Computer(BEGIN, BEGIN + 24 * HOUR), plan(NIGHTLY), BERLIN, pace=10.0, ends=ends)
    life.live()

    due = next_start(NIGHTLY, BEGIN, BERLIN)
    minutes = [round((start - due) / timedelta(minutes=1)) for start in life.starts]
    assert minutes == [0, 1, 3, 7]
    assert life.reasons == ["daily", "retry", "retry", "retry"]


def test_changed_settings_start_a_run_where_they_are_to():
    def change(pc):
        life.plan = plan(Rule("saved", minutes=7))

    computer = Computer(BEGIN, BEGIN + HOUR, [at(BEGIN + HOUR / 2, change)])
    life = Life(computer, plan(Rule("saved")), pace=10.0)

    assert life.live().reasons == ["saved"]


def test_a_new_schedule_does_not_make_up_for_what_it_never_promised():
    def change(pc):
        life.plan = plan(Rule("daily", time=time(11, 0)))

    life = Life(Computer(BEGIN, BEGIN + HOUR, [at(BEGIN + HOUR / 2, change)]), plan(NIGHTLY))

    assert life.live().runs == []


def signs_at(life, *moments):
    def give(pc):
        life.signs.there = True

    return [at(moment, give) for moment in moments]


def watching(*seconds, minutes=600, ends=()):
    life = Life(None, plan(Rule("watch", minutes=minutes)), BERLIN, pace=10.0, ends=list(ends))
    moments = [BEGIN + timedelta(seconds=second) for second in seconds]
    life.computer = Computer(BEGIN, BEGIN + 2 * HOUR, signs_at(life, *moments))
    return life.live()


def seconds_of(life):
    return [(start - BEGIN).total_seconds() for start in life.starts]


def test_files_that_were_there_before_are_sent_at_the_start():
    assert [60 < second <= 80 for second in seconds_of(watching())] == [True]


def test_new_files_are_sent_when_they_have_settled():
    life = watching(200, 230, 260)

    assert life.reasons == ["settled"] * 2
    assert 320 < seconds_of(life)[1] <= 350


def test_files_that_never_settle_are_not_waited_for_for_ever():
    life = watching(*range(200, 1300, 30))

    assert 800 < seconds_of(life)[1] <= 830


def test_files_that_a_run_found_too_new_are_sent_when_they_have_settled():
    waiting = [RunResult(complete=True), RunResult(complete=True, waiting=1)]
    life = watching(1790, minutes=30, ends=waiting)

    assert life.reasons[:3] == ["settled", "watch", "settled"]
    assert seconds_of(life)[1] == 1800
    assert 1850 < seconds_of(life)[2] <= 1852


def test_files_that_a_run_left_waiting_are_looked_at_again():
    life = watching(ends=[RunResult(complete=True, waiting=2)])

    assert life.reasons == ["settled"] * 2


def test_without_signs_the_scans_go_on():
    life = watching(minutes=30)

    assert life.reasons == ["settled", "watch", "watch", "watch"]


def test_nothing_is_sent_while_the_window_is_shut():
    rule = Rule("watch", minutes=30, opens=time(22, 0), shuts=time(23, 0))
    life = Life(Computer(BEGIN, BEGIN + 12 * HOUR), plan(rule), BERLIN, pace=10.0).live()

    opens = datetime(2026, 1, 1, 21, 0, tzinfo=UTC)
    assert life.starts == [opens, opens + HOUR / 2, opens + HOUR]


def test_the_next_start_is_reported_once():
    life = Life(Computer(BEGIN, BEGIN + 26 * HOUR), plan(NIGHTLY), BERLIN).live()

    told = [event.at for event in life.events if isinstance(event, RunScheduled)]
    due = next_start(NIGHTLY, BEGIN, BERLIN)
    assert told == [due, next_start(NIGHTLY, due, BERLIN)]


def test_the_user_starts_a_run_whatever_the_schedule():
    life = Life(Computer(BEGIN, BEGIN + HOUR), plan(Rule("manual")), wish="person").live()

    assert life.runs == [(BEGIN, "person")]


def test_a_run_over_sources_alone_leaves_what_is_due_as_it_is():
    life = Life(Computer(BEGIN, BEGIN + HOUR), plan(Rule("startup")), wish="source").live()

    assert life.reasons == ["source", "startup"]


def test_the_retry_of_a_run_is_reported_and_made_at_that_time():
    ends = [RunResult(complete=False)] * 2
    life = Life(Computer(BEGIN, BEGIN + HOUR), plan(Rule("manual")), wish="person", ends=ends)
    life.live()

    told = [event.at for event in life.events if isinstance(event, RunScheduled)]
    assert life.reasons == ["person", "retry", "retry"]
    assert told == [*life.starts[1:], None]


def test_a_start_before_the_retry_is_the_one_that_is_reported():
    rule = Rule("timer", minutes=1, opens=time(0, 0), shuts=time(0, 0))
    ends = [RunResult(complete=False)] * 2
    life = Life(Computer(BEGIN, BEGIN + HOUR / 20), plan(rule), wish="person", ends=ends)
    life.live()

    told = [event.at for event in life.events if isinstance(event, RunScheduled)]
    assert told[:2] == life.starts[1:3]
    assert life.reasons[1:3] == ["timer", "timer"]


def test_a_retry_that_the_computer_slept_through_is_made_when_it_wakes():
    asleep = at(BEGIN + HOUR / 360, lambda pc: pc.sleep(HOUR))
    life = Life(
        Computer(BEGIN, BEGIN + 2 * HOUR, [asleep]),
        plan(Rule("manual")),
        wish="person",
        ends=[RunResult(complete=False)],
    ).live()

    assert life.starts == [BEGIN, BEGIN + HOUR / 360 + HOUR]
