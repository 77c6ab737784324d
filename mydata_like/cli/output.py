"""The output of commands: text, JSON lines, errors, and the events in the log."""

import json
import logging
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TextIO

from typer import BadParameter

from mydata_like.core.copy_arguments import CopyTarget
from mydata_like.core.deletion import Safety
from mydata_like.core.errors import HELD, Problem, UploaderError
from mydata_like.core.events import (
    ChannelChanged,
    CommandDone,
    CommandRefused,
    Event,
    FileFailed,
    FileRegistered,
    FileReplaced,
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
    format_day,
    format_days_ago,
    format_duration,
    format_earlier,
    format_files,
    format_json,
    format_path,
    format_size,
    format_text,
)
from mydata_like.engine.progress import Totals
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Settings
from mydata_like.settings.sections import TARGETS, DataDestination

if TYPE_CHECKING:
    from mydata_like.app.known_copies import LastRestore, LastVerify
    from mydata_like.app.ledger_status import StatusReport
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
    | FileReplaced
    | FileRegistered
    | FileVerified
    | FileFailed
    | FileRetried
)


class EventLines:
    """Writes each event, or with `brief` those about the whole run, as a line of JSON.

    The outcomes of a dry run are in no ledger, so brief events name the first files of each kind
    that are unhealthy, or would replace others. If the reader closes the pipe, the run continues
    and nothing more is written.
    """

    def __init__(self, stream: TextIO, *, brief: bool = False, dry_run: bool = False) -> None:
        self._stream: TextIO | None = stream
        self._brief = brief
        self._dry_run = dry_run
        self._named: Counter[tuple[type[Event], bool]] = Counter()
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
                logger.info("The reader of the events has closed the pipe")
                # Work-around: Python 3.11 flushes standard output at its end and reports the broken
                # pipe again. https://docs.python.org/3/library/signal.html#note-on-sigpipe
                # Remove when Python forgets the buffer of a stream whose reader has gone.
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
                self._stream = None

    def _is_named(self, event: Event) -> bool:
        if not self._dry_run or not (
            isinstance(event, FileWaiting | FileSkipped | FileFailed)
            or (isinstance(event, FileWanted) and event.changed)
        ):
            return False
        kind = type(event), is_held(event)
        with self._lock:
            self._named[kind] += 1
            return self._named[kind] <= NAMED_PROBLEMS


LITTER = "skipped.ignored"  # a NAS may have such a folder in each folder
# The events that plain lines show; most events are about single files and are left out.
TOLD = frozenset(
    {FileFailed, FileReplaced, FolderFailed, FolderSkipped, Notice}
    | {RunPaused, RunResumed, LimitsChanged, ChannelChanged}
)


# What happened to files of which only the first are named.
_MORE: Mapping[type[Event], str] = {
    FileFailed: "failed",
    FileReplaced: "were replaced",
    FileWaiting: "are held",
}


class PlainLines:
    """Writes important events as lines of text, for logs and pipes."""

    def __init__(self, write: Callable[[str], object], settings: Settings | None = None) -> None:
        self._write = write
        self._settings = settings or Settings()
        self._named: Counter[type[Event]] = Counter()

    def show(self, event: Event) -> None:
        if type(event) not in TOLD and not is_held(event):
            return
        for line in reword(describe_event(event), self._settings):
            if more := _MORE.get(type(event)):
                self._named[type(event)] += 1
                if self._named[type(event)] == NAMED_PROBLEMS + 1:
                    line = f"More files {more}; the log file names them all."
                elif self._named[type(event)] > NAMED_PROBLEMS:
                    continue
            self._write(format_text(line) + "\n")


def is_held(event: Event) -> bool:
    """Return whether a changed file waits for the user's choice."""
    return isinstance(event, FileWaiting) and event.problem.code == HELD


