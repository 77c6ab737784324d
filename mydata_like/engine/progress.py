"""The progress of a run, computed from its events: sums, rates, active transfers.

The engine counts the events of its run with it. The window follows an engine that omits the events
about single files, and takes the sums from `run_progressed`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from mydata_like.core.errors import HELD, KEPT, OUTSIDE, Problem
from mydata_like.core.events import (
    ChannelChanged,
    CommandDone,
    CommandRefused,
    Event,
    FileFailed,
    FileRegistered,
    FileRenamed,
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
    NextListed,
    Notice,
    RetryScheduled,
    RunFinished,
    RunPaused,
    RunProgressed,
    RunResumed,
    RunScheduled,
    RunStarted,
    ServerSilent,
    StagesMeasured,
    TransferFinished,
    TransferProgressed,
    TransferRetried,
    TransferStarted,
)
from mydata_like.core.ports import Clock
from mydata_like.core.problems import INTENDED
from mydata_like.engine.pipeline import Lock
from mydata_like.engine.time_left import TimeLeft, Work

UNKNOWN_OWNER: Final = "skipped.owner"
RATE_SECONDS: Final = 10.0  # the most recent seconds, over which rates are averaged
RATE_STEP: Final = 0.25


class ActiveTransfer(NamedTuple):
    """An active transfer; `name` is the path of its first file, or that of its archive.

    `omitted` of the `done` bytes did not have to be sent. `problem` is why its last attempt failed,
    if it did. `rate` is in bytes a second, if it is measured.
    """

    number: int
    channel: int
    name: bytes
    files: int
    size: int
    done: int = 0
    attempt: int = 1
    problem: Problem | None = None
    rate: float = 0.0
    omitted: int = 0

    @property
    def carried(self) -> int:
        """The bytes that this attempt has sent."""
        return self.done - self.omitted

    @property
    def share(self) -> float:
        """The share of the transfer that is done."""
        return min(1.0, self.done / self.size) if self.size else 0.0

    @property
    def sent_share(self) -> float:
        """The share of the bytes to send that was sent."""
        to_send = self.size - self.omitted
        return min(1.0, self.carried / to_send) if to_send else 0.0


@dataclass(slots=True, kw_only=True)
class Totals:
    """The sums at one moment; found = verified + waiting + skipped + failed + open.

    `open` is the number of files without an outcome. Rates are per second; `remaining` is in
    seconds, None if it is unknown.
    """

    found: int = 0
    found_bytes: int = 0
    known: int = 0  # verified files that needed no action in this run
    verified: int = 0
    verified_bytes: int = 0
    waiting: int = 0
    skipped: int = 0
    kept: int = 0  # of these; see `RunFinished`, also for the next ones
    outside: int = 0
    held: int = 0
    replacing: int = 0
    left_behind: int = 0  # files and folders; see `RunFinished`
    failed: int = 0
    wanted: int = 0
    wanted_bytes: int = 0
    sent: int = 0
    sent_bytes: int = 0
    omitted: int = 0  # of the `sent_bytes`, which were not sent in this run
    transferred_bytes: int = 0  # also those of transfers under way,
    transferred: float = 0.0  # and their files in proportion
    carried_bytes: int = 0  # that channels have sent, also in attempts that failed,
    carried: float = 0.0  # and files in proportion to what was sent of them
    registered: int = 0
    replaced: int = 0  # earlier content on the server
    renamed: int = 0  # copies at the destination
    byte_rate: float = 0.0
    file_rate: float = 0.0
    remaining: float | None = None
    seconds: float = 0.0
    awake: bool = False  # see `RunProgressed`
    compared: datetime | None = None  # as in `RunFinished`

    @property
    def open(self) -> int:
        return self.found - self.verified - self.waiting - self.skipped - self.failed

    @property
    def checked(self) -> int:
        return min(self.found, self.known + self.wanted + self.waiting + self.skipped)

    @property
    def done(self) -> Work:
        """The work that was done in this run."""
        return Work(self.carried_bytes, self.carried, self.verified - self.known)

    @property
    def left(self) -> Work:
        """The work that is left; the share of new files is expected to stay as it is."""
        unchecked = self.found - self.checked
        new = unchecked * (self.wanted / self.checked) if self.checked else float(unchecked)
        size = self.found_bytes / self.found if self.found else 0.0
        unsent = max(0, self.wanted_bytes - self.transferred_bytes) + round(new * size)
        files = max(0.0, self.wanted - self.transferred) + new
        records = max(0, self.wanted - self.done.records) + round(new)
        return Work(unsent, files, min(self.open, records))

    @property
    def backlog(self) -> int:
        """The number of files that have arrived on the server's side and are not verified yet."""
        return max(0, self.sent - self.done.records)

    @property
    def pending(self) -> int:
        """The number of files that were registered in this run and are not verified yet."""
        return max(0, self.registered - (self.verified - self.known))

    def as_progress(self) -> RunProgressed:
        """Return the sums as an event."""
        return RunProgressed(
            found=self.found,
            found_bytes=self.found_bytes,
            checked=self.checked,
            verified=self.verified,
            verified_bytes=self.verified_bytes,
            waiting=self.waiting,
            skipped=self.skipped,
            failed=self.failed,
            wanted=self.wanted,
            wanted_bytes=self.wanted_bytes,
            sent=self.sent,
            sent_bytes=self.sent_bytes,
            transferred_bytes=self.transferred_bytes,
            registered=self.registered,
            byte_rate=self.byte_rate,
            file_rate=self.file_rate,
            remaining=self.remaining,
            seconds=self.seconds,
            omitted=self.omitted,
            awake=self.awake,
        )


