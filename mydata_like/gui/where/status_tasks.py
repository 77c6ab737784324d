"""The status of local files, which may be deleted, and the way back: tasks for the background."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mydata_like.core.copy_arguments import FolderTarget
from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.core.errors import Cancelled
from mydata_like.core.extra_sources import source_key
from mydata_like.core.file_status import FileStatus, LocalState, PathStatus, Suggestion
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.gui.run_state import LiveRun
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.get_service import GetReport
    from mydata_like.app.verify_service import VerifyProgress

MAX_SUGGESTIONS = 200


class StatusAnswer(NamedTuple):
    """The result of a search: the status of an exact path, and the paths that contain the text."""

    text: str
    status: PathStatus | None
    suggestions: Sequence[Suggestion]


class CleanupResults(NamedTuple):
    """The files that were or may be deleted, and those that are kept."""

    freed: Sequence[DeletedFile]
    kept: Sequence[KeptFile]
    stopped: bool = False  # before all files were checked

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.freed)


@dataclass
class CleanupProgress:
    """The progress of a clean-up, readable from another thread."""

    files: int = 0
    bytes: int = 0


def find(settings: Settings, config: Path | None, text: str) -> StatusAnswer:
    """Return the status of a path, or the paths that contain a text; raises `UploaderError`."""
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app.file_status_service import suggest

    found = load_status(settings, config, Path(text))
    gone = isinstance(found, FileStatus) and found.local is LocalState.GONE
    suggestions = suggest(settings, config, text, MAX_SUGGESTIONS)
    return StatusAnswer(text, None if gone and found.unknown else found, suggestions)


def load_status(settings: Settings, config: Path | None, path: Path) -> PathStatus:
    """Return the status of a path; raises `UploaderError`."""
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app.file_status_service import find_status

    return find_status(settings, config, path)


class GetOffer(NamedTuple):
    """A path that can be got back, and whether it is missing here."""

    path: Path
    missing: bool


@dataclass
class GetProgress:
    """How far it is to get files back, readable from another thread."""

    latest: "VerifyProgress | None" = None
    run: LiveRun = field(default_factory=lambda: LiveRun(SystemClock()))


def find_offer(settings: Settings, config: Path | None, path: Path) -> GetOffer | None:
    """Return what can be got back, None if nothing; raises `UploaderError`."""
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app.get_service import can_be_got

    return GetOffer(path, not os.path.lexists(path)) if can_be_got(path, config) else None


def get_back(
    settings: Settings,
    config: Path | None,
    path: Path,
    progress: GetProgress,
    cancel: CancelFlag,
    *,
    target: Path | None,
    replace: bool,
) -> "GetReport | None":
    """Get a file or folder back, to its own place without a target; raises `UploaderError`.

    Return None if that was cancelled before it began.
    """
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app.get_service import GetOrder, get_files
    from mydata_like.engine.channels import find_planned

    bandwidth, _ = find_planned(settings.limits, datetime.now(UTC).astimezone())
    origin = source_key(path)
    order = GetOrder(
        what=FolderTarget(origin),
        contents=False,
        target=source_key(target) if target else origin,
        missing=target is None,
        origin=origin,
        config=config,
        bandwidth=bandwidth / 1e6,
        replace=replace,
    )

    def show(seen: "VerifyProgress") -> None:
        progress.latest = seen

    with suppress(Cancelled):
        return get_files(order, None, cancel, show, progress.run.progress.add)
    return None


def clean_up(
    settings: Settings,
    config: Path | None,
    progress: CleanupProgress,
    cancel: CancelFlag,
    *,
    check: Sequence[Path] = (),
    delete: Sequence[DeletedFile] = (),
) -> CleanupResults:
    """Return which files in the files and folders `check` may be deleted, without deleting any.

    With `delete`, delete exactly these files, except those that may no longer be deleted.
    """
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app.cleanup_service import open_cleanup
    from mydata_like.app.run_request import RunObserver

    freed: list[DeletedFile] = []
    kept: list[KeptFile] = []
    # The user may cancel before the first file is checked.
    with (
        suppress(Cancelled),
        open_cleanup(settings, config, RunObserver(cancel=cancel), delete=bool(delete)) as service,
    ):
        chosen = service.go_through(file.key for file in delete)
        for result in chosen if delete else service(check):
            if isinstance(result, DeletedFile):
                freed.append(result)
            else:
                kept.append(result)
            progress.files += 1
            progress.bytes += result.size
    return CleanupResults(freed, kept, cancel.is_set())
