"""Answers about files; what that needs is imported in the thread that does it."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.core.errors import Cancelled
from mydata_like.core.file_status import FileStatus, LocalState, PathStatus, Suggestion
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.cleanup_service import CleanupService

MOST = 200  # suggestions


class Answer(NamedTuple):
    """What was found for a text: the very path, and all whose paths have it."""

    text: str
    status: PathStatus | None
    suggestions: Sequence[Suggestion]


class Place(NamedTuple):
    """Whose files are asked about: the settings, and their file."""

    settings: Settings
    config: Path | None


class Fates(NamedTuple):
    """What became of all files that were asked for, or would become."""

    freed: Sequence[DeletedFile]
    kept: Sequence[KeptFile]
    stopped: bool = False  # before all were looked at

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.freed)


@dataclass
class Pace:
    """How far the work has come, for those who look from another thread."""

    files: int = 0
    bytes: int = 0


def find(place: Place, text: str) -> Answer:
    """Return what is known of a path or a part of one; raises `UploaderError`."""
    from mydata_like.app.file_status_service import find_status, suggest

    found = find_status(*place, Path(text))
    gone = isinstance(found, FileStatus) and found.local is LocalState.GONE
    suggestions = suggest(*place, text, MOST)
    return Answer(text, None if gone and found.unknown else found, suggestions)


def look_at(place: Place, path: Path) -> PathStatus:
    """Return what is known of a path; raises `UploaderError`."""
    from mydata_like.app.file_status_service import find_status

    return find_status(*place, path)


def look_into(place: Place, paths: Sequence[Path], pace: Pace, cancel: CancelFlag) -> Fates:
    """Ask the server what of these files and folders may be deleted; nothing is."""
    return _go_through(place, lambda freeing: freeing(paths), pace, cancel, delete=False)


def delete(place: Place, chosen: Sequence[DeletedFile], pace: Pace, cancel: CancelFlag) -> Fates:
    """Delete exactly these files, as far as they may still be."""
    keys = [file.key for file in chosen]
    return _go_through(place, lambda freeing: freeing.go_through(keys), pace, cancel, delete=True)


def _go_through(
    place: Place,
    begin: Callable[["CleanupService"], Iterable[DeletedFile | KeptFile]],
    pace: Pace,
    cancel: CancelFlag,
    *,
    delete: bool,
) -> Fates:
    from mydata_like.app.cleanup_service import open_freeing
    from mydata_like.app.run_request import RunObserver

    freed: list[DeletedFile] = []
    kept: list[KeptFile] = []
    observer = RunObserver(cancel=cancel)
    # Who asks to stop may do so before the first file is looked at.
    with (
        suppress(Cancelled),
        open_freeing(*place, observer, delete=delete) as freeing,
    ):
        for fate in begin(freeing):
            if isinstance(fate, DeletedFile):
                freed.append(fate)
            else:
                kept.append(fate)
            pace.files += 1
            pace.bytes += fate.size
    return Fates(freed, kept, cancel.is_set())
