"""When runs start, against a calendar that is walked minute by minute."""

from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest

from mydata_like.engine.scheduler import Rule, find_due, is_believable, is_open, next_start

BERLIN = ZoneInfo("Europe/Berlin")  # clocks change at 01:00 UTC
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")  # changes by half an hour, in southern summer
ST_JOHNS = ZoneInfo("America/St_Johns")  # half an hour off
ZONES = [BERLIN, LORD_HOWE, ST_JOHNS]
MINUTE = timedelta(minutes=1)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
# All of these zones change their clocks within each of them.
SPRING, AUTUMN = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 9, 25, tzinfo=UTC)
PERIOD = timedelta(days=45)
PERIODS = pytest.mark.parametrize("begin", [SPRING, AUTUMN], ids=["spring", "autumn"])


@cache
def calendar(zone, begin):
    """Every minute of a period, with what local clocks show."""
    count = PERIOD // MINUTE
    moments = [begin + number * MINUTE for number in range(count)]
    return [(moment, moment.astimezone(zone).replace(tzinfo=None, fold=0)) for moment in moments]


def walk_days(calendar, at, days=frozenset(range(7))):
    """The first minute of each day at which clocks show the time, or a later one."""
    seen, starts = {calendar[0][1].date()}, []
    for moment, local in calendar:
        if local.time() >= at and local.date() not in seen:
            seen.add(local.date())
            if local.weekday() in days:
                starts.append(moment)
    return starts


def walk_timer(calendar, minutes, opens, shuts):
    """Every so many minutes from the opening of a window on, while it has not shut."""
    opened, begun, over = None, set(), True
    starts = []
    overnight = shuts <= opens
    for moment, local in calendar:
        within = opens <= local.time()
        if local.date() not in begun and within:
            begun.add(local.date())
            opened, day, over = moment, local.date(), False
        if opened is None or over:
            continue
        last = datetime.combine(day + timedelta(days=overnight), shuts)
        if local > last or (opens == shuts and local >= last):
            over = True
            continue
        if (moment - opened) % timedelta(minutes=minutes) == timedelta(0):
            starts.append(moment)
    return starts


def starts_of(rule, zone, begin):
    found, after = [], begin
    while (start := next_start(rule, after, zone)) is not None and start < begin + PERIOD:
        found.append(start)
        after = start
    return found


@pytest.mark.parametrize("zone", ZONES, ids=str)
@PERIODS
@pytest.mark.parametrize("at", [time(2, 30), time(23, 59)], ids=str)
def test_daily_starts_once_a_day(zone, begin, at):
    day = begin + timedelta(days=2)
    expected = [start for start in walk_days(calendar(zone, begin), at) if start > day]
    found = starts_of(Rule("daily", time=at), zone, begin)

    assert [start for start in found if start >= expected[0]] == expected


@pytest.mark.parametrize("zone", ZONES, ids=str)
@PERIODS
def test_weekly_starts_on_its_days(zone, begin):
    days, day = frozenset({0, 6}), begin + timedelta(days=8)
    walked = walk_days(calendar(zone, begin), time(2, 30), days)
    expected = [start for start in walked if start > day]
    rule = Rule("weekly", time=time(2, 30), days=days)

    assert [start for start in starts_of(rule, zone, begin) if start >= expected[0]] == expected


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES, ids=str)
@PERIODS
@pytest.mark.parametrize(
    ("minutes", "opens", "shuts"),
    [
        (7, time(22, 0), time(6, 0)),
        (90, time(1, 45), time(4, 15)),
        (1440, time(2, 30), time(2, 30)),
    ],
)
def test_the_timer_starts_within_its_window(zone, begin, minutes, opens, shuts):
    day = begin + timedelta(days=2)
    walked = walk_timer(calendar(zone, begin), minutes, opens, shuts)
    expected = [start for start in walked if start > day]
    rule = Rule("timer", minutes=minutes, opens=opens, shuts=shuts)
    found = [start for start in starts_of(rule, zone, begin) if start >= expected[0]]

    assert found == expected
    assert all(is_open(rule, start, zone) for start in found)


def test_a_time_in_the_gap_is_the_first_moment_after_it():
    rule = Rule("daily", time=time(2, 30))
    before = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)

    assert next_start(rule, before, BERLIN) == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)


def test_a_time_that_comes_twice_counts_once():
    rule = Rule("daily", time=time(2, 30))
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)

    assert next_start(rule, first - MINUTE, BERLIN) == first
    assert next_start(rule, first, BERLIN) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_once_is_in_the_future_or_never():
    rule = Rule("once", date=date(2026, 7, 1), time=time(12, 0))
    start = datetime(2026, 7, 1, 10, 0, tzinfo=UTC)

    assert next_start(rule, BEGIN, BERLIN) == start
    assert next_start(rule, start, BERLIN) is None


@pytest.mark.parametrize("kind", ["manual", "startup", "saved"])
def test_some_kinds_never_start_by_the_clock(kind):
    assert next_start(Rule(kind), BEGIN, BERLIN) is None


def test_weekly_without_a_day_never_starts():
    assert next_start(Rule("weekly"), BEGIN, BERLIN) is None


def test_the_zone_of_the_computer_is_taken_where_none_is_named():
    start = next_start(Rule("daily", time=time(4, 30)), BEGIN, None)

    assert start is not None
    assert start.astimezone().time() == time(4, 30)


def test_of_many_missed_starts_one_is_due():
    rule = Rule("daily", time=time(2, 0))
    served = datetime(2026, 6, 1, 0, 0, tzinfo=UTC)
    now = served + timedelta(days=9)

    assert find_due(rule, served, now, BERLIN) <= now
    assert find_due(rule, now, now, BERLIN) > now


def test_what_was_missed_while_the_window_is_shut_is_let_go():
    rule = Rule("timer", minutes=30, opens=time(22, 0), shuts=time(6, 0))
    served = datetime(2026, 6, 1, 21, 0, tzinfo=UTC)
    noon = datetime(2026, 6, 2, 10, 0, tzinfo=UTC)

    assert find_due(rule, served, noon, BERLIN) == datetime(2026, 6, 2, 20, 0, tzinfo=UTC)


def test_a_start_that_lies_far_ahead_was_never_made():
    now = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)

    assert is_believable(now + timedelta(hours=23), now)
    assert not is_believable(now + timedelta(days=2), now)
