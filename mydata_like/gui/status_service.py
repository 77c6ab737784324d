"""Background functions that load settings and status, which import the application late."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mydata_like.core.errors import Problem
from mydata_like.core.events import RunProgressed, parse_event, parse_problem
from mydata_like.core.extra_sources import KnownSource
from mydata_like.core.model import NO_RISK, AtRisk
from mydata_like.engine.progress import NO_PROGRESS
from mydata_like.gui.run_state import PastRunState
from mydata_like.settings.layers import Loaded, ServerDecision
from mydata_like.settings.schema import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSnapshot:
    """The status as read from the ledger, the locks, the data directory and the state files.

    `watched` means that another program, a service, watches here. `run` and `reason` describe the
    active run, if any. The rest is as in `RunState`.
    """

    missing: tuple[str, ...]
    running: bool
    watched: bool
    run: str = ""
    reason: str = ""
    sums: RunProgressed = NO_PROGRESS
    last: PastRunState | None = None
    whole: PastRunState | None = None
    interrupted: PastRunState | None = None
    sources: tuple[KnownSource, ...] = ()
    data_problem: Problem | None = None
    awaited: Problem | None = None
    at_risk: AtRisk = NO_RISK
    set_by_server: tuple[ServerDecision, ...] = ()


def load(config: Path | None) -> Loaded:
    """Read the settings; raises as `load_settings`."""
    from mydata_like.app.settings_service import load_settings

    return load_settings(config, must_exist=False)


def engine_words(command: str, config: Path | None, *options: str) -> tuple[str, ...]:
    """Return the command line that starts the engine with a command."""
    return program_words(command, config, "--events", "--brief", *options)


def program_words(command: str, config: Path | None, *options: str) -> tuple[str, ...]:
    """Return the command line that starts a command in a separate process."""
    from mydata_like.hostos.process import find_program

    settings = () if config is None else ("--config", str(config))
    return (*find_program(), command, *options, *settings)


def find_source_of(settings: Settings, config: Path | None, path: bytes) -> bytes | None:
    """Return the added folder that contains a path."""
    from mydata_like.app import source_service

    return source_service.find_source_of(settings, config, path)


def remove_source(settings: Settings, config: Path | None, path: bytes) -> None:
    """Forget an added folder; raises `UploaderError` if that is not possible."""
    from mydata_like.app import source_service

    source_service.remove_source(settings, config, path)


def look(settings: Settings, config: Path | None) -> StatusSnapshot:
    """Return the current status; raises `UploaderError` if the ledger cannot be read."""
    from mydata_like.app.ledger_status import look_at_state

    state = look_at_state(settings, config)
    at_work = next(iter(state.runs), None) if state.running else None
    ended = next((past for past in state.runs if past.finished is not None), None)
    return StatusSnapshot(
        missing=state.missing,
        running=state.running,
        watched=state.watched,
        run=at_work.run if at_work else "",
        reason=str(at_work.summary.get("reason", "")) if at_work else "",
        sums=_read_sums(at_work.summary) if at_work else NO_PROGRESS,
        last=ended and read_past(ended),
        whole=state.whole and read_past(state.whole),
        interrupted=state.interrupted and read_past(state.interrupted),
        sources=state.sources,
        data_problem=state.data_problem,
        awaited=state.awaited.problem if state.awaited else None,
        at_risk=state.at_risk,
        set_by_server=state.set_by_server,
    )


def read_past(past: Any) -> PastRunState:
    """Return a run as recorded in the ledger."""
    summary = past.summary
    names = {field.name for field in fields(PastRunState)} - {"started", "finished", "problem"}
    known = {name: summary[name] for name in names if name in summary}
    problem = parse_problem(summary["problem"]) if summary.get("problem") else None
    return PastRunState(started=past.started, finished=past.finished, problem=problem, **known)


def _read_sums(summary: Mapping[str, object]) -> RunProgressed:
    """Return the totals of an active run, zeros if another version wrote another format."""
    try:
        event = parse_event(summary)
    except ValueError:
        return NO_PROGRESS
    return event if isinstance(event, RunProgressed) else NO_PROGRESS
