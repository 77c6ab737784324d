"""One pass of the whole pipeline, from scan to record; the stages are listed in `Stages`."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain, takewhile
from typing import NamedTuple

from mydata_like.core.errors import Cancelled, Problem, SettingsError, UploaderError
from mydata_like.core.events import RunFinished, RunProgressed, RunStarted
from mydata_like.core.frozen import frozen
from mydata_like.core.model import Batch, CheckedGroup, EntryState, FileGroup, count_members
from mydata_like.engine.archive_stage import Bundle
from mydata_like.engine.availability import Availability
from mydata_like.engine.check import Check
from mydata_like.engine.compare import READERS, Compare
from mydata_like.engine.discovery import Compared, Discovery
from mydata_like.engine.pack import Pack
from mydata_like.engine.pipeline import StageInput, WorkerGroup, WorkQueue, feed, repeated, stage
from mydata_like.engine.record import Record
from mydata_like.engine.recover import Recovery
from mydata_like.engine.renamed import RenamedFolders
from mydata_like.engine.replace import Replace
from mydata_like.engine.run_context import RunContext
from mydata_like.engine.scan import Scan
from mydata_like.engine.send import Send

logger = logging.getLogger(__name__)

INTERRUPTED = Problem(
    "run.interrupted",
    "The run was stopped before it finished.",
    "Nothing is lost: the next run continues.",
)
INTERRUPTED_EXIT = Cancelled.exit_code
SOME_FAILED_EXIT = 1
AUDIT_INTERVAL = 2.0  # seconds between two steps of the audit while files are sent
LIMITS_INTERVAL = 0.5  # seconds between checks of the limits
RECORD_INTERVAL = 1.0  # seconds between writes of the run's progress by the recorder
REPORT_INTERVAL = 0.25  # seconds between reports of the sums
CHECKS = 2  # groups of files that are checked concurrently
SENDERS = 16  # threads; the channel limit decides how many are active
# Files that may wait between two stages, plus one group or archive: bounded by memory.
AHEAD = 2000
BEHIND = 4000  # files that may wait after sending, so that the server may pause for a moment
UNPROVEN = 10_000  # files that may wait while others are verified, which takes seconds
PAYLOADS = 4  # payloads that wait for a channel


@frozen(kw_only=True, eq=False)
class Stages:
    """The stages before and after those of the catalogue; only `Run` depends on their order."""

    recovery: Recovery
    discovery: Discovery
    availability: Availability
    scan: Scan
    renamed: RenamedFolders
    check: Check
    compare: Compare
    bundle: Bundle
    pack: Pack
    send: Send
    replace: Replace
    record: Record


class RunEnd(NamedTuple):
    """The end of a run: its sums, and the matching exit code for scripts."""

    finished: RunFinished
    exit_code: int


class Run:
    """A run over one data directory; `execute` may be called once."""

    def __init__(self, stages: Stages, context: RunContext) -> None:
        self._stages = stages
        self._context = context
        self._reported: RunProgressed | None = None

    def execute(self) -> RunEnd:
        """Process every local file of the data directory; emit and return the sums.

        The cause of an early end is the `problem` of the sums; external errors are not raised.
        """
        with self._recorded():
            end = self._execute()
        end = self._conclude(end)
        self._context.emit(end.finished)
        return end

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Record the run's progress while in this context, also if an error ends it."""
        recorder = self._context.recorder
        if recorder is None:
            yield
            return
        try:
            with repeated(recorder.keep, RECORD_INTERVAL):
                yield
        except BaseException:
            with suppress(UploaderError):  # the error that is raised is more important
                recorder.keep()
            raise

    def _conclude(self, end: RunEnd) -> RunEnd:
        """Record the sums; return them, with a problem if they cannot be recorded."""
        recorder = self._context.recorder
        try:
            if recorder:
                recorder.conclude(end.finished)
        except UploaderError as error:
            if end.finished.problem is None:
                return RunEnd(replace(end.finished, problem=error.problem), error.exit_code)
        return end

    def _execute(self) -> RunEnd:
        context = self._context
        context.emit(
            RunStarted(
                run=context.run,
                at=context.clock.now(),
                data_directory=context.root,
                dry_run=context.dry_run,
                reason=context.reason,
                shard=str(self._stages.scan.part.shard),
            )
        )
        problem, exit_code = self._execute_stages()
        try:
            context.ledger.flush()
        except UploaderError as error:
            problem, exit_code = problem or error.problem, exit_code or error.exit_code
        self._report_progress()
        finished = replace(
            context.progress.summary(context.run, context.clock.now(), problem),
            limit=context.shares.limit,
        )
        doubted = min(finished.verified, self._context.catalogue.contradicted)
        waiting = finished.waiting + doubted
        finished = replace(finished, verified=finished.verified - doubted, waiting=waiting)
        return RunEnd(finished, exit_code or (SOME_FAILED_EXIT if finished.failed else 0))

    def _execute_stages(self) -> tuple[Problem | None, int]:
        """Upload or only check all files; return the problem of an early end and the exit code."""
        context = self._context
        try:
            with (
                context.take_commands(context),
                repeated(self._report_progress, REPORT_INTERVAL),
            ):
                if context.dry_run:
                    self._check_only(self._found())
                else:
                    self._upload()
            if failure := context.choices.failure:
                return failure.problem, failure.exit_code
            if context.choices.finishing:
                return INTERRUPTED, INTERRUPTED_EXIT
            away = self._find_absence()
        except Cancelled:
            return INTERRUPTED, INTERRUPTED_EXIT
        except UploaderError as error:
            return error.problem, error.exit_code
        finally:
            context.transport.close()
        return (away.problem, away.exit_code) if away else (None, 0)

    def _report_progress(self) -> None:
        """Emit the sums if they have changed, and the limit."""
        context = self._context
        context.shares.look(pending=context.progress.totals.pending > 0)
        progress = context.progress.progress()
        reported, self._reported = self._reported, replace(progress, seconds=0.0)
        if self._reported != reported:
            context.emit(progress)

    def _check_only(self, found: Iterable[FileGroup]) -> None:
        """Execute a dry run: scan and check."""
        with self._group() as group:
            for checked in self._checked(group, found):
                self._stages.compare.report_unread(checked)

    def _upload(self) -> None:
        """Upload all files, then new ones and those that must be sent again.

        The latter are files that the server did not verify, or that the user retries.
        """
        context, recovery = self._context, self._stages.recovery
        choices, sources, catalogue = context.choices, context.sources, context.catalogue
        with repeated(context.channels.keep, LIMITS_INTERVAL), context.in_background():
            with repeated(catalogue.audit, AUDIT_INTERVAL):
                recovery.begin()
                again = self._process(self._found(), [])
                while again or not sources.end() or (again := [*choices.take_last()]):
                    logger.info("%d files are sent or registered again", len(again))
                    again = self._process(self._found_outside(), again)
            if not choices.finishing:
                recovery.end()
                catalogue.finish_audit()
                if not (self._stages.scan.part.only or context.sources.alone):
                    self._stages.send.end()

    def _process(self, found: Iterable[FileGroup], again: Batch) -> Batch:
        """Upload found and repeated files; return those to be sent again."""
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
            repeats = [[*again]]
            return self._deliver(group, chain(repeats, bundled) if again else bundled)

    def _group(self) -> WorkerGroup:
        group = WorkerGroup(self._context.cancel)
        self._context.shares.watch(group)
        return group

    def _found(self) -> Iterator[FileGroup]:
        """Yield the groups of the data directory, and of sources as soon as they are added."""
        yield from self._found_outside()
        if not self._context.sources.alone:
            root = self._context.root
            groups = self._stages.scan.scan(root)
            for group in self._stages.availability.follow(root, groups):
                yield group
                yield from self._found_outside()

    def _find_absence(self) -> SettingsError | None:
        """Return why the data directory is not available, if all of it was read."""
        scan = self._stages.scan
        if scan.found is None or scan.part.only:
            return None
        return self._stages.availability.judge(self._context.root, scan.found)

    def _found_outside(self) -> Iterator[FileGroup]:
        for source in self._context.sources.take():
            yield from self._stages.scan.read(source)

    def _checked(self, group: WorkerGroup, found: Iterable[FileGroup]) -> WorkQueue[CheckedGroup]:
        choices = self._context.choices
        wanted = takewhile(lambda _: not choices.finishing, found)
        read = feed(group, wanted, 1, count_files)  # one group, which is read in the meantime
        waiting = stage(group, self._discover, read, limit=AHEAD, weigh=count_files)
        return stage(group, self._check, waiting, workers=CHECKS, limit=AHEAD, weigh=count_files)

    def _discover(self, groups: Iterable[FileGroup]) -> Iterator[FileGroup]:
        """Record found files; prepare the transport and compare folders if there are new ones."""
        for group in self._stages.discovery.pass_on(groups):
            if group.new:
                self._context.transport.prepare()
                self._stages.renamed.report(group)
            yield group

    def _check(self, groups: StageInput[FileGroup]) -> Iterator[CheckedGroup]:
        """Check files; prepare the transport as soon as there is one to send.

        Not in a dry run: preparing makes the location if it is missing.
        """
        sends = not self._context.dry_run
        for checked in self._stages.check(groups):
            if sends and any(file.state is EntryState.FOUND for file in checked.open):
                self._context.transport.prepare()
            yield checked

    def _bundle(self, groups: Iterable[Compared]) -> Iterator[Batch]:
        """Combine unverified files into archives after they are recorded in the ledger."""
        return self._stages.bundle(self._stages.discovery.pass_open(groups))

    def _deliver(self, group: WorkerGroup, checked: WorkQueue[Batch] | Iterable[Batch]) -> Batch:
        stages, transport = self._stages, self._context.transport
        try:
            packed = stage(group, stages.pack, checked, limit=PAYLOADS)
            self._context.choices.order.follow(packed)
            staged = stage(
                group,
                stages.send,
                packed,
                workers=max(SENDERS, transport.capacity),
                limit=BEHIND,
                weigh=count_files,
            )
            placed = stage(group, stages.replace, staged, limit=BEHIND, weigh=count_files)
            known = stage(
                group,
                self._context.catalogue.register,
                placed,
                workers=self._context.registrations,
                limit=UNPROVEN,
                weigh=count_files,
            )
            catalogue = self._context.catalogue
            looked = stage(
                group,
                catalogue.verify,
                known,
                workers=catalogue.verifiers,
                limit=BEHIND,
                weigh=len,
            )
            return list(chain.from_iterable(stage(group, stages.record, looked)))
        except BaseException:
            # Senders wait for their channels, so these are closed before the group can be joined.
            transport.close()
            raise


def count_files(item: FileGroup | CheckedGroup | Batch) -> int:
    """Return the number of files in an item between two stages."""
    match item:
        case FileGroup():
            return len(item.files)
        case CheckedGroup():
            return len(item.group.files)
        case _:
            return count_members(item)