NO_PROGRESS: Final = Totals().as_progress()  # of a run that has just started


class RunProgress:
    """The state of one run as its events describe it; safe to use from any thread.

    Every local file that was seen gets exactly one of the outcomes FilesKnown, FileWaiting,
    FileSkipped, FileVerified and FileFailed, when the run is done with it. Only FileRetried revokes
    an outcome.

    The guard against sleep sets `awake`, as in RunProgressed.

    `reported` has the sums of the latest RunProgressed. `measured` is the latest StagesMeasured,
    None while the run is paused.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._begun = clock.monotonic()
        self._shard = ""
        self._sums = Totals()
        self._paused = False
        self._restart_rates()
        self.time_left = TimeLeft()
        self._bandwidth = 0.0
        self._transfers: dict[int, ActiveTransfer] = {}
        self._sent_before: dict[int, int] = {}  # bytes of earlier attempts, by transfer
        self._done_before: dict[int, int] = {}  # with those that had not to be sent
        self._bytes_by_channel: dict[int, int] = {}
        self.reported = NO_PROGRESS
        self.awake = False
        self.measured: StagesMeasured | None = None
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            ChannelChanged: _ignore,
            CommandDone: _ignore,
            CommandRefused: _ignore,
            FileFailed: self._count_failed,
            FileRegistered: self._count_registered,
            FileReplaced: self._count_replaced,
            FileRenamed: self._count_renamed,
            FileRetried: self._reopen,
            FileSkipped: self._count_skipped,
            FilesKnown: self._count_known,
            FilesSeen: self._count_seen,
            FileStaged: _ignore,
            FileVerified: self._count_verified,
            FileWaiting: self._count_waiting,
            FileWanted: self._count_wanted,
            FolderFailed: self._count_folder,
            FolderFound: _ignore,
            FolderSkipped: self._count_folder,
            LimitsChanged: self._note_limits,
            NextListed: _ignore,
            Notice: _ignore,
            RetryScheduled: _ignore,
            RunFinished: _ignore,
            RunPaused: self._pause,
            RunProgressed: self._set_reported,
            RunResumed: self._resume,
            RunScheduled: _ignore,
            RunStarted: self._start,
            ServerSilent: _ignore,
            StagesMeasured: self._set_measured,
            TransferFinished: self._finish_transfer,
            TransferProgressed: self._advance_transfer,
            TransferRetried: self._note_retry,
            TransferStarted: self._start_transfer,
        }

    def add(self, event: Event) -> None:
        """Process an event."""
        with self._lock:
            self._handlers[type(event)](event)

    def add_all(self, events: Sequence[Event]) -> None:
        """Process events of many files."""
        with self._lock:
            for event in events:
                self._handlers[type(event)](event)

    @property
    def totals(self) -> Totals:
        """The current sums."""
        with self._lock:
            now, sums = self._clock.monotonic(), self._sums
            active = self._transfers.values()
            sums = replace(
                sums,
                transferred_bytes=sums.sent_bytes + self._count_partial(),
                transferred=sums.sent + sum(each.files * each.share for each in active),
                carried_bytes=sum(self._bytes_by_channel.values()),
                carried=sums.sent + sum(each.files * each.sent_share for each in active),
                byte_rate=self._bytes.per_second(),
                file_rate=self._files.per_second(),
                seconds=now - self._begun,
                awake=self.awake,
            )
            sums.remaining = self.time_left.estimate(
                now,
                sums.done,
                sums.left,
                backlog=sums.backlog,
                paused=self._paused,
                limit=self._bandwidth,
            )
            return sums

    def _count_partial(self) -> int:
        """Return the bytes of files that have not arrived.

        What an attempt has done stays, as the next one may resume it.
        """
        done = dict(self._done_before)
        for each in self._transfers.values():
            done[each.number] = max(each.done, done.get(each.number, 0))
        return sum(done.values())

    @property
    def transfers(self) -> list[ActiveTransfer]:
        """The active transfers, by number."""
        with self._lock:
            return [self._transfers[number] for number in sorted(self._transfers)]

    @property
    def bytes_by_channel(self) -> dict[int, int]:
        """The number of bytes that each channel has sent so far."""
        with self._lock:
            return self._bytes_by_channel.copy()

    def progress(self) -> RunProgressed:
        """Return the current sums as an event."""
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
            omitted=sums.omitted,
            replaced=sums.replaced,
            renamed=sums.renamed,
            kept=sums.kept,
            outside=sums.outside,
            held=sums.held,
            replacing=sums.replacing,
            compared=sums.compared,
            unfinished=max(0, sums.carried_bytes - (sums.sent_bytes - sums.omitted)),
        )

    def _count_seen(self, event: FilesSeen) -> None:
        self._sums.found += event.files
        self._sums.found_bytes += event.bytes

    def _count_known(self, event: FilesKnown) -> None:
        self._sums.known += event.files
        self._sums.verified += event.files
        self._sums.verified_bytes += event.bytes
        if event.compared is not None:
            self._sums.compared = min(event.compared, self._sums.compared or event.compared)

    def _count_wanted(self, event: FileWanted) -> None:
        self._sums.wanted += 1
        self._sums.wanted_bytes += event.size
        self._sums.replacing += event.changed

    def _count_registered(self, _: FileRegistered) -> None:
        self._sums.registered += 1

    def _count_replaced(self, _: FileReplaced) -> None:
        self._sums.replaced += 1

    def _count_renamed(self, _: FileRenamed) -> None:
        self._sums.renamed += 1

    def _count_verified(self, event: FileVerified) -> None:
        self._sums.known += event.known
        self._sums.verified += 1
        self._sums.verified_bytes += event.size

    def _count_waiting(self, event: FileWaiting) -> None:
        self._sums.waiting += 1
        self._sums.held += event.problem.code == HELD

    def _count_skipped(self, event: FileSkipped) -> None:
        self._sums.skipped += 1
        self._sums.kept += event.problem.code == KEPT
        self._sums.outside += event.problem.code == OUTSIDE
        self._count_left_behind(event.problem)

    def _count_failed(self, _: FileFailed) -> None:
        self._sums.failed += 1

    def _count_left_behind(self, problem: Problem) -> None:
        self._sums.left_behind += problem.code not in INTENDED

    def _count_folder(self, event: FolderSkipped | FolderFailed) -> None:
        # For a folder whose owner is unknown, each file has an event of its own.
        if event.problem.code != UNKNOWN_OWNER:
            self._count_left_behind(event.problem)

    def _reopen(self, event: FileRetried) -> None:
        """Count a file as open again."""
        if event.outcome == "failed":
            self._sums.failed -= 1
        else:
            self._sums.waiting -= 1

    def _start_transfer(self, event: TransferStarted) -> None:
        self._keep_carried(event.transfer, 0)
        self._transfers[event.transfer] = ActiveTransfer(
            event.transfer,
            event.channel,
            event.name,
            event.files,
            event.bytes,
            attempt=event.attempt,
        )

    def _advance_transfer(self, event: TransferProgressed) -> None:
        self._advance(event.transfer, event.bytes, event.omitted)

    def _advance(self, number: int, done: int, omitted: int) -> None:
        transfer = self._transfers.get(number)
        if transfer is None or done <= transfer.done:
            return
        more = done - transfer.done - (omitted - transfer.omitted)
        self._bytes.add(more)
        sent = self._bytes_by_channel.get(transfer.channel, 0)
        self._bytes_by_channel[transfer.channel] = sent + more
        self._transfers[number] = transfer._replace(done=done, omitted=omitted)

    def _note_retry(self, event: TransferRetried) -> None:
        if transfer := self._transfers.get(event.transfer):
            self._transfers[event.transfer] = transfer._replace(problem=event.problem)

    def _finish_transfer(self, event: TransferFinished) -> None:
        if transfer := self._transfers.get(event.transfer):
            self._advance(event.transfer, event.bytes, transfer.omitted)
            self._sums.omitted += self._keep_carried(event.transfer, event.bytes)
        self._files.add(event.files)
        self._sums.sent += event.files
        self._sums.sent_bytes += event.bytes

    def _keep_carried(self, number: int, arrived: int) -> int:
        """Close an attempt of which `arrived` bytes are whole files; return how many were not sent.

        What this run has sent in earlier attempts counts as sent, since the next one may resume it.
        """
        attempt = self._transfers.pop(number, None)
        done = max(self._done_before.pop(number, 0), attempt.done if attempt else 0)
        if done > arrived:
            self._done_before[number] = done - arrived
        carried = self._sent_before.pop(number, 0) + (attempt.carried if attempt else 0)
        if carried > arrived:
            self._sent_before[number] = carried - arrived
        return max(0, arrived - carried)

    def _start(self, event: RunStarted) -> None:
        self._begun, self._shard = self._clock.monotonic(), event.shard

    def _note_limits(self, event: LimitsChanged) -> None:
        self._bandwidth = event.bandwidth

    def _pause(self, _: RunPaused) -> None:
        self._paused, self.measured = True, None
        self._restart_rates()

    def _resume(self, _: RunResumed) -> None:
        self._paused = False
        self._restart_rates()

    def _restart_rates(self) -> None:
        """Measure from now on: a pause is no slow sending."""
        self._bytes, self._files = Rate(self._clock), Rate(self._clock)

    def _set_measured(self, event: StagesMeasured) -> None:
        self.measured = event

    def _set_reported(self, event: RunProgressed) -> None:
        self.reported = event


def _ignore(_: Event) -> None:
    """Ignore an event that changes no sum."""


class Rate:
    """A rate per second, averaged over the last seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first: float | None = None
        self._steps: deque[tuple[float, int]] = deque()  # start of the step, amount

    def add(self, amount: int) -> None:
        now = self._clock.monotonic()
        self._first = now if self._first is None else self._first
        if self._steps and now - self._steps[-1][0] < RATE_STEP:
            begun, sum_so_far = self._steps[-1]
            self._steps[-1] = begun, sum_so_far + amount
        else:
            self._steps.append((now, amount))
            self._forget(now)

    def per_second(self) -> float:
        now = self._clock.monotonic()
        self._forget(now)
        if self._first is None:
            return 0.0
        span = min(RATE_SECONDS, max(now - self._first, RATE_STEP))
        return sum(amount for _, amount in self._steps) / span

    def _forget(self, now: float) -> None:
        while self._steps and now - self._steps[0][0] > RATE_SECONDS:
            self._steps.popleft()