def describe_event(event: Event) -> Iterator[str]:
    """Yield an important event as sentences."""
    match event:
        case FileFailed(path=path, problem=problem) | FolderFailed(path=path, problem=problem):
            yield f"Failed: {format_path(path)}: {describe_problem(problem)}"
        case FileReplaced(path=path):
            yield f"Replaced: {format_path(path)}: {describe_replaced(event)}"
        case FileWaiting(path=path, problem=problem) if is_held(event):
            yield f"Held: {format_path(path)}: {describe_problem(problem)}"
        case FolderSkipped(path=path, problem=problem) if problem.code != LITTER:
            yield f"Left out: {format_path(path)}: {describe_problem(problem)}"
        case Notice(problem=problem):
            yield f"Note: {describe_problem(problem)}"
        case RunPaused(problem=problem):
            yield f"Paused: {describe_problem(problem)}"
        case RunResumed():
            yield "Going on."
        case LimitsChanged(channels=channels, bandwidth=bandwidth, reason=reason):
            speed = f", {format_size(bandwidth)}/s" if bandwidth else ", unlimited speed"
            yield f"Limits: {channels} channel{'s' * (channels != 1)}{speed} ({reason})."
        case ChannelChanged(state="open", channel=channel, host=host, rung=rung):
            cipher = f", {event.cipher}" if event.cipher else ""
            yield f"Channel {channel} to {host} ({rung}{cipher})."
        case ChannelChanged(state="lost", channel=channel, detail=detail):
            yield f"Channel {channel} was lost: {detail}"
        case _:
            return


def describe_last_verify(last: "LastVerify") -> str:
    """Return the result of the last check of a destination as a sentence."""
    counts = (last.missing, "missing"), (last.changed, "changed"), (last.unreadable, "unreadable")
    wrong = ", ".join(f"{number:,} {what}" for number, what in counts if number)
    part = {"sample": " in a sample", "older": " that were due"}.get(last.scope, "")
    how = "" if last.read else " by ETags"
    ended = "" if last.complete else ", incomplete"
    day = format_day(datetime.fromtimestamp(last.at, UTC))
    of = f"{last.checked:,} of " if last.checked < last.listed else ""
    return (
        f"The last verification, on {day} by {last.by}: "
        f"{of}{format_files(last.listed)} checked{how}{part}{ended}: "
        f"{wrong or 'all as listed'}."
    )


def describe_last_restore(last: "LastRestore") -> str:
    """Return the result of the last restore test of a destination as a sentence."""
    wrong = ", ".join(f"{number:,} {what}" for what, number in last.wrong.items())
    ended = "" if last.complete else ", incomplete"
    day = format_day(datetime.fromtimestamp(last.at, UTC))
    return (
        f"The last restore test, on {day} by {last.by}: {last.restored:,} of {last.chosen:,} files "
        f"came back as listed{ended}{', ' if wrong else ''}{wrong}."
    )


def describe_replaced(event: FileReplaced) -> str:
    """Return what was replaced as a sentence."""
    until = event.kept_until
    kept = f"it is kept until {format_day(until)}" if until else "it is not kept"
    return (
        f"the earlier content was {format_earlier(event.size_before, event.verified_at)}; {kept}."
    )


def describe_problem(problem: Problem) -> str:
    """Return a problem and what to do about it in one line."""
    return " ".join(filter(None, (problem.message, problem.hint)))


