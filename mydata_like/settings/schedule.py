"""Settings of when runs start by themselves."""

import datetime
from collections.abc import Iterator
from typing import Annotated, Literal

from mydata_like.settings.about import About
from mydata_like.settings.reading import Between
from mydata_like.settings.section import Section
from mydata_like.settings.values import once_each

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
        About(
            "Start runs",
            "When runs start: by hand, with the program, when settings are saved, once, daily, "
            "weekly, every so many minutes, or (watch) when new files have settled.",
            legacy=("schedule_type",),
        ),
    ] = "manual"
    date: Annotated[
        datetime.date | None,
        About("Date", "The day of a run that starts once.", legacy=("scheduled_date",)),
    ] = None
    time: Annotated[
        LocalTime,
        About(
            "Time",
            "The local time of day at which runs start once, daily or weekly.",
            legacy=("scheduled_time",),
        ),
    ] = datetime.time(0, 0)
    days: Annotated[
        tuple[Weekday, ...],
        once_each("day"),
        About(
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
        Between(1, 1440),
        About(
            "Every",
            "The minutes from one start of the timer to the next; when watching, the longest time "
            "between two scans.",
            legacy=("timer_minutes",),
            unit="min",
        ),
    ] = 15
    from_time: Annotated[
        LocalTime,
        About(
            "From",
            "The local time of day from which the timer, or the watch, starts runs.",
            legacy=("timer_from_time",),
        ),
    ] = datetime.time(0, 0)
    to_time: Annotated[
        LocalTime,
        About(
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
