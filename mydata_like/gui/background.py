"""Runs functions beside the GUI thread, and brings their results back to it."""

import logging
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QRunnable, QThreadPool, Signal, Slot
from shiboken6 import isValid

from mydata_like.core.errors import UploaderError

logger = logging.getLogger(__name__)

LEAVE_AFTER = 2000  # milliseconds after which the program ends without waiting any longer


class Background(QObject):
    """Runs functions in threads; at most as many at once as the pool has threads.

    What they return or raise comes back in the GUI thread, unless the object whose method is to
    be told has died meanwhile.
    """

    def __init__(self, parent: QObject | None = None, threads: int = 4) -> None:
        super().__init__(parent)
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(threads)
        self._waiting: set[_Call] = set()

    def run(
        self,
        function: Callable[[], Any],
        done: Callable[[Any], object],
        failed: Callable[[UploaderError], object] | None = None,
    ) -> None:
        """Call `done` with what the function returns, or `failed` with what it raises.

        What is no error of ours is a bug: it is logged, and told as one.
        """
        call = _Call(function, done, failed)
        self._waiting.add(call)
        call.signals.ended.connect(self._deliver)
        self._pool.start(call)

    def close(self) -> None:
        """Forget what has not begun; what hangs is left behind."""
        self._pool.clear()
        self._waiting.clear()
        self._pool.waitForDone(LEAVE_AFTER)

    @property
    def busy(self) -> bool:
        """Whether any function has not come back yet."""
        return bool(self._waiting)

    @Slot(object)
    def _deliver(self, call: "_Call") -> None:
        if call not in self._waiting:
            return
        self._waiting.discard(call)
        call.deliver()


class _Signals(QObject):
    ended = Signal(object)


class _Call(QRunnable):
    """One function on its way through the pool."""

    def __init__(
        self,
        function: Callable[[], Any],
        done: Callable[[Any], object],
        failed: Callable[[UploaderError], object] | None,
    ) -> None:
        super().__init__()
        self.setAutoDelete(False)
        self.signals = _Signals()
        self._function = function
        self._done = done
        self._failed = failed
        self._result: Any = None
        self._error: UploaderError | None = None

    def run(self) -> None:
        try:
            self._result = self._function()
        except UploaderError as error:
            self._error = error
        except Exception as error:
            logger.exception("What ran in the background failed")
            message = f"The program made a mistake: {error}."
            hint = "Please send the log to those who maintain it."
            self._error = UploaderError(message, hint=hint, code="window.failed")
        self.signals.ended.emit(self)

    def deliver(self) -> None:
        """Tell whoever asked, if it is still there."""
        told = self._done if self._error is None else self._failed
        if told is None:
            return
        owner = getattr(told, "__self__", None)
        if isinstance(owner, QObject) and not isValid(owner):
            return
        told(self._result if self._error is None else self._error)
