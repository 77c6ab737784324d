"""How a run's time is shared out among its stages and channels: looked at, judged, told."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from mydata_like.core.channel_time import TimeByCause
from mydata_like.core.events import StagesMeasured
from mydata_like.core.ports import Emit, Transport
from mydata_like.engine.channels import Channels
from mydata_like.engine.gauge import Sight
from mydata_like.engine.judge import Evidence, Limit, name_limit
from mydata_like.engine.workers import StageWaits, WorkerGroup

RECENT: Final = 2.0  # seconds of the past that are judged
NOTABLE: Final = 0.1  # of a run's time that something must have been the limit to be called so
TELL_AFTER: Final = 1.0  # seconds after which it is told again
UNTOLD: Final = Limit("send", "")
NO_WAITS: Final = StageWaits(0, 0.0, 0.0)


class _Glance(NamedTuple):
    """Sums that only grow, as they stood at one moment."""

    group: WorkerGroup
    sight: Sight
    waits: Mapping[str, StageWaits]
    spent: TimeByCause
    engine: float  # seconds of a processor


class Shares:
    """Looks now and then, from one thread, at the stages that it was told to watch."""

    def __init__(
        self,
        channels: Channels,
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
        self._past: deque[_Glance] = deque()
        self._told_at = 0.0
        self._told = Limit()
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

    def _judge(self, last: _Glance, evidence: Evidence) -> None:
        limit, moment = name_limit(evidence), self._past[-1].sight.moment
        self._count(limit, moment - last.sight.moment)
        if limit != self._told or moment - self._told_at >= TELL_AFTER:
            self._told, self._told_at = limit, moment
            self._emit(_describe(limit, evidence))

    def _count(self, limit: Limit, seconds: float) -> None:
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

    def _glance(self, group: WorkerGroup) -> _Glance:
        sight, waits = self._channels.gauge.read(), group.stage_waits()
        return _Glance(group, sight, waits, self._transport.spent, self._work())

    def _compare(self, before: _Glance, now: _Glance, *, pending: bool) -> Evidence:
        seconds = now.sight.moment - before.sight.moment
        busy, blocked = {}, {}
        for name, waits in now.waits.items():
            begun = before.waits.get(name, NO_WAITS)
            blocked[name] = (waits.blocked - begun.blocked) / seconds
            idle = (waits.starved - begun.starved) / seconds + blocked[name]
            busy[name] = max(0.0, waits.workers - idle) if waits.workers else 0.0
        channels = (now.sight.busy - before.sight.busy) / seconds
        return Evidence(
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


def _describe(limit: Limit, evidence: Evidence) -> StagesMeasured:
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
