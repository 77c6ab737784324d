"""The status of this installation, without querying the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from mydata_like.app.ledger_status import LedgerState, read_ledger_state, run_record
from mydata_like.app.settings_service import (
    approval_file,
    find_places,
    find_state,
    heartbeat_file,
    load_settings,
)
from mydata_like.core.errors import SettingsError
from mydata_like.core.extra_sources import KnownSource
from mydata_like.core.formatting import format_path
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import is_watched
from mydata_like.ledger.sql import PastRunRow as PastRunRow
from mydata_like.settings.layers import ServerDecision
from mydata_like.settings.schema import Settings, find_missing
from mydata_like.state.state_files import Heartbeat as Heartbeat
from mydata_like.state.state_files import PendingApproval, load_approval, load_record, to_plain

RUNS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusReport(LedgerState):
    """The status of this installation: missing settings, whether a run is in progress, past runs.

    `watched` says whether a watch is running. `awaited` is the approval that the last run or
    registration waited for. `set_by_server` are the server's settings that differ from those of
    this computer.
    """

    missing: tuple[str, ...]
    watched: bool = False
    awaited: PendingApproval | None = None
    heartbeat: Heartbeat | None = None  # the last one of a `watch`
    set_by_server: tuple[ServerDecision, ...] = ()

    def as_record(self) -> Mapping[str, object]:
        """Return the status as plain values for JSON; docs/headless.md describes them."""
        return {
            "missing": list(self.missing),
            "running": self.running,
            "watched": self.watched,
            "safety": self.safety.value,
            "at_risk": self.at_risk.as_record(),
            "interrupted": self.interrupted and run_record(self.interrupted),
            "data_problem": self.data_problem and self.data_problem._asdict(),
            "unfinished_sources": [_source_record(source) for source in self.sources],
            "awaited": to_plain(self.awaited),
            "set_by_server": [decision.as_record() for decision in self.set_by_server],
            "heartbeat": to_plain(self.heartbeat),
            "runs": [run_record(past) for past in self.runs[:RUNS_SHOWN]],
            "shards": [shard.as_record() for shard in self.shards],
        }


def look_at_state(
    settings: Settings, config: Path | None, assignments: Sequence[str] = ()
) -> StatusReport:
    """Return the status of this installation."""
    missing = tuple(setting.key for setting in find_missing(settings))
    decisions = _find_server_decisions(config, assignments)
    if settings.data.directory is None:
        return StatusReport(missing=missing, running=False, set_by_server=decisions)
    places, clock = find_places(config), SystemClock()
    found = read_ledger_state(settings, places, clock)
    return StatusReport(
        **{field.name: getattr(found, field.name) for field in fields(found)},
        missing=missing,
        watched=is_watched(find_state(settings, places), clock),
        awaited=load_approval(approval_file(settings, places)).awaited,
        heartbeat=load_record(heartbeat_file(settings, places), Heartbeat),
        set_by_server=decisions,
    )


def _find_server_decisions(
    config: Path | None, assignments: Sequence[str]
) -> tuple[ServerDecision, ...]:
    """Return the server's current decisions; they may have changed since the settings were read."""
    try:
        loaded = load_settings(config, assignments, must_exist=False)
        return tuple(loaded.find_server_decisions())
    except SettingsError:  # reported where the settings were read
        return ()


def _source_record(source: KnownSource) -> dict[str, object]:
    return {
        "path": format_path(source.path),
        **source.destination._asdict(),
        "added": source.added.isoformat(),
    }
