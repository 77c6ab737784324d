"""Settings that keep the upload from disturbing the instrument."""

from collections.abc import Callable
from typing import Annotated

from mydata_like.settings.about import About
from mydata_like.settings.reading import Between
from mydata_like.settings.section import Section
from mydata_like.settings.timetable import parse_period, parse_speed
from mydata_like.settings.values import Line, once_each


def _readable(parse: Callable[[str], object]) -> Callable[[str], str]:
    def check(text: str) -> str:
        parse(text)
        return text

    return check


class Limits(Section):
    """What the instrument's own work is spared."""

    bandwidth: Annotated[
        float,
        Between(0, 100_000),
        About(
            "Bandwidth",
            "How fast all channels together may send; 0 is without a limit.",
            unit="MB/s (10^6 bytes)",
        ),
    ] = 0.0
    timetable: Annotated[
        tuple[Annotated[Line, _readable(parse_speed)], ...],
        once_each("period"),
        About(
            "Bandwidth timetable",
            "Periods with a bandwidth of their own in MB/s, in local time, such as "
            '"monday-friday 09:00-17:00 5"; the first one that covers the time counts.',
        ),
    ] = ()
    quiet_hours: Annotated[
        tuple[Annotated[Line, _readable(parse_period)], ...],
        once_each("period"),
        About(
            "Quiet hours",
            "Periods, in local time, in which nothing new is sent, such as "
            '"monday-friday 09:00-17:00"; what is under way is finished.',
        ),
    ] = ()
    low_priority: Annotated[
        bool,
        About(
            "Low priority",
            "Whether to leave processor and disk to other programs first.",
        ),
    ] = True
    pause_while_running: Annotated[
        tuple[Line, ...],
        once_each("program"),
        About(
            "Pause while running",
            "Names or full paths of programs, such as acquire.exe, during which nothing new is "
            "sent.",
        ),
    ] = ()
    pause_under_pressure: Annotated[
        float,
        Between(0, 100),
        About(
            "Pause under pressure",
            "The share of time in which other programs wait for disk or memory above which "
            "nothing new is sent; 0 never pauses.",
            unit="%",
        ),
    ] = 0.0
    keep_awake: Annotated[
        bool,
        About(
            "Keep awake",
            "Whether to keep the computer from going to sleep while files are being sent.",
        ),
    ] = True
