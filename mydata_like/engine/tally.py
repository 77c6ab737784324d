"""Folds the events of a run into what is shown of it: totals, rates, transfers, problems."""

from collections import Counter
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, assert_never

from mydata_like.core.errors import Problem
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
    RunProgressed,
    RunResumed,
    RunScheduled,
    RunStarted,
    StagesMeasured,
    TransferFinished,
    TransferProgressed,
    TransferRetried,
    TransferStarted,
)
from mydata_like.core.model import ON_PURPOSE
from mydata_like.core.ports import Clock
from mydata_like.engine.totals import Rate, Totals
from mydata_like.engine.workers import Lock

PROBLEMS_KEPT = 1000
UNKNOWN_OWNER = "skipped.owner"

FileEvent = (
    FilesSeen
    | FilesKnown
    | FileWaiting
    | FileSkipped
    | FileWanted
    | FileRegistered
    | FileVerified
    | FileFailed
)
TransferEvent = TransferStarted | TransferProgressed | TransferRetried | TransferFinished
RunEvent = RunStarted | RunPaused | RunResumed | RunFinished | ChannelChanged | LimitsChanged


class Travel(NamedTuple):
    """A transfer under way; `problem` is why its last attempt failed, if one did."""

    transfer: int
    channel: int
    name: bytes
    files: int
    size: int
    done: int = 0
    attempt: int = 1
    problem: Problem | None = None


