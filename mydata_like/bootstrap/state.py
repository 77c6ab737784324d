"""What is known of this installation without asking the server."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mydata_like.bootstrap.admission import standing_file
from mydata_like.bootstrap.job import ledger_file
from mydata_like.bootstrap.settings import find_places, find_state
from mydata_like.bootstrap.watching import heartbeat_file
from mydata_like.core.errors import AlreadyRunningError
from mydata_like.settings.schema import Settings, find_missing
from mydata_like.store.heartbeat import Heartbeat, read_heartbeat
from mydata_like.store.ledger import PastRun, SqliteLedger
from mydata_like.store.standing import Awaited, Standing
from mydata_like.system.clock import SystemClock
from mydata_like.system.lock import lock_data_directory

RUNS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How this installation stands: what is missing, whether a run is at work, what was.

    `awaited` is the approval that the last run or registration waited for.
    """

    missing: tuple[str, ...]
    running: bool
    runs: tuple[PastRun, ...]
    awaited: Awaited | None = None
    heartbeat: Heartbeat | None = None  # the last sign of life of a `watch`

    def as_record(self) -> Mapping[str, object]:
        """Return the state as plain values for JSON."""
        return {
            "missing": list(self.missing),
            "running": self.running,
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
        return State(missing=missing, running=False, runs=())
    places, clock = find_places(config), SystemClock()
    root = os.fsencode(settings.data.directory)
    runs: tuple[PastRun, ...] = ()
    ledger = SqliteLedger.open_to_read(ledger_file(settings, places, root), root, clock)
    if ledger is not None:
        with ledger:
            runs = tuple(ledger.find_runs(RUNS_SHOWN))
    return State(
        missing=missing,
        running=_is_running(find_state(settings, places), root),
        runs=runs,
        awaited=Standing.load(standing_file(settings, places)).awaited,
        heartbeat=read_heartbeat(heartbeat_file(settings, places)),
    )


def _is_running(state: Path, root: bytes) -> bool:
    if not state.exists():
        return False
    try:
        with lock_data_directory(state, root, SystemClock()):
            return False
    except AlreadyRunningError:
        return True
