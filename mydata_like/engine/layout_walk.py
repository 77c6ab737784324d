"""The walk through the levels of the layout to the dataset folders."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import dropwhile
from typing import NamedTuple

from mydata_like.core.data_directory import WHOLE, Shard, is_lock_name
from mydata_like.core.destination_files import OWN_FOLDER
from mydata_like.core.errors import Problem
from mydata_like.core.events import FileSkipped, FolderFound, FolderSkipped, Notice
from mydata_like.core.formatting import format_path
from mydata_like.core.model import DatasetFolder, FileGroup
from mydata_like.core.openat import join
from mydata_like.core.ports import Emit
from mydata_like.engine.data_root import is_junction, reason, status_of
from mydata_like.engine.layout import Level, dataset_folder, levels_of
from mydata_like.engine.walk import GROUP_LIMIT, Batch, FolderFilter, TreeRules, Walk
from mydata_like.settings.schema import Settings

Opening = Callable[[DatasetFolder, bytes], Iterator[FileGroup]]
_OUTSIDE = Problem(
    "skipped.outside-dataset",
    "The file is not in a dataset folder.",
    "Move it into a dataset folder, or choose another layout.",
)
_NOT_PART = Problem(
    "skipped.layout",
    "The layout uses another folder of this level.",
    "Check data.layout and instrument.name.",
)
_NO_MYTARDIS = Problem(
    "skipped.layout",
    "The folder has no sub-folder MyTardis.",
    "Create one and put the experiments there, or choose another layout.",
)
_NO_INSTRUMENT = Problem(
    "skipped.layout",
    "The folder has no sub-folder with this instrument's name.",
    "Check instrument.name: it must match the folder's name.",
)
_EMPTY_ROOT = Problem(
    "data.empty",
    "The data directory contains no folders.",
    "Check data.directory, and that its drive is connected.",
)


class _LevelFolder(NamedTuple):
    """A folder of one of the layout's levels; `key` is its path below the data directory."""

    path: bytes
    key: bytes
    names: tuple[str, ...]

    def below(self, name: bytes) -> bytes:
        return self.key + b"/" + name if self.key else name


class ScanScope(NamedTuple):
    """The part of a data directory to read.

    `only` is the path of one folder, as in events; nothing outside of it is read. `as_is` has the
    rules for a destination that gets the tree as it is.
    """

    only: str = ""
    shard: Shard = WHOLE
    as_is: TreeRules | None = None


ALL = ScanScope()


