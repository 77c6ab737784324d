"""Looks at the file or folder that a person wants to see, and again as it comes further."""

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from mydata_like.core.errors import UploaderError
from mydata_like.core.file_status import PathStatus
from mydata_like.gui.look import words
from mydata_like.gui.pages.page import Desk
from mydata_like.gui.where import source
from mydata_like.gui.where.source import Place

RENEW_AFTER = 2000  # milliseconds between two looks at what is shown, at least


class Looker(QObject):
    """Makes one look at a time: those that hang, at a dead mount, must not become many."""

    found = Signal(object)  # a PathStatus
    failed = Signal(object)  # what to say of what could not be looked at even once

    def __init__(self, desk: Desk, page: QWidget) -> None:
        super().__init__(page)
        self._desk = desk
        self._controller = desk.controller
        self._page = page
        self._wanted: Path | None = None
        self._seen = False  # what is wanted, at least once
        self._asking = self._stale = False
        self._timer = QTimer(self, singleShot=True, interval=RENEW_AFTER)
        self._controller.ledger_changed.connect(self._follow)
        self._timer.timeout.connect(self._look_if_stale)

    def want(self, path: Path) -> None:
        """Look at this now, or right after the look that is under way."""
        self._wanted, self._seen = path, False
        self.look()

    def keep(self, status: PathStatus | None) -> None:
        """Follow what has been found already, or nothing any more."""
        self._wanted, self._seen = status and status.path, True

    @Slot()
    def look(self) -> None:
        """Look once more at what is wanted."""
        self._stale = True
        if self._asking or self._wanted is None or self._controller.loaded is None:
            return
        self._asking, self._stale = True, False
        path = self._wanted
        place = Place(self._controller.settings, self._controller.config)
        took, failed = partial(self._take, path), partial(self._fail, path)
        self._desk.tasks.run(partial(source.look_at, place, path), took, failed)

    @Slot()
    def _follow(self) -> None:
        self._stale = True
        if not self._timer.isActive():
            self._look_if_stale()

    @Slot()
    def _look_if_stale(self) -> None:
        if self._stale and self._page.isVisible():
            self.look()

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
        """Return whether a look was at what is still wanted; else look at that now."""
        self._asking = False
        if path == self._wanted:
            self._timer.start()
            return True
        self.look()
        return False
