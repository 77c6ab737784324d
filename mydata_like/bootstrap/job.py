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
from mydata_like.bootstrap.marking import marked
from mydata_like.bootstrap.occupying import occupied
from mydata_like.bootstrap.patience import choose_patience
from mydata_like.bootstrap.server_settings import (
    refresh_settings,
    tell_change,
    telling_of_server_filters,
)
from mydata_like.bootstrap.settings import (
    correct_places,
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
from mydata_like.core.model import FileGroup
from mydata_like.core.ports import Clock, Emit, Ledger, Transport
from mydata_like.core.shards import WHOLE
from mydata_like.core.sources import Offer
from mydata_like.core.values import dataclass
from mydata_like.engine.archives import Recall
from mydata_like.engine.audit import Audit, AuditPolicy
from mydata_like.engine.availability import Availability
from mydata_like.engine.bandwidth import Bandwidth
from mydata_like.engine.bundle import Bundle
from mydata_like.engine.channels import Channels
from mydata_like.engine.check import Check
from mydata_like.engine.choices import Choices
from mydata_like.engine.chronicle import Chronicle
from mydata_like.engine.climb import Climb
from mydata_like.engine.compare import Compare
from mydata_like.engine.controller import Controller, Controls
from mydata_like.engine.datasets import Datasets
from mydata_like.engine.discovery import Discovery, Lookahead
from mydata_like.engine.knowledge import Knowledge
from mydata_like.engine.levels import ALL, Part
from mydata_like.engine.limits import Limits
from mydata_like.engine.pack import Pack
from mydata_like.engine.progress import RunProgress
from mydata_like.engine.record import Record
from mydata_like.engine.recover import Recovery, Untold
from mydata_like.engine.register import Filing, Pace, Register
from mydata_like.engine.replace import Parties, Replace
from mydata_like.engine.retry import Gate
from mydata_like.engine.run import Run, RunEnd, Stages, Surroundings
from mydata_like.engine.scan import Scan
from mydata_like.engine.send import Send
from mydata_like.engine.shares import Shares
from mydata_like.engine.sources import Sources, check_source
from mydata_like.engine.ticker import begin, repeated, settle
from mydata_like.engine.verify import Verification, Verify
from mydata_like.engine.watching import FOLDER, SOURCE
from mydata_like.engine.workers import CancelFlag, Stoppable
from mydata_like.engine.writes import Writes
from mydata_like.server.api import HttpServer
from mydata_like.settings.policy import Loaded
from mydata_like.settings.schema import Settings
from mydata_like.store.deeds import NAME as DEEDS
from mydata_like.store.deeds import load_freed
from mydata_like.store.ledger import SqliteLedger
from mydata_like.store.paths import Places
from mydata_like.store.rows import PastRun
from mydata_like.store.secrets import Secret
from mydata_like.system.clock import SystemClock
from mydata_like.system.garbage import collect_seldom
from mydata_like.system.lease import Lease
from mydata_like.system.load import measure_idle
from mydata_like.transfer.reading import read_checksum
from mydata_like.transfer.sessions import count_cpus
from mydata_like.transfer.unarchive import TarArchives

KEEP_AFTER = 1.0  # seconds after which the ledger is told again how far a run has come
LOOK_FOR = 30.0  # seconds of looking at what is there where a run cannot begin
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
    accept_empty: bool = False  # files that are gone were deleted on purpose


@dataclass(frozen=True, slots=True)
class Audience:
    """Who follows a run, and who may stop it."""

    emit: Emit
    tally: RunProgress
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

        def keep() -> None:
            self._keep(started, None, self.audience.tally.progress())

        try:
            with repeated(keep, KEEP_AFTER):
                end = self.run.execute(self.root, reason=self.reason)
        except BaseException:
            with suppress(UploaderError):  # what is raised says more
                keep()
            raise
        try:
            self._conclude(started, end.finished)
        except UploaderError as error:  # the sums are to be told all the same
            if end.finished.problem is None:
                end = RunEnd(replace(end.finished, problem=error.problem), error.exit_code)
        return end

    def _conclude(self, started: datetime, finished: RunFinished) -> None:
        """Keep the sums, and after a complete run that what it did not see is gone."""
        self._keep(started, finished.at, finished)
        if finished.problem is None and self.reason != FOLDER:
            sources = self.sources
            self.ledger.forget_before(started, sources.taken, inside=not sources.alone)
            sources.finish()

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
    """What the stages reach the data directory, the server and the staging area by."""

    server: HttpServer
    gate: Gate
    controls: Controls
    box: str
    availability: Availability
    writes: Writes
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
        places, root, lease = _occupy(settings, order, clock, audience, stack)
        begun = _begin(settings, order, audience, root, stack)
        settings, connection = connect(settings, order, audience, gate, stack)
        ledger = _take_ledger(begun, audience)
        writes = connection.client.writes = Writes(ledger, clock, settings.server.write_timeout)
        chronicle = Chronicle(ledger)
        audience, untold = _follow(ledger, chronicle, audience, order)
        staging = stack.enter_context(_staging(settings, order, audience, gate, connection))
        stack.enter_context(marked(lease, connection, settings, places, order.part.shard))
        identity = describe_identity(connection, settings, ensure_uuid(settings, places))
        datasets = Datasets(
            connection.server, identity, settings.data, audience.emit, dry_run=order.dry_run
        )
        sources = begun.find_sources()
        controls = _build_controls(settings, staging.transport, gate, audience, sources)
        availability = _open_availability(find_state(settings, places), ledger, order)
        outside = _Outside(
            connection.server, gate, controls, staging.box, availability, writes, untold
        )
        around = _surround(settings, staging.transport, begun, audience, outside)
        stages = _build_stages(settings, outside, datasets, around, order.part)
        run = Run(str(uuid.uuid4()), stages, around)
        yield Job(run, root, ledger, clock, order.reason, audience, chronicle, sources)


@dataclass(frozen=True, slots=True)
class _Begun:
    """What goes on while the server is asked: the first two wait until it is done."""

    find_ledger: Callable[[], SqliteLedger]
    find_sources: Callable[[], Sources]
    discovery: Discovery


def _begin(
    settings: Settings, order: Order, audience: Audience, root: bytes, stack: ExitStack
) -> _Begun:
    """Begin with all that needs no server: what is to be carried is known before it is asked."""
    file = ledger_file(settings, find_places(order.config), root, order.part.shard)
    find_ledger = _open_ledger(file, root, stack)
    discovery = Discovery(find_ledger, SystemClock(), dry_run=order.dry_run)
    find_sources = begin(
        lambda: _accept_sources(settings, find_ledger(), order, audience.controller)
    )
    stack.callback(settle, find_sources)  # it writes into the ledger
    begun = _Begun(find_ledger, find_sources, discovery)
    if not order.dry_run:
        stack.enter_context(_looking_ahead(settings, order, begun, audience.cancel))
    return begun


def _follow(
    ledger: SqliteLedger, chronicle: Chronicle, audience: Audience, order: Order
) -> tuple[Audience, Untold]:
    """Return the audience with all who follow the run for the ledger, and one of these.

    It hears which filters the server has set.
    """
    untold = Untold(ledger.find_replacements())
    emit = both(audience.emit, chronicle.add)
    if untold.keys:
        emit = both(emit, untold.add)
    return replace(audience, emit=telling_of_server_filters(emit, order.reload)), untold


def _take_ledger(begun: _Begun, audience: Audience) -> SqliteLedger:
    """Return the ledger once it is open; what was wrong with it is reported."""
    ledger = begun.find_ledger()
    if ledger.problem:
        audience.emit(Notice(problem=ledger.problem))
    return ledger


def _occupy(
    settings: Settings, order: Order, clock: Clock, audience: Audience, stack: ExitStack
) -> tuple[Places, bytes, Lease | None]:
    """Return our own places, and the data directory with the lease on it, where one is held."""
    _check_order(settings, order)
    places = find_places(order.config)
    prepare_places(settings, places)
    correct_places(settings, places, audience.emit)
    root = _find_root(settings)
    if order.dry_run:
        return places, root, None
    state, stop = find_state(settings, places), audience.cancel.set
    lease = stack.enter_context(occupied(state, root, clock, stop, order.part.shard))
    return places, root, lease


def _find_root(settings: Settings) -> bytes:
    return os.fsencode(settings.data.directory or "")


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


def _accept_sources(
    settings: Settings, ledger: SqliteLedger, order: Order, controller: Controller | None
) -> Sources:
    """Keep what is to be carried from outside, before the server is asked anything.

    A run over everything also carries on with what earlier ones have left.
    """
    sources = Sources(settings, ledger, alone=order.reason == SOURCE, dry_run=order.dry_run)
    for offer in order.sources:
        sources.add(offer)
    if controller:
        controller.accept(sources.remember)
    if order.reason not in (SOURCE, FOLDER):
        sources.carry_on()
    return sources


@contextmanager
def _looking_ahead(
    settings: Settings, order: Order, begun: _Begun, stop: Stoppable
) -> Iterator[None]:
    """Find what the run is to carry while it is held up, or where it cannot begin at all."""
    clock, cancel = SystemClock(), CancelFlag()
    ahead = Lookahead(begun.discovery, clock, cancel)
    scan = Scan(settings, _ignore, clock, cancel, order.part)

    def find() -> Iterator[FileGroup]:
        sources = begun.find_sources()
        for source in sources.waiting:
            yield from scan.read(source)
        if not sources.alone:
            yield from scan.look_ahead(_find_root(settings), begun.discovery.has_passed)

    ended = begin(lambda: ahead.work(find))
    try:
        yield
    except UploaderError:
        ahead.finish(LOOK_FOR, stop)
        settle(ended)
        raise
    finally:
        cancel.set("the run has ended")
        settle(ended)


def _ignore(_: Event) -> None:
    """Leave it to the run to tell what it finds."""


def _open_availability(state: Path, ledger: SqliteLedger, order: Order) -> Availability:
    availability = Availability(ledger, lambda: load_freed(state / DEEDS))
    if order.accept_empty:
        availability.accept()
    return availability


def _open_ledger(file: Path, root: bytes, stack: ExitStack) -> Callable[[], SqliteLedger]:
    """Begin to open the ledger; return what waits for it.

    All of a large one is read, to see whether it is sound, while the server is asked.
    """
    opened = begin(lambda: SqliteLedger.open(file, root, SystemClock()))

    def close() -> None:
        with suppress(UploaderError):  # it is raised where the ledger is waited for
            opened().close()

    stack.callback(close)
    return opened


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
    connection.client.emit = audience.emit
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
    settings: Settings, transport: Transport, begun: _Begun, audience: Audience, outside: _Outside
) -> Surroundings:
    return Surroundings(
        transport=transport,
        ledger=begun.find_ledger(),
        discovery=begun.discovery,
        tally=audience.tally,
        shares=Shares(outside.controls.limits.channels, transport, audience.emit, count_cpus()),
        emit=audience.emit,
        clock=outside.gate.clock,
        cancel=audience.cancel,
        controls=outside.controls,
        controller=audience.controller or Controller(audience.cancel, audience.emit),
        availability=outside.availability,
        recovery=Recovery(
            _parties(outside, begun.find_ledger(), audience.emit), settings.advanced, outside.untold
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
    policy = AuditPolicy(box=box, full_check_days=settings.advanced.full_check_days)
    audit = Audit(ledger, emit, clock, policy)
    knowledge = Knowledge(server, ledger, gate, recall, audit)
    controls, advanced = outside.controls, settings.advanced
    replacing = Replace(_parties(outside, ledger, emit), advanced)
    return Stages(
        scan=Scan(settings, emit, clock, around.cancel, part),
        check=Check(knowledge, datasets, emit, box=box),
        compare=Compare(read_checksum, ledger, emit, gate, outside.controls.choices),
        bundle=Bundle(settings.archive, ledger),
        pack=Pack(settings.transfer, clock, outside.controls.choices, archives),
        send=Send(controls, ledger, emit, settings.transfer.attempts, replacing.note),
        register=Register(server, ledger, emit, gate, Filing(box, pace, outside.writes)),
        replace=replacing,
        verify=Verify(server, ledger, emit, gate, Verification(advanced, box)),
        record=Record(ledger, emit),
    )


def build_gate(settings: Settings, order: Order, audience: Audience, clock: Clock) -> Gate:
    """Return the gate at which what stops the whole run is waited out."""
    patience = choose_patience(settings, order.patience)
    return Gate(clock, audience.cancel, audience.emit, SystemRandom(), patience=patience)
