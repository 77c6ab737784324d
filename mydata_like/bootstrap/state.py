"""What is known of this installation without asking the server."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mydata_like.bootstrap.admission import standing_file
from mydata_like.bootstrap.settings import find_places, find_state, ledger_file
from mydata_like.bootstrap.watching import heartbeat_file
from mydata_like.core.model import NO_RISK, AtRisk
from mydata_like.settings.schema import Settings, find_missing
from mydata_like.store.heartbeat import Heartbeat, read_heartbeat
from mydata_like.store.ledger import SqliteLedger
from mydata_like.store.paths import Places
from mydata_like.store.rows import PastRun
from mydata_like.store.standing import Awaited, Standing
from mydata_like.system.clock import SystemClock
from mydata_like.system.lock import find_shards, is_locked, is_watched

RUNS_SHOWN = 5


class ShardState(NamedTuple):
    """How a shard stands that was carried from here; `last` is its last run."""

    shard: str
    running: bool
    last: PastRun | None

    def as_record(self) -> Mapping[str, object]:
        """Return the state as plain values for JSON."""
        last = self.last and _record(self.last)
        return {"shard": self.shard, "running": self.running, "last": last}


def _record(past: PastRun) -> Mapping[str, object]:
    return dict(past.summary) | {"started": past.started.isoformat()}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How this installation stands: what is missing, whether a run is at work, what was.

    `watched` says whether a watch is at work, `at_risk` what the last run left only here.
    `awaited` is the approval that the last run or registration waited for.
    """

    missing: tuple[str, ...]
    running: bool
    watched: bool = False
    runs: tuple[PastRun, ...] = ()
    at_risk: AtRisk = NO_RISK
    awaited: Awaited | None = None
    heartbeat: Heartbeat | None = None  # the last sign of life of a `watch`
    shards: tuple[ShardState, ...] = ()

    def as_record(self) -> Mapping[str, object]:
        """Return the state as plain values for JSON."""
        return {
            "missing": list(self.missing),
            "running": self.running,
            "watched": self.watched,
            "at_risk": self.at_risk.as_record(),
            "awaited": self.awaited and self.awaited.as_record(),
            "heartbeat": self.heartbeat and self.heartbeat.as_record(),
            "runs": [_record(past) for past in self.runs],
            "shards": [shard.as_record() for shard in self.shards],
        }


def look_at_state(settings: Settings, config: Path | None) -> State:
    """Return how things stand."""
    missing = tuple(setting.key for setting in find_missing(settings))
    if settings.data.directory is None:
        return State(missing=missing, running=False)
    places, clock = find_places(config), SystemClock()
    root = os.fsencode(settings.data.directory)
    state = find_state(settings, places)
    runs: tuple[PastRun, ...] = ()
    at_risk = NO_RISK
    ledger = SqliteLedger.open_to_read(ledger_file(settings, places, root), root, clock)
    if ledger is not None:
        with ledger:
            runs = tuple(ledger.find_runs(RUNS_SHOWN))
            at_risk = ledger.measure_risk()
    return State(
        missing=missing,
        running=is_locked(state, root, clock),
        watched=is_watched(state, clock),
        runs=runs,
        at_risk=at_risk,
        awaited=Standing.load(standing_file(settings, places)).awaited,
        heartbeat=read_heartbeat(heartbeat_file(settings, places)),
        shards=tuple(_look_at_shards(settings, places, root)),
    )


def _look_at_shards(settings: Settings, places: Places, root: bytes) -> Iterator[ShardState]:
    state, clock = find_state(settings, places), SystemClock()
    for shard in find_shards(state):
        file = ledger_file(settings, places, root, shard)
        ledger = SqliteLedger.open_to_read(file, root, clock)
        if ledger is not None:
            with ledger:
                last = next(iter(ledger.find_runs(1)), None)
            yield ShardState(str(shard), is_locked(state, root, clock, shard), last)
