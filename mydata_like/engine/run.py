"""One pass of the whole flow, from scan to record; the stages are listed in `Stages`."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import chain, takewhile
from typing import NamedTuple

from mydata_like.core.errors import Cancelled, Problem, SettingsError, UploaderError
from mydata_like.core.events import RunFinished, RunProgressed, RunStarted
from mydata_like.core.model import CheckedGroup, FileGroup, Registered, Staged, Wanted
from mydata_like.core.ports import Clock, Emit, Ledger, Transport
from mydata_like.core.values import dataclass
from mydata_like.engine.availability import Availability
from mydata_like.engine.bookkeeping import Verified
from mydata_like.engine.bundle import Bundle
from mydata_like.engine.check import Check
from mydata_like.engine.compare import READERS, Compare
from mydata_like.engine.controller import Controller, Controls
from mydata_like.engine.discovery import Compared, Discovery
from mydata_like.engine.pack import Pack
from mydata_like.engine.progress import RunProgress
from mydata_like.engine.queues import WorkQueue
from mydata_like.engine.record import Record
from mydata_like.engine.recover import Recovery
from mydata_like.engine.register import Register
from mydata_like.engine.replace import Replace
from mydata_like.engine.scan import Scan
from mydata_like.engine.send import Send
from mydata_like.engine.shares import Shares
from mydata_like.engine.ticker import repeated
from mydata_like.engine.verify import Found, Verify
from mydata_like.engine.workers import Stoppable, WorkerGroup, feed, stage

logger = logging.getLogger(__name__)

Open = list[Wanted | Staged | Registered]
Repeat = Wanted | Staged  # to be sent, or only registered, once more

INTERRUPTED = Problem(
    "run.interrupted",
    "The run was stopped before its end.",
    "Nothing is lost: the next run carries on.",
)
INTERRUPTED_EXIT = 130  # as shells report SIGINT
SOME_FAILED_EXIT = 1
LOOK_AFTER = 0.5  # seconds after which the limits are looked at again
TELL_AFTER = 0.25  # seconds after which the sums are told again
CHECKS = 2  # groups of files that are compared at once
SENDERS = 16  # threads, of which as many are at work as there may be channels
# Files that may wait between two stages, and a group or an archive more: memory bounds them.
AHEAD = 2000
BEHIND = 4000  # once they were sent, so that the server may rest for a moment
PAYLOADS = 4  # that wait for a channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The stages, ready to work; only `Run` knows their order."""

    scan: Scan
    check: Check
    compare: Compare
    bundle: Bundle
    pack: Pack
    send: Send
    register: Register
    replace: Replace
    verify: Verify
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a run needs beside its stages."""

    transport: Transport
    ledger: Ledger
    tally: RunProgress
    shares: Shares
    emit: Emit
    clock: Clock
    cancel: Stoppable
    controls: Controls
    controller: Controller
    discovery: Discovery
    availability: Availability
    recovery: Recovery
    registrations: int = 3  # requests in flight
    beside: Callable[[], AbstractContextManager[None]] = nullcontext  # goes on meanwhile


class RunEnd(NamedTuple):
    """How a run ended: its sums, and the exit code that says the same to scripts."""

    finished: RunFinished
    exit_code: int


class Run:
    """A run over one data directory; `execute` may be called once."""

    def __init__(self, name: str, stages: Stages, around: Surroundings) -> None:
        self.name = name
        self._stages = stages
        self._around = around
        self._told: RunProgressed | None = None

    def execute(self, root: bytes, *, dry_run: bool = False, reason: str = "person") -> "RunEnd":
        """Bring every local file below `root` to its outcome, and return the sums, yet to be told.

        What ends the run early stands in the sums' `problem`; no error of the world outside
        is raised.
        """
        around = self._around
        now = around.clock.now()
        around.emit(
            RunStarted(
                run=self.name,
                at=now,
                data_directory=root,
                dry_run=dry_run,
                reason=reason,
                shard=str(self._stages.scan.part.shard),
            )
        )
        problem, exit_code = self._carry_out(root, dry_run=dry_run)
        try:
            around.ledger.flush()
        except UploaderError as error:
            problem, exit_code = problem or error.problem, exit_code or error.exit_code
        self._tell_progress()
        finished = replace(
            around.tally.summary(self.name, around.clock.now(), problem), limit=around.shares.limit
        )
        return RunEnd(finished, exit_code or (SOME_FAILED_EXIT if finished.failed else 0))

    def _carry_out(self, root: bytes, *, dry_run: bool) -> tuple[Problem | None, int]:
        """Carry all, or only look; return what ended that early, and its exit code."""
        around = self._around
        try:
            with (
                around.controller.over(around.controls),
                repeated(self._tell_progress, TELL_AFTER),
            ):
                if dry_run:
                    self._look(self._found(root))
                else:
                    self._carry(root)
            if around.controls.choices.finishing:
                return INTERRUPTED, INTERRUPTED_EXIT
            away = self._find_absence(root)
        except Cancelled:
            return INTERRUPTED, INTERRUPTED_EXIT
        except UploaderError as error:
            return error.problem, error.exit_code
        finally:
            around.transport.close()
        return (away.problem, away.exit_code) if away else (None, 0)

    def _tell_progress(self) -> None:
        """Tell the sums, unless nothing has changed since they were told, and what the limit is."""
        self._around.shares.look(pending=self._around.tally.totals.pending > 0)
        progress = self._around.tally.progress()
        told, self._told = self._told, replace(progress, seconds=0.0)
        if self._told != told:
            self._around.emit(progress)

    def _look(self, found: Iterable[FileGroup]) -> None:
        """The dry run: scan and check."""
        with self._group() as group:
            for checked in self._checked(group, found):
                self._stages.compare.leave(checked)

    def _carry(self, root: bytes) -> None:
        """Carry all, then what came meanwhile, and what is to be sent once more.

        That is what the server did not verify, or a person wants again.
        """
        around, controls = self._around, self._around.controls
        with repeated(controls.limits.keep, LOOK_AFTER), around.beside():
            around.recovery.begin()
            again = self._pass_on(self._found(root), [])
            while again or not controls.sources.end() or (again := [*controls.choices.take_last()]):
                logger.info("%d files are sent or registered once more", len(again))
                again = self._pass_on(self._found_outside(), again)
            if not controls.choices.finishing:
                around.recovery.end()

    def _pass_on(self, found: Iterable[FileGroup], again: list[Repeat]) -> list[Repeat]:
        """Carry what is found and what is sent again; return what is to be sent once more."""
        with self._group() as group:
            checked = self._checked(group, found)
            compared = stage(
                group,
                self._stages.compare,
                checked,
                workers=READERS + 1,
                limit=AHEAD,
                weigh=count_files,
            )
            bundled = stage(group, self._bundle, compared, limit=AHEAD, weigh=count_files)
            repeats: list[Open] = [[*again]]
            return self._deliver(group, chain(repeats, bundled) if again else bundled)

    def _group(self) -> WorkerGroup:
        group = WorkerGroup(self._around.cancel)
        self._around.shares.watch(group)
        return group

    def _found(self, root: bytes) -> Iterator[FileGroup]:
        """Yield the groups of the data directory, and of sources as soon as they are added."""
        yield from self._found_outside()
        if not self._around.controls.sources.alone:
            groups = self._stages.scan.scan(root)
            for group in self._around.availability.follow(root, groups):
                yield group
                yield from self._found_outside()

    def _find_absence(self, root: bytes) -> SettingsError | None:
        """Return why the data directory is not available, where all of it was read."""
        scan = self._stages.scan
        if scan.found is None or scan.part.only:
            return None
        return self._around.availability.judge(root, scan.found)

    def _found_outside(self) -> Iterator[FileGroup]:
        for source in self._around.controls.sources.take():
            yield from self._stages.scan.read(source)

    def _checked(self, group: WorkerGroup, found: Iterable[FileGroup]) -> WorkQueue[CheckedGroup]:
        choices = self._around.controls.choices
        wanted = takewhile(lambda _: not choices.finishing, found)
        read = feed(group, wanted, 1, count_files)  # one group, which is read meanwhile
        waiting = stage(group, self._discover, read, limit=AHEAD, weigh=count_files)
        return stage(group, self._check, waiting, workers=CHECKS, limit=AHEAD, weigh=count_files)

    def _discover(self, groups: Iterable[FileGroup]) -> Iterator[FileGroup]:
        """Keep what is found; the transport prepares itself as soon as there are new files."""
        for group in self._around.discovery.pass_on(groups):
            if group.new:
                self._around.transport.prepare()
            yield group

    def _check(self, groups: Iterable[FileGroup]) -> Iterator[CheckedGroup]:
        """Check; the transport prepares itself as soon as there is something to send."""
        for checked in self._stages.check(groups):
            if any(isinstance(file, Wanted) for file in checked.open):
                self._around.transport.prepare()
            yield checked

    def _bundle(self, groups: Iterable[Compared]) -> Iterator[Open]:
        """Bundle what is open, once the ledger has it."""
        return self._stages.bundle(self._around.discovery.pass_open(groups))

    def _deliver(
        self, group: WorkerGroup, checked: WorkQueue[Open] | Iterable[Open]
    ) -> list[Repeat]:
        stages, transport = self._stages, self._around.transport
        try:
            packed = stage(group, stages.pack, checked, limit=PAYLOADS)
            staged = stage(
                group,
                stages.send,
                packed,
                workers=max(SENDERS, transport.capacity),
                limit=BEHIND,
                weigh=count_files,
            )
            known = stage(
                group,
                stages.register,
                staged,
                workers=self._around.registrations,
                limit=BEHIND,
                weigh=count_files,
            )
            placed = stage(
                group,
                stages.replace,
                known,
                workers=self._around.registrations,
                limit=BEHIND,
                weigh=count_files,
            )
            looked = stage(group, stages.verify, placed, limit=BEHIND, weigh=count_seen)
            return list(stage(group, stages.record, looked))
        except BaseException:
            # Senders wait for their channels, so those end before the group can be joined.
            transport.close()
            raise


def count_seen(item: Found) -> int:
    """Return how many files are in what was found out about records."""
    return len(item.items) if isinstance(item, Verified) else 1


def count_files(item: FileGroup | CheckedGroup | Sequence[Wanted | Staged | Registered]) -> int:
    """Return how many files are in what waits between two stages; an archive has many."""
    match item:
        case FileGroup():
            return len(item.files)
        case CheckedGroup():
            return len(item.group.files)
        case _:
            wanted = (one if isinstance(one, Wanted) else one.wanted for one in item)
            return sum(max(1, len(one.members)) for one in wanted)
