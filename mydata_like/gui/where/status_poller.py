"""Polls the status of the file or folder that is shown, as long as its page is visible."""

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from mydata_like.core.errors import UploaderError
from mydata_like.core.file_status import PathStatus
from mydata_like.gui.look import words
from mydata_like.gui.pages.page import Desk
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.where import source
from mydata_like.gui.where.source import Place

RENEW_AFTER = 2000  # milliseconds between two polls of what is shown, at least


class FileStatusPoller(QObject):
    """Polls once at a time: polls that hang, at a dead mount, must not become many."""

    found = Signal(object)  # a PathStatus
    failed = Signal(object)  # why the status could not be found even once, as text

    def __init__(self, desk: Desk, page: QWidget) -> None:
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
        path, place = self._path, Place(self._controller.settings, self._controller.config)
        done, failed = partial(self._take, path), partial(self._fail, path)
        self._task = self._desk.tasks.run(partial(source.look_at, place, path), done, failed)

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
            self.failed.emit(words.told(error))

    def _rest(self, path: Path) -> bool:
        """Return whether a poll was of the path that is still wanted; else poll that now."""
        if path == self._path:
            self._timer.start()
            return True
        self.poll()
        return False
