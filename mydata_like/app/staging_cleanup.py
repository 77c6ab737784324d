"""Once a day: what broken transfers have left in the staging area is removed, and told."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Final

from mydata_like.app.settings import find_state
from mydata_like.core.errors import Problem, UploaderError
from mydata_like.core.events import Notice
from mydata_like.core.formatting import format_size
from mydata_like.core.ports import Clock, Emit
from mydata_like.core.staging_path import aside_path, staged_path
from mydata_like.ledger.summaries import UnsentQuery, find_unsent
from mydata_like.settings.schema import Settings
from mydata_like.ssh.session import Endpoint
from mydata_like.state.paths import StatePaths
from mydata_like.state.state_files import (
    CLEANUP,
    VISITED,
    TimestampStore,
    VisitedFolders,
    find_file,
)
from mydata_like.transfer.held_back_tail import owner_mark, part_name
from mydata_like.transfer.probe_file import visit
from mydata_like.transfer.remote_cleanup import AGE, Leftover, Removed, clean_up, open_remover
from mydata_like.transfer.single_file import RESUMABLE
from mydata_like.transfer.worker_messages import Member

logger = logging.getLogger(__name__)

_PAUSE: Final = timedelta(days=1)
_CLEANED: Final = "cleaned"
_FOLDERS: Final = 1000  # that are looked at at once; the rest is for the next day


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """The staging area as this needs it: its hosts, its location, and whose files are ours."""

    endpoints: tuple[Endpoint, ...]
    location: bytes
    owner: str  # the uploader's uuid


def open_visited(settings: Settings, places: StatePaths, clock: Clock) -> VisitedFolders:
    """Return what remembers the folders of this server's staging area."""
    return VisitedFolders(_file(settings, places, VISITED), clock)


def clean_staging(
    settings: Settings, places: StatePaths, clock: Clock, find_area: Callable[[], Area], emit: Emit
) -> None:
    """Remove what is old in folders into which nothing was sent for as long; once a day.

    Nothing is connected to while there are none. Whatever fails is logged, and is done later.
    """
    now, visited = clock.now(), open_visited(settings, places, clock)
    moments = TimestampStore(_file(settings, places, CLEANUP))
    last = moments.find(_CLEANED)
    due = sorted(visited.find(now - timedelta(seconds=AGE)))
    if not due or (last and timedelta() <= now - last < _PAUSE):
        return
    moments.keep(_CLEANED, now)
    try:
        area, unsent = find_area(), find_unsent(find_state(settings, places), RESUMABLE)
        wanted = _Wanted(unsent, area.owner)
        folders = [_encode(folder) for folder in islice(due, _FOLDERS)]
        removed = _clean(area, folders, wanted)
    except UploaderError as error:
        logger.info("The staging area was not cleaned up: %s", error)
        return
    visited.forget({folder.decode("utf-8", "surrogateescape") for folder in removed.clean})
    if removed.files:
        emit(Notice(problem=_tell(removed)))


def _clean(area: Area, folders: Sequence[bytes], wanted: "_Wanted") -> Removed:
    with visit(area.endpoints[0], area.location) as there:
        remover = open_remover(there.session, there.rung.rung, area.location, area.owner)
        if remover is None:  # over scp nothing has a temporary name
            return Removed(clean=frozenset(folders))
        return clean_up(remover, folders, wanted.has)


class _Wanted:
    """The temporary names of large files whose sending may go on, in whatever folder."""

    def __init__(self, unsent: Iterable[UnsentQuery], owner: str) -> None:
        self._unsent = set(unsent)
        self._mark = owner_mark(owner)
        self._names: dict[bytes, set[bytes]] = defaultdict(set)  # by folder

    def has(self, folder: bytes, left: Leftover) -> bool:
        if folder not in self._names:
            text = folder.decode("utf-8", "surrogateescape")
            for one in self._unsent:
                name = staged_path("", 0, "", one.name.decode("utf-8", "replace"))
                remote = f"{text}/{name.rpartition('/')[2]}"
                for path in (remote, aside_path(remote, one.size, one.modified_ns)):
                    self._names[folder].add(self._part(path, one))
        return left.name in self._names[folder]

    def _part(self, remote: str, one: UnsentQuery) -> bytes:
        member = Member(b"", one.size, one.modified_ns, 0, 0, _encode(remote), mark=self._mark)
        return part_name(member)


def _encode(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _file(settings: Settings, places: StatePaths, name: str) -> Path:
    return find_file(find_state(settings, places), name, settings.server.url)


def _tell(removed: Removed) -> Problem:
    files = "1 file" if removed.files == 1 else f"{removed.files:,} files"
    return Problem(
        "staging.cleaned",
        f"{files} ({format_size(removed.size)}) of broken transfers were removed from the staging "
        f"area: for {AGE // 86400} days nothing came to them.",
        "Nothing has to be done: their local files were changed, deleted or sent again since.",
    )
