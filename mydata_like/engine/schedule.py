"""The start times of runs by a schedule, correct in local time across clock changes.

All functions are pure. `zone` is None for the computer's own zone, whose rules the system provides.
All datetimes, in and out, are aware.
"""

import datetime
from collections.abc import Iterator
from typing import Final, NamedTuple

from mydata_like.settings.schedule_section import WEEKDAYS, Schedule

_DAY: Final = datetime.timedelta(days=1)
_SECOND: Final = datetime.timedelta(seconds=1)
_TRUSTED: Final = datetime.timedelta(days=1)
_WEEK_AHEAD: Final = 9  # days to consider: a week, one day before and one after
# Kinds that start runs all day long; starts missed while their window is closed are dropped.
WINDOWED: Final = frozenset({"timer", "watch"})


class Rule(NamedTuple):
    """The settings of a schedule that determine the times; `days` are 0 for Monday to 6."""

    kind: str
    date: datetime.date | None = None
    time: datetime.time = datetime.time(0, 0)
    days: frozenset[int] = frozenset()
    minutes: int = 15
    opens: datetime.time = datetime.time(0, 0)
    shuts: datetime.time = datetime.time(23, 59)

    @property
    def text(self) -> str:
        """A text that identifies this rule."""
        days = "".join(map(str, sorted(self.days)))
        facts = (self.kind, self.date, self.time, days, self.minutes, self.opens, self.shuts)
        return " ".join(map(str, facts))

    @classmethod
    def of(cls, schedule: Schedule) -> "Rule":
        """Return the rule for the settings of a schedule."""
        days = frozenset(WEEKDAYS.index(day) for day in schedule.days)
        return cls(
            schedule.kind,
            schedule.date,
            schedule.time,
            days,
            schedule.minutes,
            schedule.from_time,
            schedule.to_time,
        )


def next_start(
    rule: Rule, after: datetime.datetime, zone: datetime.tzinfo | None
) -> datetime.datetime | None:
    """Return the first start later than `after`, in UTC, or None if there is none.

    A local time that is skipped when clocks go forward becomes the first moment after the gap. One
    that occurs twice stands for the first occurrence. The timer, and the scans of a watch, start at
    fixed intervals in minutes from the opening of each window.
    """
    after = after.astimezone(datetime.UTC)
    match rule.kind:
        case "once":
            starts = iter([_moment(rule.date, rule.time, zone)] if rule.date else [])
        case "daily":
            starts = (_moment(day, rule.time, zone) for day in _days(after, zone))
        case "weekly":
            days = (day for day in _days(after, zone) if day.weekday() in rule.days)
            starts = (_moment(day, rule.time, zone) for day in days)
        case "timer" | "watch":
            starts = _timer_starts(rule, after, zone)
        case _:
            starts = iter(())
    return next((start for start in starts if start > after), None)


def is_open(rule: Rule, now: datetime.datetime, zone: datetime.tzinfo | None) -> bool:
    """Return whether scheduled runs may start at this moment."""
    if rule.kind not in WINDOWED:
        return True
    return any(opens <= now <= shuts for opens, shuts in _windows(rule, now, zone))


def is_believable(served: datetime.datetime, now: datetime.datetime) -> bool:
    """Return whether `served` is plausible.

    A moment more than a day ahead was stored while the clock was wrong.
    """
    return served - now <= _TRUSTED


def find_due(
    rule: Rule,
    served: datetime.datetime,
    now: datetime.datetime,
    zone: datetime.tzinfo | None,
) -> datetime.datetime | None:
    """Return when the next run is due; a moment that is not after `now` is due immediately.

    `served` is the moment up to which all starts have been handled (or the schedule was set). Any
    number of missed starts results in one run. If the clock is set back, starts are not repeated
    (see `is_believable`).
    """
    due = next_start(rule, served, zone)
    if due is not None and due <= now and not is_open(rule, now, zone):
        return next_start(rule, now, zone)
    return due


def _timer_starts(
    rule: Rule, after: datetime.datetime, zone: datetime.tzinfo | None
) -> Iterator[datetime.datetime]:
    step = datetime.timedelta(minutes=rule.minutes)
    for opens, shuts in _windows(rule, after, zone):
        steps = max(0, (after - opens) // step + 1)
        start = opens + steps * step
        if start <= shuts:
            yield start


def _windows(
    rule: Rule, around: datetime.datetime, zone: datetime.tzinfo | None
) -> Iterator[tuple[datetime.datetime, datetime.datetime]]:
    """Yield the first and last moments of the windows around a moment."""
    for day in _days(around, zone):
        opens = _moment(day, rule.opens, zone)
        if rule.shuts > rule.opens:
            shuts = _moment(day, rule.shuts, zone)
        elif rule.shuts < rule.opens:
            shuts = _moment(day + _DAY, rule.shuts, zone)
        else:  # all day: until the next one opens
            shuts = _moment(day + _DAY, rule.opens, zone) - _SECOND
        yield opens, shuts


def _days(around: datetime.datetime, zone: datetime.tzinfo | None) -> Iterator[datetime.date]:
    """Yield local days, from the day before a moment to more than a week later."""
    first = around.astimezone(zone).date() - _DAY
    return (first + number * _DAY for number in range(_WEEK_AHEAD + 1))


def _moment(
    date: datetime.date, time: datetime.time, zone: datetime.tzinfo | None
) -> datetime.datetime:
    """Return the moment of a local time, in UTC."""
    local = datetime.datetime.combine(date, time, zone)
    first = local.replace(fold=0).astimezone(datetime.UTC)
    if first.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
        return first
    # In a gap, the two folds are before and after it, so its end is between them.
    other = local.replace(fold=1).astimezone(datetime.UTC)
    early, late = min(first, other), max(first, other)
    offset = early.astimezone(zone).utcoffset()
    while late - early > _SECOND:
        middle = early + (late - early) // 2
        if middle.astimezone(zone).utcoffset() == offset:
            early = middle
        else:
            late = middle
    return late.replace(microsecond=0)