class Tally:
    """The state of one run as its events tell it; safe to use from any thread.

    Every local file that was seen gets exactly one of the outcomes FilesKnown, FileWaiting,
    FileSkipped, FileVerified and FileFailed, at the end of what the run does about it. Only
    FileRetried takes an outcome back.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._begun = clock.monotonic()
        self._shard = ""
        self._sums = Totals()
        self._bytes = Rate(clock)
        self._files = Rate(clock)
        self._travels: dict[int, Travel] = {}
        self._channels: dict[int, ChannelChanged] = {}
        self._problems: list[tuple[bytes, Problem]] = []
        self._problem_counts: Counter[str] = Counter()
        self.paused: Problem | None = None
        self.limit: LimitsChanged | None = None
        self.measured: StagesMeasured | None = None
        self.finished: RunFinished | None = None

    def add(self, event: Event) -> None:
        """Take the next event into account."""
        with self._lock:
            self._add(event)

    @property
    def totals(self) -> Totals:
        """The sums as of now."""
        with self._lock:
            rates = self._bytes.per_second(), self._files.per_second()
            return replace(
                self._sums,
                byte_rate=rates[0],
                file_rate=rates[1],
                remaining=self._estimate(*rates),
                seconds=self._clock.monotonic() - self._begun,
            )

    @property
    def travels(self) -> list[Travel]:
        """The transfers under way, by number."""
        with self._lock:
            return [self._travels[number] for number in sorted(self._travels)]

    @property
    def channels(self) -> list[ChannelChanged]:
        """The last word of each channel that is not closed, by number."""
        with self._lock:
            return [self._channels[number] for number in sorted(self._channels)]

    @property
    def problems(self) -> list[tuple[bytes, Problem]]:
        """What failed, was left out as a folder or deserves notice: the first thousand."""
        with self._lock:
            return list(self._problems)

    @property
    def problem_counts(self) -> Counter[str]:
        """How often each problem's code was told, those of waiting and skipped files too."""
        with self._lock:
            return Counter(self._problem_counts)

    def progress(self) -> RunProgressed:
        """Return the sums of now as they are told while the run goes on."""
        return self.totals.as_progress()

    def summary(self, run: str, at: datetime, problem: Problem | None = None) -> RunFinished:
        """Return the sums at the run's end; a file without an outcome waits for the next run."""
        sums = self.totals
        waiting = sums.waiting + max(0, sums.open)
        return RunFinished(
            run=run,
            at=at,
            found=sums.verified + waiting + sums.skipped + sums.failed,
            verified=sums.verified,
            waiting=waiting,
            skipped=sums.skipped,
            failed=sums.failed,
            sent=sums.sent,
            bytes=sums.sent_bytes,
            seconds=sums.seconds,
            left_behind=sums.left_behind,
            problem=problem,
            shard=self._shard,
        )

    def _add(self, event: Event) -> None:
        match event:
            case FilesSeen() | FilesKnown() | FileWanted() | FileRegistered() | FileVerified():
                self._count(event)
            case FileWaiting() | FileSkipped() | FileFailed():
                self._count(event)
                kept = isinstance(event, FileFailed)
                self._note(event.path if kept else None, event.problem)
            case FolderSkipped() | FolderFailed() | Notice():
                self._note_at_large(event)
            case FileRetried():
                self._take_back(event)
            case StagesMeasured():
                self.measured = event
            case TransferStarted() | TransferProgressed() | TransferRetried() | TransferFinished():
                self._follow(event)
            case (
                FolderFound()
                | FileStaged()
                | RunProgressed()
                | CommandDone()
                | CommandRefused()
                | RunScheduled()
            ):
                pass
            case _:
                self._follow_run(event)

    def _count(self, event: FileEvent) -> None:
        sums = self._sums
        match event:
            case FilesSeen():
                sums.found += event.files
                sums.found_bytes += event.bytes
            case FilesKnown():
                sums.known += event.files
                sums.verified += event.files
                sums.verified_bytes += event.bytes
            case FileWanted():
                sums.wanted += 1
                sums.wanted_bytes += event.size
            case FileVerified():
                sums.known += event.known
                sums.verified += 1
                sums.verified_bytes += event.size
            case FileRegistered():
                sums.registered += 1
            case FileWaiting() | FileSkipped() | FileFailed():
                self._count_left(event)
            case _:
                assert_never(event)

    def _count_left(self, event: FileWaiting | FileSkipped | FileFailed) -> None:
        sums = self._sums
        match event:
            case FileWaiting():
                sums.waiting += 1
            case FileSkipped():
                sums.skipped += 1
                self._count_left_behind(event.problem)
            case FileFailed():
                sums.failed += 1
            case _:
                assert_never(event)

    def _count_left_behind(self, problem: Problem) -> None:
        self._sums.left_behind += problem.code not in ON_PURPOSE

    def _take_back(self, event: FileRetried) -> None:
        """Count a file as open again, and forget why it was left."""
        if event.outcome == "failed":
            self._sums.failed -= 1
        else:
            self._sums.waiting -= 1
        self._problems = [noted for noted in self._problems if noted[0] != event.path]

    def _note_at_large(self, event: FolderSkipped | FolderFailed | Notice) -> None:
        """Note what is about no single file."""
        if isinstance(event, Notice):
            self._note(b"", event.problem)
            return
        # The files of a folder whose owner is unknown are told one by one.
        if event.problem.code != UNKNOWN_OWNER:
            self._count_left_behind(event.problem)
        self._note(event.path, event.problem)

    def _note(self, path: bytes | None, problem: Problem) -> None:
        """Count a problem; keep it where a path is given, as long as there is room."""
        self._problem_counts[problem.code] += 1
        if path is not None and len(self._problems) < PROBLEMS_KEPT:
            self._problems.append((path, problem))

    def _follow(self, event: TransferEvent) -> None:
        travel = self._travels.get(event.transfer)
        match event:
            case TransferStarted():
                self._travels[event.transfer] = Travel(
                    event.transfer,
                    event.channel,
                    event.name,
                    event.files,
                    event.bytes,
                    attempt=event.attempt,
                )
            case TransferProgressed():
                self._advance(travel, event.bytes)
            case TransferRetried():
                if travel:
                    self._travels[event.transfer] = travel._replace(problem=event.problem)
            case TransferFinished():
                self._advance(travel, event.bytes)
                self._travels.pop(event.transfer, None)
                self._files.add(event.files)
                self._sums.sent += event.files
                self._sums.sent_bytes += event.bytes
            case _:
                assert_never(event)

    def _advance(self, travel: Travel | None, done: int) -> None:
        if travel and done > travel.done:
            self._bytes.add(done - travel.done)
            self._travels[travel.transfer] = travel._replace(done=done)

    def _follow_run(self, event: RunEvent) -> None:
        match event:
            case RunStarted():
                self._begun, self._shard = self._clock.monotonic(), event.shard
            case RunPaused():
                self.paused, self.measured = event.problem, None
            case RunResumed():
                self.paused = None
            case RunFinished():
                self.finished = event
            case LimitsChanged():
                self.limit = event
            case ChannelChanged(state="closed"):
                self._channels.pop(event.channel, None)
            case ChannelChanged():
                self._channels[event.channel] = event
            case _:
                assert_never(event)

    def _estimate(self, byte_rate: float, file_rate: float) -> float | None:
        """Return the seconds until all that is wanted has been sent: bytes or files, the longer."""
        sums = self._sums
        travelled = sums.sent_bytes + sum(travel.done for travel in self._travels.values())
        bytes_left = max(0, sums.wanted_bytes - travelled)
        files_left = max(0, sums.wanted - sums.sent)
        if not files_left:
            return 0.0
        if not byte_rate and bytes_left:
            return None
        by_bytes = bytes_left / byte_rate if bytes_left else 0.0
        return max(by_bytes, files_left / file_rate) if file_rate else by_bytes or None
