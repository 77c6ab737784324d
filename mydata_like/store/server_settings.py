"""The settings that a server keeps for this uploader, as they were when it was asked last.

A server tells times of its own zone without naming it. `offset` is what its clock shows ahead
of ours in UTC, learnt from a time that it wrote at our request; without it nobody can tell when
its settings were changed.
"""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from mydata_like.core.errors import SettingsError
from mydata_like.core.parsing import parse_moment
from mydata_like.settings.loading import load_json
from mydata_like.settings.writing import write_private

logger = logging.getLogger(__name__)


class ServerSettings(NamedTuple):
    """The server's texts by key, and its own text for when they were changed last.

    `changed_at` is our time of that (UTC), None where it is not known; `seen_at` is when the
    server was asked last.
    """

    texts: Mapping[str, str]
    updated: str
    changed_at: datetime | None
    seen_at: datetime
    offset: float | None = None  # seconds

    def renew(self, texts: Mapping[str, str], updated: str, now: datetime) -> "ServerSettings":
        """Return what is known after the server was asked again."""
        changed_at = self.changed_at
        if updated != self.updated:
            # It was since we asked last, whatever its clock shows: that may have gone over to
            # summer time, or not be known at all.
            changed_at = to_utc(updated, self.offset) or now
            changed_at = min(max(changed_at, self.seen_at), now)
        return self._replace(texts=texts, updated=updated, changed_at=changed_at, seen_at=now)

    def learn(self, written: str, now: datetime) -> "ServerSettings":
        """Return what is known once the server wrote its time of this moment for us.

        It takes the place of the time of the last change, which is now known in ours.
        """
        naive = parse_naive(written)
        if naive is None:
            return self
        offset = (naive.replace(tzinfo=UTC) - now).total_seconds()
        changed_at = self.changed_at or to_utc(self.updated, offset)
        return self._replace(updated=written, changed_at=changed_at, offset=offset)


def first_seen(texts: Mapping[str, str], updated: str, now: datetime) -> ServerSettings:
    """Return what is known when a server is asked for the first time."""
    return ServerSettings(texts, updated, None, now)


def to_utc(text: str, offset: float | None) -> datetime | None:
    """Return our time (UTC) of a server's text, None where that cannot be known."""
    naive = parse_naive(text)
    if naive is None or offset is None:
        return None
    try:
        return naive.replace(tzinfo=UTC) - timedelta(seconds=offset)
    except (OverflowError, ValueError):  # beyond every calendar, or no number of seconds
        return None


def parse_naive(text: str) -> datetime | None:
    """Return a server's time as its clocks show it; None for an unreadable text."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


def load_server_settings(file: Path) -> ServerSettings | None:
    """Return what was kept; a missing or damaged file keeps nothing."""
    try:
        return _parse(load_json(file))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        logger.warning("%s cannot be read: %s", file, error)
        return None


def save_server_settings(file: Path, kept: ServerSettings) -> None:
    """Keep this for when the server is away; a disk that does not take it stops nothing."""
    record = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in kept._asdict().items()
    }
    try:
        write_private(file, json.dumps(record, indent=1).encode())
    except SettingsError as error:
        logger.warning("%s", error)


def _parse(record: dict[str, Any]) -> ServerSettings:
    offset, changed_at = record["offset"], record["changed_at"]
    return ServerSettings(
        {str(key): str(text) for key, text in record["texts"].items()},
        str(record["updated"]),
        parse_moment(changed_at) if changed_at else None,
        parse_moment(record["seen_at"]),
        None if offset is None else float(offset),
    )
