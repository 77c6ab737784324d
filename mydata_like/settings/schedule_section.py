"""Parts of the week as settings write them: `monday-friday 09:00-17:00`, `22:00-06:00`."""

import datetime
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

from mydata_like.settings.fields import FieldInfo, Section
from mydata_like.settings.values import Range, once_each

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_PERIOD = re.compile(r"(?:([a-z]+)(?:-([a-z]+))?\s+)?(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})", re.ASCII)


class Period(NamedTuple):
    """A part of each week in local time: from `start` until just before `end`, on these days.

    Days are 0 for Monday to 6. An end that is not later than the start lies on the next day.
    """

    days: frozenset[int]
    start: datetime.time
    end: datetime.time

    def covers(self, moment: datetime.datetime) -> bool:
        """Return whether a local wall-clock time lies within."""
        now = moment.time()
        if self.start < self.end:
            return moment.weekday() in self.days and self.start <= now < self.end
        begun_today = moment.weekday() in self.days and now >= self.start
        yesterday = (moment.weekday() - 1) % 7
        return begun_today or (yesterday in self.days and now < self.end)

    def end_after(self, moment: datetime.datetime) -> datetime.datetime:
        """Return when the period ends that covers this local wall-clock time."""
        later = self.start >= self.end and moment.time() >= self.start
        return datetime.datetime.combine(moment + datetime.timedelta(days=later), self.end)


class SpeedPeriod(NamedTuple):
    """A bandwidth that counts within a period, in bytes a second; 0 is no limit."""

    period: Period
    bytes_per_second: float


def parse_period(text: str) -> Period:
    """Return the period of a text; raises ValueError that says how to write one."""
    match = _PERIOD.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError('must be like "monday-friday 09:00-17:00" or "22:00-06:00"')
    first, last, *clock = match.groups()
    return Period(_parse_days(first, last), _parse_time(*clock[:2]), _parse_time(*clock[2:]))


def parse_speed(text: str) -> SpeedPeriod:
    """Return the period and its bandwidth; the text ends in MB/s (10^6 bytes)."""
    period, _, number = text.strip().rpartition(" ")
    try:
        rate = float(number)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 100_000:
        raise ValueError('must end in a number of MB/s, as in "monday-friday 09:00-17:00 5"')
    return SpeedPeriod(parse_period(period), rate * 1e6)


def find_end(periods: Sequence[Period], moment: datetime.datetime) -> datetime.datetime | None:
    """Return the local wall-clock time from which on none of the periods covers us any more.

    Periods that follow on one another count as one; None where they fill the whole week. No
    seconds are counted, so the clock may be put forward or back meanwhile.
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
    raise ValueError(f"{name[:20]!r} is no day of the week")


def _parse_time(hour: str, minute: str) -> datetime.time:
    hours, minutes = int(hour), int(minute)
    if (hours, minutes) == (24, 0):
        return datetime.time(0, 0)
    if hours > 23 or minutes > 59:
        raise ValueError(f"{hour}:{minute} is no time of day")
    return datetime.time(hours, minutes)


Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def _check_local(time: datetime.time) -> datetime.time:
    if time.tzinfo is not None:
        raise ValueError("must be a local time without a zone, such as 18:30:00")
    return time


LocalTime = Annotated[datetime.time, _check_local]


class Schedule(Section):
    """When runs start by themselves."""

    kind: Annotated[
        Literal["manual", "startup", "saved", "once", "daily", "weekly", "timer", "watch"],
        FieldInfo(
            "Start runs",
            "When runs start: by hand, with the program, when settings are saved, once, daily, "
            "weekly, every so many minutes, or (watch) when new files have settled.",
            legacy=("schedule_type",),
        ),
    ] = "manual"
    date: Annotated[
        datetime.date | None,
        FieldInfo("Date", "The day of a run that starts once.", legacy=("scheduled_date",)),
    ] = None
    time: Annotated[
        LocalTime,
        FieldInfo(
            "Time",
            "The local time of day at which runs start once, daily or weekly.",
            legacy=("scheduled_time",),
        ),
    ] = datetime.time(0, 0)
    days: Annotated[
        tuple[Weekday, ...],
        once_each("day"),
        FieldInfo(
            "Days",
            "The days of the week of weekly runs.",
            legacy=(
                "monday_checked",
                "tuesday_checked",
                "wednesday_checked",
                "thursday_checked",
                "friday_checked",
                "saturday_checked",
                "sunday_checked",
            ),
        ),
    ] = ()
    minutes: Annotated[
        int,
        Range(1, 1440),
        FieldInfo(
            "Every",
            "The minutes from one start of the timer to the next; when watching, the longest time "
            "between two scans.",
            legacy=("timer_minutes",),
            unit="min",
        ),
    ] = 15
    from_time: Annotated[
        LocalTime,
        FieldInfo(
            "From",
            "The local time of day from which the timer, or the watch, starts runs.",
            legacy=("timer_from_time",),
        ),
    ] = datetime.time(0, 0)
    to_time: Annotated[
        LocalTime,
        FieldInfo(
            "To",
            "The local time of day until which the timer, or the watch, starts runs; "
            "earlier than the start means past midnight.",
            legacy=("timer_to_time",),
        ),
    ] = datetime.time(23, 59)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.kind == "once" and self.date is None:
            yield "date", "must be given before schedule.kind can be once"
        if self.kind == "weekly" and not self.days:
            yield "days", "must name a day before schedule.kind can be weekly"