def summarise(finished: RunFinished, *, partial: bool = False, doubtful: bool = False) -> list[str]:
    """Return the summary of a run as sentences; the first says whether the data is safe.

    `partial` is set if the run did not include all files, or if other files are not safe,
    `doubtful` if an answer of the server has contradicted since that files are safe.
    """
    lines = []
    if finished.problem:
        lines.append(describe_problem(finished.problem))
    if not doubtful:
        lines.extend(_describe_safe(finished, partial=partial))
    if finished.left_behind:
        where = f" of shard {finished.shard}" if finished.shard else ""
        one = finished.left_behind == 1
        behind = "1 file or folder" if one else f"{finished.left_behind:,} files or folders"
        lines.append(
            f"{behind}{where} {'was' if one else 'were'} left out and {'is' if one else 'are'} not "
            "on the server. The page Problems of the window shows why."
        )
    if finished.outside == 1:
        lines.append("1 file is in no dataset and stays here.")
    elif finished.outside:
        lines.append(f"{finished.outside:,} files are in no dataset and stay here.")
    lines.append(
        f"{finished.found:,} found = {finished.verified:,} verified + {finished.waiting:,} waiting"
        f" + {finished.skipped:,} skipped + {finished.failed:,} failed"
    )
    if finished.sent:
        size = finished.bytes - finished.omitted
        rate = size / finished.seconds if finished.seconds else 0.0
        more = f"; a further {format_size(finished.omitted)} were holes, or left by earlier runs"
        lines.append(
            f"{format_files(finished.sent)}, {format_size(size)} sent in "
            f"{format_duration(finished.seconds)} ({format_size(rate)}/s)"
            f"{more if finished.omitted else ''}"
        )
        if finished.problem and finished.unfinished:
            size = finished.unfinished
            lines.append(f"A further {format_size(size)} were sent of files that are not complete.")
    else:
        what = f"{format_size(finished.unfinished)} of files that are not complete were"
        lines.append(
            f"{what if finished.unfinished else 'Nothing was'} sent; "
            f"the run took {format_duration(finished.seconds)}."
        )
    if finished.renamed:
        lines.append(f"{format_files(finished.renamed)} renamed there as here: nothing was sent.")
    if finished.replaced:
        lines.append(
            f"{format_files(finished.replaced)} replaced other content on the server. To see what "
            "is kept of a file, run: mydata-like where PATH"
        )
    if finished.sent and finished.limit:
        lines.append(f"The limit was {LIMITS.get(finished.limit, finished.limit)}.")
    return lines


def _describe_safe(finished: RunFinished, *, partial: bool) -> Iterator[str]:
    """Yield whether all files are safe, if that is known."""
    safe = finished.verified == finished.found - finished.skipped and not finished.problem
    where = f" of shard {finished.shard}" if finished.shard else " of this run" if partial else ""
    if finished.found == 0:
        yield f"No files{where} were found."
    elif safe and not finished.verified:
        yield f"No files{where} were found that need to be sent."
    elif safe and not finished.left_behind:
        compared = format_comparison(finished.compared, finished.at)
        files = f"All {finished.verified:,} files{where} are"
        if finished.verified == 1:
            files = f"1 file{where} is"
        yield f"{files} safe on the server{compared}."


def format_comparison(compared: datetime | None, now: datetime) -> str:
    """Return when records were last compared with the server, as an addition to a sentence."""
    return f" (compared with the server {format_days_ago(compared, now)})" if compared else ""


def describe_safety(found: "StatusReport") -> Iterator[str]:
    """Yield how safe the data is, and what is missing."""
    if found.data_problem:
        yield describe_problem(found.data_problem)
    if found.interrupted and not found.running:
        yield (
            f"The run of {format_local(found.interrupted.started)} was interrupted. "
            "The next run continues."
        )
    if found.at_risk.files:
        oldest = found.at_risk.oldest
        since = f"; the oldest is from {format_local(oldest)}" if oldest else ""
        count, size = format_files(found.at_risk.files), format_size(found.at_risk.bytes)
        yield f"Only on this computer: {count}, {size}{since}."
    if found.held:
        held = f"{found.held:,} changed files are" if found.held > 1 else "1 changed file is"
        yield f"{held} held until you choose. To list them, run: mydata-like changed list"
    yield from describe_kept(found)
    if found.recheck:
        yield (
            "Of these, an answer of the server contradicts that it has "
            f"{format_files(found.recheck)}. The next run compares them with the server."
        )
    if found.sources:
        yield f"Added folders that are not finished: {len(found.sources):,}."
    if found.running:  # it has not looked at everything yet
        return
    if found.safety is Safety.SAFE:
        compared = format_comparison(found.compared, SystemClock().now())
        which = "other files" if found.kept else "files that were found"
        yield f"All {which} are safe on the server{compared}."
    elif found.safety is Safety.UNKNOWN:
        yield "It is not known whether all files are safe. A run of the data directory checks."


def describe_kept(found: "StatusReport") -> Iterator[str]:
    """Yield how many files are not on the server because the user keeps their earlier content."""
    if found.kept:
        differ = (
            f"{found.kept:,} changed files differ" if found.kept > 1 else "1 changed file differs"
        )
        yield f"{differ} from what the server has, as you chose. See: mydata-like changed list"


