"""Building a run from a request and its settings, limiting its impact, and closing it."""

import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mydata_like.app.directory_lock import (
    directory_locked,
)
from mydata_like.app.held_choices import read_choices, take_choices
from mydata_like.app.run_control import ControlFiles, controlled
from mydata_like.app.run_destination import OpenedDestination, RunBasis, RunDestination
from mydata_like.app.run_request import RunObserver, RunRequest, build_gate, ignore
from mydata_like.app.settings_service import (
    correct_places,
    find_places,
    find_state,
    ledger_file,
    prepare_places,
    report_former_values,
)
from mydata_like.app.unfinished_deletion import restore_unfinished
from mydata_like.core.errors import Problem, SettingsError, UploaderError
from mydata_like.core.events import Event, Notice, RunFinished, RunProgressed, event_record
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import FileGroup
from mydata_like.core.ports import Emit, EmitAll
from mydata_like.engine.archive_stage import Bundle
from mydata_like.engine.availability import Availability
from mydata_like.engine.bottleneck import BottleneckMonitor
from mydata_like.engine.changed_files import ChangedFiles
from mydata_like.engine.channel_tuner import ChannelTuner
from mydata_like.engine.channels import ChannelPool
from mydata_like.engine.check import Check
from mydata_like.engine.command_handler import CommandHandler
from mydata_like.engine.compare import Compare
from mydata_like.engine.discovery import Discovery, Lookahead
from mydata_like.engine.gate import LOAD_CHECK_INTERVAL, RENEW_INTERVAL, Gate, LoadGuard, SleepGuard
from mydata_like.engine.outcome_recorder import OutcomeRecorder
from mydata_like.engine.pack import Pack
from mydata_like.engine.pipeline import CancelFlag, begin, repeated, settle
from mydata_like.engine.progress import RunProgress
from mydata_like.engine.record import Record
from mydata_like.engine.recover import Recovery, UnreportedFiles
from mydata_like.engine.renamed import RenamedFiles, RenamedFolders
from mydata_like.engine.replace import KeptCopies, Replace
from mydata_like.engine.run import Run, Stages
from mydata_like.engine.run_context import RunContext
from mydata_like.engine.scan import Scan
from mydata_like.engine.scheduler import FOLDER, SOURCE
from mydata_like.engine.send import Send
from mydata_like.engine.source_store import ExtraSources, check_source
from mydata_like.engine.time_left import find_costs, record_costs
from mydata_like.engine.unfinished import UnfinishedFiles
from mydata_like.engine.user_overrides import UserOverrides
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.load import HostLoad, measure_idle
from mydata_like.hostos.lock import Lease, find_lock_holders
from mydata_like.hostos.open_files import FileWriters
from mydata_like.hostos.process import collect_less_often, lower_priority
from mydata_like.hostos.sleep_inhibitor import SystemWakefulness
from mydata_like.ledger.ledger_file import LockWaiting, read_directories
from mydata_like.ledger.rechecks import Noted, RecheckFile
from mydata_like.ledger.sql import PastRunRow
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.settings.schema import Limits, Settings
from mydata_like.state.state_files import (
    DELETIONS,
    find_file,
    find_unfinished_deletion,
    load_deletions,
)
from mydata_like.transfer.archive_reader import TarArchives
from mydata_like.transfer.file_source import read_checksum
from mydata_like.transfer.pool import StagingTransport, count_cpus
from mydata_like.transfer.worker_process import WorkerStarter


def lower_own_priority(settings: Settings) -> None:
    """Lower the priority of this process for good, if `limits.low_priority` is set."""
    if settings.limits.low_priority:
        lower_priority()


@contextmanager
def limited_impact(limits: Limits, gate: Gate, emit: Emit, progress: RunProgress) -> Iterator[None]:
    """Limit the impact on the instrument while a run is in progress."""
    with ExitStack() as stack:
        if limits.quiet_hours or limits.pause_while_running or limits.pause_under_pressure:
            check_load = LoadGuard(limits, HostLoad(), gate, emit)
            stack.enter_context(repeated(check_load, LOAD_CHECK_INTERVAL))
        if limits.keep_awake:
            inhibitor = SystemWakefulness()
            stack.callback(inhibitor.end)
            guard = SleepGuard(inhibitor, progress, gate.clock)
            stack.enter_context(repeated(guard, RENEW_INTERVAL))
        yield


T = TypeVar("T")

