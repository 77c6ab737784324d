"""The first stage: finds the dataset folders of the layout, the sources, and their files."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from mydata_like.core.errors import Problem, SourceError
from mydata_like.core.events import (
    FolderFailed,
    Notice,
)
from mydata_like.core.extra_sources import ExtraSource
from mydata_like.core.formatting import format_path
from mydata_like.core.model import DatasetFolder, FileGroup
from mydata_like.core.ports import CancelSignal, Clock, Emit
from mydata_like.engine.data_root import Root, reason
from mydata_like.engine.layout import source_folder
from mydata_like.engine.layout_walk import (
    ALL,
    LevelScan,
    Opening,
    ScanScope,
    numbered,
    report_found,
)
from mydata_like.engine.walk import TreeRules, Walk
from mydata_like.settings.schema import Settings


class Scan:
    """The scan of a data directory, as a stream of local files by dataset folder."""

    def __init__(
        self,
        settings: Settings,
        emit: Emit,
        clock: Clock,
        cancel: CancelSignal,
        part: ScanScope = ALL,
    ) -> None:
        if settings.destination.takes_tree and part.as_is is None:
            part = part._replace(as_is=TreeRules(shard=part.shard))
        self._settings = settings
        self.part = part
        self._emit = emit
        self._clock = clock
        self._cancel = cancel
        self.found: int | None = None  # files of the data directory, once all of it was read

    def scan(self, root: bytes | Path) -> Iterator[FileGroup]:
        """Yield groups of files; the last one of each dataset folder is marked.

        Folders and files that are excluded or unreadable are reported as events. Raises
        `SettingsError` if the data directory is or becomes unavailable or a pattern is invalid,
        `Cancelled` if a stop is requested.
        """
        walk, empty = self._open(Root(root)), True
        for group in self._visit(walk, walk.open):
            empty = False
            yield group
        if self.part.only and empty:
            self._emit(Notice(problem=_no_folder(self.part.only)))
        walk.root.check()
        self.found = walk.found

    def look_ahead(
        self, root: bytes | Path, has_passed: Callable[[bytes], bool]
    ) -> Iterator[FileGroup]:
        """Yield the groups of `scan` except those of finished folders; raises the same errors."""
        walk = self._open(Root(root))

        def open_dataset(folder: DatasetFolder, path: bytes) -> Iterator[FileGroup]:
            return iter(()) if has_passed(folder.path) else walk.open(folder, path)

        yield from self._visit(walk, open_dataset)

    def find_folders(self, root: bytes | Path) -> Iterator[DatasetFolder]:
        """Yield the dataset folders without reading their content; raises the errors of `scan`."""
        for group in self._visit(self._open(Root(root)), _unread):
            if group.number == 0:
                yield group.folder

    def read(self, source: ExtraSource) -> Iterator[FileGroup]:
        """Yield the groups of a source; if it cannot be read, report that and continue."""
        folder = source_folder(self._settings.data.layout, source)
        number = 0
        try:
            for group in self._read_source(source, folder):
                number += not group.last
                yield group
        except SourceError as error:
            self._emit(FolderFailed(path=source.path, problem=error.problem))
            if number:  # no dataset is created for an empty source
                yield FileGroup(folder, (), last=True, number=number)

    def _read_source(self, source: ExtraSource, folder: DatasetFolder) -> Iterator[FileGroup]:
        # With the trailing "/", this is the root of a drive, not the current folder on it.
        path, top = (os.path.normpath(place + b"/") for place in (source.path, source.folder))
        walk = self._open(Root(top, _source_gone, may_be_link=source.alone))
        try:
            open_groups = walk.read_file if source.alone else walk.open
            groups = open_groups(folder, path)
        except OSError as error:
            raise _source_gone(path, reason(error)) from error
        report_found(self._emit, folder)
        yield from numbered(groups)
        walk.root.check()

    def _visit(self, walk: Walk, open_dataset: Opening) -> Iterator[FileGroup]:
        return LevelScan(walk, self._settings, open_dataset, self.part).groups()

    def _open(self, root: Root) -> Walk:
        return Walk(
            root,
            self._settings.filters,
            self._emit,
            self._clock,
            self._cancel,
            as_is=self.part.as_is,
        )


def _unread(folder: DatasetFolder, _path: bytes) -> Iterator[FileGroup]:
    """Yield a single empty group, for callers that only need the folder."""
    yield FileGroup(folder, (), last=True)


def _no_folder(path: str) -> Problem:
    return Problem(
        "folder.unknown",
        f"There is no dataset folder at or below {path}.",
        "Check the path, the layout and the filters.",
    )


def _source_gone(path: bytes, why: str) -> SourceError:
    return SourceError(
        f"{format_path(path)} cannot be read: {why}.",
        hint="Connect its drive; the next run continues. Or remove it from the list of sources.",
        code="source.gone",
    )
