"""One line of the log, as parsed for display."""

from typing import NamedTuple


class LogLine(NamedTuple):
    """One line; continuation lines of a message have its level and no time.

    `at` is the local time in the file, `origin` the part of the program that wrote it.
    """

    at: str
    level: str
    origin: str
    text: str
