"""The speed test: when it may run, what it uses, and the settings that it changes."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from mydata_like.app.connection import Connection, require_complete
from mydata_like.app.directory_lock import directory_locked
from mydata_like.app.identity import ensure_uuid
from mydata_like.app.plain_destination import TransportParts
from mydata_like.app.run_connection import connected
from mydata_like.app.run_request import RunObserver, RunRequest, build_gate
from mydata_like.app.settings_destination import open_place
from mydata_like.app.settings_service import (
    find_places,
    find_state,
    ledger_file,
    prepare_places,
)
from mydata_like.app.speedtest_records import keep_speed_test
from mydata_like.app.transports.staging_kind import PROBED
from mydata_like.app.transports.transport_access import TransportAccess
from mydata_like.app.transports.transport_kinds import find_kind
from mydata_like.catalogues.mytardis.client import Query
from mydata_like.core.errors import Problem, RunError
from mydata_like.core.formatting import format_size
from mydata_like.core.ports import Clock
from mydata_like.engine.channels import find_planned
from mydata_like.engine.gate import judge_hours, judge_program
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.load import HostLoad
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.settings.schedule_section import parse_period
from mydata_like.settings.schema import Settings
from mydata_like.settings.transfer_sections import Limits
from mydata_like.speedtest.recommendations import as_verdict
from mydata_like.speedtest.results import FULL, QUICK, SpeedTestEffort, SpeedTestResult
from mydata_like.speedtest.runner import Questions, SpeedTestRunner, SpeedTestTarget
from mydata_like.state.paths import StatePaths


def require_quiet(limits: Limits, clock: Clock) -> None:
    """Raise `RunError` if a run would pause or send slowly now to spare the instrument."""
    hours, local = tuple(map(parse_period, limits.quiet_hours)), clock.now().astimezone()
    found = judge_hours(hours, local)
    if not found and limits.pause_while_running:
        found = judge_program(HostLoad().find_program(limits.pause_while_running))
    rate, reason = find_planned(limits, local)
    if not found and rate:
        allowed = f"{format_size(rate)}/s ({reason})"
        found = Problem(
            "limits.bandwidth",
            f"The bandwidth is limited to {allowed} now, but a test sends as fast as it can.",
        )
    if found:
        raise RunError(
            f"A speed test would disturb the instrument or its network now. {found.message}",
            hint="Try again later, or use --anyway to run the test regardless.",
            code=found.code,
        )


_PAGE: Final = 100  # rows
_RUNS: Final = 50  # whose speeds are compared
_MANY: Final = 500  # files; the speed of a run that sent fewer means little


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTestRequest:
    """The options of a speed test: its effort, and whether it may run during an acquisition."""

    config: Path | None = None
    effort: SpeedTestEffort = FULL
    anyway: bool = False


def finish_speed_test(
    settings: Settings, order: SpeedTestRequest, findings: SpeedTestResult
) -> dict[str, Any]:
    """Keep a test; return it as plain values for JSON, which docs/doctor.md describes."""
    record: dict[str, Any] = {
        "at": SystemClock().now().isoformat(timespec="seconds"),
        "quick": order.effort == QUICK,
        "findings": findings.as_record(),
        "verdict": as_verdict(findings),
    }
    keep_speed_test(settings, order.config, record)
    return record


@contextmanager
def open_speed_test(
    settings: Settings, order: SpeedTestRequest, observer: RunObserver
) -> Iterator[SpeedTestRunner]:
    """Yield a speed test that is ready to start; it holds the lock of the data directory.

    Raises a `RunError` if an acquisition or a run is in progress, or if the server cannot be
    reached.
    """
    require_complete(settings, order.config)
    places, clock = find_places(order.config), SystemClock()
    prepare_places(settings, places)
    if not order.anyway:
        require_quiet(settings.limits, clock)
    state, root = find_state(settings, places), settings.data.directory or Path()
    request = RunRequest(settings=settings, config=order.config, dry_run=True)
    gate = build_gate(request, observer, clock)
    questions: Questions = {}
    with ExitStack() as stack:
        stack.enter_context(directory_locked(state, os.fsencode(root), clock, observer.cancel.set))
        if settings.destination.takes_tree:
            place, uuid = open_place(settings, order.config), ensure_uuid(settings, places)
            parts = TransportParts(settings, observer.emit, uuid, state, clock)
            destination, why = place.find_measured(parts, PROBED + uuid)
        else:
            connection = stack.enter_context(connected(request, observer, gate))
            access = TransportAccess(request, observer, connection)
            destination, why = find_kind(settings).find_measured(access)
            questions = _ask(connection)
        target = SpeedTestTarget(
            root=root,
            state=state,
            transfer=settings.transfer,
            questions=questions,
            destination=destination,
            why=why,
            records=tuple(_recall_records(settings, places)),
        )
        yield SpeedTestRunner(target, order.effort, observer.cancel)


def _recall_records(settings: Settings, places: StatePaths) -> Iterator[float]:
    """Yield the files a second of each past run whose bottleneck was the server's API."""
    root = os.fsencode(settings.data.directory or Path())
    ledger = SqliteLedger.open_to_read(ledger_file(settings, places, root), root, SystemClock())
    if ledger is None:
        return
    with ledger:
        summaries = [past.summary for past in ledger.find_runs(_RUNS)]
    for sums in summaries:
        sent, seconds = sums.get("sent"), sums.get("seconds")
        if not (isinstance(sent, int) and isinstance(seconds, float)):
            continue  # a run of an older version
        if sent >= _MANY and seconds > 0 and sums.get("limit") in ("API", "verification"):
            yield sent / seconds


def _ask(connection: Connection) -> Questions:
    """Return the read-only API requests to measure, one of each kind that a run makes.

    Listing and statistics are of one dataset; its size does not matter, since one page is read.
    """
    client = connection.client
    listing: Query = {"limit": _PAGE}

    def ask(path: str, query: Query | None = None) -> object:
        return client.fetch(path, lambda answer: answer, query)

    datasets: Any = ask("dataset/", {"limit": 1})
    questions = {"root": partial(ask, "")}
    page = "one page of a listing"
    if not datasets["objects"]:
        return questions | {page: partial(ask, "dataset/", listing)}
    number = int(datasets["objects"][0]["id"])
    return questions | {
        page: partial(ask, "mydata_dataset_file/", {**listing, "dataset__id": number}),
        "statistics": partial(ask, f"mydata_dataset_stats/{number}/"),
    }
