"""How a command shows what it does: its form, its failures, and the events in its log."""

import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TextIO

from typer import BadParameter

from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Problem, UploaderError
from mydata_like.core.events import (
    ChannelChanged,
    CommandDone,
    CommandRefused,
    Event,
    FileFailed,
    FileRegistered,
    FileRetried,
    FileSkipped,
    FilesKnown,
    FilesSeen,
    FileStaged,
    FileVerified,
    FileWaiting,
    FileWanted,
    FolderFailed,
    FolderFound,
    FolderSkipped,
    LimitsChanged,
    Notice,
    RunFinished,
    RunPaused,
    RunResumed,
    RunScheduled,
    RunStarted,
    TransferRetried,
    event_name,
    event_record,
)
from mydata_like.core.formatting import (
    LIMITS,
    format_duration,
    format_json,
    format_path,
    format_size,
    format_text,
)
from mydata_like.engine.progress import Totals
from mydata_like.hostos.clock import SystemClock

if TYPE_CHECKING:
    from mydata_like.app.status_report import StatusReport
    from mydata_like.settings.layers import ServerDecision


LONGEST_VALUE = 200  # characters of a setting's value
NAMED_PROBLEMS = 20  # after which only the log names further ones


class RunOutput(Protocol):
    """One way to show a run."""

    def show(self, event: Event) -> None:
        """Take the next event; called from any thread."""


# What `brief` leaves out: events that come for every file. Those of files that are not well
# are in the ledger; RunProgressed has the sums.
DETAILS = (
    FileWanted
    | FileWaiting
    | FileSkipped
    | FileStaged
    | FileRegistered
    | FileVerified
    | FileFailed
    | FileRetried
)


class EventLines:
    """Every event, or (`brief`) those about the whole run, as a line of JSON each.

    Of a dry run, whose outcomes are in no ledger, brief events name the first files of each kind
    that are not well. A reader that has gone is no reason for the run to end: nothing more is
    written then.
    """

    def __init__(self, stream: TextIO, *, brief: bool = False, dry_run: bool = False) -> None:
        self._stream: TextIO | None = stream
        self._brief = brief
        self._dry_run = dry_run
        self._named: Counter[type[Event]] = Counter()
        self._lock = Lock()

    def show(self, event: Event) -> None:
        if self._brief and isinstance(event, DETAILS) and not self._is_named(event):
            return
        line = format_json(event_record(event))
        with self._lock:
            if self._stream is None:
                return
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except BrokenPipeError:
                logger.info("Nobody reads the events any more")
                # What is left in the buffer must not fail when the program ends.
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
                self._stream = None

    def _is_named(self, event: Event) -> bool:
        if not self._dry_run or not isinstance(event, FileWaiting | FileSkipped | FileFailed):
            return False
        with self._lock:
            self._named[type(event)] += 1
            return self._named[type(event)] <= NAMED_PROBLEMS


# What plain lines tell of: nearly all events are others, which come for every file.
TOLD = frozenset(
    {FileFailed, FolderFailed, FolderSkipped, Notice}
    | {RunPaused, RunResumed, LimitsChanged, ChannelChanged}
)


