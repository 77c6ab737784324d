"""What a run looks like: JSON lines for programs, plain lines, live bars on a terminal."""

import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Protocol, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mydata_like.core.errors import Problem
from mydata_like.core.events import (
    ChannelChanged,
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
    event_record,
)
from mydata_like.core.format import format_duration, format_path, format_size
from mydata_like.engine.tally import Tally, Totals, Travel

logger = logging.getLogger(__name__)

REFRESHES = 5  # a second
NAMED_PROBLEMS = 20  # after which only the log names further ones


class Report(Protocol):
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

    A reader that has gone is no reason for the run to end: nothing more is written then.
    """

    def __init__(self, stream: TextIO, *, brief: bool = False) -> None:
        self._stream: TextIO | None = stream
        self._brief = brief
        self._lock = Lock()

    def show(self, event: Event) -> None:
        if self._brief and isinstance(event, DETAILS):
            return
        line = json.dumps(event_record(event), ensure_ascii=False)
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


class PlainLines:
    """What a person has to know, a line each; for logs and pipes."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._named = 0

    def show(self, event: Event) -> None:
        for line in describe_event(event):
            if isinstance(event, FileFailed):
                self._named += 1
                if self._named == NAMED_PROBLEMS + 1:
                    line = "More files failed; the log file names them all."
                elif self._named > NAMED_PROBLEMS:
                    continue
            self._write(line + "\n")


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


def summarise(finished: RunFinished) -> list[str]:
    """Return the sums of a run as sentences; the first one answers whether the data is safe."""
    lines = []
    if finished.problem:
        lines.append(_sentence(finished.problem))
    safe = finished.verified == finished.found - finished.skipped and not finished.problem
    where = f" of shard {finished.shard}" if finished.shard else ""
    if finished.found == 0:
        lines.append(f"No files{where} were found.")
    elif safe:
        lines.append(f"All {finished.verified:,} files{where} are safe on the server.")
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
    return lines


@contextmanager
def live_bars(tally: Tally, stream: TextIO) -> Iterator[Report]:
    """Show live bars on a terminal: per channel, in all, and the sums."""
    console = Console(file=stream, markup=False, highlight=False)
    picture = _Picture(tally)
    with Live(picture, console=console, refresh_per_second=REFRESHES, transient=True) as live:
        above = partial(live.console.print, end="", soft_wrap=True)
        yield PlainLines(above)


class _Picture:
    """Draws the tally anew whenever it is asked to."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def __rich__(self) -> Group:
        totals = self._tally.totals
        channels = Table.grid(padding=(0, 1))
        for travel in self._tally.travels[:16]:
            channels.add_row(*_travel_cells(travel))
        whole = Table.grid()
        to_do = max(1, totals.wanted_bytes)
        whole.add_row(ProgressBar(total=to_do, completed=min(totals.sent_bytes, to_do), width=76))
        return Group(channels, whole, *map(Text, _sum_lines(totals)))


def _travel_cells(travel: Travel) -> tuple[RenderableType, ...]:
    name = format_path(travel.name.rsplit(b"/", 1)[-1])
    if travel.files > 1:
        name = f"{travel.files:,} files"
    bar = ProgressBar(total=max(1, travel.size), completed=travel.done, width=30)
    again = f"attempt {travel.attempt}" if travel.attempt > 1 else ""
    said = f"again soon: {travel.problem.message}" if travel.problem else again
    return f"channel {travel.channel}", Text(name[:34]), bar, format_size(travel.size), Text(said)


def _sum_lines(totals: Totals) -> tuple[str, str]:
    remaining = "" if totals.remaining is None else f", {format_duration(totals.remaining)} left"
    return (
        f"{format_size(totals.sent_bytes)} of {format_size(totals.wanted_bytes)} sent, "
        f"{format_size(totals.byte_rate)}/s, {totals.file_rate:.0f} files/s{remaining}",
        f"{totals.found:,} found = {totals.verified:,} verified + {totals.waiting:,} waiting + "
        f"{totals.skipped:,} skipped + {totals.failed:,} failed + {totals.open:,} open",
    )


class Preview:
    """Collects what a dry run finds, folder by folder."""

    def __init__(self) -> None:
        self._lock = Lock()
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
                case _:
                    pass

    def lines(self, totals: Totals) -> list[str]:
        """Return each folder with where it goes, then the sums."""
        lines = []
        for path, place in sorted(self._places.items()):
            experiment = place.title or f"named after {place.owner or 'the account'}"
            lines.append(
                f"{format_path(path)}: dataset {place.dataset}, experiment {experiment}: "
                f"{self._found[path]:,} found, {self._known[path]:,} on the server"
            )
        lines.append(
            f"{totals.wanted:,} files, {format_size(totals.wanted_bytes)} would be sent; "
            f"{totals.known:,} are on the server, {totals.waiting:,} wait, "
            f"{totals.skipped:,} are left out, {totals.failed:,} cannot be read."
        )
        return lines


def print_lines(lines: Iterable[str]) -> None:
    """Print lines for a person on standard output."""
    for line in lines:
        print(line)


def print_json(values: object) -> None:
    """Print one JSON object on one line of standard output."""
    print(json.dumps(values, ensure_ascii=False))
    sys.stdout.flush()
