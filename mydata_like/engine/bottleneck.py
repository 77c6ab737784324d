"""How a run's time is shared out among its stages and channels: looked at, judged, told."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from mydata_like.core.channel_time import TimeByCause
from mydata_like.core.events import StagesMeasured
from mydata_like.core.ports import Emit, Transport
from mydata_like.engine.channel_tuner import ThroughputSample
from mydata_like.engine.channels import ChannelPool
from mydata_like.engine.pipeline import StageWaits, WorkerGroup

AT_WORK: Final = 0.5  # of a channel or a worker, from which on it is at work
HALF: Final = 0.5  # of the time; what takes more of it than that is the limit
FULL: Final = 0.85  # of what processors can do
REACHED: Final = 0.9  # of the bandwidth that is set
TOLD: Final = 0.2  # of their time is what channels must have told of to be judged by it

# What a stage waits for that is at work, by the names of their threads; `send` has its own reasons.
_REASONS: Final = {
    "source": "source",
    "discover": "source",
    "check": "API",
    "compare": "source",
    "bundle": "processor",
    "pack": "processor",
    "register": "API",
}


class StageLoad(NamedTuple):
    """How things went for so many seconds; numbers of workers are averages over them.

    `busy` are workers at work by stage, `blocked` those whose results the next stage did not
    take. `spent` is what the channels spent their time on, `engine` is what the engine took of
    a processor. `pending` says that registered files are not verified yet.
    """

    seconds: float
    busy: Mapping[str, float]
    blocked: Mapping[str, float]
    channels: float
    spent: TimeByCause
    engine: float = 0.0
    cores: int = 1
    rate: float = 0.0  # bytes a second
    bandwidth: float = 0.0  # that is set; 0 for none
    pending: bool = False


class Bottleneck(NamedTuple):
    """What holds up the others: a stage, and what it is that this waits for.

    Both are empty where the shares do not decide. Names are those of docs/events.md.
    """

    stage: str = ""
    name: str = ""


def name_limit(evidence: StageLoad) -> Bottleneck:
    """Return what keeps a run from going faster."""
    if evidence.channels >= AT_WORK:
        if evidence.blocked.get("send", 0.0) >= HALF * evidence.channels:
            return Bottleneck("register", "API")
        return Bottleneck("send", _name_in_send(evidence))
    busiest = max(_REASONS, key=lambda stage: evidence.busy.get(stage, 0.0))
    if evidence.busy.get(busiest, 0.0) >= AT_WORK:
        reason = "processor" if evidence.engine >= FULL else _REASONS[busiest]
        return Bottleneck(_shown(busiest), reason)
    return Bottleneck("verify", "verification") if evidence.pending else Bottleneck()


def _name_in_send(evidence: StageLoad) -> str:
    """Return what channels that are at work wait for."""
    spent = evidence.spent
    if evidence.bandwidth and evidence.rate >= REACHED * evidence.bandwidth:
        return "bandwidth"
    if spent.in_all < TOLD * evidence.channels * evidence.seconds:
        return ""
    at_work = spent.processor / evidence.seconds + evidence.engine
    if at_work >= FULL * evidence.cores:
        return "processor"
    parts = spent._replace(hash=0.0, cipher=0.0)._asdict() | {"processor": spent.processor}
    name = max(parts, key=lambda part: parts[part])
    if parts[name] >= HALF * spent.in_all:
        return name
    return "line" if spent.line + spent.server >= HALF * spent.in_all else ""


def _shown(stage: str) -> str:
    """Return the stage that a person knows."""
    shown = {"source": "scan", "discover": "scan", "compare": "check"}
    return (shown | {"bundle": "send", "pack": "send"}).get(stage, stage)


RECENT: Final = 2.0  # seconds of the past that are judged
NOTABLE: Final = 0.1  # of a run's time that something must have been the limit to be called so
TELL_AFTER: Final = 1.0  # seconds after which it is told again
UNTOLD: Final = Bottleneck("send", "")
NO_WAITS: Final = StageWaits(0, 0.0, 0.0)


class _TimeSample(NamedTuple):
    """Sums that only grow, as they stood at one moment."""

    group: WorkerGroup
    sight: ThroughputSample
    waits: Mapping[str, StageWaits]
    spent: TimeByCause
    engine: float  # seconds of a processor


class BottleneckMonitor:
    """Looks now and then, from one thread, at the stages that it was told to watch."""

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
        self._told_at = 0.0
        self._told = Bottleneck()
        self._untold = 0.0  # seconds for which channels were at work and have not told how
        self._limits: defaultdict[str, float] = defaultdict(float)  # seconds of each

    @property
    def limit(self) -> str:
        """What was the limit for the longest time; empty where none was known for long."""
        named = {name: seconds for name, seconds in self._limits.items() if name}
        longest = max(named, key=lambda name: named[name], default="")
        return longest if longest and named[longest] >= NOTABLE * self._seconds else ""

    def watch(self, group: WorkerGroup) -> None:
        """Look at the stages of this group from now on; from any thread."""
        self._group = group

    def look(self, *, pending: bool) -> None:
        """Judge the last seconds; tell of it once a second, and when the limit has changed.

        `pending` says that registered files are not verified yet.
        """
        group = self._group
        if group is None or self._channels.resting:
            self._past.clear()
            return
        now = self._glance(group)
        if self._past and self._past[-1].group is not group:
            self._past.clear()
        self._past.append(now)
        while len(self._past) > 2 and now.sight.moment - self._past[1].sight.moment >= RECENT:
            self._past.popleft()
        if now.sight.moment > self._past[0].sight.moment:
            self._judge(self._past[-2], self._compare(self._past[0], now, pending=pending))

    def _judge(self, last: _TimeSample, evidence: StageLoad) -> None:
        limit, moment = name_limit(evidence), self._past[-1].sight.moment
        self._count(limit, moment - last.sight.moment)
        if limit != self._told or moment - self._told_at >= TELL_AFTER:
            self._told, self._told_at = limit, moment
            self._emit(_describe(limit, evidence))

    def _count(self, limit: Bottleneck, seconds: float) -> None:
        """Count the time of a limit; while channels wait they tell nothing, but later why."""
        if limit == UNTOLD:
            self._untold += seconds
            return
        if limit.stage == UNTOLD.stage:
            seconds, self._untold = seconds + self._untold, 0.0
        self._limits[limit.name] += seconds

    @property
    def _seconds(self) -> float:
        """How many seconds have been judged."""
        return sum(self._limits.values()) + self._untold

    def _glance(self, group: WorkerGroup) -> _TimeSample:
        sight, waits = self._channels.gauge.read(), group.stage_waits()
        return _TimeSample(group, sight, waits, self._transport.spent, self._work())

    def _compare(self, before: _TimeSample, now: _TimeSample, *, pending: bool) -> StageLoad:
        seconds = now.sight.moment - before.sight.moment
        busy, blocked = {}, {}
        for name, waits in now.waits.items():
            begun = before.waits.get(name, NO_WAITS)
            blocked[name] = (waits.blocked - begun.blocked) / seconds
            idle = (waits.starved - begun.starved) / seconds + blocked[name]
            busy[name] = max(0.0, waits.workers - idle) if waits.workers else 0.0
        channels = (now.sight.busy - before.sight.busy) / seconds
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
