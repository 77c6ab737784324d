"""Where files are, as the ledger knows it: nobody is asked, and nothing is changed."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mydata_like.bootstrap.settings import find_places, find_state, ledger_file
from mydata_like.core.errors import RunError, SettingsError
from mydata_like.core.format import format_path
from mydata_like.core.model import Entry, EntryState
from mydata_like.core.shards import WHOLE
from mydata_like.settings.schema import Settings
from mydata_like.store.ledger import SqliteLedger
from mydata_like.system.clock import SystemClock
from mydata_like.system.lock import find_shards

_JOURNEY = {
    EntryState.STAGED: "in the staging area; the server does not know it yet",
    EntryState.REGISTERED: "registered; the server has not verified it yet",
    EntryState.REPAIRED: "registered with new bytes; the server has not verified them yet",
    EntryState.VERIFIED: "verified: safe on the server",
    EntryState.CHANGED: "changed here; the server has an earlier state of it",
    EntryState.FAILED: "failed",
}


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """One local file: what the ledger knows of it, and what the disk says now."""

    path: Path
    entry: Entry
    here: str  # "same", "changed" since then, "gone"
    web: str  # the address of its dataset's page

    @property
    def journey(self) -> str:
        """How far the file has come, in words."""
        return _JOURNEY[self.entry.state]

    @property
    def modified(self) -> datetime:
        since_1970 = timedelta(microseconds=self.entry.modified_ns // 1000)
        return datetime.fromtimestamp(0, UTC) + since_1970

    def as_record(self) -> Mapping[str, object]:
        """Return all of it as plain values for JSON."""
        entry = self.entry
        return {
            "path": format_path(entry.key),
            "local": self.here,
            "state": entry.state.value,
            "size": entry.size,
            "modified": self.modified.isoformat(),
            "checksum": entry.checksum or None,
            "dataset": entry.dataset,
            "web": self.web,
            "datafile": entry.datafile,
            "remote": entry.remote,
            "archive": entry.archive or None,
        }


def find_whereabouts(settings: Settings, config: Path | None, text: str) -> list[Whereabouts]:
    """Return what is known of a file, of all files in a folder, of a name or of an archive.

    Raises `SettingsError` where no data directory is set, `RunError` where the ledger cannot be
    read.
    """
    if settings.data.directory is None:
        raise SettingsError(
            "No data directory is set.",
            hint="`mydata-like settings set data.directory FOLDER` sets it.",
        )
    places, found = find_places(config), dict[bytes, Entry]()
    for shard in (*find_shards(find_state(settings, places)), WHOLE):
        file = ledger_file(settings, places, os.fsencode(settings.data.directory), shard)
        for entry in _read(file, settings.data.directory, text):
            # What one ledger knows to be safe is safe, whatever older state another one has.
            if entry.key not in found or found[entry.key].state is not EntryState.VERIFIED:
                found[entry.key] = entry
    return [_locate(settings, settings.data.directory, entry) for _, entry in sorted(found.items())]


def _read(file: Path, root: Path, text: str) -> list[Entry]:
    ledger = SqliteLedger.open_to_read(file, os.fsencode(root), SystemClock())
    if ledger is None:
        return []
    with ledger:
        if ledger.outdated:
            raise RunError(
                "The ledger was written by an older version of this program.",
                hint="The next run brings it up to date.",
                code="ledger.outdated",
            )
        return _find_entries(ledger, root, text)


def _find_entries(ledger: SqliteLedger, root: Path, text: str) -> list[Entry]:
    """Return the entries that a path or a name means, paths first."""
    for path in (Path.cwd() / text, root / text):
        below = Path(os.path.normpath(path))
        if below.is_relative_to(root):
            below = below.relative_to(root)  # else it may lie in a source
        key = os.fsencode(below.as_posix())
        if key == b".":
            return list(ledger.iter_entries())
        found = ledger.find_entries([key]).values()
        if known := [*found, *ledger.iter_entries(key + b"/")]:
            return known
    return ledger.find_named(os.fsencode(text))


def _locate(settings: Settings, root: Path, entry: Entry) -> Whereabouts:
    path = root / os.fsdecode(entry.key)
    try:
        status = path.stat()
    except OSError:
        here = "gone"
    else:
        same = (status.st_size, status.st_mtime_ns) == (entry.size, entry.modified_ns)
        here = "same" if same else "changed"
    return Whereabouts(path, entry, here, f"{settings.server.url}/dataset/{entry.dataset}")