def describe_decision(decision: "ServerDecision") -> str:
    """Return a setting that the server defines, and the value it replaces, as a sentence."""
    value, instead_of = (text or "(empty)" for text in (decision.value, decision.instead_of))
    return (
        f"The server sets {decision.setting.key} to {_shorten(value)} instead of "
        f"{_shorten(instead_of)} ({decision.origin})."
    )


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "..."


def format_local(moment: datetime) -> str:
    """Return a time as the clock of this computer shows it, to the minute."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


class DryRunOutput:
    """Collects what a dry run finds in each folder, and which files would not be sent."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[FileWaiting] = []  # the first
        self._skipped: list[FileSkipped] = []
        self._replacing: list[FileWanted] = []
        self._replaced = self._held = 0
        self._found: Counter[bytes] = Counter()
        self._known: Counter[bytes] = Counter()
        self._places: dict[bytes, FolderFound] = {}

    def show(self, event: Event) -> None:
        """Process the next event."""
        with self._lock:
            match event:
                case FolderFound(path=path):
                    self._places[path] = event
                case FilesSeen(folder=folder, files=files):
                    self._found[folder] += files
                case FilesKnown(folder=folder, files=files):
                    self._known[folder] += files
                case FileWanted(changed=True):
                    self._replaced += 1
                    if len(self._replacing) < NAMED_PROBLEMS:
                        self._replacing.append(event)
                case FileWaiting() if is_held(event):
                    self._held += 1
                case FileWaiting() if len(self._waiting) < NAMED_PROBLEMS:
                    self._waiting.append(event)
                case FileSkipped() if len(self._skipped) < NAMED_PROBLEMS:
                    self._skipped.append(event)
                case _:
                    pass

    def lines(self, totals: Totals, *, takes_tree: bool) -> list[str]:
        """Return each folder with where it goes, the sums, and which files wait or are left out.

        A destination that `takes_tree` has the folders as they are.

        Those that are held or cannot be read were told as they were found.
        """
        lines = []
        for path, place in sorted(self._places.items()):
            experiment = place.title or f"named after {place.owner or 'the account'}"
            goes = f"dataset {place.dataset}, experiment {experiment}: "
            lines.append(
                f"{format_path(path) or 'In no folder'}: {'' if takes_tree else goes}"
                f"{self._found[path]:,} found, {self._known[path]:,} on the server"
            )
        lines.append(
            f"{_describe_wanted(totals)}; "
            f"{totals.known:,} on the server, {totals.waiting:,} waiting, "
            f"{totals.skipped:,} left out, {totals.failed:,} unreadable."
        )
        for event in self._replacing:
            earlier = format_earlier(event.size_before, event.verified_at)
            lines.append(f"Would be replaced: {format_path(event.path)}: the server has {earlier}.")
        if self._replaced > len(self._replacing):
            lines.append(f"Would be replaced: {self._replaced - len(self._replacing):,} more.")
        if self._held:
            lines.append(f"Held until you choose: {self._held:,} of those waiting.")
        lines += _name_files("Waiting", self._waiting, totals.waiting - self._held)
        lines += _name_files("Left out", self._skipped, totals.skipped)
        return lines


def _describe_wanted(totals: Totals) -> str:
    """Return what a run would send; reports that everything is there only if all of it is."""
    if totals.wanted:
        return f"{format_files(totals.wanted)}, {format_size(totals.wanted_bytes)} would be sent"
    if not totals.found:
        return "No files were found"
    if totals.known == totals.found:
        return "Nothing would be sent: all files are on the server"
    left = totals.found - totals.known
    verb = "is" if left == 1 else "are"
    return f"Nothing would be sent, and {format_files(left)} {verb} not verified"


def _name_files(
    what: str, named: Sequence[FileWaiting | FileSkipped], number: int
) -> Iterator[str]:
    """Yield the first files of one kind with the reason, and the number of others."""
    for event in named:
        yield f"{what}: {format_path(event.path)}: {describe_problem(event.problem)}"
    if number > len(named):
        yield f"{what}: {number - len(named):,} more."


def log_line(event: Event) -> str:
    """Return an event as a line of the log: its name and its fields that are not empty."""
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


