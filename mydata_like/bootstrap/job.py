"""A run, put together from its parts and taken apart again."""

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import SystemRandom

from mydata_like.bootstrap.connection import (
    Connection,
    describe_identity,
    ensure_uuid,
    open_connection,
    require_complete,
)
from mydata_like.bootstrap.patience import choose_patience
from mydata_like.bootstrap.server_settings import refresh_settings, tell_change
from mydata_like.bootstrap.settings import (
    find_api_key,
    find_places,
    find_state,
    ledger_file,
    open_secrets,
    prepare_places,
)
from mydata_like.bootstrap.shards import check_shards, telling_of_copies
from mydata_like.bootstrap.sparing import spared
from mydata_like.bootstrap.staging import Staging, find_staging, open_staging
from mydata_like.core.errors import UploaderError
from mydata_like.core.events import Event, Notice, RunFinished, RunProgressed, event_record
from mydata_like.core.ports import Clock, Emit, Ledger, Transport
from mydata_like.core.shards import WHOLE
from mydata_like.core.sources import Offer
from mydata_like.core.values import dataclass
from mydata_like.engine.archives import Recall
from mydata_like.engine.bandwidth import Bandwidth
from mydata_like.engine.bundle import Bundle
from mydata_like.engine.channels import Channels
from mydata_like.engine.check import Check
from mydata_like.engine.choices import Choices
from mydata_like.engine.chronicle import Chronicle
from mydata_like.engine.climb import Climb
from mydata_like.engine.controller import Controller, Controls
from mydata_like.engine.datasets import Datasets
from mydata_like.engine.knowledge import Knowledge
from mydata_like.engine.levels import ALL, Part
from mydata_like.engine.limits import Limits
from mydata_like.engine.pack import Pack
from mydata_like.engine.recover import Recovery, Untold
from mydata_like.engine.register import Filing, Pace, Register
from mydata_like.engine.replace import Parties, Replace
from mydata_like.engine.retry import Gate
from mydata_like.engine.run import Run, RunEnd, Stages, Surroundings
from mydata_like.engine.scan import Scan
from mydata_like.engine.send import Send
from mydata_like.engine.shares import Shares
from mydata_like.engine.sources import Sources, check_source
from mydata_like.engine.tally import Tally
from mydata_like.engine.ticker import begin, repeated
from mydata_like.engine.verify import Verify
from mydata_like.engine.watching import FOLDER, SOURCE
from mydata_like.engine.workers import Stoppable
from mydata_like.server.api import HttpServer
from mydata_like.settings.policy import Loaded
from mydata_like.settings.schema import Settings
from mydata_like.store.ledger import SqliteLedger
from mydata_like.store.paths import Places
from mydata_like.store.rows import PastRun
from mydata_like.store.secrets import Secret
from mydata_like.system.clock import SystemClock
from mydata_like.system.garbage import collect_seldom
from mydata_like.system.load import measure_idle
from mydata_like.system.lock import lock_data_directory
from mydata_like.transfer.sessions import count_cpus
from mydata_like.transfer.unarchive import TarArchives

