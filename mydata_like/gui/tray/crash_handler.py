"""Logs and shows unexpected errors, and detects a hanging GUI thread."""

import faulthandler
import logging
import sys
from pathlib import Path
from types import TracebackType
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from mydata_like.core.errors import Problem
from mydata_like.settings.atomic_write import make_private_file

logger = logging.getLogger(__name__)

_HINT: Final = (
    "Uploads are not affected. If it happens again, send the log to those who look after this "
    "computer."
)


class CrashHandler(QObject):
    """Takes the errors that slots, timers and overridden methods of Qt let through.

    One that comes from a place which has told of itself, as painting may do many times a
    second, is counted and not told again.
    """

    problem_raised = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._times: dict[tuple[str, int], int] = {}
        self._hook, self._unraisable = sys.excepthook, sys.unraisablehook
        sys.excepthook = self._take
        sys.unraisablehook = self._take_unraisable

    def stop(self) -> None:
        """Leave errors to the interpreter again."""
        sys.excepthook, sys.unraisablehook = self._hook, self._unraisable

    def _take(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        place = _find_place(trace)
        self._times[place] = times = self._times.get(place, 0) + 1
        if times == 1:
            logger.critical("An error in the window", exc_info=(kind, error, trace))
            message = f"Something in the window went wrong: {kind.__name__}: {error}"
            self.problem_raised.emit(Problem("window.failed", message, _HINT))
        elif times & (times - 1) == 0:  # the 2nd, 4th, 8th and so on
            logger.critical("The error at %s:%d has come %d times", *place, times)

    def _take_unraisable(self, ended: "sys.UnraisableHookArgs") -> None:
        error = ended.exc_value
        if error is not None:
            self._take(ended.exc_type, error, ended.exc_traceback)


def _find_place(trace: TracebackType | None) -> tuple[str, int]:
    """Return the file and the line in which an error came up."""
    while trace and trace.tb_next:
        trace = trace.tb_next
    return (trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace else ("unknown", 0)


PATIENCE: Final = 5.0  # seconds without a turn of the event loop
NAME: Final = "mydata-like-stalls.log"
_INTERVAL: Final = 2.5  # seconds between two turns that are noted
_FILE_BYTES: Final = 1_000_000


class UiHangDetector(QObject):
    """Restarts a timer repeatedly; it only fires while the event loop is blocked.

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
