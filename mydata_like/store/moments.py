"""Moments that outlive the program, by name, in a small file of the state.

Losing it costs at most a start that was missed meanwhile, or a notice told twice.
"""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from mydata_like.core.errors import SettingsError
from mydata_like.core.parsing import parse_moment
from mydata_like.settings.loading import load_json
from mydata_like.settings.writing import write_private

logger = logging.getLogger(__name__)


class Moments:
    """Moments by name; where the disk takes nothing they are remembered in memory only.

    Safe to call from any thread.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = Lock()
        self._moments = dict(self._load())

    def find(self, name: str) -> datetime | None:
        """Return a moment, or None where there is none of this name."""
        return self._moments.get(name)

    def keep(self, name: str, moment: datetime | None) -> None:
        """Remember a moment, or forget it."""
        with self._lock:
            if self._moments.get(name) == moment:
                return
            self._moments.pop(name, None)
            if moment is not None:
                self._moments[name] = moment.astimezone(UTC)
            self._save()

    def keep_alone(self, name: str, moment: datetime) -> None:
        """Remember a moment and forget all others whose name begins with the same word."""
        word = name.partition(" ")[0]
        with self._lock:
            for other in [other for other in self._moments if other.partition(" ")[0] == word]:
                del self._moments[other]
            self._moments[name] = moment.astimezone(UTC)
            self._save()

    def _save(self) -> None:
        record = {name: moment.isoformat() for name, moment in self._moments.items()}
        try:
            write_private(self._file, json.dumps(record, indent=1).encode())
        except SettingsError as error:
            logger.warning("%s", error)

    def _load(self) -> Mapping[str, datetime]:
        try:
            record = load_json(self._file)
            return {str(name): parse_moment(text) for name, text in record.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            logger.warning("%s cannot be read: %s", self._file, error)
            return {}
