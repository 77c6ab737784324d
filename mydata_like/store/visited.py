"""The folders of the staging area into which files were sent, and when last: one JSON line each.

Losing it costs nothing but that what was left behind there is never removed.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from threading import Lock

from mydata_like.core.errors import SettingsError
from mydata_like.core.parsing import parse_json, parse_moment
from mydata_like.core.ports import Clock
from mydata_like.settings.writing import make_private_file, read_plain, write_private

logger = logging.getLogger(__name__)


class VisitedFolders:
    """Remembers folders by their paths below the location; safe to call from any thread."""

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._lock = Lock()
        self._noted: set[str] = set()  # since the program started

    def note(self, folders: Iterable[str]) -> None:
        """Remember that something is about to be sent there; a full disk stops nothing."""
        with self._lock:
            new = set(folders) - self._noted
            if not new:
                return
            self._noted |= new
            at = self._clock.now().isoformat()
            lines = (json.dumps({"at": at, "folder": folder}) + "\n" for folder in sorted(new))
            try:
                make_private_file(self._file)
                with self._file.open("a", encoding="ascii") as file:
                    file.writelines(lines)
            except (OSError, SettingsError) as error:
                logger.warning("%s cannot be written: %s", self._file, error)

    def find(self, before: datetime) -> Mapping[str, datetime]:
        """Return the folders into which nothing was sent since a moment."""
        return {folder: at for folder, at in self._load().items() if at <= before}

    def forget(self, folders: Collection[str]) -> None:
        """Remember these no longer."""
        with self._lock:
            rest = {folder: at for folder, at in self._load().items() if folder not in folders}
            lines = (
                json.dumps({"at": at.isoformat(), "folder": folder}) + "\n"
                for folder, at in rest.items()
            )
            try:
                write_private(self._file, "".join(lines).encode())
            except SettingsError as error:
                logger.warning("%s", error)

    def _load(self) -> dict[str, datetime]:
        """Return when something was last sent to each folder; a torn line is left out."""
        try:
            lines = read_plain(self._file).splitlines()
        except OSError:
            return {}
        found: dict[str, datetime] = {}
        for line in lines:
            try:
                record = parse_json(line)
                at = parse_moment(record["at"])
                folder = str(record["folder"])
            except (ValueError, TypeError, KeyError):
                continue
            found[folder] = max(at, found.get(folder, at))
        return found
