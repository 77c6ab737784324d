"""The state of the program and of the active run, from which window and tray are drawn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import Enum, Flag, StrEnum, auto
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from mydata_like.core.deletion import PARTIAL_REASONS, RunSums, Safety, SafetyEvidence, judge_safety
from mydata_like.core.errors import Problem
from mydata_like.core.events import (
    RunFinished,
    RunProgressed,
    StagesMeasured,
    parse_problem,
)
from mydata_like.core.extra_sources import KnownSource
from mydata_like.core.model import NO_RISK, AtRisk
from mydata_like.core.parsing import parse_moment
from mydata_like.core.ports import Clock
from mydata_like.engine.progress import NO_PROGRESS, ActiveTransfer, RunProgress
from mydata_like.settings.layers import ServerDecision

if TYPE_CHECKING:
    from mydata_like.app.ledger_status import PastRunRow

HISTORY_SECONDS: Final = 600.0
SAMPLE_SECONDS: Final = 0.45  # the minimum length of a sample
RISE: Final = 1.5  # times an earlier estimate of the time left is a rise,
RECENT: Final = 30.0  # seconds for which an answer of the server shows that it is reachable
MIN_RISE: Final = 60.0  # if it is this many seconds,
LASTING: Final = 5.0  # and all estimates of so many seconds are that high
GROWTH: Final = 1.1  # times an earlier number is a change that explains one
RISE_SECONDS: Final = 30.0  # how far back a rise is looked for


class ChannelRates(NamedTuple):
    """The throughput at one moment: bytes per second of each channel, files per second of all."""

    at: float
    rates: dict[int, float]
    files: float = 0.0


class LiveView(NamedTuple):
    """The transfers and the throughput at one moment."""

    transfers: tuple[ActiveTransfer, ...]
    samples: tuple[ChannelRates, ...]


class Rise(StrEnum):
    """Why the estimated time left has risen."""

    NONE = ""
    FOUND = "more was found"
    SLOWER = "sending has become slower"
    SERVER = "all is sent, and the server takes longer than expected"
    REST = "what is left takes longer than expected"  # the costs of bytes, files or records


def _find_lowest(reports: Iterable[RunProgressed]) -> RunProgressed:
    """Return the report with the least time left; there must be one, and all know it."""
    return min(reports, key=lambda report: report.remaining or 0.0)


def explain_rise(earlier: RunProgressed, now: RunProgressed) -> Rise:
    """Return why more time is left than at an earlier moment, if it is much more."""
    before, after = earlier.remaining, now.remaining
    if before is None or after is None or after < RISE * before or after - before < MIN_RISE:
        return Rise.NONE
    if now.wanted_bytes > earlier.wanted_bytes * GROWTH or now.wanted > earlier.wanted * GROWTH:
        return Rise.FOUND
    # Of larger files fewer are sent in a second, and of smaller ones fewer bytes.
    slower = now.byte_rate * GROWTH < earlier.byte_rate and now.file_rate <= earlier.file_rate
    if slower:
        return Rise.SLOWER
    return Rise.SERVER if now.sent >= now.wanted else Rise.REST


class LiveRun:
    """One active run; `progress` consumes its events.

    `rise` is why the time left has risen in the last seconds.
    """

    def __init__(self, clock: Clock) -> None:
        self.progress = RunProgress(clock)
        self._clock = clock
        self._sampled_at = clock.monotonic()
        self._sampled: dict[int, int] = {}  # bytes by channel at that time
        self._samples: deque[ChannelRates] = deque()
        self._reports: deque[tuple[float, RunProgressed]] = deque()
        self.rise = Rise.NONE
        self._rates: dict[int, float] = {}  # smoothed, by transfer

    def sample(self) -> None:
        """Measure the channels since the previous sample, unless that is too recent."""
        now = self._clock.monotonic()
        passed = now - self._sampled_at
        if passed < SAMPLE_SECONDS:
            return
        sent = self.progress.bytes_by_channel
        more = {number: sent[number] - self._sampled.get(number, 0) for number in sent}
        rates = {number: carried / passed for number, carried in more.items() if carried}
        self._sampled_at, self._sampled = now, sent
        self._samples.append(ChannelRates(now, rates, self.progress.reported.file_rate))
        while now - self._samples[0].at > HISTORY_SECONDS:
            self._samples.popleft()
        self._compare_reports(now)
        before = self._rates
        self._rates = {
            each.number: 0.7 * before.get(each.number, 0.0) + 0.3 * rates.get(each.channel, 0.0)
            for each in self.progress.transfers
        }

    def _compare_reports(self, now: float) -> None:
        """Find out whether the time left has risen since its lowest estimate, and lastingly."""
        self._reports.append((now, self.progress.reported))
        while now - self._reports[0][0] > RISE_SECONDS:
            self._reports.popleft()
        known = [(at, it) for at, it in self._reports if it.remaining is not None]
        before = [report for at, report in known if now - at > LASTING]
        latest = [report for at, report in known if now - at <= LASTING]
        self.rise = Rise.NONE
        if before and latest:
            self.rise = explain_rise(_find_lowest(before), _find_lowest(latest))

    def view(self) -> LiveView:
        """Return the current view."""
        transfers = (
            each._replace(rate=self._rates.get(each.number, 0.0))
            for each in self.progress.transfers
        )
        return LiveView(tuple(transfers), tuple(self._samples))


class Phase(StrEnum):
    """What the program is doing."""

    LOADING = "loading"  # the settings are being read
    UNSET = "unset"  # the set-up is not complete
    IDLE = "idle"
    STARTING = "starting"  # a run was requested
    RUNNING = "running"
    PAUSING = "pausing"  # the engine has not answered yet
    PAUSED = "paused"
    STOPPING = "stopping"
    ELSEWHERE = "elsewhere"  # a run of another program that accepts no commands
    TESTING = "testing"  # a speed test of this window; no run starts during it
    BROKEN = "broken"  # the engine ended unexpectedly, or could not start


# The phases in which the engine of this window has a run, unless another program executes it.
WITH_RUN: Final = frozenset(
    {Phase.STARTING, Phase.RUNNING, Phase.PAUSING, Phase.PAUSED, Phase.STOPPING}
)
AT_REST: Final = frozenset(Phase) - WITH_RUN
ANY: Final = frozenset(Phase)


class Trigger(Enum):
    """What the user, the engine, the settings or a speed test do to the phase."""

    START = auto()  # the user's commands
    PAUSE = auto()
    STOP = auto()
    RUN_STARTED = auto()  # events of the engine
    RUN_PAUSED = auto()
    RUN_RESUMED = auto()
    RUN_FINISHED = auto()
    RUN_NOT_NEEDED = auto()  # it did not start, and that is no error
    RUN_IMPOSSIBLE = auto()
    NOTHING_TO_STOP = auto()
    COMMAND_REFUSED = auto()
    CONTROL_FAILED = auto()  # a run of another program accepted no command
    ENGINE_ENDED = auto()
    ENGINE_FAILED = auto()
    SETTINGS_REFUSED = auto()
    SETTINGS_REPAIRED = auto()
    TEST_STARTED = auto()
    TEST_ENDED = auto()


class Effect(Flag):
    """What else happens at a transition."""

    NONE = 0
    LOOK = auto()  # read the status: the lock, and the files that are only on this computer
    READ_LEDGER = auto()  # the pages read the ledger again
    DELAY_RESTART = auto()
    ALLOW_RESTART = auto()


class Transition(NamedTuple):
    """The phases in which a trigger counts, the phase that follows, and what else happens.

    What counts in all phases at rest also counts during a run of another program.
    """

    phases: frozenset[Phase]
    phase: Phase
    effects: Effect = Effect.NONE


TRANSITIONS: Final[Mapping[Trigger, Transition]] = {
    Trigger.START: Transition(AT_REST - {Phase.ELSEWHERE, Phase.TESTING}, Phase.STARTING),
    Trigger.PAUSE: Transition(frozenset({Phase.RUNNING}), Phase.PAUSING),
    Trigger.STOP: Transition(ANY, Phase.STOPPING),
    Trigger.RUN_STARTED: Transition(ANY, Phase.RUNNING),
    Trigger.RUN_PAUSED: Transition(ANY, Phase.PAUSED),
    Trigger.RUN_RESUMED: Transition(ANY, Phase.RUNNING),
    Trigger.RUN_FINISHED: Transition(
        ANY, Phase.IDLE, Effect.LOOK | Effect.READ_LEDGER | Effect.ALLOW_RESTART
    ),
    Trigger.RUN_NOT_NEEDED: Transition(ANY - {Phase.TESTING}, Phase.IDLE, Effect.LOOK),
    Trigger.RUN_IMPOSSIBLE: Transition(ANY - {Phase.TESTING}, Phase.BROKEN),
    Trigger.NOTHING_TO_STOP: Transition(frozenset({Phase.STOPPING}), Phase.IDLE, Effect.LOOK),
    Trigger.COMMAND_REFUSED: Transition(frozenset({Phase.PAUSING}), Phase.RUNNING),
    Trigger.CONTROL_FAILED: Transition(ANY, Phase.ELSEWHERE),
    Trigger.ENGINE_ENDED: Transition(ANY, Phase.IDLE),
    Trigger.ENGINE_FAILED: Transition(
        ANY, Phase.BROKEN, Effect.LOOK | Effect.READ_LEDGER | Effect.DELAY_RESTART
    ),
    Trigger.SETTINGS_REFUSED: Transition(AT_REST, Phase.BROKEN),
    Trigger.SETTINGS_REPAIRED: Transition(
        frozenset({Phase.BROKEN}), Phase.LOADING, Effect.ALLOW_RESTART
    ),
    Trigger.TEST_STARTED: Transition(AT_REST, Phase.TESTING),
    Trigger.TEST_ENDED: Transition(AT_REST, Phase.IDLE),
}


# Problem codes of an address without a server, or with a server that cannot be used.
_UNREACHABLE: Final = (
    "server.unreachable",
    "server.unavailable",
    "server.slow",
    "server.connection-lost",
    "server.moved",
    "server.address",
    "server.web-page",
    "server.not-mytardis",
    "server.certificate",
    "server.tls",
    "server.proxy",
)
_NOT_APPROVED: Final = ("uploader.not-approved", "uploader.not-admitted")


class ServerIndicator(Enum):
    """The last known state of the server."""

    UNKNOWN = "unknown"  # not contacted yet
    REACHABLE = "reachable"  # when it answered last
    UNREACHABLE = "unreachable"
    SILENT = "silent"  # requests wait for an answer
    NOT_APPROVED = "not approved"  # reachable, and the approval is pending


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRunState:
    """How a run ended; `problem` says why it ended early."""

    started: datetime
    finished: datetime | None
    found: int = 0
    verified: int = 0
    waiting: int = 0
    skipped: int = 0
    kept: int = 0  # as in `RunFinished`
    outside: int = 0
    left_behind: int = 0
    failed: int = 0
    sent: int = 0
    bytes: int = 0
    omitted: int = 0
    seconds: float = 0.0
    reason: str = "person"
    problem: Problem | None = None
    compared: datetime | None = None  # as in `RunFinished`

    @classmethod
    def of(cls, event: RunFinished, reason: str, seconds: float) -> Self:
        """Return the state of a run that has just ended; the duration is in seconds."""
        same = {field.name for field in fields(cls)} - {"started", "finished", "reason"}
        return cls(
            started=event.at - timedelta(seconds=seconds),
            finished=event.at,
            reason=reason,
            **{name: getattr(event, name) for name in same},
        )

    @classmethod
    def of_row(cls, row: PastRunRow) -> Self:
        """Return a run as recorded in the ledger."""
        summary: Mapping[str, Any] = row.summary
        parsed = {"started", "finished", "problem", "compared"}
        names = {field.name for field in fields(cls)} - parsed
        return cls(
            started=row.started,
            finished=row.finished,
            problem=parse_problem(summary["problem"]) if summary.get("problem") else None,
            compared=parse_moment(summary["compared"]) if summary.get("compared") else None,
            **{name: summary[name] for name in names if name in summary},
        )

    @property
    def safe(self) -> bool:
        """Whether all files that were found are safe, except those left out on purpose."""
        return self.sums.safe

    @property
    def partial(self) -> bool:
        """Whether the run covered only added sources or one folder."""
        return self.reason in PARTIAL_REASONS

    @property
    def sums(self) -> RunSums:
        """The totals of the run."""
        return RunSums(
            self.found,
            self.verified,
            self.waiting,
            self.skipped,
            self.left_behind,
            self.failed,
            self.problem.code if self.problem else "",
        )

    @property
    def unsafe(self) -> int:
        """The number of its files that are not on the server, except those that were left out."""
        return max(0, self.found - self.verified - self.skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """The state of program and run.

    `run`, `began` (in seconds since 1970), `reason` and `sums` describe the active run. `elsewhere`
    means that another program executes it, which can be controlled except in the phase of that
    name. `measured` is its bottleneck, if known, and `rise` is why the estimated time left has just
    risen. `problem` is why the run is paused, or why the engine is broken; `next_try` is when a
    paused run tries to go on. `silence` is for how many seconds the server has not answered, if
    that is long. `awaited` is why the server does not admit this uploader yet. `answered` is when
    the server answered last, as far as known, and `heard` whether that shows that a run reaches it
    now. `last` is the newest run that has ended, `whole` the newest that covered everything,
    `interrupted` one that was interrupted since. `sources` are the added folders that are not
    finished. `set_by_server` are the settings that the server overrides. `kept` is the number of
    changed files whose copies on the server the user keeps. `data_problem` is why the data
    directory cannot be read. `missing` are keys of settings.
    """

    phase: Phase = Phase.LOADING
    elsewhere: bool = False
    run: str = ""
    began: int | None = None
    reason: str = ""
    sums: RunProgressed = NO_PROGRESS
    measured: StagesMeasured | None = None
    rise: Rise = Rise.NONE
    last: PastRunState | None = None
    whole: PastRunState | None = None
    interrupted: PastRunState | None = None
    sources: tuple[KnownSource, ...] = ()
    data_problem: Problem | None = None
    problem: Problem | None = None
    next_try: datetime | None = None
    silence: int = 0
    awaited: Problem | None = None
    next_start: datetime | None = None
    schedule: str = "manual"
    at_risk: AtRisk = NO_RISK
    kept: int = 0
    missing: tuple[str, ...] = ()
    set_by_server: tuple[ServerDecision, ...] = ()
    server: ServerIndicator = ServerIndicator.UNKNOWN
    answered: datetime | None = None
    heard: bool = False

    @property
    def safety(self) -> Safety:
        """How safe the data is, as far as known, without the effects of the active run."""
        whole = self.newest_whole
        return judge_safety(
            SafetyEvidence(
                at_risk=self.at_risk,
                last=self.last.sums if self.last else None,
                whole=whole.sums if whole else None,
                cut_off=self.interrupted is not None,
                sources=len(self.sources),
                data_problem=self.data_problem,
            )
        )

    @property
    def newest_whole(self) -> PastRunState | None:
        """The newest ended run that covered everything."""
        return self.last if self.last is not None and not self.last.partial else self.whole

    def is_under_way(self, run: str) -> bool:
        """Return whether a run is the active one."""
        return self.at_work and run == self.run

    @property
    def at_work(self) -> bool:
        """Whether a run is active, here or in another program."""
        return self.phase in WITH_RUN or self.phase is Phase.ELSEWHERE

    def allows(self, trigger: Trigger) -> bool:
        """Return whether a trigger counts in this state."""
        phases = TRANSITIONS[trigger].phases
        return self.phase in phases or (self.elsewhere and phases >= AT_REST)

    @property
    def speed(self) -> float:
        """The bytes sent per second; 0 while paused and once everything is sent."""
        paused = not self.at_work or self.phase is Phase.PAUSED
        finished = self.sums.transferred_bytes >= self.sums.wanted_bytes
        return 0.0 if paused or finished else self.sums.byte_rate

    @property
    def can_start(self) -> bool:
        """Whether a run may be requested now."""
        return self.allows(Trigger.START) and not self.missing

    @property
    def is_steerable(self) -> bool:
        """Whether files of the active run can be held back or preferred now."""
        return not self.elsewhere and self.phase in (Phase.RUNNING, Phase.PAUSING, Phase.PAUSED)

    @property
    def watches_files(self) -> bool:
        """Whether new files start the next run; else, `next_start` tells when a failed one does."""
        failed = self.phase is Phase.BROKEN or (self.last is not None and self.last.problem)
        return self.schedule == "watch" and not failed

    @property
    def ours(self) -> bool:
        """Whether the engine of this window executes the active run."""
        return self.phase in WITH_RUN and not self.elsewhere


def next_indicator(was: RunState, now: RunState) -> ServerIndicator:
    """Return the state of the server after a change of the run state."""
    before = was.server
    if now.awaited is not None:
        return ServerIndicator.NOT_APPROVED
    problem, complete = now.problem, False
    if was.ours and now.last is not None and now.last != was.last:  # a run has just ended
        problem, complete = problem or now.last.problem, now.last.problem is None
    if problem is not None and problem.code in _NOT_APPROVED:
        return ServerIndicator.NOT_APPROVED
    if problem is not None and problem.code in _UNREACHABLE:
        return ServerIndicator.UNREACHABLE
    if problem is not None and problem.code.startswith("server."):
        return ServerIndicator.REACHABLE
    if now.silence:
        return ServerIndicator.SILENT
    if before is ServerIndicator.SILENT:  # until it answered, or until the run ended
        answered = now.at_work or complete
        return ServerIndicator.REACHABLE if answered else ServerIndicator.UNREACHABLE
    # A run starts after a response of the server; an approval no longer pending was granted.
    running = now.phase is Phase.RUNNING and problem is None
    reachable = running or (before is ServerIndicator.NOT_APPROVED and problem is None)
    return ServerIndicator.REACHABLE if reachable else before


def with_server(was: RunState, now: RunState, at: datetime) -> RunState:
    """Return the state after a change, with what is known of the server at this moment."""
    server, answered = next_indicator(was, now), now.answered
    if _has_answered(was, replace(now, server=server)):
        server, answered = ServerIndicator.REACHABLE, at
    age = (at - answered).total_seconds() if answered else inf
    heard = now.phase in (Phase.RUNNING, Phase.PAUSING) and 0 <= age < RECENT
    return replace(now, server=server, answered=answered, heard=heard)


def _has_answered(was: RunState, now: RunState) -> bool:
    """Return whether the change from one state to the next is due to an answer of the server."""
    returned = now.server is ServerIndicator.REACHABLE is not was.server
    if now.problem is not None or now.silence:
        return returned
    if was.run != now.run:  # another program may have started its run long ago
        return now.phase is Phase.RUNNING and not now.elsewhere
    before, after = was.sums, now.sums
    # What the check finds verified may be known from the ledger.
    verified = after.verified > before.verified and after.checked == before.checked
    return after.registered > before.registered or verified or (returned and not now.elsewhere)
