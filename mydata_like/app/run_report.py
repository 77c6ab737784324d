"""The report on the last run in the server's record of this uploader, for its administrator."""

import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from mydata_like.app.approval import describe_applicant
from mydata_like.app.connection import Connection, open_server_settings
from mydata_like.app.identity import find_uuid
from mydata_like.catalogues.mytardis.datasets import FactStore
from mydata_like.catalogues.mytardis.uploader import last_run_key
from mydata_like.core.data_directory import Shard
from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.events import RunFinished
from mydata_like.core.parsing import parse_json, parse_moment
from mydata_like.core.ports import Clock
from mydata_like.settings.schema import Settings
from mydata_like.state.paths import StatePaths

logger = logging.getLogger(__name__)

INTERVAL: Final = timedelta(hours=1)  # between two reports of the same outcome
_REPORTED: Final = "reported"  # ledger key of the last report
_OUTCOME: Final = ("found", "verified", "waiting", "skipped", "failed", "left_behind", "problem")


def report_run(
    connection: Connection,
    settings: Settings,
    places: StatePaths,
    clock: Clock,
    facts: FactStore,
    shard: Shard,
    finished: RunFinished,
) -> None:
    """Store the end of a run on the server, unless the same was stored recently.

    An error is only logged. Nothing is written while the server has new settings, which this write
    would hide, or does not know this uploader.
    """
    problem, uploaders = finished.problem, connection.uploaders
    away = problem is not None and problem.code.startswith("server.")
    if away or "mydata_uploader" not in connection.resources:
        return
    report = describe(finished)
    try:
        before = parse_json(facts.find_meta(_REPORTED) or "{}")
        age = clock.now() - parse_moment(before["at"])
        same = all(before[name] == report[name] for name in _OUTCOME)
    except (ValueError, TypeError, KeyError):  # none yet, or not in our format
        same, age = False, timedelta()
    if same and timedelta(0) <= age < INTERVAL:
        return
    try:
        known = uploaders.find_uploader(find_uuid(settings, places) or "")
        mirror = open_server_settings(settings, places, clock)
        if known is not None and mirror.has(known):
            installation = describe_applicant(connection, settings, places).installation
            pair = (last_run_key(shard), json.dumps(report))
            uploaders.keep_setting(known, installation, connection.instrument, pair)
            written = uploaders.find_uploader(installation.uuid)
            if written and written.settings == known.settings:
                mirror.learn_clock(known, written)
    except (UploaderError, Cancelled) as error:
        logger.info("The run was not reported to the server: %s", error)
        return
    facts.record_meta(_REPORTED, json.dumps(report))


def describe(finished: RunFinished) -> Mapping[str, object]:
    """Return what the report says about a run."""
    problem = finished.problem
    return {
        "at": finished.at.isoformat(timespec="seconds"),
        "found": finished.found,
        "verified": finished.verified,
        "waiting": finished.waiting,
        "skipped": finished.skipped,
        "failed": finished.failed,
        "left_behind": finished.left_behind,
        "sent": finished.sent,
        "bytes": finished.bytes,
        "seconds": round(finished.seconds),
        "problem": problem and f"{problem.code}: {problem.message}",
    }