LOOK_AT = 2000  # files, after which no worker is started early: scanning them twice takes longer
FEW = 100  # files
LITTLE = 8 * 1024 * 1024  # bytes of them
LOOK_FOR = 30.0  # seconds of scanning if a run cannot start
IN_USE = 30 * 86400.0  # seconds since the last run over a data directory that is in use
SWITCH_INTERVAL = 0.0005  # seconds for which a thread may block the sending threads


@frozen(kw_only=True, eq=False)
class LedgerRecorder:
    """The recorder of a run in the ledger: totals, reason and outcomes of files."""

    run: str
    reason: str
    started: datetime
    ledger: SqliteLedger
    outcomes: OutcomeRecorder
    progress: RunProgress
    sources: ExtraSources
    rechecks: RecheckFile
    taken: Noted  # notes that the ledger has taken in at the beginning
    report: Callable[[RunFinished], None]  # to the server

    def keep(self) -> None:
        self.ledger.write_late()
        self._keep(None, self.progress.progress())

    def conclude(self, finished: RunFinished) -> None:
        """Write the totals; after a complete run, also record that unseen files are gone."""
        self.ledger.write_late(also_early=True)
        self._keep(finished.at, finished)
        if finished.problem is None:
            self.rechecks.remove(self.taken)
        if finished.problem is None and self.reason != FOLDER:
            sources = self.sources
            self.ledger.forget_before(self.started, sources.taken, inside=not sources.alone)
            sources.finish()
        self.report(finished)

    def _keep(self, finished: datetime | None, sums: RunProgressed | RunFinished) -> None:
        self.outcomes.write()
        measured = self.progress.measured
        limit = {"limit": measured.limit if measured else ""}  # already in the totals at the end
        record = limit | event_record(sums) | {"reason": self.reason}
        if costs := self.progress.time_left.measured:
            record |= record_costs(costs)
        self.ledger.record_run(PastRunRow(self.run, self.started, finished, record))


@contextmanager
def open_run(
    request: RunRequest, observer: RunObserver, destination: RunDestination | None = None
) -> Iterator[Run]:
    """Lock the data directory, connect, and yield a run that is ready to execute.

    Without a `destination`, it is the server of the settings.

    Raises a `RunError` if the run cannot start, `Cancelled` when asked to stop.
    """
    with ExitStack() as stack:
        run = _Builder(request, observer, stack, destination).build()
        collect_less_often()
        sys.setswitchinterval(SWITCH_INTERVAL)
        yield run


