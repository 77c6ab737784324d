"""A line of the log, as those who read it get it."""

from typing import NamedTuple


class LogLine(NamedTuple):
    """One line; those that continue a message have its level and no time.

    `at` is local time as it stands in the file, `origin` the part of the program that wrote it.
    """

    at: str
    level: str
    origin: str
    text: str
