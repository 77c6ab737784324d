"""`mydata-like status`: the settings, the active run and the results of the last runs."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from mydata_like.app.known_copies import (
    KnownCopy,
    LastChecks,
    find_checks,
    list_copies,
    list_restored,
)
from mydata_like.app.ledger_status import (
    RUNS_SHOWN,
    Heartbeat,
    PastRunRow,
    StatusReport,
    look_at_state,
)
from mydata_like.app.settings_service import load_settings, offer_takeover
from mydata_like.cli.options import ConfigOption, JsonOption, SetOption
from mydata_like.cli.output import (
    describe_decision,
    describe_last_restore,
    describe_last_verify,
    describe_safety,
    format_local,
    print_json,
    print_lines,
    reword,
)
from mydata_like.core.formatting import LIMITS, format_duration, format_files, format_size
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Settings

OVERDUE = 120.0  # seconds after the last heartbeat; the watch writes two a minute


def status(
    config: ConfigOption = None,
    assignments: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is set up, whether a run is active, and how the last runs ended."""
    settings, copies = load_settings(config, assignments or ()).settings, list_copies(config)
    found = look_at_state(settings, config, assignments or ())
    restored = list_restored(settings, config)
    if as_json:
        plain = {
            "copies": [it.as_record() for it in copies],
            "restored": [it.as_record() for it in restored],
        }
        print_json({**found.as_record(), **plain})
        return
    returned = [
        f"Brought back from {it.destination}: {format_files(it.files)}, the last at "
        f"{format_local(it.last)}"
        for it in restored
    ]
    lines, checks = list[str](), LastChecks(None, None)
    if copies and settings == Settings():  # people who only copy miss nothing
        lines = ["Runs are not set up. These copies were made:", *_describe_copies(copies)]
        print_lines([*lines, *returned])
        return
    if found.missing:
        lines.append(f"Not set up yet; missing: {', '.join(found.missing)}")
    if offer := offer_takeover(settings, config):
        lines.append(offer)
    lines.append(f"Data directory: {settings.data.directory or '-'}")
    if settings.destination.takes_tree:
        lines.append(f"Destination: {settings.destination.address or '-'}")
        checks = find_checks(settings, config)
        lines += _describe_checks(checks)
    else:
        lines.append(f"Server: {settings.server.url or '-'}")
    if found.awaited:
        since = format_local(found.awaited.since)
        lines.append(f"Waiting for approval since {since}: {found.awaited.problem.message}")
        lines.append(found.awaited.problem.hint)
    if found.heartbeat:
        lines.append(_describe_watch(found.heartbeat, SystemClock().now()))
    paused = found.current and found.current.paused
    current = "A run is in progress." if found.current else "No run is in progress."
    lines.append(f"A run is paused: {paused.message}" if paused else current)
    lines.extend(describe_safety(found))
    lines.extend(
        f"Empty on the server, and may be deleted there: the {it.kind} {it.name} (id {it.id})."
        for it in found.unused
    )
    lines += [*map(describe_decision, found.set_by_server), *_describe_runs(found)]
    others = (it for it in copies if it.run or it.checks != checks)
    lines += [*_describe_copies([*others]), *returned]
    print_lines(reword(lines, settings))


def _describe_copies(copies: Sequence[KnownCopy]) -> Iterator[str]:
    for copy in copies:
        run = copy.run
        last = (
            f"{run.proven:,} of {run.found:,} files proven on {format_local(run.at)}"
            if run
            else "made on another computer"
        )
        yield f"Copy to {copy.destination}: {last}"
        yield from (f"  {line}" for line in _describe_checks(copy.checks))


def _describe_checks(checks: LastChecks) -> Iterator[str]:
    if checks.verify:
        yield describe_last_verify(checks.verify)
    if checks.restore:
        yield describe_last_restore(checks.restore)


def _describe_watch(beat: Heartbeat, now: datetime) -> str:
    """Return the state of the `watch`, which runs without a window."""
    ago = (now - beat.at).total_seconds()
    if beat.state == "stopped":
        return f"The watch was stopped at {format_local(beat.at)}."
    if ago > OVERDUE:
        return (
            f"The watch last reported {format_duration(ago)} ago, at {format_local(beat.at)}: "
            "it is no longer running, or the computer slept."
        )
    due = f"; the next run is due at {format_local(beat.next_start)}" if beat.next_start else ""
    doing = {"running": "has been uploading", "paused": "has been paused"}.get(
        beat.state, "has been waiting"
    )
    return f"The watch {doing} since {format_local(beat.since)}{due}."


def _describe_runs(found: StatusReport) -> Iterator[str]:
    for past in found.runs[:RUNS_SHOWN]:
        at_work = found.current is not None and past is found.current.row
        yield f"{format_local(past.started)}  in progress" if at_work else _describe_run(past)
    for shard in found.shards:
        told = _describe_run(shard.last) if shard.last else "no run yet"
        yield f"Shard {shard.shard}: {'in progress' if shard.running else told}"


def _describe_run(past: PastRunRow) -> str:
    began = format_local(past.started)
    if past.finished is None:
        return f"{began}  was interrupted; the next run carries on"
    sums = past.summary
    counts = " + ".join(
        f"{sums.get(name, 0)} {name}" for name in ("verified", "waiting", "skipped", "failed")
    )
    size, omitted = sums.get("bytes", 0), sums.get("omitted", 0)
    carried = size - omitted if isinstance(size, int) and isinstance(omitted, int) else 0
    reason = sums.get("reason", "person")
    why = "" if reason == "person" else f" ({reason})"
    limit = LIMITS.get(str(sums.get("limit")))
    unfinished = sums.get("unfinished", 0)
    if isinstance(unfinished, int):
        carried += unfinished
    held = f", limited by {limit}" if carried and limit else ""
    return (
        f"{began}  {sums.get('found', 0)} found = {counts}; {format_size(carried)} sent{held}{why}"
    )
