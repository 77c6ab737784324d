"""Extra sources: previews of what they would become, conflicts, and what is still unfinished."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

from mydata_like.app.ledgers import reading
from mydata_like.app.settings_service import find_places, find_state, ledger_file
from mydata_like.core.errors import Problem, SourceError
from mydata_like.core.events import (
    Event,
    FileFailed,
    FileSkipped,
    FilesSeen,
    FileWaiting,
    FolderFailed,
    FolderSkipped,
)
from mydata_like.core.extra_sources import (
    Destination,
    ExtraSource,
    KnownSource,
    SourceRequest,
    lies_in,
)
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
from mydata_like.core.model import EntryState, FileGroup
from mydata_like.core.ports import CancelSignal
from mydata_like.engine.scan import Scan
from mydata_like.engine.source_store import check_source
from mydata_like.engine.time_left import Costs, find_costs
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import lock_data_directory
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.settings.schema import Settings

PARTS_SHOWN = 500  # sub-folders of a source that are listed separately


class SourcePart(NamedTuple):
    """A folder directly in a source, with all below it; without a name, the files of all others."""

    name: bytes
    files: int = 0
    bytes: int = 0


class SkippedSource(NamedTuple):
    """The number of files or folders that are not sent for one reason, and the first of them."""

    problem: Problem
    number: int
    example: bytes


def count_skipped(reasons: dict[str, SkippedSource], event: Event) -> None:
    """Count a file or folder that is not sent, by the code of the reason."""
    if isinstance(event, FileWaiting | FileSkipped | FileFailed | FolderSkipped | FolderFailed):
        left = reasons.get(event.problem.code, SkippedSource(event.problem, 0, event.path))
        reasons[event.problem.code] = left._replace(number=left.number + 1)


@frozen(kw_only=True)
class SourcePreview:
    """The preview of a folder or file that is to be sent, as far as it has been scanned.

    found = safe + waiting + left + wanted. `reasons` explains `waiting` and `left` by code.
    """

    path: bytes
    destination: Destination
    remembered: bool = False  # the destination is from an earlier upload
    alone: bool = False
    refusal: Problem | None = None  # why it cannot be sent
    complete: bool = False  # it was scanned to the end
    found: int = 0
    found_bytes: int = 0
    safe: int = 0  # verified by the server in their current state
    safe_bytes: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    left: int = 0
    left_bytes: int = 0
    reasons: Mapping[str, SkippedSource] = field(default_factory=dict)
    parts: tuple[SourcePart, ...] = ()  # in the order found

    @property
    def wanted(self) -> int:
        """The number of files that would be sent."""
        return self.found - self.safe - self.waiting - self.left

    @property
    def wanted_bytes(self) -> int:
        return self.found_bytes - self.safe_bytes - self.waiting_bytes - self.left_bytes


class Conflict(NamedTuple):
    """A conflict of a source that the user should know before it is sent.

    Between two sources: one is inside the other (`inside`), or both become one dataset (`same`).
    Of one source: the server has it under another name (`elsewhere`), or has files of `other`
    under its name (`taken`). With the first two kinds, neither source can be sent.
    """

    kind: Literal["inside", "same", "elsewhere", "taken"]
    path: bytes
    other: bytes = b""
    before: Destination | None = None

    @property
    def hinders(self) -> bool:
        return self.kind in ("inside", "same")


def find_sources(settings: Settings, config: Path | None) -> list[KnownSource]:
    """Return all sources that were ever added, sorted by path."""
    with _reading(settings, config) as ledger:
        return ledger.find_sources() if ledger else []


def find_unfinished_sources(settings: Settings, config: Path | None) -> list[KnownSource]:
    """Return the sources that are not completely safe yet, with the remaining amounts."""
    with _reading(settings, config) as ledger:
        return list_unfinished(ledger) if ledger else []


def list_unfinished(ledger: SqliteLedger) -> list[KnownSource]:
    """Return the unfinished sources, each with the amount that is still to be sent."""
    known = ledger.find_sources()
    return [ledger.measure_source(source) for source in known if source.finished is None]


def remove_source(settings: Settings, config: Path | None, path: bytes) -> None:
    """Remove a source by its key: no run continues with it, and it no longer counts as at risk.

    No files are deleted, here or on the server. Raises `AlreadyRunningError` while a run is in
    progress, `SourceError` if there is no such unfinished source, `RunError` if the ledger fails.
    """
    if path not in [known.path for known in find_unfinished_sources(settings, config)]:
        raise SourceError(
            f"{format_path(path)} is not an unfinished extra source.",
            hint="To list them, run: mydata-like sources",
            code="source.unknown",
        )
    places, clock = find_places(config), SystemClock()
    root = os.fsencode(settings.data.directory or "")
    with (
        lock_data_directory(find_state(settings, places), root, clock),
        SqliteLedger.open(ledger_file(settings, places, root), root, clock) as ledger,
    ):
        ledger.remove_source(path)


def find_source_of(settings: Settings, config: Path | None, path: bytes) -> bytes | None:
    """Return the key of the source that contains a path."""
    known = find_sources(settings, config)
    return next((source.path for source in known if lies_in(path, source.path)), None)


def find_expected_costs(settings: Settings, config: Path | None) -> Costs | None:
    """Return the costs of the latest run that was long enough to measure them."""
    with _reading(settings, config) as ledger:
        return find_costs(run.summary for run in ledger.find_runs()) if ledger else None


def preview_sources(
    settings: Settings, config: Path | None, paths: Iterable[bytes], cancel: CancelSignal
) -> Iterator[SourcePreview]:
    """Scan folders and files as a run would; yield the preview of each repeatedly as it grows.

    Changes nothing and does not query the server. Raises `Cancelled` when asked to stop,
    `SettingsError` if a pattern is invalid, `RunError` if the ledger cannot be read.
    """
    with _reading(settings, config) as ledger:
        for path in paths:
            yield from _preview(settings, path, ledger, cancel)


def find_conflicts(
    settings: Settings, config: Path | None, sources: Sequence[ExtraSource]
) -> list[Conflict]:
    """Return the conflicts that would lose or mix data if these sources were sent."""
    conflicts = [
        found for one, other in combinations(sources, 2) if (found := _compare(one, other))
    ]
    with _reading(settings, config) as ledger:
        if ledger is not None:
            for source in sources:
                conflicts += _find_past(ledger, source)
    return conflicts


@contextmanager
def _reading(settings: Settings, config: Path | None) -> Iterator[SqliteLedger | None]:
    """Open the ledger to read it; None if there is none, or none that records sources yet."""
    with reading(settings, config) as ledger:
        yield None if ledger is None or ledger.outdated else ledger


def _preview(
    settings: Settings, path: bytes, ledger: SqliteLedger | None, cancel: CancelSignal
) -> Iterator[SourcePreview]:
    offer = SourceRequest(path)
    try:
        source = check_source(settings, offer)
    except SourceError as error:
        yield SourcePreview(
            path=path,
            destination=Destination("", "", ""),
            refusal=error.problem,
            complete=True,
        )
        return
    known = ledger.find_destination(source.path) if ledger else None
    builder = _PreviewBuilder(
        SourcePreview(
            path=source.path,
            destination=known or source.destination,
            remembered=known is not None,
            alone=source.alone,
        )
    )
    yield builder.preview
    for group in Scan(settings, builder.add, SystemClock(), cancel).read(source):
        entries = ledger.find_entries([file.key for file in group.files]) if ledger else {}
        safe = {
            file.key
            for file in group.files
            if (entry := entries.get(file.key)) is not None
            and entry.state is EntryState.VERIFIED
            and (entry.size, entry.modified_ns) == (file.size, file.modified_ns)
        }
        builder.add_group(group, safe)
        yield builder.preview
    yield replace(builder.preview, complete=True)


class _PreviewBuilder:
    """Builds the preview of one source from the events of a scan."""

    def __init__(self, preview: SourcePreview) -> None:
        self.preview = preview
        self._reasons: dict[str, SkippedSource] = {}
        self._parts: dict[bytes, SourcePart] = {}

    def add(self, event: Event) -> None:
        """Add an event of the scan."""
        match event:
            case FilesSeen(files=files, bytes=size):
                self._count(found=files, found_bytes=size)
            case FileWaiting(size=size):
                self._count(waiting=1, waiting_bytes=size)
            case FileSkipped(size=size) | FileFailed(size=size):
                self._count(left=1, left_bytes=size)
            case _:
                pass
        count_skipped(self._reasons, event)

    def _count(self, **more: int) -> None:
        sums = {name: getattr(self.preview, name) + number for name, number in more.items()}
        self.preview = replace(self.preview, **sums)

    def add_group(self, group: FileGroup, safe: set[bytes]) -> None:
        """Add the files of a group that a run would send."""
        for file in group.files:
            name = file.directory.partition(b"/")[0]
            if name not in self._parts and len(self._parts) >= PARTS_SHOWN:
                name = b""
            part = self._parts.get(name, SourcePart(name))
            self._parts[name] = SourcePart(name, part.files + 1, part.bytes + file.size)
        size = sum(file.size for file in group.files if file.key in safe)
        self._count(safe=len(safe), safe_bytes=size)
        parts = tuple(self._parts.values())
        self.preview = replace(self.preview, reasons=dict(self._reasons), parts=parts)


def _compare(one: ExtraSource, other: ExtraSource) -> Conflict | None:
    if lies_in(one.path, other.path) or lies_in(other.path, one.path):
        return Conflict("inside", one.path, other.path)
    if one.destination == other.destination and one.folder != other.folder:
        return Conflict("same", one.path, other.path)
    return None


def _find_past(ledger: SqliteLedger, source: ExtraSource) -> Iterator[Conflict]:
    before = ledger.find_destination(source.path)
    if before is not None and before != source.destination:
        yield Conflict("elsewhere", source.path, before=before)
    for path in ledger.find_folders(source.destination):
        if path not in (source.path, source.folder):
            yield Conflict("taken", source.path, path)
            return
