"""Where local files and folders are: what disk and ledger know, and what the server says now."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mydata_like.bootstrap.freeing import find_key
from mydata_like.bootstrap.reading import open_listing
from mydata_like.bootstrap.settings import find_places, ledger_file
from mydata_like.core.journeys import (
    FileJourney,
    FolderJourney,
    Here,
    Ill,
    Journey,
    Suggestion,
    Times,
    Unknown,
)
from mydata_like.core.model import Entry
from mydata_like.core.views import FileRow, View
from mydata_like.settings.schema import Settings
from mydata_like.store.journeys import Journeys
from mydata_like.store.ledger import SqliteLedger
from mydata_like.system.clock import SystemClock


def suggest(settings: Settings, config: Path | None, text: str, most: int) -> list[Suggestion]:
    """Return files and dataset folders whose paths have this text; folders come first."""
    if settings.data.directory is None:
        return []
    with _opened(settings, config) as (_, journeys):
        folders = journeys.find_folders(text, most // 4) if journeys else []
    listing = open_listing(settings, config, View(text=text, order="name", descending=False))
    if listing is None:
        return folders
    with listing:
        rows = listing.first(most - len(folders))
    files = [Suggestion(r.key, r.size or 0, r.state) for r in rows if isinstance(r, FileRow)]
    return folders + files


def look_at(settings: Settings, config: Path | None, path: Path) -> Journey:
    """Return what is known of a path, given in full or below the data directory.

    Nobody is asked but the disk and the ledger. Raises `UploaderError` where the ledger cannot be
    read.
    """
    root = settings.data.directory or Path()
    path = Path(os.path.normpath(root / path))
    key = find_key(root, path)
    with _opened(settings, config) as (ledger, journeys):
        if key is None:
            key = os.fsencode(path.as_posix())
            if not ledger or not _is_source(ledger, key):
                return FileJourney(path, key, _presence(path), 0, 0, unknown=Unknown.OUTSIDE)
        entry = ledger.find_entries([key]).get(key) if ledger else None
        ill = journeys.find_ill(key) if journeys else None
        if entry is None and _is_folder(path, key, journeys):
            return _describe_folder(settings, journeys, path, key)
        times = journeys.find_times(key) if journeys and entry else Times()
    return _describe_file(settings, _File(path, key, entry, times, ill))


class _File(NamedTuple):
    """What the ledger says of a file."""

    path: Path
    key: bytes
    entry: Entry | None
    times: Times
    ill: Ill | None


def _describe_file(settings: Settings, file: _File) -> FileJourney:
    entry = file.entry
    try:
        status = file.path.lstat()
        size, modified_ns = status.st_size, status.st_mtime_ns
        here = Here.NEW
    except OSError:
        size, modified_ns = (entry.size, entry.modified_ns) if entry else (0, 0)
        here = Here.GONE
    if entry is not None and here is Here.NEW:
        same = (size, modified_ns) == (entry.size, entry.modified_ns)
        here = Here.SAME if same else Here.CHANGED
    unknown = None
    if entry is None and file.ill is None:
        unknown = Unknown.ABSENT if here is Here.GONE else Unknown.UNSEEN
    return FileJourney(
        path=file.path,
        key=file.key,
        here=here,
        size=size,
        modified_ns=modified_ns,
        entry=entry,
        times=file.times,
        ill=file.ill,
        unknown=unknown,
        web=_dataset_page(settings, entry.dataset) if entry else "",
    )


def _describe_folder(
    settings: Settings, journeys: Journeys | None, path: Path, key: bytes
) -> FolderJourney:
    sums = journeys.sum_folder(key) if journeys else {}
    dataset = journeys.find_dataset(key) if journeys else None
    return FolderJourney(
        path=path,
        key=key,
        states=sums,
        ill=journeys.find_ill(key) if journeys else None,
        unknown=None if sums else Unknown.UNSEEN,
        web=_dataset_page(settings, dataset) if dataset else "",
    )


def _is_folder(path: Path, key: bytes, journeys: Journeys | None) -> bool:
    """Return whether a path is a folder, or was one when files of it were seen."""
    if path.exists():
        return path.is_dir() and not path.is_symlink()
    return journeys is not None and bool(journeys.sum_folder(key))


def _presence(path: Path) -> Here:
    return Here.NEW if path.exists() else Here.GONE


def _is_source(ledger: SqliteLedger, key: bytes) -> bool:
    known = (source.path for source in ledger.find_sources())
    return any(key == path or key.startswith(path + b"/") for path in known)


def _dataset_page(settings: Settings, dataset: int) -> str:
    return f"{settings.server.url}/dataset/{dataset}"


@contextmanager
def _opened(
    settings: Settings, config: Path | None
) -> Iterator[tuple[SqliteLedger | None, Journeys | None]]:
    """Open the ledger to read it, in the two ways that there are; None where there is none."""
    root = os.fsencode(settings.data.directory or "")
    file = ledger_file(settings, find_places(config), root)
    with Journeys.opened(file, root) as journeys:
        ledger = SqliteLedger.open_to_read(file, root, SystemClock()) if journeys else None
        try:
            yield ledger, journeys
        finally:
            if ledger is not None:
                ledger.close()
