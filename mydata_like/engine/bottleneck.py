"""The measurement of how a run's time is shared among its stages and channels, and of its limit."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from mydata_like.core.channel_time import TimeByCause
from mydata_like.core.events import StagesMeasured
from mydata_like.core.ports import Emit, Transport
from mydata_like.engine.channel_tuner import SPARE, ThroughputSample
from mydata_like.engine.channels import ChannelPool
from mydata_like.engine.pipeline import StageWaits, WorkerGroup

AT_WORK: Final = 0.5  # share of its time from which a channel or a worker counts as active
HALF: Final = 0.5  # share of the time above which something is the limit
FULL: Final = 0.85  # share of what the processors can do
REACHED: Final = 0.9  # share of the bandwidth limit
REPORTED: Final = 0.2  # share of their time that channels must have reported to be judged by it

# By the names of its threads: the stage that the user sees, and what it waits for when it is
# active; `send` has its own reasons.
_STAGES: Final = {
    "source": ("scan", "source"),
    "discover": ("scan", "source"),
    "check": ("check", "API"),
    "compare": ("check", "source"),
    "bundle": ("send", "processor"),
    "pack": ("send", "processor"),
    "register": ("register", "API"),
}


class StageLoad(NamedTuple):
    """Measurements over a number of seconds; numbers of workers are averages.

    `busy` is the number of active workers by stage, `blocked` the number of those whose results the
    next stage did not accept. `spent` is what the channels spent their time on, `engine` is the
    engine's share of a processor, `idle` the number of idle processors of this computer, None if
    unknown. `pending` states that registered files are not verified yet.
    """

    seconds: float
    busy: Mapping[str, float]
    blocked: Mapping[str, float]
    channels: float
    spent: TimeByCause
    engine: float = 0.0
    cores: int = 1
    rate: float = 0.0  # bytes a second
    bandwidth: float = 0.0  # the limit that is set; 0 for none
    pending: bool = False
    idle: float | None = None


class Bottleneck(NamedTuple):
    """What slows a run down: a stage, and what this stage waits for.

    Both are empty if the measurements show no clear limit. Names are those of docs/events.md.
    """

    stage: str = ""
    name: str = ""


def name_limit(evidence: StageLoad) -> Bottleneck:
    """Return what limits the speed of a run."""
    if evidence.channels >= AT_WORK:
        if evidence.blocked.get("send", 0.0) >= HALF * evidence.channels:
            return Bottleneck("register", "API")
        return Bottleneck("send", _name_in_send(evidence))
    busiest = max(_STAGES, key=lambda stage: evidence.busy.get(stage, 0.0))
    if evidence.busy.get(busiest, 0.0) >= AT_WORK:
        stage, reason = _STAGES[busiest]
        return Bottleneck(stage, "processor" if evidence.engine >= FULL else reason)
    return Bottleneck("verify", "verification") if evidence.pending else Bottleneck()


def _name_in_send(evidence: StageLoad) -> str:
    """Return what active channels wait for."""
    spent = evidence.spent
    if evidence.bandwidth and evidence.rate >= REACHED * evidence.bandwidth:
        return "bandwidth"
    if spent.in_all < REPORTED * evidence.channels * evidence.seconds:
        return ""
    at_work = spent.processor / evidence.seconds + evidence.engine
    if at_work >= FULL * evidence.cores:
        return "processor"
    # A server that seems slow may be a program of this computer that lacks processor time, as
    # other programs here do.
    crowded = evidence.idle is not None and evidence.idle < SPARE
    remote = "processor" if crowded else "line"
    parts = spent._replace(hash=0.0, cipher=0.0)._asdict() | {"processor": spent.processor}
    name = max(parts, key=lambda part: parts[part])
    if parts[name] >= HALF * spent.in_all:
        return remote if name == "line" else name
    return remote if spent.line + spent.server >= HALF * spent.in_all else ""


RECENT: Final = 2.0  # the most recent seconds, which are judged
NOTABLE: Final = 0.1  # share of a run's time from which on a limit is reported
REPORT_INTERVAL: Final = 1.0  # seconds between two reports
UNREPORTED: Final = Bottleneck("send", "")
NO_WAITS: Final = StageWaits(0, 0.0, 0.0)


class _TimeSample(NamedTuple):
    """Cumulative sums at one moment."""

    group: WorkerGroup
    sight: ThroughputSample
    waits: Mapping[str, StageWaits]
    spent: TimeByCause
    engine: float  # processor seconds


class BottleneckMonitor:
    """A monitor that samples the stages it watches at intervals, from one thread."""

    def __init__(
        self,
        channels: ChannelPool,
        transport: Transport,
        emit: Emit,
        cores: int,
        work: Callable[[], float] = time.process_time,
    ) -> None:
        self._channels = channels
        self._transport = transport
        self._emit = emit
        self._cores = cores
        self._work = work
        self._group: WorkerGroup | None = None
        self._past: deque[_TimeSample] = deque()
        self._reported_at = 0.0
        self._reported = Bottleneck()
        self._unreported = 0.0  # seconds of active channels that have not reported yet
        self._limits: defaultdict[str, float] = defaultdict(float)  # seconds of each limit

    @property
    def limit(self) -> str:
        """The limit that applied longest; empty if none applied for a notable time."""
        named = {name: seconds for name, seconds in self._limits.items() if name}
        longest = max(named, key=lambda name: named[name], default="")
        judged = sum(self._limits.values()) + self._unreported  # seconds
        return longest if longest and named[longest] >= NOTABLE * judged else ""

    def watch(self, group: WorkerGroup) -> None:
        """Watch the stages of this group from now on; safe to call from any thread."""
        self._group = group

    def look(self, *, pending: bool) -> None:
        """Judge the last seconds; report once a second, and whenever the limit has changed.

        `pending` states that registered files are not verified yet.
        """
        group = self._group
        if group is None or self._channels.resting:
            self._past.clear()
            return
        spent, work = self._transport.spent, self._work()
        now = _TimeSample(group, self._channels.gauge.read(), group.stage_waits(), spent, work)
        if self._past and self._past[-1].group is not group:
            self._past.clear()
        self._past.append(now)
        moment = now.sight.moment
        while len(self._past) > 2 and moment - self._past[1].sight.moment >= RECENT:
            self._past.popleft()
        if moment <= self._past[0].sight.moment:
            return
        evidence = self._compare(self._past[0], now, pending=pending)
        limit = name_limit(evidence)
        self._count(limit, moment - self._past[-2].sight.moment)
        if limit != self._reported or moment - self._reported_at >= REPORT_INTERVAL:
            self._reported, self._reported_at = limit, moment
            self._emit(_describe(limit, evidence))

    def _count(self, limit: Bottleneck, seconds: float) -> None:
        """Count the time of a limit. Waiting channels report only later what they waited for."""
        if limit == UNREPORTED:
            self._unreported += seconds
            return
        if limit.stage == UNREPORTED.stage:
            seconds, self._unreported = seconds + self._unreported, 0.0
        self._limits[limit.name] += seconds

    def _compare(self, before: _TimeSample, now: _TimeSample, *, pending: bool) -> StageLoad:
        seconds = now.sight.moment - before.sight.moment
        busy, blocked = {}, {}
        for name, waits in now.waits.items():
            begun = before.waits.get(name, NO_WAITS)
            blocked[name] = (waits.blocked - begun.blocked) / seconds
            unused = (waits.starved - begun.starved) / seconds + blocked[name]
            busy[name] = max(0.0, waits.workers - unused) if waits.workers else 0.0
        channels = (now.sight.busy - before.sight.busy) / seconds
        idle = None
        if now.sight.idle is not None and before.sight.idle is not None:
            idle = (now.sight.idle - before.sight.idle) / seconds
        return StageLoad(
            seconds,
            busy | {"send": max(0.0, channels - blocked.get("send", 0.0))},
            blocked,
            channels,
            now.spent.minus(before.spent),
            (now.engine - before.engine) / seconds,
            self._cores,
            (now.sight.bytes - before.sight.bytes) / seconds,
            self._channels.bandwidth.total,
            pending,
            idle,
        )


def _describe(limit: Bottleneck, evidence: StageLoad) -> StagesMeasured:
    in_all = evidence.spent.in_all
    return StagesMeasured(
        stage=limit.stage,
        limit=limit.name,
        byte_rate=round(evidence.rate),
        busy={name: round(workers, 2) for name, workers in evidence.busy.items()},
        blocked={name: round(workers, 2) for name, workers in evidence.blocked.items()},
        spent={
            name: round(seconds / in_all, 3) if in_all else 0.0
            for name, seconds in evidence.spent._asdict().items()
        },
        processors=round(evidence.engine + evidence.spent.processor / evidence.seconds, 2),
    )
