"""Periods of the week as settings write them: `monday-friday 09:00-17:00`, `22:00-06:00`."""

import datetime
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

from mydata_like.settings.fields import Section, setting
from mydata_like.settings.values import Range, once_each

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_PERIOD = re.compile(r"(?:([a-z]+)(?:-([a-z]+))?\s+)?(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})", re.ASCII)


class Period(NamedTuple):
    """A period of each week in local time: from `start` until just before `end`, on these days.

    Days are numbered from 0 for Monday to 6. An end that is not later than the start is on the next
    day.
    """

    days: frozenset[int]
    start: datetime.time
    end: datetime.time

    def covers(self, moment: datetime.datetime) -> bool:
        """Return whether the period contains a local wall-clock time."""
        now = moment.time()
        if self.start < self.end:
            return moment.weekday() in self.days and self.start <= now < self.end
        begun_today = moment.weekday() in self.days and now >= self.start
        yesterday = (moment.weekday() - 1) % 7
        return begun_today or (yesterday in self.days and now < self.end)

    def end_after(self, moment: datetime.datetime) -> datetime.datetime:
        """Return the end of the period that contains this local wall-clock time."""
        later = self.start >= self.end and moment.time() >= self.start
        return datetime.datetime.combine(moment + datetime.timedelta(days=later), self.end)


class SpeedPeriod(NamedTuple):
    """A bandwidth that applies within a period, in bytes per second; 0 is no limit."""

    period: Period
    bytes_per_second: float


def parse_period(text: str) -> Period:
    """Parse a period; raises ValueError with an example of the syntax."""
    match = _PERIOD.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError('must be like "monday-friday 09:00-17:00" or "22:00-06:00"')
    first, last, *clock = match.groups()
    return Period(_parse_days(first, last), _parse_time(*clock[:2]), _parse_time(*clock[2:]))


def parse_speed(text: str) -> SpeedPeriod:
    """Parse a period and its bandwidth; the text ends in MB/s (10^6 bytes)."""
    period, _, number = text.strip().rpartition(" ")
    try:
        rate = float(number)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 100_000:
        raise ValueError('must end in a number of MB/s, as in "monday-friday 09:00-17:00 5"')
    return SpeedPeriod(parse_period(period), rate * 1e6)


def find_end(periods: Sequence[Period], moment: datetime.datetime) -> datetime.datetime | None:
    """Return the first local wall-clock time that no period covers any more.

    Adjacent periods count as one. Returns None if they fill the whole week. The search does not
    count seconds, so a clock change in the meantime does no harm.
    """
    begun = end = moment.replace(tzinfo=None)
    while covering := [period for period in periods if period.covers(end)]:
        end = max(period.end_after(end) for period in covering)
        if end - begun > datetime.timedelta(days=7):
            return None
    return end


def _parse_days(first: str | None, last: str | None) -> frozenset[int]:
    if first is None:
        return frozenset(range(7))
    begin = _parse_day(first)
    end = begin if last is None else _parse_day(last)
    return frozenset((begin + step) % 7 for step in range((end - begin) % 7 + 1))


def _parse_day(name: str) -> int:
    for number, day in enumerate(WEEKDAYS):
        if name in (day, day[:3]):
            return number
    raise ValueError(f"{name[:20]!r} is not a day of the week")


def _parse_time(hour: str, minute: str) -> datetime.time:
    hours, minutes = int(hour), int(minute)
    if (hours, minutes) == (24, 0):
        return datetime.time(0, 0)
    if hours > 23 or minutes > 59:
        raise ValueError(f"{hour}:{minute} is not a time of day")
    return datetime.time(hours, minutes)


Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def _check_local(time: datetime.time) -> datetime.time:
    if time.tzinfo is not None:
        raise ValueError("must be a local time without a zone, such as 18:30:00")
    return time


LocalTime = Annotated[datetime.time, _check_local]


ScheduleKind = Literal["manual", "startup", "saved", "once", "daily", "weekly", "timer", "watch"]


class Schedule(Section):
    """When runs start automatically."""

    kind: ScheduleKind = setting(
        "Start runs",
        "When runs start: manually, with the program, when settings are saved, once, daily, "
        "weekly, at an interval (timer), or when new files have settled (watch).",
        default="manual",
        legacy=("schedule_type",),
    )
    date: datetime.date | None = setting(
        "Date",
        "The date of a run that starts once.",
        default=None,
        legacy=("scheduled_date",),
    )
    time: LocalTime = setting(
        "Time",
        "The local time of day at which single, daily and weekly runs start.",
        default=datetime.time(0, 0),
        legacy=("scheduled_time",),
    )
    days: tuple[Weekday, ...] = setting(
        "Days",
        "The days of the week on which weekly runs start.",
        default=(),
        check=once_each("day"),
        legacy=(
            "monday_checked",
            "tuesday_checked",
            "wednesday_checked",
            "thursday_checked",
            "friday_checked",
            "saturday_checked",
            "sunday_checked",
        ),
    )
    minutes: int = setting(
        "Every",
        "The minutes between two starts of the timer. For watch, the longest time between "
        "two scans.",
        default=15,
        check=Range(1, 1440),
        legacy=("timer_minutes",),
        unit="min",
    )
    from_time: LocalTime = setting(
        "From",
        "The local time of day from which the timer or the watch starts runs.",
        default=datetime.time(0, 0),
        legacy=("timer_from_time",),
    )
    to_time: LocalTime = setting(
        "To",
        "The local time of day until which the timer or the watch starts runs. If it is "
        "earlier than the start, the period ends on the next day.",
        default=datetime.time(23, 59),
        legacy=("timer_to_time",),
    )

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.kind == "once" and self.date is None:
            yield "date", "must be set if schedule.kind is once"
        if self.kind == "weekly" and not self.days:
            yield "days", "must name a day if schedule.kind is weekly"
