"""`copy`: a proven copy of folders and files to a host, folder or bucket, without a server."""

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.app.copy_order import CopyOrder
from mydata_like.app.host_login import FoundHost
from mydata_like.app.known_copies import CopyRun, note_run
from mydata_like.app.plain_destination import (
    CopyDestination,
    FolderPlace,
    HostPlace,
    Place,
    open_target,
)
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.run_service import open_run, to_all
from mydata_like.core.checksums import Algorithm
from mydata_like.core.copy_arguments import (
    CopySource,
    CopyTarget,
    FolderTarget,
    format_target,
)
from mydata_like.core.destination_files import (
    DESTINATION_MARKER,
    EVIDENCE,
    OWN_FOLDER,
    TreeFolder,
    TreeLink,
)
from mydata_like.core.errors import FULL, HELD, AlreadyRunningError, Problem, SettingsError
from mydata_like.core.events import Event, FileFailed, FileWaiting, Notice, RunPaused
from mydata_like.core.extra_sources import Destination, SourceRequest, lies_in, source_key
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
from mydata_like.core.model import HELD_FILES
from mydata_like.core.openat import join
from mydata_like.core.ports import Emit
from mydata_like.engine.layout_walk import ScanScope
from mydata_like.engine.pipeline import Lock, begin
from mydata_like.engine.run import SOME_FAILED_EXIT, RunEnd
from mydata_like.engine.scheduler import SOURCE
from mydata_like.engine.walk import TreeRules
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.fields import InvalidSettingsError
from mydata_like.settings.schema import Settings, check_values

COUNTING: Final = 1.0  # seconds that counting the files may take before a copy starts
TREE_AT_ONCE: Final = 1000  # folders and links in one request
CHANGED: Final = "file.changed"
# Seconds before files that changed are tried again: where times are in whole seconds, a file may
# have changed unnoticed while its last change is more recent.
PAUSE: Final = 3.0
HOW_TO_REPLACE: Final = (
    "The copy was not replaced. To replace it, copy again with --replace-changed; the earlier "
    "content is kept beside it for 30 days."
)
NO_SPACE: Final = Problem(
    FULL,
    "The destination is full.",
    "Free space there, and the copy continues. After ten minutes without any, it ends.",
)
STILL_FULL: Final = Problem(
    FULL,
    "The destination has no space for the rest.",
    "Free space there, then run the same command again: it sends only what is missing.",
)


class CopyEnd(NamedTuple):
    """The end of a copy: that of its run, and what of the tree could not be made.

    The checksums of the destination are of the `algorithm`.
    """

    run: RunEnd
    problems: list[Problem]
    algorithm: Algorithm


@frozen()
class SourceCount:
    """How much there is to copy; `complete` is false if there is more than was counted."""

    files: int
    size: int
    complete: bool


def count_sources(sources: Sequence[CopySource]) -> SourceCount:
    """Return the number and size of files, as far as they can be counted in a moment."""
    files = size = 0
    until = time.monotonic() + COUNTING
    for source in sources:
        if source.alone:
            files, size = files + 1, size + os.lstat(source.path).st_size
            continue
        for found in _find_files(source.path):
            for entry in found:
                files, size = files + 1, size + entry.stat(follow_symlinks=False).st_size
            if time.monotonic() > until:
                return SourceCount(files, size, complete=False)
    return SourceCount(files, size, complete=True)


def open_place(order: CopyOrder, host: FoundHost | None) -> Place:
    """Return the destination, with a login on its host unless there was one.

    Raises `UploaderError`.
    """
    place: Place
    if host:
        place = HostPlace(*host)
    else:
        place = open_target(order.target, order.config, order.accepted_keys)
    if isinstance(place, FolderPlace):
        _refuse_overlap(order.sources, place.path)
    if not order.dry_run:
        place = place.probe()
    if order.evidence:
        _require_evidence(place, order.evidence)
    return place


def run_copy(order: CopyOrder, place: Place, observer: RunObserver) -> CopyEnd:
    """Copy everything; files that changed while they were read are tried once more."""
    changed = ChangedWhileRead()
    observer = replace(observer, emit=_reworded(observer.emit))
    watched = replace(observer, emit=to_all(changed.add, observer.emit))
    end, problems, algorithm = _run(order, place, watched)
    if changed.found and not end.finished.problem and not order.dry_run:
        observer.cancel.wait(PAUSE)
        end, problems, algorithm = _run(order, place, observer)
    code = end.exit_code
    if order.dry_run:
        return CopyEnd(end, problems, algorithm)
    sums = end.finished
    if sums.found:
        now = SystemClock().now()
        note_run(CopyRun(place.name, now, sums.found, sums.verified), order.config)
    if sums.problem and sums.problem.code == FULL:
        end = end._replace(finished=replace(sums, problem=STILL_FULL))
    if not code and (problems or end.finished.waiting or end.finished.left_behind):
        code = SOME_FAILED_EXIT
    return CopyEnd(end._replace(exit_code=code), problems, algorithm)


def _reworded(emit: Emit) -> Emit:
    """Return an `emit` that says what the user can do without a server."""

    def forward(event: Event) -> None:
        if isinstance(event, Notice) and event.problem == HELD_FILES:
            return  # each of them says the same
        if isinstance(event, FileWaiting) and event.problem.code == HELD:
            message = event.problem.message.replace(" on the server", " at the destination")
            message = message.replace(" by the server's clock", "")
            event = replace(event, problem=Problem(HELD, message, HOW_TO_REPLACE))
        elif isinstance(event, RunPaused) and event.problem.code == FULL:
            event = replace(event, problem=NO_SPACE)
        emit(event)

    return forward


