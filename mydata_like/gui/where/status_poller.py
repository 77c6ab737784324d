"""Polls the status of the shown file or folder while its page is visible."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.file_status import FileStatus, LocalState, PathStatus, Suggestion
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.gui import services
from mydata_like.gui.base import AppContext
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.theme import texts
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.cleanup_service import CleanupService


MOST = 200  # suggestions


class StatusAnswer(NamedTuple):
    """What was found for a text: the very path, and all whose paths have it."""

    text: str
    status: PathStatus | None
    suggestions: Sequence[Suggestion]


class LedgerRef(NamedTuple):
    """Whose files are asked about: the settings, and their file."""

    settings: Settings
    config: Path | None


class CleanupResults(NamedTuple):
    """What became of all files that were asked for, or would become."""

    freed: Sequence[DeletedFile]
    kept: Sequence[KeptFile]
    stopped: bool = False  # before all were looked at

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.freed)


@dataclass
class CleanupProgress:
    """How far the work has come, for those who look from another thread."""

    files: int = 0
    bytes: int = 0


def find(place: LedgerRef, text: str) -> StatusAnswer:
    """Return what is known of a path or a part of one; raises `UploaderError`."""
    found = services.find_status(*place, Path(text))
    gone = isinstance(found, FileStatus) and found.local is LocalState.GONE
    suggestions = services.suggest_paths(*place, text, MOST)
    return StatusAnswer(text, None if gone and found.unknown else found, suggestions)


def look_at(place: LedgerRef, path: Path) -> PathStatus:
    """Return what is known of a path; raises `UploaderError`."""
    return services.find_status(*place, path)


def look_into(
    place: LedgerRef, paths: Sequence[Path], pace: CleanupProgress, cancel: CancelFlag
) -> CleanupResults:
    """Ask the server what of these files and folders may be deleted; nothing is."""
    return _go_through(place, lambda freeing: freeing(paths), pace, cancel, delete=False)


def delete(
    place: LedgerRef, chosen: Sequence[DeletedFile], pace: CleanupProgress, cancel: CancelFlag
) -> CleanupResults:
    """Delete exactly these files, as far as they may still be."""
    keys = [file.key for file in chosen]
    return _go_through(place, lambda freeing: freeing.go_through(keys), pace, cancel, delete=True)


def _go_through(
    place: LedgerRef,
    begin: Callable[["CleanupService"], Iterable[DeletedFile | KeptFile]],
    pace: CleanupProgress,
    cancel: CancelFlag,
    *,
    delete: bool,
) -> CleanupResults:
    freed: list[DeletedFile] = []
    kept: list[KeptFile] = []
    # Who asks to stop may do so before the first file is looked at.
    with (
        suppress(Cancelled),
        services.open_cleanup(*place, cancel, delete=delete) as freeing,
    ):
        for fate in begin(freeing):
            if isinstance(fate, DeletedFile):
                freed.append(fate)
            else:
                kept.append(fate)
            pace.files += 1
            pace.bytes += fate.size
    return CleanupResults(freed, kept, cancel.is_set())


RENEW_AFTER = 2000  # milliseconds between two polls of what is shown, at least


class FileStatusPoller(QObject):
    """Polls once at a time: polls that hang, at a dead mount, must not become many."""

    found = Signal(object)  # a PathStatus
    failed = Signal(object)  # why the status could not be found even once, as text

    def __init__(self, desk: AppContext, page: QWidget) -> None:
        super().__init__(page)
        self._desk = desk
        self._controller = desk.controller
        self._page = page
        self._path: Path | None = None
        self._seen = False  # the status of this path is known
        self._task = BackgroundTask()
        self._stale = False
        self._timer = QTimer(self, singleShot=True, interval=RENEW_AFTER)
        self._controller.ledger_changed.connect(self._follow)
        self._timer.timeout.connect(self._poll_if_stale)

    @property
    def polling(self) -> bool:
        """Whether a poll is under way."""
        return self._task.running

    def watch(self, path: Path) -> None:
        """Poll this path now, or right after the poll that is under way."""
        self._path, self._seen = path, False
        self.poll()

    def keep(self, status: PathStatus | None) -> None:
        """Follow a path whose status is known already, or none any more."""
        self._path, self._seen = status and status.path, True

    @Slot()
    def poll(self) -> None:
        """Poll again."""
        self._stale = True
        if self.polling or self._path is None or self._controller.loaded is None:
            return
        self._stale = False
        path, place = self._path, LedgerRef(self._controller.settings, self._controller.config)
        done, failed = partial(self._take, path), partial(self._fail, path)
        self._task = self._desk.tasks.run(partial(look_at, place, path), done, failed)

    @Slot()
    def _follow(self) -> None:
        self._stale = True
        if not self._timer.isActive():
            self._poll_if_stale()

    @Slot()
    def _poll_if_stale(self) -> None:
        if self._stale and self._page.isVisible():
            self.poll()

    def _take(self, path: Path, status: PathStatus) -> None:
        if self._rest(path):
            self.keep(status)
            self.found.emit(status)

    def _fail(self, path: Path, error: UploaderError) -> None:
        # What was seen before stays as it was.
        if self._rest(path) and not self._seen:
            self.keep(None)
            self.failed.emit(texts.told(error))

    def _rest(self, path: Path) -> bool:
        """Return whether a poll was of the path that is still wanted; else poll that now."""
        if path == self._path:
            self._timer.start()
            return True
        self.poll()
        return False
