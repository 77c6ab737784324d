"""How a command shows what it does: its form, its failures, and the events in its log."""

import logging
from enum import Enum

from typer import BadParameter

from mydata_like.cli.report import log_line, print_json, print_line
from mydata_like.core.errors import Problem, UploaderError
from mydata_like.core.events import (
    ChannelChanged,
    CommandDone,
    CommandRefused,
    Event,
    FileFailed,
    FileRetried,
    FolderFailed,
    LimitsChanged,
    Notice,
    RunFinished,
    RunPaused,
    RunResumed,
    RunScheduled,
    RunStarted,
    TransferRetried,
    event_record,
)
from mydata_like.hostos.clock import SystemClock

logger = logging.getLogger(__name__)

LEVELS: dict[type[Event], int] = {  # of the events in the log; all others are for DEBUG
    FileFailed: logging.WARNING,
    FolderFailed: logging.WARNING,
    RunPaused: logging.WARNING,
    Notice: logging.WARNING,
    TransferRetried: logging.WARNING,
    RunStarted: logging.INFO,
    RunFinished: logging.INFO,
    RunScheduled: logging.INFO,
    RunResumed: logging.INFO,
    ChannelChanged: logging.INFO,
    LimitsChanged: logging.INFO,
    FileRetried: logging.INFO,
    CommandDone: logging.INFO,
    CommandRefused: logging.INFO,
}


class Shape(Enum):
    """How a run is shown: to a person, as one final JSON object, as a line an event.

    Brief events leave out those about single files.
    """

    TEXT = "text"
    JSON = "json"
    EVENTS = "events"
    BRIEF = "brief"


def choose_shape(*, events: bool, brief: bool, as_json: bool = False) -> Shape:
    """Return how a run is shown."""
    if events and as_json:
        raise BadParameter("--events and --json exclude each other.")
    if brief and not events:
        raise BadParameter("--brief goes with --events.")
    if events:
        return Shape.BRIEF if brief else Shape.EVENTS
    return Shape.JSON if as_json else Shape.TEXT


def tell_failure(error: UploaderError, shape: Shape) -> None:
    """Say why a command could not do its work."""
    if shape is Shape.TEXT:
        more = f"More: mydata-like explain {error.problem_code}"
        for line in filter(None, (error.message, error.hint, more)):
            print_line(line, err=True)
        return
    print_json(event_record(end_of_nothing(error.problem)))


def end_of_nothing(problem: Problem) -> RunFinished:
    """Return the sums of a run that did not begin."""
    return RunFinished.of_nothing(SystemClock().now(), problem)


def log_event(event: Event) -> None:
    """Keep for the maintainer what a person may ask about later."""
    level = LEVELS.get(type(event), logging.DEBUG)
    if logger.isEnabledFor(level):
        logger.log(level, "%s", log_line(event))
