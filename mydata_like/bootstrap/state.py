"""What is known of this installation without asking the server."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mydata_like.bootstrap.admission import standing_file
from mydata_like.bootstrap.job import ledger_file
from mydata_like.bootstrap.settings import find_places, find_state
from mydata_like.bootstrap.watching import heartbeat_file
from mydata_like.core.model import NO_RISK, AtRisk
from mydata_like.settings.schema import Settings, find_missing
from mydata_like.store.heartbeat import Heartbeat, read_heartbeat
from mydata_like.store.ledger import PastRun, SqliteLedger
from mydata_like.store.standing import Awaited, Standing
from mydata_like.system.clock import SystemClock
from mydata_like.system.lock import is_locked, is_watched

RUNS_SHOWN = 5


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

    def as_record(self) -> Mapping[str, object]:
        """Return the state as plain values for JSON."""
        return {
            "missing": list(self.missing),
            "running": self.running,
            "watched": self.watched,
            "at_risk": self.at_risk.as_record(),
            "awaited": self.awaited and self.awaited.as_record(),
            "heartbeat": self.heartbeat and self.heartbeat.as_record(),
            "runs": [
                dict(past.summary) | {"started": past.started.isoformat()} for past in self.runs
            ],
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
    )
