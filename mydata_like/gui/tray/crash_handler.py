"""Logs and shows unexpected errors, and detects a hanging GUI thread."""

import faulthandler
import logging
import sys
from pathlib import Path
from types import TracebackType
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication

from mydata_like.core.errors import Problem
from mydata_like.settings.atomic_write import make_private_file

logger = logging.getLogger(__name__)

_HINT: Final = "Uploads are not affected. If it happens again, send the log to your administrator."


class CrashHandler(QObject):
    """Logs and reports the uncaught errors of slots, timers and overridden methods of Qt.

    Repeated errors of one source line are counted, but reported only once: painting may fail many
    times per second.
    """

    problem_raised = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._times: dict[tuple[str, int], int] = {}
        self._previous_hook, self._previous_unraisable = sys.excepthook, sys.unraisablehook
        sys.excepthook = self._handle_error
        sys.unraisablehook = self._handle_unraisable

    def stop(self) -> None:
        """Restore the interpreter's own handlers."""
        sys.excepthook, sys.unraisablehook = self._previous_hook, self._previous_unraisable

    def _handle_error(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        line = _find_line(trace)
        self._times[line] = times = self._times.get(line, 0) + 1
        if times == 1:
            logger.critical("Unexpected error in the window", exc_info=(kind, error, trace))
            message = f"Unexpected error in the window: {kind.__name__}: {error}"
            self.problem_raised.emit(Problem("window.failed", message, _HINT))
        elif times & (times - 1) == 0:  # the 2nd, 4th, 8th and so on
            logger.critical("The error at %s:%d has occurred %d times", *line, times)

    def _handle_unraisable(self, unraisable: "sys.UnraisableHookArgs") -> None:
        error = unraisable.exc_value
        if error is not None:
            self._handle_error(unraisable.exc_type, error, unraisable.exc_traceback)


def _find_line(trace: TracebackType | None) -> tuple[str, int]:
    """Return the file and the line that raised an error."""
    while trace and trace.tb_next:
        trace = trace.tb_next
    return (trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace else ("unknown", 0)


HANG_TIMEOUT: Final = 5.0  # seconds without an iteration of the event loop
HIDDEN_TIMEOUT: Final = 120.0  # the same while no window is visible
NAME: Final = "mydata-like-stalls.log"
_FILE_BYTES: Final = 1_000_000


class UiHangDetector(QObject):
    """Restarts a timer repeatedly; it only fires while the event loop is blocked.

    The timer is that of `faulthandler`, whose thread writes the stacks without running Python
    code, so it also works while the interpreter is locked. Each restart wakes the processor and
    starts a thread, so there are few of them while the program is only in the tray. Crashes are
    written to the same file.
    """

    def __init__(
        self, folder: Path, timeout: float = HANG_TIMEOUT, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._path = folder / NAME
        self._visible_timeout = self._timeout = timeout
        make_private_file(self._path)
        mode = "wb" if self._size() > _FILE_BYTES else "ab"
        self._file = self._path.open(mode)
        self._reported_size = self._size()
        faulthandler.enable(self._file)
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._restart_timer)
        application = QGuiApplication.instance()
        if isinstance(application, QGuiApplication):
            application.focusWindowChanged.connect(self._restart_timer)
        self._restart_timer()

    def stop(self) -> None:
        """Stop the detection."""
        self._timer.stop()
        faulthandler.cancel_dump_traceback_later()
        faulthandler.disable()
        self._file.close()

    @Slot()
    def _restart_timer(self) -> None:
        if self._file.closed:
            return
        if (size := self._size()) > self._reported_size:
            logger.error(
                "The window did not respond for more than %g s; its stacks are at the end of %s",
                self._timeout,
                self._path,
            )
            self._reported_size = size
        visible = any(window.isVisible() for window in QGuiApplication.topLevelWindows())
        self._timeout = self._visible_timeout if visible else HIDDEN_TIMEOUT
        faulthandler.dump_traceback_later(self._timeout, file=self._file)
        self._timer.start(round(self._timeout / 2 * 1000))

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0