class ChangedWhileRead:
    """Whether files of a run changed while they were read; from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.found = False

    def add(self, event: Event) -> None:
        """Process an event."""
        if isinstance(event, FileFailed | FileWaiting) and event.problem.code == CHANGED:
            with self._lock:
                self.found = True


def _run(order: CopyOrder, place: Place, observer: RunObserver) -> CopyEnd:
    destination = CopyDestination(
        place,
        order.sources,
        order.shard,
        address=_format_address(order.target, place),
        accept_missing=order.accept_missing,
        overwrite=order.overwrite,
        algorithm=order.algorithm,
    )
    seen: dict[tuple[bytes, bytes], os.stat_result | None] = {}  # folders and links
    named = Destination("", "copy", "copy")
    request = RunRequest(
        settings=_build_settings(order),
        config=order.config,
        dry_run=order.dry_run,
        reason=SOURCE,
        sources=tuple(SourceRequest(source.path, named) for source in order.sources),
        part=ScanScope(
            as_is=TreeRules(
                destination.judge_own,
                order.shard,
                "follow" if order.links == "follow" else "leave",
                lambda folder, below, status: seen.update({(folder, below): status}),
            )
        ),
    )
    with _named_lock(destination), open_run(request, observer, destination) as run:
        end, problems = run.execute(), list[Problem]()
        algorithm = destination.files.algorithm
        if order.dry_run or end.finished.problem:
            return CopyEnd(end, problems, algorithm)
        whole = not (end.finished.waiting or end.finished.failed)
        cleared = begin(lambda: destination.clear(everything=whole))
        for folders, links in _list_trees(order, seen):
            problems += destination.make_tree(folders, links)
        cleared()
    return CopyEnd(end, problems, algorithm)


@contextmanager
def _named_lock(destination: CopyDestination) -> Iterator[None]:
    """Say what is locked if another copy from the same folders is in progress."""
    try:
        yield
    except AlreadyRunningError as error:
        who = error.message.partition(" since ")[2]
        raise AlreadyRunningError(
            f"Another copy from this folder to {destination.place.name} has been in progress "
            f"since {who}",
            hint="Wait until it has ended. One command can copy several sources.",
            code=error.problem_code,
        ) from error


def _format_address(target: CopyTarget, place: Place) -> str:
    """Return how the destination is named in another folder."""
    return format_target(FolderTarget(place.path) if isinstance(place, FolderPlace) else target)


def _build_settings(order: CopyOrder) -> Settings:
    """Return the settings of a copy: nothing of the user's, and no rule of a server."""
    settings, problems = check_values(
        {
            "data.changed": "replace" if order.replace_changed else "keep-both",
            "filters.default_ignores": False,
            "filters.settle_seconds": 0.0,
            "filters.includes": list(order.includes),
            "filters.excludes": list(order.excludes),
            "advanced.pause_patience": order.patience,
            "limits.bandwidth": order.bandwidth,
            "limits.low_priority": False,
            "transfer.channels": order.channels,
        }
    )
    if settings is None:
        raise InvalidSettingsError(problems)
    return settings


def _refuse_overlap(sources: Sequence[CopySource], top: bytes) -> None:
    """Raise an error if what is copied would be found as a source again."""
    real = source_key(Path(os.fsdecode(os.path.realpath(top))))
    for source in sources:
        own = source_key(Path(os.fsdecode(os.path.realpath(source.path))))
        target = real + b"/" + source.place if source.place else real
        if lies_in(real, own) or lies_in(own, target):
            raise SettingsError(
                f"The destination {format_path(top)} is in the source "
                f"{format_path(source.path)}, or the source in the destination.",
                hint="Choose a destination that is in no source and contains none.",
                code="destination.inside",
            )


def _require_evidence(place: Place, least: str) -> None:
    """Raise `SettingsError` if the destination proves files in a weaker way than this."""
    found = place.open_files().evidence
    if EVIDENCE.index(found) < EVIDENCE.index(least):
        raise SettingsError(
            f"{place.name} gives a weaker proof ({found}) than --evidence {least} demands.",
            hint="Nothing was sent. Choose another destination, or leave --evidence out.",
            code="destination.evidence",
        )


def _find_files(top: bytes) -> Iterator[list[os.DirEntry[bytes]]]:
    """Yield the files of each folder of a source; what cannot be read is left out."""
    waiting = [top]
    while waiting:
        files: list[os.DirEntry[bytes]] = []
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    files.append(entry)
                elif entry.is_dir(follow_symlinks=False) and not (
                    entry.name == OWN_FOLDER
                    and os.path.lexists(join(entry.path, DESTINATION_MARKER))
                ):
                    waiting.append(entry.path)
        yield files


def _list_trees(
    order: CopyOrder, seen: Mapping[tuple[bytes, bytes], os.stat_result | None]
) -> Iterator[tuple[list[TreeFolder], list[TreeLink]]]:
    """Yield the folders and links that the scan has seen, as they are to be at the destination.

    The times of folders come last: links that are made in them change these.
    """
    places = {source.path: source.place for source in order.sources}
    folders: list[TreeFolder] = []
    links: list[TreeLink] = []
    for (top, below), status in seen.items():
        place = b"/".join(filter(None, (places[top], below)))
        if status is not None and place:
            mode = stat.S_IMODE(status.st_mode) & 0o777
            folders.append(TreeFolder(place, mode, status.st_mtime_ns))
        elif status is None and order.links == "keep":
            with suppress(OSError):  # it was removed in the meantime
                target = os.readlink(join(top, below))  # noqa: PTH115 - of bytes
                links.append(TreeLink(place, os.fsencode(target)))
    for start in range(0, len(links), TREE_AT_ONCE):
        yield [], links[start : start + TREE_AT_ONCE]
    for start in range(0, len(folders), TREE_AT_ONCE):
        yield folders[start : start + TREE_AT_ONCE], []
