"""The status of installation and data, from the ledger, the locks and the data directory."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from mydata_like.app.held_choices import read_choices
from mydata_like.app.ledgers import list_ledgers, reading
from mydata_like.app.run_control import ActiveRun, find_active_run
from mydata_like.app.settings_service import (
    approval_file,
    find_places,
    find_sources,
    find_state,
    heartbeat_file,
    ledger_file,
    load_settings,
    server_settings_file,
)
from mydata_like.app.source_service import list_unfinished
from mydata_like.catalogues.mytardis.datasets import UnusedObject, UnusedObjects
from mydata_like.core.deletion import RunSums, Safety, SafetyEvidence, judge_safety
from mydata_like.core.errors import Problem, SettingsError, UploaderError
from mydata_like.core.extra_sources import KnownSource
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
from mydata_like.core.model import NO_RISK, AtRisk
from mydata_like.core.parsing import parse_moment
from mydata_like.core.queries import View
from mydata_like.engine.availability import Availability
from mydata_like.engine.data_root import Root, reason
from mydata_like.hostos.lock import is_locked, is_watched
from mydata_like.ledger.rechecks import find_file as find_recheck_file
from mydata_like.ledger.row_query import RowQuery
from mydata_like.ledger.sql import PastRunRow as PastRunRow
from mydata_like.ledger.sql import find_whole_run, is_newer
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.ledger.summaries import LedgerSummary
from mydata_like.settings.layers import ServerDecision
from mydata_like.settings.schema import Settings, find_missing
from mydata_like.state.state_files import (
    DELETIONS,
    PendingApproval,
    find_file,
    load_approval,
    load_deletions,
    load_record,
    to_plain,
)
from mydata_like.state.state_files import Heartbeat as Heartbeat

__all__ = ["LedgerSummary", "RowQuery", "open_listing", "open_survey"]


def open_listing(settings: Settings, config: Path | None, view: View) -> RowQuery | None:
    """Return the rows of the ledger that a view shows; None if there is no ledger yet.

    Raises `UploaderError` if it has another version, or cannot be read.
    """
    if settings.data.directory is None:
        return None
    root = os.fsencode(settings.data.directory)
    return RowQuery.open(ledger_file(settings, find_places(config), root), root, view)


def open_survey(settings: Settings, config: Path | None) -> LedgerSummary | None:
    """Return the queries for totals; None if no data directory is set."""
    if settings.data.directory is None:
        return None
    root = os.fsencode(settings.data.directory)
    return LedgerSummary(ledger_file(settings, find_places(config), root), root)


RUNS_SHOWN = 5
RUNS_LOOKED_AT = 100  # to find the newest one over everything, and later interrupted ones


class ShardState(NamedTuple):
    """The state of a shard that ran on this computer; `last` is its last run."""

    shard: str
    running: bool
    last: PastRunRow | None
    at_risk: AtRisk = NO_RISK
    held: int = 0
    kept: int = 0

    def as_record(self) -> Mapping[str, object]:
        """Return the state as plain values for JSON."""
        last = self.last and run_record(self.last)
        return {"shard": self.shard, "running": self.running, "last": last}


class CurrentRun(NamedTuple):
    """The run in progress: its row in the ledger, if it has one yet, and its control, if any."""

    row: PastRunRow | None
    active: ActiveRun | None

    @property
    def paused(self) -> Problem | None:
        """Why it is paused; None if it is not, or does not report it."""
        return self.active.paused if self.active else None


def find_current_run(settings: Settings, config: Path | None) -> CurrentRun | None:
    """Return the run in progress; raises `UploaderError` if the ledger cannot be read."""
    root = os.fsencode(settings.data.directory or "")
    state = find_state(settings, find_places(config))
    if not is_locked(state, root):
        return None
    with reading(settings, config) as ledger:
        return _match_run(state, root, ledger.find_runs(1) if ledger else ())


def _match_run(state: Path, root: bytes, runs: Sequence[PastRunRow]) -> CurrentRun:
    """Return the run in progress, given the latest ones of the ledger.

    A run that is still starting has no row: then the latest row is of a run before it.
    """
    active = find_active_run(state, root)
    row = runs[0] if runs and runs[0].finished is None else None
    if active is not None and row is not None and row.run != active.run:
        row = None
    return CurrentRun(row, active)


@frozen(kw_only=True)
class StatusReport:
    """The state of this installation and of its data.

    `current` is the run in progress, if any. `runs` are the latest runs, newest first; `whole` is
    the newest one over everything that has ended. `interrupted` is the newest run that was
    interrupted, unless one with the same scope has ended since. `at_risk` is the data that exists
    only here, `held` the number of changed files that wait for a choice, `kept` of those whose
    copies the user keeps, `sources` are the unfinished extra sources. `data_problem` is why the
    data directory cannot be read, `mounts` are the mount points in it on which files were found.
    `recheck` is the number of files that the server contradicts to have; they are at risk as well.
    `unused` is what this uploader created on the server and what stays empty.

    `missing` are the required settings that are not set. `watched` says whether a watch is running.
    `awaited` is the approval that the last run or registration waited for. `set_by_server` are the
    server's settings that differ from those of this computer.
    """

    current: CurrentRun | None = None
    runs: tuple[PastRunRow, ...] = ()
    whole: PastRunRow | None = None
    interrupted: PastRunRow | None = None
    at_risk: AtRisk = NO_RISK
    held: int = 0
    kept: int = 0
    recheck: int = 0
    sources: tuple[KnownSource, ...] = ()
    data_problem: Problem | None = None
    mounts: frozenset[bytes] = frozenset()
    shards: tuple[ShardState, ...] = ()
    unused: tuple[UnusedObject, ...] = ()
    missing: tuple[str, ...] = ()
    watched: bool = False
    awaited: PendingApproval | None = None
    heartbeat: Heartbeat | None = None  # the last one of a `watch`
    set_by_server: tuple[ServerDecision, ...] = ()

    @property
    def running(self) -> bool:
        """Whether a run is in progress."""
        return self.current is not None

    @property
    def compared(self) -> datetime | None:
        """When the records of all files were last compared with the server, as far as known."""
        if self.whole is None or "compared" not in self.whole.summary:
            return None
        try:
            return parse_moment(self.whole.summary["compared"])
        except (ValueError, TypeError):  # in that run
            return self.whole.finished

    @property
    def safety(self) -> Safety:
        """The safety of the data."""
        last = next((past for past in self.runs if past.finished is not None), None)
        return judge_safety(
            SafetyEvidence(
                at_risk=self.at_risk,
                last=last and RunSums.of(last.summary),
                whole=self.whole and RunSums.of(self.whole.summary),
                cut_off=self.interrupted is not None,
                sources=len(self.sources),
                data_problem=self.data_problem,
            )
        )

    def as_record(self) -> Mapping[str, object]:
        """Return the status as plain values for JSON; docs/headless.md describes them."""
        return {
            "missing": list(self.missing),
            "running": self.running,
            "paused": self.current and self.current.paused and self.current.paused._asdict(),
            "watched": self.watched,
            "safety": self.safety.value,
            "compared": self.compared and self.compared.isoformat(),
            "at_risk": self.at_risk.as_record(),
            "held": self.held,
            "kept": self.kept,
            "recheck": self.recheck,
            "interrupted": self.interrupted and run_record(self.interrupted),
            "data_problem": self.data_problem and self.data_problem._asdict(),
            "unfinished_sources": [_source_record(source) for source in self.sources],
            "awaited": to_plain(self.awaited),
            "unused_on_server": [it._asdict() for it in self.unused],
            "set_by_server": [decision.as_record() for decision in self.set_by_server],
            "heartbeat": to_plain(self.heartbeat),
            "runs": [run_record(past) for past in self.runs[:RUNS_SHOWN]],
            "shards": [shard.as_record() for shard in self.shards],
        }


def run_record(past: PastRunRow) -> dict[str, object]:
    """Return a run as plain values for JSON."""
    return dict(past.summary) | {"started": past.started.isoformat()}


def read_ledger_state(settings: Settings, config: Path | None) -> StatusReport:
    """Return the state of the data; raises `UploaderError` if the ledger cannot be read."""
    root = os.fsencode(settings.data.directory or "")
    state = find_state(settings, find_places(config))
    (_, file), *parts = list_ledgers(settings, config)
    shards = []
    for shard, part in parts:
        with reading(settings, config, shard) as ledger:
            if ledger is not None:
                last = next(iter(ledger.find_runs(1)), None)
                amounts = ledger.measure_risk(), _count_held(ledger, part), ledger.count_kept()
                running = is_locked(state, root, shard)
                shards.append(ShardState(str(shard), running, last, *amounts))
    with reading(settings, config) as ledger:
        running, runs = _find_runs(ledger, state, root)
        current = _match_run(state, root, runs) if running else None
        ended = runs[1:] if current and current.row else runs
        whole = find_whole_run(ended)
        recent = [it for it in shards if ledger is None or is_newer(it.last, whole)]
        found = StatusReport(
            current=current,
            runs=runs,
            interrupted=_find_interrupted(ended),
            at_risk=_add_risks([shard.at_risk for shard in recent]),
            held=sum(shard.held for shard in recent),
            kept=sum(shard.kept for shard in recent),
            data_problem=find_data_problem(root, state, ledger),
            shards=tuple(shards),
        )
        if ledger is None:
            return found
        return replace(
            found,
            whole=None if ledger.outdated else whole,
            at_risk=_add_risks([found.at_risk, ledger.measure_risk()]),
            held=found.held + _count_held(ledger, file),
            kept=found.kept + ledger.count_kept(),
            recheck=ledger.count_rechecks(),
            sources=() if ledger.outdated else tuple(list_unfinished(ledger)),
            mounts=frozenset(_compare_with(ledger, state).load_mounts()),
            unused=UnusedObjects(ledger).load(),
        )


def find_data_problem(root: bytes, state: Path, ledger: SqliteLedger | None) -> Problem | None:
    """Return why the data directory cannot be read, or why its drive seems to be missing."""
    try:
        folder = Root(root)
        with os.scandir(folder.path) as entries:
            empty = next(entries, None) is None
    except UploaderError as error:
        return error.problem
    except OSError as error:
        return folder.unavailable(reason(error)).problem
    if ledger is None or ledger.outdated:
        return None
    missing = _compare_with(ledger, state).find_missing(root, empty=empty)
    if missing is None:
        return None
    why = f"{format_path(missing)} is empty, although files were found there before"
    return folder.unavailable(why).problem


def _compare_with(ledger: SqliteLedger, state: Path) -> Availability:
    return Availability(ledger, lambda: load_deletions(find_file(state, DELETIONS)))


def _find_runs(
    ledger: SqliteLedger | None, state: Path, root: bytes
) -> tuple[bool, tuple[PastRunRow, ...]]:
    """Return whether a run is in progress, and the latest runs.

    A run may start or end between two queries: a run without an end was interrupted only if it
    still has no end after the lock was found free.
    """
    runs = tuple(ledger.find_runs(RUNS_LOOKED_AT)) if ledger else ()
    running = is_locked(state, root)
    if running or not ledger or not runs or runs[0].finished is not None:
        return running, runs
    first = runs[0].run
    runs = tuple(ledger.find_runs(RUNS_LOOKED_AT))
    return runs[0].run != first and runs[0].finished is None, runs


def _find_interrupted(runs: Sequence[PastRunRow]) -> PastRunRow | None:
    """Return the newest interrupted run that no later run covers."""
    whole_since = ended_since = False
    for past in runs:
        if past.finished is not None:
            ended_since = True
            whole_since = whole_since or not past.partial
        elif not whole_since and not (ended_since and past.partial):
            return past
    return None


def _count_held(ledger: SqliteLedger, file: Path) -> int:
    """Return the number of held files for which the user has chosen nothing yet."""
    chosen = {it.key: it.choice for it in read_choices(ledger, file)}
    if not chosen:
        return ledger.count_held()
    return sum(not chosen.get(row.key, row.choice) for row in ledger.list_held())


def _add_risks(risks: Sequence[AtRisk]) -> AtRisk:
    oldest: list[datetime] = [risk.oldest for risk in risks if risk.oldest is not None]
    return AtRisk(
        sum(risk.files for risk in risks),
        sum(risk.bytes for risk in risks),
        min(oldest, default=None),
    )


def look_at_state(
    settings: Settings, config: Path | None, assignments: Sequence[str] = ()
) -> StatusReport:
    """Return the status of this installation."""
    missing = tuple(setting.key for setting in find_missing(settings))
    try:  # the server's current decisions may have changed since the settings were read
        loaded = load_settings(config, assignments, must_exist=False)
        decisions = tuple(loaded.find_server_decisions())
    except SettingsError:  # reported where the settings were read
        decisions = ()
    if settings.data.directory is None:
        return StatusReport(missing=missing, set_by_server=decisions)
    places = find_places(config)
    return replace(
        read_ledger_state(settings, config),
        missing=missing,
        watched=is_watched(find_state(settings, places)),
        awaited=load_approval(approval_file(settings, places)).awaited,
        heartbeat=load_record(heartbeat_file(settings, places), Heartbeat),
        set_by_server=decisions,
    )


class KnownStatus(NamedTuple):
    """A status that was read, and the signature of what it depends on, if there is one.

    `settled` means that the signature did not change between two readings.
    """

    report: StatusReport
    signature: tuple[object, ...] | None = None
    settled: bool = False


def renew_status(settings: Settings, config: Path | None, known: KnownStatus | None) -> KnownStatus:
    """Return the status of this installation; `known` itself if nothing has changed it since.

    The heartbeat of a watch alone is no change. File systems round the time of a change, by 2 s at
    most: after each change, the status is also read by the next call, so one of two calls that are
    further apart sees every change.
    """
    signature = _sign(settings, config, known.report) if known else None
    same = known is not None and signature is not None and signature == known.signature
    if known is not None and same and known.settled:
        return known
    return KnownStatus(look_at_state(settings, config), signature, same)


def _sign(
    settings: Settings, config: Path | None, report: StatusReport
) -> tuple[object, ...] | None:
    """Return a value that differs whenever `look_at_state` would return another status.

    None if that cannot be known without it: during a run, after a lock was taken or released, and
    while the data directory or a drive in it is missing.
    """
    places, root = find_places(config), os.fsencode(settings.data.directory or "")
    state, ledgers = find_state(settings, places), dict(list_ledgers(settings, config))
    if report.data_problem or report.running or report.watched is not is_watched(state):
        return None
    if any(is_locked(state, root, part) for part in ledgers):
        return None
    if not all(os.path.ismount(Path(os.fsdecode(root), os.fsdecode(it))) for it in report.mounts):
        return None
    try:
        with os.scandir(root) as entries:
            empty = next(entries, None) is None
    except OSError:
        return None
    sources = find_sources(config)
    files = [sources.user, *filter(None, [sources.managed]), find_file(state, DELETIONS)]
    files += [server_settings_file(settings, places), approval_file(settings, places)]
    for file in ledgers.values():
        files += [file, file.with_name(f"{file.name}-wal"), find_recheck_file(file)]
    return (settings, *ledgers, empty, *map(sign_file, files))


def sign_file(file: Path) -> tuple[int, int, int] | None:
    """Return a value that changes whenever a file is written or replaced; None without a file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _source_record(source: KnownSource) -> dict[str, object]:
    return {
        "path": format_path(source.path),
        **source.destination._asdict(),
        "added": source.added.isoformat(),
    }