class PlainLines:
    """What a person has to know, a line each; for logs and pipes."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._named = 0

    def show(self, event: Event) -> None:
        if type(event) not in TOLD:
            return
        for line in describe_event(event):
            if isinstance(event, FileFailed):
                self._named += 1
                if self._named == NAMED_PROBLEMS + 1:
                    line = "More files failed; the log file names them all."
                elif self._named > NAMED_PROBLEMS:
                    continue
            self._write(format_text(line) + "\n")


def describe_event(event: Event) -> Iterator[str]:
    """Yield what a person has to know of an event, in plain sentences."""
    match event:
        case FileFailed(path=path, problem=problem) | FolderFailed(path=path, problem=problem):
            yield f"Failed: {format_path(path)}: {_sentence(problem)}"
        case FolderSkipped(path=path, problem=problem):
            yield f"Left out: {format_path(path)}: {_sentence(problem)}"
        case Notice(problem=problem):
            yield f"Note: {_sentence(problem)}"
        case RunPaused(problem=problem):
            yield f"Paused: {_sentence(problem)}"
        case RunResumed():
            yield "Going on."
        case LimitsChanged(channels=channels, bandwidth=bandwidth, reason=reason):
            speed = f", {format_size(bandwidth)}/s" if bandwidth else ", as fast as it goes"
            yield f"Limits: {channels} channel{'s' * (channels != 1)}{speed} ({reason})."
        case ChannelChanged():
            yield from _describe_channel(event)
        case _:
            return


def _describe_channel(event: ChannelChanged) -> Iterator[str]:
    if event.state == "open":
        cipher = f", {event.cipher}" if event.cipher else ""
        yield f"Channel {event.channel} to {event.host} ({event.rung}{cipher})."
    elif event.state == "lost":
        yield f"Channel {event.channel} was lost: {event.detail}"


def _sentence(problem: Problem) -> str:
    return " ".join(filter(None, (problem.message, problem.hint)))


def summarise(finished: RunFinished, *, partial: bool = False) -> list[str]:
    """Return the sums of a run as sentences; the first one answers whether the data is safe.

    `partial` says that there are files which it did not look at, or which are not safe.
    """
    lines = []
    if finished.problem:
        lines.append(_sentence(finished.problem))
    lines.extend(_tell_safe(finished, partial=partial))
    if finished.left_behind:
        where = f" of shard {finished.shard}" if finished.shard else ""
        lines.append(
            f"{finished.left_behind:,} files or folders{where} were left out and are not on the"
            " server; the window's page Problems says why."
        )
    lines.append(
        f"{finished.found:,} found = {finished.verified:,} verified + {finished.waiting:,} waiting"
        f" + {finished.skipped:,} skipped + {finished.failed:,} failed"
    )
    if finished.sent:
        rate = finished.bytes / finished.seconds if finished.seconds else 0.0
        lines.append(
            f"{finished.sent:,} files, {format_size(finished.bytes)} sent in "
            f"{format_duration(finished.seconds)} ({format_size(rate)}/s)"
        )
    else:
        lines.append(f"Nothing was sent; the run took {format_duration(finished.seconds)}.")
    if finished.sent and finished.limit:
        lines.append(f"The limit was {LIMITS.get(finished.limit, finished.limit)}.")
    return lines


def _tell_safe(finished: RunFinished, *, partial: bool) -> Iterator[str]:
    """Yield whether all is safe, where that can be said."""
    safe = finished.verified == finished.found - finished.skipped and not finished.problem
    where = f" of shard {finished.shard}" if finished.shard else " of this run" if partial else ""
    if finished.found == 0:
        yield f"No files{where} were found."
    elif safe and not finished.verified:
        yield f"No files{where} were found that are to be sent."
    elif safe and not finished.left_behind:
        yield f"All {finished.verified:,} files{where} are safe on the server."


def describe_safety(found: "StatusReport") -> Iterator[str]:
    """Yield how safe the data is, and what is missing."""
    if found.data_problem:
        yield _sentence(found.data_problem)
    if found.interrupted and not found.running:
        yield (
            f"The run of {_local(found.interrupted.started)} was cut off; the next run carries on."
        )
    if found.at_risk.files:
        oldest = found.at_risk.oldest
        since = f"; the oldest was made {_local(oldest)}" if oldest else ""
        count, size = found.at_risk.files, format_size(found.at_risk.bytes)
        yield f"Only on this computer: {count:,} files, {size}{since}."
    if found.sources:
        yield f"Added folders that are not finished: {len(found.sources):,}."
    if found.running:  # it has not looked at everything yet
        return
    if found.safety is Safety.SAFE:
        yield "All files that were found are safe on the server."
    elif found.safety is Safety.UNKNOWN:
        yield "It is not known whether all files are safe; a run over the data directory finds out."


def describe_decision(decision: "ServerDecision") -> str:
    """Return a setting that the server decides, and what this computer says, as a sentence."""
    value, instead_of = (text or "(empty)" for text in (decision.value, decision.instead_of))
    return (
        f"The server sets {decision.setting.key} to {_shorten(value)} instead of "
        f"{_shorten(instead_of)} ({decision.origin})."
    )


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "..."


def _local(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


class DryRunOutput:
    """Collects what a dry run finds, folder by folder, and what would stay here."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[FileWaiting] = []  # the first
        self._skipped: list[FileSkipped] = []
        self._found: Counter[bytes] = Counter()
        self._known: Counter[bytes] = Counter()
        self._places: dict[bytes, FolderFound] = {}

    def show(self, event: Event) -> None:
        """Take the next event."""
        with self._lock:
            match event:
                case FolderFound(path=path):
                    self._places[path] = event
                case FilesSeen(folder=folder, files=files):
                    self._found[folder] += files
                case FilesKnown(folder=folder, files=files):
                    self._known[folder] += files
                case FileWaiting() if len(self._waiting) < NAMED_PROBLEMS:
                    self._waiting.append(event)
                case FileSkipped() if len(self._skipped) < NAMED_PROBLEMS:
                    self._skipped.append(event)
                case _:
                    pass

    def lines(self, totals: Totals) -> list[str]:
        """Return each folder with where it goes, the sums, and which files wait or are left out.

        Those that cannot be read were told as they were found.
        """
        lines = []
        for path, place in sorted(self._places.items()):
            experiment = place.title or f"named after {place.owner or 'the account'}"
            lines.append(
                f"{format_path(path)}: dataset {place.dataset}, experiment {experiment}: "
                f"{self._found[path]:,} found, {self._known[path]:,} on the server"
            )
        lines.append(
            f"{_tell_wanted(totals)}; "
            f"{totals.known:,} are on the server, {totals.waiting:,} wait, "
            f"{totals.skipped:,} are left out, {totals.failed:,} cannot be read."
        )
        lines += _name_files("Waiting", self._waiting, totals.waiting)
        lines += _name_files("Left out", self._skipped, totals.skipped)
        return lines