class _Builder:
    """Builds one run; everything to be closed after it is put on the stack."""

    def __init__(
        self,
        request: RunRequest,
        observer: RunObserver,
        stack: ExitStack,
        destination: RunDestination | None,
    ) -> None:
        self._request = request  # includes the server's settings once they were fetched
        self._front_end = observer
        self._observer = replace(observer, emit=to_all(observer.progress.add, observer.emit))
        self._stack = stack
        self._clock = SystemClock()
        self._archives = TarArchives()
        self._run = str(uuid.uuid4())
        self._gate = build_gate(request, self._observer, self._clock)
        self._places = find_places(request.config)
        emit = self._observer.emit
        self._controller = observer.controller or CommandHandler(observer.cancel, emit)
        self._destination = destination or self._choose_destination()
        self._root = self._destination.find_root(request)
        self._part = self._destination.narrow(request.part)

    def _choose_destination(self) -> RunDestination:
        if self._request.settings.destination.takes_tree:
            # Only one of the two is needed, with libraries that take long to import.
            from mydata_like.app.settings_destination import SettingsDestination

            return SettingsDestination()
        # For the same reason.
        from mydata_like.app.mytardis_destination import MyTardisDestination

        return MyTardisDestination(self._archives)

    def build(self) -> Run:
        """Return the run after opening everything that it needs."""
        request, stack = self._request, self._stack
        stack.enter_context(self._controller.opening(self._gate, self._observer.cancel))
        self._check()
        lease = None if request.dry_run else self._lock()
        # Start with everything that needs no server, to have found files before it is queried.
        find_ledger = self._open_ledger()
        if lease is not None:
            self._restore_unfinished(find_ledger)
        find_sources = self._accept_sources(find_ledger)
        discovery = Discovery(find_ledger, self._clock, dry_run=request.dry_run)
        workers = stack.enter_context(closing(WorkerStarter()))
        if not request.dry_run:
            stack.enter_context(self._looking_ahead(discovery, find_sources))
            stack.enter_context(self._starting_early(workers, discovery, find_sources))
        self._request = self._destination.connect(request, self._observer, self._gate, stack)
        self._use_ledger(find_ledger())
        untold = self._follow()
        basis = RunBasis(
            self._ledger, self._observer, self._gate, self._clock, workers, lease, stack
        )
        opened = self._destination.open(basis)
        context = self._build_context(opened, find_sources(), untold)
        stages = self._build_stages(context, discovery, untold, opened)
        return Run(stages, context)

    def _check(self) -> None:
        """Raise an error if the request is invalid, before anything is started."""
        request, settings = self._request, self._request.settings
        self._destination.check(request)
        for offer in request.sources:
            check_source(settings, offer)
        prepare_places(settings, self._places)
        correct_places(settings, self._places, self._observer.emit)
        report_former_values(request.reload, self._observer.emit)
        own = ledger_file(settings, self._places, self._root)
        for other in find_nested_directories(own, self._root, self._clock.now()):
            both = f"{format_path(self._root)} and {format_path(other)}"
            message = f"The data directories {both} contain the same files."
            hint = "Runs over both send these files twice. Upload only one of the two directories."
            self._observer.emit(Notice(problem=Problem("data.nested", message, hint)))

    def _lock(self) -> Lease:
        state, stop = find_state(self._request.settings, self._places), self._observer.cancel.set
        shard = self._request.part.shard
        lease = self._stack.enter_context(
            directory_locked(state, self._root, self._clock, stop, shard)
        )
        files = ControlFiles.of(state, self._root, shard)
        self._stack.enter_context(controlled(files, self._run, self._gate, self._controller.handle))
        return lease

    def _open_ledger(self) -> Callable[[], SqliteLedger]:
        """Start to open the ledger; return a function that waits for it.

        A large ledger is read in full to check its integrity, in parallel with server requests.
        """
        request, root = self._request, self._root
        file = ledger_file(request.settings, self._places, root, request.part.shard)
        self._rechecks = RecheckFile(file, self._clock)
        emit = self._observer.emit  # without what would write into the ledger
        waiting = LockWaiting(
            find_holders=find_lock_holders,
            report=lambda problem: emit(Notice(problem=problem)),
        )
        opened = begin(lambda: SqliteLedger.open(file, root, SystemClock(), waiting=waiting))

        def close() -> None:
            with suppress(UploaderError):  # raised again when the run waits for the ledger
                opened().close()

        self._stack.callback(close)
        return opened

    def _restore_unfinished(self, find_ledger: Callable[[], SqliteLedger]) -> None:
        """Restore the name of a file that a killed process was about to delete."""
        log = find_file(find_state(self._request.settings, self._places), DELETIONS)
        if find_unfinished_deletion(log):
            sources = [source.path for source in find_ledger().find_sources()]
            with suppress(SettingsError):  # the run itself reports that the folder is missing
                restore_unfinished(log, self._root, sources, self._clock)

    def _accept_sources(
        self, find_ledger: Callable[[], SqliteLedger]
    ) -> Callable[[], ExtraSources]:
        """Start to record the requested extra sources, before the first request to the server.

        A run over everything also continues with the unfinished sources of earlier runs.
        """
        request = self._request

        def accept() -> ExtraSources:
            alone = request.reason == SOURCE
            sources = ExtraSources(
                request.settings, find_ledger(), alone=alone, dry_run=request.dry_run
            )
            for offer in request.sources:
                sources.add(offer)
            self._controller.accept(sources.remember)
            if request.reason not in (SOURCE, FOLDER):
                sources.carry_on()
            return sources

        accepted = begin(accept)
        self._stack.callback(settle, accepted)  # it writes into the ledger
        return accepted

    @contextmanager
    def _looking_ahead(
        self, discovery: Discovery, find_sources: Callable[[], ExtraSources]
    ) -> Iterator[None]:
        """Find files to send while the run is waiting, or if it cannot start at all."""
        cancel = CancelFlag()
        ahead = Lookahead(discovery, self._clock, cancel)

        def find() -> Iterator[FileGroup]:
            return self._scan_ahead(discovery, find_sources, cancel)

        ended = begin(lambda: ahead.work(find))
        try:
            yield
        except UploaderError:
            ahead.finish(LOOK_FOR, self._observer.cancel)
            settle(ended)
            raise
        finally:
            cancel.set("the run has ended")
            settle(ended)

    def _scan_ahead(
        self,
        discovery: Discovery,
        find_sources: Callable[[], ExtraSources],
        cancel: CancelFlag,
    ) -> Iterator[FileGroup]:
        """Yield the groups of the run; the run itself reports its files, so this emits nothing."""
        scan = Scan(self._request.settings, ignore, self._clock, cancel, self._part)
        sources = find_sources()
        for source in sources.waiting:
            yield from scan.read(source)
        if not sources.alone:
            yield from scan.look_ahead(self._root, discovery.has_passed)

    @contextmanager
    def _starting_early(
        self,
        workers: WorkerStarter,
        discovery: Discovery,
        find_sources: Callable[[], ExtraSources],
    ) -> Iterator[None]:
        """Start the first channel worker while connecting if one of the first files is new.

        For a few files, importing what sends them is faster than a process.
        """
        cancel = CancelFlag()

        def look() -> None:
            opened: list[LocalFile] = []
            seen = 0
            for group in self._scan_ahead(discovery, find_sources, cancel):
                opened += discovery.list_open(group)
                few = len(opened) <= FEW and sum(file.size for file in opened) <= LITTLE
                seen += len(group.files)
                if opened and not (few and self._destination.in_process and seen < LOOK_AT):
                    workers.start_early()
                if workers.started or seen >= LOOK_AT:
                    return
            if opened:
                # It imports all that sends files.
                from mydata_like.transfer.worker_thread import start_thread

                workers.start_first_with(start_thread)

        ended = begin(look)
        try:
            yield
        finally:
            cancel.set("the run has ended")
            settle(ended)

    def _use_ledger(self, ledger: SqliteLedger) -> None:
        """Take in what other programs have noted for the ledger."""
        if ledger.problem:
            self._observer.emit(Notice(problem=ledger.problem))
        self._ledger, self._outcomes = ledger, OutcomeRecorder(ledger)
        self._taken = self._rechecks.load()
        if self._taken:
            ledger.recheck(self._taken)

    def _follow(self) -> UnreportedFiles:
        """Emit every event also to the ledger's followers; return the one for unreported files.

        Files that are left out by the server's filters are reported as such.
        """
        untold = UnreportedFiles(self._ledger.find_replacements())
        followers = [self._observer.emit, self._outcomes.add]
        if untold.keys:
            followers.append(untold.add)
        emit = self._destination.mark_filters(to_all(*followers))
        self._observer = replace(self._observer, emit=emit)
        return untold

    def _emit_all_to(self, untold: UnreportedFiles) -> EmitAll:
        """Return an `emit_all` for the run's followers, and for a front end that wants details."""
        takers: list[EmitAll] = [self._observer.progress.add_all, self._outcomes.add_all]
        if untold.keys:
            takers.append(one_by_one(untold.add))
        if self._front_end.details:
            takers.append(one_by_one(self._front_end.emit))
        return to_all(*takers)

    def _build_context(
        self, opened: OpenedDestination, sources: ExtraSources, untold: UnreportedFiles
    ) -> RunContext:
        transport = opened.transport
        request, observer, gate = self._request, self._observer, self._gate
        run, emit, progress = self._run, observer.emit, observer.progress
        channels = ChannelPool(
            transport,
            gate,
            emit,
            request.settings.limits,
            request.settings.transfer.channels or ChannelTuner(),
            measure_idle,
            transport.describe_capacity if isinstance(transport, StagingTransport) else str,
        )
        earlier = (past.summary for past in self._ledger.find_runs())
        progress.time_left.history = find_costs(earlier)
        recorder = LedgerRecorder(
            run=run,
            reason=request.reason,
            started=self._clock.now(),
            ledger=self._ledger,
            outcomes=self._outcomes,
            progress=progress,
            sources=sources,
            rechecks=self._rechecks,
            taken=self._taken,
            report=self._destination.report,
        )
        return RunContext(
            run=run,
            root=self._root,
            reason=request.reason,
            dry_run=request.dry_run,
            catalogue=opened.catalogue,
            ledger=self._ledger,
            transport=transport,
            box=opened.box,
            emit=emit,
            emit_all=self._emit_all_to(untold),
            progress=progress,
            recorder=None if request.dry_run else recorder,
            clock=self._clock,
            cancel=observer.cancel,
            gate=gate,
            channels=channels,
            choices=UserOverrides(emit),
            sources=sources,
            shares=BottleneckMonitor(channels, transport, emit, count_cpus()),
            registrations=request.settings.advanced.register_requests,
            take_commands=self._controller.over,
            in_background=lambda: limited_impact(request.settings.limits, gate, emit, progress),
        )

    def _build_stages(
        self,
        context: RunContext,
        discovery: Discovery,
        untold: UnreportedFiles,
        opened: OpenedDestination,
    ) -> Stages:
        settings, advanced = self._request.settings, self._request.settings.advanced
        ledger, gate, emit, clock = self._ledger, context.gate, context.emit, context.clock
        copies = KeptCopies(context, settings.data.keep_replaced)
        file = ledger_file(settings, self._places, self._root, self._request.part.shard)
        if not context.dry_run:
            take_choices(self._ledger, file)
        changed = ChangedFiles(
            self._ledger,
            emit,
            clock,
            settings.data,
            can_replace=opened.can_replace,
            dry_run=context.dry_run,
            chosen=read_choices(self._ledger, file),  # none after they were taken
        )
        replacing = Replace(context, copies, changed)
        unfinished = UnfinishedFiles(
            FileWriters(),
            ledger,
            clock,
            emit,
            settings.filters.settle_seconds,
            dry_run=context.dry_run,
        )
        deletions = find_file(find_state(settings, self._places), DELETIONS)
        availability = Availability(ledger, lambda: load_deletions(deletions))
        if self._request.accept_empty:
            availability.accept()
        return Stages(
            recovery=Recovery(context, advanced, copies, untold, self._request.undo),
            discovery=discovery,
            availability=availability,
            scan=Scan(settings, emit, clock, context.cancel, self._part),
            renamed=RenamedFolders(ledger, context.root, ignore if opened.can_rename else emit),
            check=Check(
                context.catalogue,
                ledger,
                emit,
                context.emit_all,
                gate,
                changed,
                unfinished if self._destination.awaits_writers else _find_none,
                RenamedFiles(ledger, context.root) if opened.can_rename else _find_none,
                box=context.box,
            ),
            compare=Compare(
                partial(read_checksum, algorithm=opened.algorithm),
                ledger,
                emit,
                gate,
                context.choices,
                changed,
                context.catalogue.note_new,
            ),
            bundle=Bundle(settings.archive, ledger),
            pack=Pack(
                settings.transfer,
                clock,
                context.choices,
                self._archives,
                context.channels.find_batch_size,
            ),
            send=Send(
                context,
                settings.transfer.attempts,
                replacing.note,
                changed.hold_for_host,
                # An unattended run leaves it to the next one, which finds new files as well.
                waits_for_space=self._request.patience is None and advanced.pause_patience > 0,
            ),
            replace=replacing,
            record=Record(ledger, context.emit_all),
        )


