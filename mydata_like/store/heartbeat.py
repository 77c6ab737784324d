"""The sign of life of a `watch`: a small file that monitors and the status read."""

import json
import logging
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from mydata_like.core.errors import SettingsError
from mydata_like.core.parsing import parse_moment
from mydata_like.settings.loading import load_json
from mydata_like.settings.writing import write_private

logger = logging.getLogger(__name__)


class Heartbeat(NamedTuple):
    """What a `watch` said last: when, as which process, what it does and what comes next.

    `state` is "waiting", "running" or "paused", or "stopped" when it ended by itself; `last`
    are the sums of its last run, as of the event `run_finished`.
    """

    at: datetime
    pid: int
    version: str
    state: str
    since: datetime  # of the state
    next_start: datetime | None = None
    problem: Mapping[str, str] | None = None
    last: Mapping[str, object] | None = None

    def as_record(self) -> dict[str, object]:
        """Return this as plain values for JSON."""
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in self._asdict().items()
        }


def write_heartbeat(file: Path, beat: Heartbeat) -> None:
    """Replace the file; a disk that does not take it is no reason to stop."""
    try:
        write_private(file, json.dumps(beat.as_record(), indent=1).encode())
    except SettingsError as error:
        logger.warning("%s", error)


def read_heartbeat(file: Path) -> Heartbeat | None:
    """Return the last sign of life, or None where there is none that can be read."""
    try:
        record = load_json(file)
        return Heartbeat(
            parse_moment(record["at"]),
            int(record["pid"]),
            str(record["version"]),
            str(record["state"]),
            parse_moment(record["since"]),
            parse_moment(record["next_start"]) if record["next_start"] else None,
            record["problem"],
            record["last"],
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        logger.warning("%s cannot be read: %s", file, error)
        return None