KEEP_AFTER = 1.0  # seconds after which the ledger is told again how far a run has come
SWITCH_INTERVAL = 0.0005  # seconds a thread may keep those that send from going on


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a run is asked to do, beside what the settings say."""

    config: Path | None = None
    dry_run: bool = False
    patience: float | None = None  # of a run that nobody watches, in seconds, possibly infinite
    reason: str = "person"  # why it starts, as of `RunStarted`; "source" looks at sources only
    reload: Callable[[], Loaded] | None = None  # reads all settings again, the server's included
    sources: tuple[Offer, ...] = ()  # from outside of the data directory
    api_key: Secret | None = None  # to be tried instead of the one that is stored
    part: Part = ALL  # of the data directory, that is scanned


@dataclass(frozen=True, slots=True)
class Audience:
    """Who follows a run, and who may stop it."""

    emit: Emit
    tally: Tally
    cancel: Stoppable
    hide: Callable[[str], None]  # told every secret, so that no log shows it
    controller: Controller | None = None  # who brings commands


@dataclass(frozen=True, slots=True)
class Job:
    """A run that is ready to go."""

    run: Run
    root: bytes
    ledger: SqliteLedger
    clock: Clock
    reason: str  # as of `RunStarted`
    audience: Audience
    chronicle: Chronicle
    sources: Sources

    def __call__(self, *, dry_run: bool = False) -> RunEnd:
        """Run, and tell its end when all that the ledger is to know of it is there."""
        collect_seldom()
        sys.setswitchinterval(SWITCH_INTERVAL)
        if dry_run:
            end = self.run.execute(self.root, dry_run=True, reason=self.reason)
        else:
            end = self._carry()
        self.audience.emit(end.finished)
        return end

    def _carry(self) -> RunEnd:
        """Run, and keep the sums of it, and why it began, in the ledger."""
        started = self.clock.now()
        with repeated(
            lambda: self._keep(started, None, self.audience.tally.progress()), KEEP_AFTER
        ):
            end = self.run.execute(self.root, reason=self.reason)
        self._keep(started, end.finished.at, end.finished)
        if end.finished.problem is None and self.reason != FOLDER:
            sources = self.sources
            self.ledger.forget_before(started, sources.taken, inside=not sources.alone)
            sources.finish()
        return end

    def _keep(
        self, started: datetime, finished: datetime | None, sums: RunProgressed | RunFinished
    ) -> None:
        """Keep what is known of the run by now, for whoever looks into the ledger."""
        self.chronicle.write()
        measured = self.audience.tally.measured
        limit = {"limit": measured.limit if measured else ""}  # which the sums at the end have
        record = limit | event_record(sums) | {"reason": self.reason}
        self.ledger.record_run(PastRun(self.run.name, started, finished, record))


@dataclass(frozen=True, slots=True)
class _Outside:
    """What the stages reach the server and the staging area by."""

    server: HttpServer
    gate: Gate
    controls: Controls
    box: str
    untold: Untold


@contextmanager
def open_job(settings: Settings, order: Order, audience: Audience) -> Iterator[Job]:
    """Lock the data directory, connect, and yield a run that is ready.

    Raises a `RunError` where the run cannot begin, `Cancelled` where it is not wanted any more.
    """
    clock = SystemClock()
    gate = build_gate(settings, order, audience, clock)
    with ExitStack() as stack:
        if audience.controller:
            stack.enter_context(audience.controller.opening(gate, audience.cancel))
        places, root = _occupy(settings, order, clock, stack)
        wait_for_ledger = _open_ledger(
            ledger_file(settings, places, root, order.part.shard), root, audience, stack
        )
        settings, connection = connect(settings, order, audience, gate, stack)
        ledger = wait_for_ledger()
        chronicle = Chronicle(ledger)
        audience = replace(audience, emit=both(audience.emit, chronicle.add))
        untold = Untold(ledger.find_replacements())
        if untold.keys:
            audience = replace(audience, emit=both(audience.emit, untold.add))
        staging = stack.enter_context(_staging(settings, order, audience, gate, connection))
        identity = describe_identity(connection, settings, ensure_uuid(settings, places))
        datasets = Datasets(
            connection.server, identity, settings.data, audience.emit, dry_run=order.dry_run
        )
        sources = _add_sources(settings, ledger, order)
        controls = _build_controls(settings, staging.transport, gate, audience, sources)
        outside = _Outside(connection.server, gate, controls, staging.box, untold)
        around = _surround(settings, staging.transport, ledger, audience, outside)
        stages = _build_stages(settings, outside, datasets, around, order.part)
        run = Run(str(uuid.uuid4()), stages, around)
        yield Job(run, root, ledger, clock, order.reason, audience, chronicle, sources)


def _occupy(
    settings: Settings, order: Order, clock: Clock, stack: ExitStack
) -> tuple[Places, bytes]:
    """Return our own places and the data directory, on which no other run is at work meanwhile."""
    _check_order(settings, order)
    places = find_places(order.config)
    prepare_places(settings, places)
    root = os.fsencode(settings.data.directory or "")
    if not order.dry_run:
        state = find_state(settings, places)
        stack.enter_context(lock_data_directory(state, root, clock, order.part.shard))
    return places, root


def _check_order(settings: Settings, order: Order) -> None:
    """Raise what can be said against an order before anything is begun."""
    require_complete(settings, order.config)
    if order.part.shard != WHOLE:
        check_shards(settings, find_places(order.config))
    for offer in order.sources:
        check_source(settings, offer)


@contextmanager
def _staging(
    settings: Settings, order: Order, audience: Audience, gate: Gate, connection: Connection
) -> Iterator[Staging]:
    find = find_staging if order.dry_run else open_staging
    tell = telling_of_copies(audience.emit, order.part.shard)
    places = find_places(order.config)
    staging = gate.call(lambda: find(connection, settings, places, tell))
    try:
        yield staging
    finally:
        staging.transport.close()


def _add_sources(settings: Settings, ledger: SqliteLedger, order: Order) -> Sources:
    sources = Sources(settings, ledger, alone=order.reason == SOURCE, dry_run=order.dry_run)
    for offer in order.sources:
        sources.add(offer)
    return sources


def _open_ledger(
    file: Path, root: bytes, audience: Audience, stack: ExitStack
) -> Callable[[], SqliteLedger]:
    """Begin to open the ledger; return what waits for it, and tells what was wrong with it.

    All of a large one is read, to see whether it is sound, while the server is asked.
    """
    opened = begin(lambda: SqliteLedger.open(file, root, SystemClock()))

    def close() -> None:
        with suppress(UploaderError):  # it is raised where the ledger is waited for
            opened().close()

    def wait() -> SqliteLedger:
        ledger = opened()
        if ledger.problem:
            audience.emit(Notice(problem=ledger.problem))
        return ledger

    stack.callback(close)
    return wait


def both(one: Emit, other: Emit) -> Emit:
    """Return what tells two of every event."""

    def emit(event: Event) -> None:
        one(event)
        other(event)

    return emit


@contextmanager
def connected(
    settings: Settings, order: Order, audience: Audience, gate: Gate
) -> Iterator[Connection]:
    """Yield a connection to the server; where nobody watches, it is waited for at the gate."""
    key = order.api_key or find_api_key(settings, open_secrets(order.config))[0]
    audience.hide(key.reveal())

    def open_it() -> Connection:
        return open_connection(settings, key, gate.clock, audience.cancel, dry_run=order.dry_run)

    connection = open_it() if order.patience is None else gate.call(open_it)
    try:
        yield connection
    finally:
        connection.close()


def connect(
    settings: Settings, order: Order, audience: Audience, gate: Gate, stack: ExitStack
) -> tuple[Settings, Connection]:
    """Return a connection, and the settings with what the server sets for us now."""
    connection = stack.enter_context(connected(settings, order, audience, gate))
    places = find_places(order.config)
    if not order.reload or not refresh_settings(connection, settings, places, gate.clock):
        return settings, connection
    loaded = order.reload()
    tell_change(loaded, audience.emit)
    if loaded.settings != settings:
        connection = stack.enter_context(connected(loaded.settings, order, audience, gate))
    return loaded.settings, connection


def _surround(
    settings: Settings, transport: Transport, ledger: Ledger, audience: Audience, outside: _Outside
) -> Surroundings:
    return Surroundings(
        transport=transport,
        ledger=ledger,
        tally=audience.tally,
        shares=Shares(outside.controls.limits.channels, transport, audience.emit, count_cpus()),
        emit=audience.emit,
        clock=outside.gate.clock,
        cancel=audience.cancel,
        controls=outside.controls,
        controller=audience.controller or Controller(audience.cancel, audience.emit),
        recovery=Recovery(
            _parties(outside, ledger, audience.emit), settings.advanced, outside.untold
        ),
        registrations=settings.advanced.register_requests,
        beside=lambda: spared(settings.limits, outside.gate, audience.emit, audience.tally),
    )


def _parties(outside: _Outside, ledger: Ledger, emit: Emit) -> Parties:
    return Parties(server=outside.server, ledger=ledger, emit=emit, controls=outside.controls)


def _build_controls(
    settings: Settings, transport: Transport, gate: Gate, audience: Audience, sources: Sources
) -> Controls:
    emit = audience.emit
    bandwidth = Bandwidth(gate.clock)
    count = settings.transfer.channels
    channels = Channels(transport, gate, emit, bandwidth, count)
    channels.gauge.count_idle(measure_idle)
    limits = Limits(settings.limits, channels, gate.clock, emit, None if count else Climb())
    return Controls(gate, limits, Choices(emit), sources, audience.cancel)


def _build_stages(
    settings: Settings,
    outside: _Outside,
    datasets: Datasets,
    around: Surroundings,
    part: Part,
) -> Stages:
    server, gate, box = outside.server, outside.gate, outside.box
    ledger, emit, clock = around.ledger, around.emit, around.clock
    pace = Pace(settings.advanced.register_batch, clock)
    archives = TarArchives()
    recall = Recall(server, ledger, gate, emit, archives)
    controls, advanced = outside.controls, settings.advanced
    replacing = Replace(_parties(outside, ledger, emit), advanced)
    return Stages(
        scan=Scan(settings, emit, clock, around.cancel, part),
        check=Check(Knowledge(server, ledger, gate, recall), datasets, emit, box=box),
        bundle=Bundle(settings.archive, ledger),
        pack=Pack(settings.transfer, clock, outside.controls.choices, archives),
        send=Send(controls, ledger, emit, settings.transfer.attempts, replacing.note),
        register=Register(server, ledger, emit, gate, Filing(box, pace)),
        replace=replacing,
        verify=Verify(server, ledger, emit, gate, advanced),
    )


def build_gate(settings: Settings, order: Order, audience: Audience, clock: Clock) -> Gate:
    """Return the gate at which what stops the whole run is waited out."""
    patience = choose_patience(settings, order.patience)
    return Gate(clock, audience.cancel, audience.emit, SystemRandom(), patience=patience)