def _tell_wanted(totals: Totals) -> str:
    """Return what a run would send; that all is there is said only where all of it is."""
    if totals.wanted:
        return f"{totals.wanted:,} files, {format_size(totals.wanted_bytes)} would be sent"
    if not totals.found:
        return "No files were found"
    if totals.known == totals.found:
        return "Nothing would be sent: all files are on the server"
    return f"Nothing would be sent, and {totals.found - totals.known:,} files are not verified"


def _name_files(
    what: str, named: Sequence[FileWaiting | FileSkipped], number: int
) -> Iterator[str]:
    """Yield the first files of one kind with the reason, and how many more there are."""
    for event in named:
        yield f"{what}: {format_path(event.path)}: {_sentence(event.problem)}"
    if number > len(named):
        yield f"{what}: {number - len(named):,} more."


def log_line(event: Event) -> str:
    """Return an event as a line of the log: its name, and what of its fields says something."""
    fields = [(name, value) for name, value in event_record(event).items() if value]
    told = (f"{name}={_brief(value)}" for name, value in fields if name != "event")
    return " ".join((event_name(event), *told))


def _brief(value: object) -> str:
    match value:
        case {"code": code, "message": message}:
            return f"{code} ({message})"
        case str() if not value.isprintable():
            return json.dumps(value)
        case str() if " " in value:
            return f'"{value}"'
        case _:
            return str(value)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text on standard output, each on a line of its own whatever it holds."""
    for line in lines:
        print(format_text(line))


def print_line(text: str, *, err: bool = False) -> None:
    """Print a line of text, on standard error where it is about a problem."""
    stream = sys.stderr if err else sys.stdout
    stream.write(format_text(text) + "\n")
    stream.flush()


def print_json(values: object) -> None:
    """Print one JSON object on one line of standard output."""
    print(format_json(values))
    sys.stdout.flush()


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
