"""Settings of what tells people that an unattended uploader is still at work."""

from typing import Annotated, Literal

from mydata_like.settings.about import About
from mydata_like.settings.reading import Between
from mydata_like.settings.schedule import Weekday
from mydata_like.settings.section import Section
from mydata_like.settings.values import OptionalPath, Url


class Monitor(Section):
    """Signs of life, and the weekly notice."""

    notice_day: Annotated[
        Literal[Weekday, "never"],
        About(
            "Weekly notice",
            'The day of the weekly notice "all is well" or "nothing came".',
        ),
    ] = "monday"
    signal_file: Annotated[
        OptionalPath,
        About(
            "Signal file",
            "A file that is written after each run that ended well, for a monitor to look at.",
        ),
    ] = None
    signal_url: Annotated[
        Url,
        About(
            "Signal address",
            "A web address that is called after each run that ended well (a dead man's switch).",
        ),
    ] = ""
    silent_hours: Annotated[
        int,
        Between(0, 8760),
        About(
            "Silence",
            "After how many hours in which no run ended well, without a problem or a failed file, "
            "although one was tried, somebody is told; 0 never.",
            unit="h",
        ),
    ] = 48
