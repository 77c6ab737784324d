"""The sources that users add for upload from outside of the data directory."""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from mydata_like.core.errors import SourceError
from mydata_like.core.extra_sources import (
    Destination,
    ExtraSource,
    KnownSource,
    SourceRequest,
    check_destination,
    lies_in,
    source_key,
    suggest_destination,
)
from mydata_like.core.file_access import system_path
from mydata_like.core.formatting import format_path
from mydata_like.core.openat import is_link
from mydata_like.engine.data_root import reason
from mydata_like.engine.layout import dataset_folder, levels_of
from mydata_like.engine.pipeline import Lock
from mydata_like.settings.schema import Settings


class SourceStore(Protocol):
    """The storage for sources: the ledger."""

    def find_destination(self, path: bytes) -> Destination | None: ...

    def record_source(self, source: ExtraSource) -> None: ...

    def find_sources(self) -> Sequence[KnownSource]: ...

    def finish_source(self, path: bytes) -> None:
        """Record that all of a source is safe, unless some of it is known not to be."""


class ExtraSources:
    """The sources of one run; they may be added from any thread during the run.

    With `alone` only sources are uploaded. A dry run stores none.
    """

    def __init__(
        self, settings: Settings, roll: SourceStore, *, alone: bool = False, dry_run: bool = False
    ) -> None:
        self.alone = alone
        self._settings = settings
        self._roll = roll
        self._dry_run = dry_run
        self._lock = Lock()
        self._waiting: dict[bytes, ExtraSource] = {}
        self._taken: set[bytes] = set()
        self._again: set[bytes] = set()  # added after this run had read them
        self._closed = False

    def add(self, offer: SourceRequest) -> bool:
        """Add a source to this run; return false if it is left for the next one.

        It is stored in either case. Raises `SourceError` if no run can upload it, `RunError` if the
        ledger fails.
        """
        source = self._complete(offer)
        with self._lock:
            taken = not self._closed and source.path not in self._taken
            if taken:
                self._refuse_overlap(source)
            self._record(source)
            if taken:
                self._waiting[source.path] = source
            else:
                self._again.add(source.path)
        return taken

    def remember(self, offer: SourceRequest) -> None:
        """Store a source for a later run; raises the errors of `add`."""
        source = self._complete(offer)
        with self._lock:
            self._record(source)
            if source.path in self._taken:
                self._again.add(source.path)

    def carry_on(self) -> None:
        """Add the unfinished sources of earlier runs to this run.

        If two of them overlap, the one that was added now counts.
        """
        left = [known for known in self._roll.find_sources() if known.finished is None]
        with self._lock:
            for known in left:
                if not self._find_overlap(known.path):
                    alone = _is_file(known.path)
                    self._waiting[known.path] = ExtraSource(known.path, known.destination, alone)

    def take(self) -> Iterator[ExtraSource]:
        """Yield the sources that have been added and not been taken yet."""
        while source := self._take_one():
            yield source

    def end(self) -> bool:
        """Return whether all have been taken; from then on no more are accepted."""
        with self._lock:
            self._closed = not self._waiting
            return self._closed

    @property
    def waiting(self) -> list[ExtraSource]:
        """The sources that have been added and not been taken yet."""
        with self._lock:
            return list(self._waiting.values())

    @property
    def taken(self) -> list[bytes]:
        """The paths of all sources that this run has read or started to read."""
        with self._lock:
            return sorted(self._taken)

    def finish(self) -> None:
        """Record the sources that are safe, after a run that finished."""
        for path in self.taken:
            if path not in self._again:
                self._roll.finish_source(path)

    def _take_one(self) -> ExtraSource | None:
        with self._lock:
            path = next(iter(self._waiting), None)
            if path is None:
                return None
            self._taken.add(path)
            return self._waiting.pop(path)

    def _complete(self, offer: SourceRequest) -> ExtraSource:
        source = check_source(self._settings, offer)
        if offer.destination is not None:
            return source
        known = self._roll.find_destination(source.path)
        return source._replace(destination=known) if known else source

    def _record(self, source: ExtraSource) -> None:
        if not self._dry_run:
            self._roll.record_source(source)

    def _find_overlap(self, path: bytes) -> list[bytes]:
        """Return the sources of this run that overlap with a path."""
        others = self._taken | self._waiting.keys()
        return [other for other in others if lies_in(path, other) or lies_in(other, path)]

    def _refuse_overlap(self, source: ExtraSource) -> None:
        for other in self._find_overlap(source.path):
            if other != source.path:
                raise SourceError(
                    f"{format_path(source.path)} and {format_path(other)} overlap.",
                    hint="A run uploads each file only once: leave out one of the two.",
                    code="source.overlap",
                )


def check_source(settings: Settings, offer: SourceRequest) -> ExtraSource:
    """Return the source for an offer, with a suggested destination if it has none.

    Raises `SourceError` if it cannot be uploaded.
    """
    path = os.path.abspath(offer.path)  # noqa: PTH100 - of bytes, and links are kept
    kind = _look(path)
    _refuse_relatives(settings, path)
    key = source_key(Path(os.fsdecode(path)))
    alone = not stat.S_ISDIR(kind)
    wanted = offer.destination or suggest_destination(key, alone=alone)
    return ExtraSource(key, check_destination(wanted), alone)


def _look(path: bytes) -> int:
    """Return the kind of a path, if it can be uploaded."""
    shown = format_path(path)
    try:
        status = os.lstat(system_path(path))
    except OSError as error:
        raise SourceError(
            f"{shown} cannot be uploaded: {reason(error)}.",
            hint="Check the path, and that its drive is connected.",
            code="source.gone",
        ) from error
    if is_link(status):
        raise SourceError(
            f"{shown} is a link to something else.",
            hint="Give the folder that it points to.",
            code="source.link",
        )
    if not stat.S_ISDIR(status.st_mode) and not stat.S_ISREG(status.st_mode):
        raise SourceError(
            f"{shown} is neither a folder nor a regular file.",
            hint="Give a folder or a file.",
            code="source.special",
        )
    return status.st_mode


def _is_file(path: bytes) -> bool:
    """Return whether a path is no folder; a missing path is reported when it is read."""
    try:
        return not stat.S_ISDIR(os.lstat(system_path(path)).st_mode)
    except OSError:
        return False


def _refuse_relatives(settings: Settings, path: bytes) -> None:
    """Refuse a path that is in the data directory, or contains it."""
    root = settings.data.directory
    if root is None:
        return
    real, data = (source_key(Path(os.path.realpath(os.fsdecode(it)))) for it in (path, root))
    if lies_in(real, data):
        raise SourceError(
            f"{format_path(path)} is in the data directory. "
            f"{_describe_place(settings, real, data)}",
            hint="A run over the data directory uploads it.",
            code="source.inside",
        )
    if lies_in(data, real):
        raise SourceError(
            f"{format_path(path)} contains the data directory.",
            hint="Give a folder outside the data directory.",
            code="source.holds-data",
        )


def _describe_place(settings: Settings, real: bytes, data: bytes) -> str:
    """Describe what the layout makes of a path in the data directory."""
    levels = levels_of(settings.data.layout)
    names = real[len(data) :].decode("utf-8", "replace").strip("/").split("/")
    if len(names) < len(levels):
        return "The layout maps its folders to datasets."
    top = tuple(names[: len(levels)])
    folder = dataset_folder(settings.data.layout, top, settings.instrument.name, real)
    experiment = f' of the experiment "{folder.title}"' if folder.title else ""
    part = "It is" if len(names) == len(levels) else "It is part of"
    return f'{part} the dataset "{folder.name}"{experiment}.'
