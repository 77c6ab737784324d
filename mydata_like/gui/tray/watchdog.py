"""Notices that the window has stopped reacting, and writes down what every thread was doing."""

import faulthandler
import logging
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer

from mydata_like.settings.atomic_write import make_private_file

logger = logging.getLogger(__name__)

PATIENCE: Final = 5.0  # seconds without a turn of the event loop
NAME: Final = "mydata-like-stalls.log"
_INTERVAL: Final = 2.5  # seconds between two turns that are noted
_FILE_BYTES: Final = 1_000_000


class Watchdog(QObject):
    """Winds up an alarm again and again; it goes off only while the event loop stands still.

    The alarm is faulthandler's: a thread of its own that needs no Python to write the stacks,
    so it also works while something holds the interpreter. Crashes are written there, too.
    """

    def __init__(
        self, folder: Path, patience: float = PATIENCE, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._path = folder / NAME
        self._patience = patience
        make_private_file(self._path)
        mode = "wb" if self._size() > _FILE_BYTES else "ab"
        self._file = self._path.open(mode)
        self._told = self._size()
        faulthandler.enable(self._file)
        self._timer = QTimer(self)
        self._timer.setInterval(round(min(_INTERVAL, patience / 2) * 1000))
        self._timer.timeout.connect(self._wind_up)
        self._timer.start()
        self._wind_up()

    def stop(self) -> None:
        """Watch no longer."""
        self._timer.stop()
        faulthandler.cancel_dump_traceback_later()
        faulthandler.disable()
        self._file.close()

    def _wind_up(self) -> None:
        faulthandler.dump_traceback_later(self._patience, file=self._file)
        if (size := self._size()) > self._told:
            logger.error(
                "The window did not react for more than %g s; what it did is at the end of %s",
                self._patience,
                self._path,
            )
            self._told = size

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0
