"""Folds the events of a run into what is shown of it: totals, rates, transfers, problems."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

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
from mydata_like.core.ports import Clock
from mydata_like.core.problems import INTENDED
from mydata_like.engine.totals import Rate, Totals
from mydata_like.engine.workers import Lock

PROBLEMS_KEPT = 1000
UNKNOWN_OWNER = "skipped.owner"


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
        self._steps: dict[type[Event], Callable[[Any], None]] = {
            ChannelChanged: self._change_channel,
            CommandDone: _ignore,
            CommandRefused: _ignore,
            FileFailed: self._count_failed,
            FileRegistered: self._count_registered,
            FileRetried: self._take_back,
            FileSkipped: self._count_skipped,
            FilesKnown: self._count_known,
            FilesSeen: self._see_files,
            FileStaged: _ignore,
            FileVerified: self._count_verified,
            FileWaiting: self._count_waiting,
            FileWanted: self._count_wanted,
            FolderFailed: self._note_folder,
            FolderFound: _ignore,
            FolderSkipped: self._note_folder,
            LimitsChanged: self._limit,
            Notice: self._note_notice,
            RunFinished: self._finish,
            RunPaused: self._pause,
            RunProgressed: _ignore,
            RunResumed: self._resume,
            RunScheduled: _ignore,
            RunStarted: self._start,
            StagesMeasured: self._measure,
            TransferFinished: self._finish_transfer,
            TransferProgressed: self._advance_transfer,
            TransferRetried: self._retry_transfer,
            TransferStarted: self._start_transfer,
        }

    def add(self, event: Event) -> None:
        """Take the next event into account."""
        with self._lock:
            self._steps[type(event)](event)

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

    def _see_files(self, event: FilesSeen) -> None:
        self._sums.found += event.files
        self._sums.found_bytes += event.bytes

    def _count_known(self, event: FilesKnown) -> None:
        self._sums.known += event.files
        self._sums.verified += event.files
        self._sums.verified_bytes += event.bytes

    def _count_wanted(self, event: FileWanted) -> None:
        self._sums.wanted += 1
        self._sums.wanted_bytes += event.size

    def _count_registered(self, _: FileRegistered) -> None:
        self._sums.registered += 1

    def _count_verified(self, event: FileVerified) -> None:
        self._sums.known += event.known
        self._sums.verified += 1
        self._sums.verified_bytes += event.size

    def _count_waiting(self, event: FileWaiting) -> None:
        self._sums.waiting += 1
        self._note(None, event.problem)

    def _count_skipped(self, event: FileSkipped) -> None:
        self._sums.skipped += 1
        self._count_left_behind(event.problem)
        self._note(None, event.problem)

    def _count_failed(self, event: FileFailed) -> None:
        self._sums.failed += 1
        self._note(event.path, event.problem)

    def _count_left_behind(self, problem: Problem) -> None:
        self._sums.left_behind += problem.code not in INTENDED

    def _take_back(self, event: FileRetried) -> None:
        """Count a file as open again, and forget why it was left."""
        if event.outcome == "failed":
            self._sums.failed -= 1
        else:
            self._sums.waiting -= 1
        self._problems = [noted for noted in self._problems if noted[0] != event.path]

    def _note_notice(self, event: Notice) -> None:
        self._note(b"", event.problem)

    def _note_folder(self, event: FolderSkipped | FolderFailed) -> None:
        # The files of a folder whose owner is unknown are told one by one.
        if event.problem.code != UNKNOWN_OWNER:
            self._count_left_behind(event.problem)
        self._note(event.path, event.problem)

    def _note(self, path: bytes | None, problem: Problem) -> None:
        """Count a problem; keep it where a path is given, as long as there is room."""
        self._problem_counts[problem.code] += 1
        if path is not None and len(self._problems) < PROBLEMS_KEPT:
            self._problems.append((path, problem))

    def _start_transfer(self, event: TransferStarted) -> None:
        self._travels[event.transfer] = Travel(
            event.transfer,
            event.channel,
            event.name,
            event.files,
            event.bytes,
            attempt=event.attempt,
        )

    def _advance_transfer(self, event: TransferProgressed) -> None:
        self._advance(self._travels.get(event.transfer), event.bytes)

    def _retry_transfer(self, event: TransferRetried) -> None:
        if travel := self._travels.get(event.transfer):
            self._travels[event.transfer] = travel._replace(problem=event.problem)

    def _finish_transfer(self, event: TransferFinished) -> None:
        self._advance(self._travels.get(event.transfer), event.bytes)
        self._travels.pop(event.transfer, None)
        self._files.add(event.files)
        self._sums.sent += event.files
        self._sums.sent_bytes += event.bytes

    def _advance(self, travel: Travel | None, done: int) -> None:
        if travel and done > travel.done:
            self._bytes.add(done - travel.done)
            self._travels[travel.transfer] = travel._replace(done=done)

    def _start(self, event: RunStarted) -> None:
        self._begun, self._shard = self._clock.monotonic(), event.shard

    def _pause(self, event: RunPaused) -> None:
        self.paused, self.measured = event.problem, None

    def _resume(self, _: RunResumed) -> None:
        self.paused = None

    def _finish(self, event: RunFinished) -> None:
        self.finished = event

    def _limit(self, event: LimitsChanged) -> None:
        self.limit = event

    def _measure(self, event: StagesMeasured) -> None:
        self.measured = event

    def _change_channel(self, event: ChannelChanged) -> None:
        if event.state == "closed":
            self._channels.pop(event.channel, None)
        else:
            self._channels[event.channel] = event

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


def _ignore(_: Event) -> None:
    """Take an event that changes no sum."""
