"""Errors that nobody foresaw: logged, told to the person, and never lost."""

import logging
import sys
from types import TracebackType
from typing import Final

from PySide6.QtCore import QObject, Signal

from mydata_like.core.errors import Problem

logger = logging.getLogger(__name__)

_HINT: Final = (
    "Uploads are not affected. If it happens again, send the log to those who look after this "
    "computer."
)


class LastResort(QObject):
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