def reword(lines: Iterable[str], settings: Settings) -> Iterator[str]:
    """Yield sentences about the server as sentences about the destination of the settings."""
    words = {
        "on the server": settings.destination.phrase,
        "The server": "The destination",
        "the server": "the destination",
        "staging host": "host",
        "staging area": "destination",
    }
    find = re.compile(rf"(?<![\w/])(?:{'|'.join(words)})(?![\w/])")  # not in a path
    for line in lines:
        is_plain = settings.destination.takes_tree
        yield find.sub(lambda found: words[found[0]], line) if is_plain else line


def reword_event(event: Event, settings: Settings) -> Event:
    """Return an event whose problem, if it has one, is worded as `reword` does."""
    problem = getattr(event, "problem", None)
    if problem is None or not settings.destination.takes_tree:
        return event
    message, hint = reword([problem.message, problem.hint], settings)
    return replace(event, problem=problem._replace(message=message, hint=hint))


def name_destination(target: CopyTarget, address: str) -> Settings:
    """Return settings that only have a destination, as it was typed, for `reword`."""
    kind = next(kind for kind, it in TARGETS.items() if isinstance(target, it))
    destination = DataDestination.of({"kind": kind, "address": address})
    return Settings.of(vars(Settings()) | {"destination": destination})


def print_lines(lines: Iterable[str]) -> None:
    """Print each text on a line of its own on standard output, with control characters escaped."""
    for line in lines:
        print(format_text(line))


def print_line(text: str, *, err: bool = False) -> None:
    """Print a line of text, on standard error if it is about a problem."""
    stream = sys.stderr if err else sys.stdout
    stream.write(format_text(text) + "\n")
    stream.flush()


def print_json(values: object) -> None:
    """Print one JSON object on one line of standard output."""
    print(format_json(values))
    sys.stdout.flush()


logger = logging.getLogger(__name__)

# The events in the log that are no details; all others are for DEBUG.
WARNINGS = frozenset({FileFailed, FolderFailed, RunPaused, FileReplaced, Notice, TransferRetried})
NEWS = frozenset(
    {RunStarted, RunFinished, RunScheduled, RunResumed, ChannelChanged, LimitsChanged}
    | {FileRetried, CommandDone, CommandRefused}
)


class Shape(Enum):
    """How a run is shown: as text, as one final JSON object, or as a line for each event.

    Brief events leave out those about single files.
    """

    TEXT = "text"
    JSON = "json"
    EVENTS = "events"
    BRIEF = "brief"


def choose_shape(*, events: bool, brief: bool, as_json: bool = False) -> Shape:
    """Return the output format of a run."""
    if events and as_json:
        raise BadParameter("--events and --json exclude each other.")
    if brief and not events:
        raise BadParameter("--brief goes with --events.")
    if events:
        return Shape.BRIEF if brief else Shape.EVENTS
    return Shape.JSON if as_json else Shape.TEXT


def print_failure(error: UploaderError, shape: Shape, settings: Settings | None = None) -> None:
    """Print why a command failed; the `settings` name its destination."""
    if shape is Shape.TEXT:
        more = f"More: mydata-like explain {error.problem_code}"
        for line in reword(filter(None, (error.message, error.hint, more)), settings or Settings()):
            print_line(line, err=True)
        return
    print_json(event_record(unstarted_run(error.problem)))


def unstarted_run(problem: Problem) -> RunFinished:
    """Return the summary of a run that did not start."""
    return RunFinished.of_nothing(SystemClock().now(), problem)


def needs_details(shape: Shape) -> bool:
    """Return whether the events of single files that are well are shown or logged."""
    return shape is Shape.EVENTS or logger.isEnabledFor(logging.DEBUG)


def log_event(event: Event) -> None:
    """Log the error for later questions."""
    level = logging.INFO if type(event) in NEWS else logging.DEBUG
    if isinstance(event, CommandDone) and event.command == "list_next":  # a question of the window
        level = logging.DEBUG
    level = logging.WARNING if type(event) in WARNINGS or is_held(event) else level
    if logger.isEnabledFor(level):
        logger.log(level, "%s", log_line(event))