class LevelScan:
    """One pass over the levels of the layout."""

    def __init__(
        self, walk: Walk, settings: Settings, open_dataset: Opening, part: ScanScope
    ) -> None:
        self._walk = walk
        self._only = part.only
        self._shard = part.shard
        self._open_dataset = open_dataset
        self._filter = FolderFilter(settings.filters)
        self._as_is = part.as_is
        self._layout = settings.data.layout
        self._levels = levels_of(settings.data.layout)
        self._instrument = settings.instrument.name

    def groups(self) -> Iterator[FileGroup]:
        """Yield the groups of all dataset folders."""
        return self._visit(_LevelFolder(self._walk.root.path, b"", ()))

    def _visit(self, place: _LevelFolder) -> Iterator[FileGroup]:
        """Yield the groups of all dataset folders in or below a folder."""
        if len(place.names) == len(self._levels):
            yield from self._read_dataset(place)
            return
        try:
            children, has_files = self._list(place)
        except OSError as error:
            if not place.names:
                raise self._walk.root.unavailable(reason(error)) from error
            self._walk.fail_folder(place.key, error)
            return
        if not place.names and not children:
            self._walk.emit(Notice(problem=_EMPTY_ROOT))
        if has_files and self._is_wanted(place.key):
            yield from self._read_loose_files(place)
        for child in self._choose(place, children):
            yield from self._visit(child)

    def _list(self, place: _LevelFolder) -> tuple[dict[bytes, bytes], bool]:
        """Return a folder's sub-folders (name -> path, sorted) and whether it has files to read.

        Only the files of an experiment's folder are read, as a dataset of their own, and those of
        the data directory if the tree is sent as it is. Those of other levels are reported here.
        """
        own_dataset = self._as_is is not None or self._level_of(place) is Level.EXPERIMENT
        children: dict[bytes, bytes] = {}
        has_files = False
        batch = self._walk.new_batch()
        with self._walk.root.open(place.path) as listing:
            for entry in listing.entries:
                name = os.fsencode(entry.name)
                if entry.is_dir(follow_symlinks=False) and not is_junction(entry):
                    children[name] = join(place.path, name)
                elif _is_folder_link(entry):
                    self._follow(place, name, children)
                elif is_lock_name(name):
                    continue
                elif own_dataset:
                    has_files = True
                else:
                    batch.leave(_outside(place.below(name), entry))
                if batch.count >= GROUP_LIMIT:
                    self._report(place, batch)
                    batch = self._walk.new_batch()
        self._report(place, batch)
        return dict(sorted(children.items())), has_files

    def _level_of(self, place: _LevelFolder) -> Level | None:
        return self._levels[len(place.names) - 1] if place.names else None

    def _follow(self, place: _LevelFolder, name: bytes, children: dict[bytes, bytes]) -> None:
        target = self._walk.links.resolve(join(place.path, name))
        if isinstance(target, Problem):
            self._pass_over(place.below(name), target)
        else:
            children[name] = target.path

    def _choose(self, place: _LevelFolder, children: dict[bytes, bytes]) -> Iterator[_LevelFolder]:
        level = self._levels[len(place.names)]
        chosen = {name for name in children if self._is_part(level, name)}
        missing = {Level.MYTARDIS: _NO_MYTARDIS, Level.INSTRUMENT: _NO_INSTRUMENT}.get(level)
        if missing and not chosen:
            self._pass_over(place.key, missing)
            return
        for name, path in children.items():
            key = place.below(name)
            if not self._is_wanted(key) and not self._leads_on(key):
                continue
            problem: Problem | None = _NOT_PART
            if name in chosen:
                problem = self._filter.refuse(level, name, any_name=self._as_is is not None)
            if self._as_is and name == OWN_FOLDER:
                problem = self._as_is.judge_own(path)
            if problem:
                self._pass_over(key, problem)
            else:
                text = format_path(name) if self._as_is else name.decode()
                yield _LevelFolder(path, key, (*place.names, text))

    def _is_wanted(self, key: bytes) -> bool:
        """Return whether a folder is the only one to read, or is in it."""
        return not self._only or f"{format_path(key)}/".startswith(f"{self._only}/")

    def _leads_on(self, key: bytes) -> bool:
        """Return whether the only folder to read is in this one."""
        return f"{self._only}/".startswith(f"{format_path(key)}/")

    def _is_part(self, level: Level, name: bytes) -> bool:
        if level is Level.MYTARDIS:
            return name.lower() == b"mytardis"
        if level is Level.INSTRUMENT:
            return name == self._instrument.encode()
        return True

    def _read_dataset(self, place: _LevelFolder) -> Iterator[FileGroup]:
        folder = self._folder(place)
        if not (self._as_is or self._shard.has(folder)):
            return
        problem = self._filter.refuse_title(folder.title)
        try:
            problem = problem or self._refuse_age(place)
            groups = None if problem else self._open_dataset(folder, place.path)
        except OSError as error:
            self._walk.fail_folder(place.key, error)
            return
        if problem:
            self._skip(place.key, problem)
        elif groups:
            report_found(self._walk.emit, folder)
            yield from numbered(groups)

    def _read_loose_files(self, place: _LevelFolder) -> Iterator[FileGroup]:
        """Yield the groups of an experiment's own folder, unless none of its files is uploaded."""
        folder = self._folder(place)
        if not (self._as_is or self._shard.has(folder)):
            return
        try:
            groups = self._walk.open(folder, place.path)
        except OSError as error:
            self._walk.fail_folder(place.key, error)
            return
        for group in numbered(dropwhile(lambda group: not group.files, groups)):
            if group.number == 0:
                report_found(self._walk.emit, folder)
            yield group

    def _folder(self, place: _LevelFolder) -> DatasetFolder:
        return dataset_folder(self._layout, place.names, self._instrument, place.key)

    def _refuse_age(self, place: _LevelFolder) -> Problem | None:
        if not self._filter.wants_age:
            return None
        return self._filter.refuse_age(status_of(place.path), self._walk.now())

    def _report(self, place: _LevelFolder, batch: Batch) -> None:
        """Report files outside of all dataset folders, in one of the shards only."""
        if self._shard.leads:
            self._walk.report(place.key, batch)

    def _pass_over(self, key: bytes, problem: Problem) -> None:
        """Report a folder that belongs to no dataset, in one of the shards only."""
        if self._shard.leads:
            self._skip(key, problem)

    def _skip(self, key: bytes, problem: Problem) -> None:
        self._walk.emit(FolderSkipped(path=key, problem=problem))


def _is_folder_link(entry: os.DirEntry[str] | os.DirEntry[bytes]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that points to itself
        return False


def _outside(key: bytes, entry: os.DirEntry[str] | os.DirEntry[bytes]) -> FileSkipped:
    try:
        status = entry.stat(follow_symlinks=False)
        size = status.st_size if stat.S_ISREG(status.st_mode) else 0
    except OSError:  # whatever it is, it is excluded
        size = 0
    return FileSkipped(path=key, size=size, problem=_OUTSIDE)


def report_found(emit: Emit, folder: DatasetFolder) -> None:
    """Report a dataset folder whose files are read next."""
    emit(
        FolderFound(
            path=folder.path,
            dataset=folder.name,
            title=folder.title,
            owner=folder.owner,
            group=folder.group_folder,
        )
    )


def numbered(groups: Iterable[FileGroup]) -> Iterator[FileGroup]:
    """Yield the groups of one dataset folder with their numbers."""
    return (group._replace(number=number) for number, group in enumerate(groups))