def _find_none(_files: Sequence[LocalFile]) -> Mapping[bytes, Any]:
    """Return no unfinished or renamed files."""
    return {}


def find_nested_directories(ledger: Path, root: bytes, now: datetime) -> list[bytes]:
    """Return other data directories of this installation and server that are in ours, or ours in.

    `ledger` is our own. Only directories that still exist and were in use within the last month.
    """
    host, ours = ledger.stem.rpartition("-")[0], _place(root)
    since = now.timestamp() - IN_USE
    others = [file for file in ledger.parent.glob(f"{host}-????????.db") if file != ledger]
    recent = [file for file in others if file.stat().st_mtime > since]
    found = {directory for file in recent for directory in read_directories(file)}
    return [
        other
        for other in sorted(found)
        if (place := _place(other)) != ours
        and (place.startswith(ours) or ours.startswith(place))
        and os.path.isdir(other)  # noqa: PTH112 - of bytes
    ]


def _place(directory: bytes) -> bytes:
    return os.path.normcase(os.path.join(os.path.realpath(directory), b""))  # noqa: PTH118 - of bytes


def to_all(*followers: Callable[[T], None]) -> Callable[[T], None]:
    """Return an `emit` that sends every event, or many together, to all followers in this order."""

    def emit(events: T) -> None:
        for follow in followers:
            follow(events)

    return emit


def one_by_one(follow: Emit) -> EmitAll:
    """Return an `emit_all` that passes on each event alone."""

    def emit_all(events: Sequence[Event]) -> None:
        for event in events:
            follow(event)

    return emit_all
