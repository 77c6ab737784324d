"""The report on the last run in the server's record of this uploader, for its administrator."""

import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from mydata_like.app.approval import describe_applicant
from mydata_like.app.connection import Connection, find_uuid, open_server_settings
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


class RunReport:
    """Stores the end of each run on the server, unless the same was stored recently."""

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        places: StatePaths,
        clock: Clock,
        facts: FactStore,
        shard: Shard,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._places = places
        self._clock = clock
        self._facts = facts
        self._key = last_run_key(shard)

    def __call__(self, finished: RunFinished) -> None:
        """Report a run that has ended; an error is only logged."""
        problem = finished.problem
        away = problem is not None and problem.code.startswith("server.")
        if away or "mydata_uploader" not in self._connection.resources:
            return
        report = describe(finished)
        try:
            before = parse_json(self._facts.find_meta(_REPORTED) or "{}")
            age = self._clock.now() - parse_moment(before["at"])
            same = all(before[name] == report[name] for name in _OUTCOME)
        except (ValueError, TypeError, KeyError):  # none yet, or not in our format
            same, age = False, timedelta()
        if same and timedelta(0) <= age < INTERVAL:
            return
        try:
            self._store(json.dumps(report))
        except (UploaderError, Cancelled) as error:
            logger.info("The run was not reported to the server: %s", error)
            return
        self._facts.record_meta(_REPORTED, json.dumps(report))

    def _store(self, text: str) -> None:
        """Write the report, unless the server has new settings: this write would hide them."""
        settings, uploaders = self._settings, self._connection.uploaders
        before = uploaders.find_uploader(find_uuid(settings, self._places) or "")
        mirror = open_server_settings(settings, self._places, self._clock)
        # The server stores settings of known uploaders only.
        if before is None or not mirror.has(before):
            return
        installation = describe_applicant(self._connection, settings, self._places).installation
        uploaders.keep_setting(before, installation, self._connection.instrument, (self._key, text))
        written = uploaders.find_uploader(installation.uuid)
        if written and written.settings == before.settings:
            mirror.learn_clock(before, written)


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
