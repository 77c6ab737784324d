"""When runs start: the next moment of a rule, true to local time whatever the clock does.

Everything here is a pure function of its arguments. `zone` is None for the computer's own zone,
whose rules the system knows; moments that go in and come out are aware.
"""

import datetime
from collections.abc import Iterator
from typing import Final, NamedTuple

from mydata_like.settings.schedule_section import WEEKDAYS, Schedule

_DAY: Final = datetime.timedelta(days=1)
_SECOND: Final = datetime.timedelta(seconds=1)
_TRUSTED: Final = datetime.timedelta(days=1)
_WEEK_AHEAD: Final = 9  # days to look through: a week, one before and one after
# Kinds that are served all day long: what was missed while their window is shut is let go.
WINDOWED: Final = frozenset({"timer", "watch"})


class Rule(NamedTuple):
    """The settings of a schedule that decide on times; `days` are 0 for Monday to 6."""

    kind: str
    date: datetime.date | None = None
    time: datetime.time = datetime.time(0, 0)
    days: frozenset[int] = frozenset()
    minutes: int = 15
    opens: datetime.time = datetime.time(0, 0)
    shuts: datetime.time = datetime.time(23, 59)

    @property
    def text(self) -> str:
        """What tells this rule from others."""
        days = "".join(map(str, sorted(self.days)))
        facts = (self.kind, self.date, self.time, days, self.minutes, self.opens, self.shuts)
        return " ".join(map(str, facts))

    @classmethod
    def of(cls, schedule: Schedule) -> "Rule":
        """Return the rule that settings give."""
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
    """Return the first start later than `after`, in UTC, or None where none will come.

    A local time that is skipped when clocks go forward counts as the first moment after the
    gap; one that comes twice counts the first time. The timer, and the watch's scans, start
    every so many minutes from the opening of their window, and begin anew with each window.
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
    """Return whether runs may start by themselves at this moment."""
    if rule.kind not in WINDOWED:
        return True
    return any(opens <= now <= shuts for opens, shuts in _windows(rule, now, zone))


def is_believable(served: datetime.datetime, now: datetime.datetime) -> bool:
    """Return whether starts can have been made up to this moment.

    One that lies more than a day ahead was noted while the clock was wrong.
    """
    return served - now <= _TRUSTED


def find_due(
    rule: Rule,
    served: datetime.datetime,
    now: datetime.datetime,
    zone: datetime.tzinfo | None,
) -> datetime.datetime | None:
    """Return when the next run is due; a moment that is not after `now` is due at once.

    `served` is the moment up to which every start has been made (or the schedule was set).
    However many starts were missed since, one is due. Starts that were made are not made again
    when the clock is set back (see `is_believable`).
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
    """Yield the opening and the shutting of the windows around a moment, both within."""
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
    """Yield local days, from the one before a moment to a good week later."""
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
    # Within a gap the two folds lie before and after it: its end is between them.
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
