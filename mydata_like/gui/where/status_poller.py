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
from mydata_like.gui.base import AppContext
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.theme import texts
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.cleanup_service import CleanupService


MAX_SUGGESTIONS = 200


class StatusAnswer(NamedTuple):
    """The result of a search: the status of an exact path, and the paths that contain the text."""

    text: str
    status: PathStatus | None
    suggestions: Sequence[Suggestion]


class LedgerRef(NamedTuple):
    """The ledger to read: the settings, and the file they were loaded from."""

    settings: Settings
    config: Path | None


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


def find(ledger: LedgerRef, text: str) -> StatusAnswer:
    """Return the status of a path, or the paths that contain a text; raises `UploaderError`."""
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app.file_status_service import find_status, suggest

    found = find_status(*ledger, Path(text))
    gone = isinstance(found, FileStatus) and found.local is LocalState.GONE
    suggestions = suggest(*ledger, text, MAX_SUGGESTIONS)
    return StatusAnswer(text, None if gone and found.unknown else found, suggestions)


def load_status(ledger: LedgerRef, path: Path) -> PathStatus:
    """Return the status of a path; raises `UploaderError`."""
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app.file_status_service import find_status

    return find_status(*ledger, path)


def check_deletable(
    ledger: LedgerRef, paths: Sequence[Path], progress: CleanupProgress, cancel: CancelFlag
) -> CleanupResults:
    """Return which files in these files and folders may be deleted, without deleting any."""
    return _clean_up(ledger, lambda service: service(paths), progress, cancel, delete=False)


def delete(
    ledger: LedgerRef, chosen: Sequence[DeletedFile], progress: CleanupProgress, cancel: CancelFlag
) -> CleanupResults:
    """Delete exactly these files, except those that may no longer be deleted."""
    keys = [file.key for file in chosen]
    return _clean_up(
        ledger, lambda service: service.go_through(keys), progress, cancel, delete=True
    )


def _clean_up(
    ledger: LedgerRef,
    begin: Callable[["CleanupService"], Iterable[DeletedFile | KeptFile]],
    progress: CleanupProgress,
    cancel: CancelFlag,
    *,
    delete: bool,
) -> CleanupResults:
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app.cleanup_service import open_cleanup
    from mydata_like.app.run_request import RunObserver

    freed: list[DeletedFile] = []
    kept: list[KeptFile] = []
    # The user may cancel before the first file is checked.
    with (
        suppress(Cancelled),
        open_cleanup(*ledger, RunObserver(cancel=cancel), delete=delete) as service,
    ):
        for result in begin(service):
            if isinstance(result, DeletedFile):
                freed.append(result)
            else:
                kept.append(result)
            progress.files += 1
            progress.bytes += result.size
    return CleanupResults(freed, kept, cancel.is_set())


RENEW_AFTER = 2000  # minimum milliseconds between two polls


class FileStatusPoller(QObject):
    """Polls one at a time, since polls that hang on a dead mount must not accumulate."""

    found = Signal(object)  # a PathStatus
    failed = Signal(object)  # the message of an error before the first status

    def __init__(self, context: AppContext, page: QWidget) -> None:
        super().__init__(page)
        self._context = context
        self._controller = context.controller
        self._page = page
        self._path: Path | None = None
        self._status_known = False  # the status of this path is known
        self._task = BackgroundTask()
        self._stale = False
        self._timer = QTimer(self, singleShot=True, interval=RENEW_AFTER)
        self._controller.ledger_changed.connect(self._on_ledger_changed)
        self._timer.timeout.connect(self._poll_if_stale)

    @property
    def polling(self) -> bool:
        """Whether a poll is in progress."""
        return self._task.running

    def watch(self, path: Path) -> None:
        """Poll this path now, or right after the active poll."""
        self._path, self._status_known = path, False
        self.poll()

    def follow(self, status: PathStatus | None) -> None:
        """Follow the path of a known status, or no path at all."""
        self._path, self._status_known = status and status.path, True

    @Slot()
    def poll(self) -> None:
        """Poll again."""
        self._stale = True
        if self.polling or self._path is None or self._controller.loaded is None:
            return
        self._stale = False
        path, ledger = self._path, LedgerRef(self._controller.settings, self._controller.config)
        done, failed = partial(self._take, path), partial(self._fail, path)
        self._task = self._context.tasks.run(partial(load_status, ledger, path), done, failed)

    @Slot()
    def _on_ledger_changed(self) -> None:
        self._stale = True
        if not self._timer.isActive():
            self._poll_if_stale()

    @Slot()
    def _poll_if_stale(self) -> None:
        if self._stale and self._page.isVisible():
            self.poll()

    def _take(self, path: Path, status: PathStatus) -> None:
        if self._is_current(path):
            self.follow(status)
            self.found.emit(status)

    def _fail(self, path: Path, error: UploaderError) -> None:
        # An earlier status stays displayed.
        if self._is_current(path) and not self._status_known:
            self.follow(None)
            self.failed.emit(texts.error_text(error))

    def _is_current(self, path: Path) -> bool:
        """Return whether the poll was for the current path; otherwise poll that path now."""
        if path == self._path:
            self._timer.start()
            return True
        self.poll()
        return False
