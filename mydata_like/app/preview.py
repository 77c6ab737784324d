"""What a layout would make of a data directory, told while somebody chooses it."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mydata_like.app.setup import Login, find_strangers
from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.events import Event, FileWaiting
from mydata_like.core.model import DatasetFolder, Layout, OwnerKind
from mydata_like.core.ports import CancelSignal
from mydata_like.engine.data_root import Root
from mydata_like.engine.layout import (
    DEEPEST,
    Branch,
    Known,
    Level,
    judge,
    levels_of,
    suggest_layout,
)
from mydata_like.engine.scan import Scan
from mydata_like.engine.walk import FileFilter, Walk
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Filters, Settings

SHOWN = 50  # dataset folders that are shown with the number of their files
_MOST_FOLDERS = 10_000  # dataset folders that are looked for
_MOST_BRANCHES = 2_000  # folders from which the layout is guessed
_MOST_FILES = 20_000  # of one folder that are counted
_MOST_ASKED = 20  # names that the server is asked about


class Sample(NamedTuple):
    """What one dataset folder would become; `more` says that not all its files were counted."""

    path: bytes
    owner: str
    experiment: str
    dataset: str
    files: int
    size: int
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a layout makes of a data directory as a whole.

    `complete` says that all folders were looked at. `strangers` are owners whom the server does
    not know, None where it could not be asked.
    """

    folders: int
    complete: bool
    misfits: tuple[str, ...]
    strangers: tuple[str, ...] | None
    suggestion: Layout | None


def preview_layout(
    settings: Settings, login: Login, tell: Callable[[Sample], object], cancel: CancelSignal
) -> Preview:
    """Tell of the first dataset folders one by one, then return the whole.

    Raises `SettingsError` where the folder cannot be read, `Cancelled` when asked to stop.
    """
    assert settings.data.directory is not None
    root = Root(settings.data.directory)
    folders = _find_folders(settings, root, cancel)
    for folder in folders[:SHOWN]:
        tell(_sample(settings, root, folder, cancel))
    branches = list(_find_branches(root, cancel))
    instrument = settings.instrument.name
    fit = judge(settings.data.layout, branches, instrument)
    known, strangers = _ask_for_owners(settings, login, branches, cancel)
    return Preview(
        folders=len(folders),
        complete=len(folders) < _MOST_FOLDERS and len(branches) < _MOST_BRANCHES,
        misfits=tuple("/".join(names) for names in fit.misfits),
        strangers=strangers,
        suggestion=suggest_layout(settings.data.layout, branches, instrument, known),
    )


def _find_folders(settings: Settings, root: Root, cancel: CancelSignal) -> list[DatasetFolder]:
    scan = Scan(settings, lambda event: None, SystemClock(), cancel)
    found: list[DatasetFolder] = []
    for folder in scan.find_folders(root.path):
        if cancel.is_set():
            raise Cancelled
        found.append(folder)
        if len(found) == _MOST_FOLDERS:
            break
    return found


def _sample(settings: Settings, root: Root, folder: DatasetFolder, cancel: CancelSignal) -> Sample:
    files, size, more = _count(settings.filters, root, folder, cancel)
    owner = folder.owner or settings.data.group_prefix + folder.group_folder
    if not folder.owner and not folder.group_folder:
        owner = settings.server.username
    experiment = folder.title or f"{settings.instrument.name} - {folder.owner}"
    return Sample(folder.path, owner, experiment, folder.name, files, size, more)


def _count(
    filters: Filters, root: Root, folder: DatasetFolder, cancel: CancelSignal
) -> tuple[int, int, bool]:
    """Return files and bytes that a run would take by and by, and whether there are more."""
    waiting: list[int] = []

    def note(event: Event) -> None:
        if isinstance(event, FileWaiting):
            waiting.append(event.size)

    walk = Walk(root, filters, note, SystemClock(), cancel)
    files = size = 0
    try:
        for group in walk.open(folder, os.path.join(root.path, folder.path)):  # noqa: PTH118
            files += len(group.files)
            size += sum(file.size for file in group.files)
            if files + len(waiting) >= _MOST_FILES:
                return files + len(waiting), size + sum(waiting), True
    except OSError:  # a folder that cannot be read has no files for us
        return 0, 0, False
    return files + len(waiting), size + sum(waiting), False


def _find_branches(root: Root, cancel: CancelSignal) -> Iterator[Branch]:
    """Yield the folders down to the deepest layout's level, the upper ones first."""
    refuse = FileFilter(Filters()).refuse
    waiting: deque[tuple[bytes, tuple[str, ...]]] = deque([(root.path, ())])
    given = 0
    while waiting and given < _MOST_BRANCHES:
        if cancel.is_set():
            raise Cancelled
        path, names = waiting.popleft()
        folders, files = _list(root, path)
        taken = [name for name in files if refuse(name, name) is None]
        if names:
            yield Branch(names, len(taken))
            given += 1
        if len(names) < DEEPEST:
            below = ((os.path.join(path, name), name) for name in sorted(folders))  # noqa: PTH118
            waiting += ((place, (*names, os.fsdecode(name))) for place, name in below)


def _list(root: Root, path: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the names of a folder's folders and files; of one that cannot be read, none."""
    folders: list[bytes] = []
    files: list[bytes] = []
    try:
        with root.open(path) as listing:
            for entry in listing.entries:
                kind = folders if entry.is_dir(follow_symlinks=False) else files
                kind.append(os.fsencode(entry.name))
    except OSError:
        return [], []
    return folders, files


def _ask_for_owners(
    settings: Settings, login: Login, branches: Iterable[Branch], cancel: CancelSignal
) -> tuple[Known, tuple[str, ...] | None]:
    """Return whom of the uppermost folders the server knows, and who is a stranger to it.

    Whether they are users or groups is asked as the layout says; if nobody is known, as the
    other kind as well, which may be what was meant.
    """
    names = sorted({branch.names[0] for branch in branches if _is_text(branch.names[0])})
    names = names[:_MOST_ASKED]
    prefix = settings.data.group_prefix
    top = levels_of(settings.data.layout)[0]
    try:
        if top is Level.GROUP:
            groups = _find_groups(login, prefix, names, cancel)
            users = frozenset() if groups else _find_users(login, names, cancel)
        else:
            users = _find_users(login, names, cancel)
            groups = frozenset() if users else _find_groups(login, prefix, names, cancel)
    except UploaderError:
        return Known(), None
    acquainted = {Level.OWNER: users, Level.GROUP: groups}.get(top, frozenset(names))
    strangers = tuple(name for name in names if name not in acquainted)
    return Known(frozenset(names), users, groups), strangers


def _is_text(name: str) -> bool:
    """Return whether a name can be said to a server."""
    return name.isprintable()


def _find_users(login: Login, names: Iterable[str], cancel: CancelSignal) -> frozenset[str]:
    emails = {name for name in names if "@" in name}
    others = set(names) - emails
    strange = {
        *find_strangers(login, OwnerKind.EMAIL, emails, cancel),
        *find_strangers(login, OwnerKind.USERNAME, others, cancel),
    }
    return frozenset(names) - strange


def _find_groups(
    login: Login, prefix: str, names: Iterable[str], cancel: CancelSignal
) -> frozenset[str]:
    strange = set(find_strangers(login, None, [prefix + name for name in names], cancel))
    return frozenset(name for name in names if prefix + name not in strange)
