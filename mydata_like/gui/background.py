"""Runs functions beside the GUI thread, and brings their results back to it."""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, Qt, Signal, Slot
from shiboken6 import isValid

from mydata_like.core.errors import UploaderError

logger = logging.getLogger(__name__)

LEAVE_AFTER = 2.0  # seconds after which the program ends without waiting any longer


class _Call(NamedTuple):
    """A function, and who is told what came of it."""

    function: Callable[[], Any]
    done: Callable[[Any], object]
    failed: Callable[[UploaderError], object] | None


class _Outcome(NamedTuple):
    call: _Call
    result: Any = None
    error: UploaderError | None = None


class Background(QObject):
    """Runs functions in a few threads, in the order in which they came.

    What they return or raise comes back in the GUI thread, unless the object whose method is to
    be told has died meanwhile. Qt's own pool is not used: it looks at a job once more after
    Python may have freed it.
    """

    _ended = Signal(object)  # an _Outcome, from any thread

    def __init__(self, parent: QObject | None = None, threads: int = 4) -> None:
        super().__init__(parent)
        self._most = threads
        self._threads: list[threading.Thread] = []
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._under_way = 0
        self._closed = False
        self._ended.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def run(
        self,
        function: Callable[[], Any],
        done: Callable[[Any], object],
        failed: Callable[[UploaderError], object] | None = None,
    ) -> None:
        """Call `done` with what the function returns, or `failed` with what it raises.

        What is no error of ours is a bug: it is logged, and told as one.
        """
        if self._closed:
            return
        self._under_way += 1
        self._calls.put(_Call(function, done, failed))
        if len(self._threads) < min(self._most, self._under_way):
            thread = threading.Thread(target=self._work, name="background", daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """Tell nobody any more; what hangs is left behind."""
        self._closed = True
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join(LEAVE_AFTER)

    @property
    def busy(self) -> bool:
        """Whether any function has not come back yet."""
        return self._under_way > 0

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            outcome = None if self._closed else _carry_out(call)
            if not self._closed:
                self._ended.emit(outcome)

    @Slot(object)
    def _deliver(self, outcome: _Outcome) -> None:
        self._under_way -= 1
        call, result, error = outcome
        told = call.done if error is None else call.failed
        owner = getattr(told, "__self__", None)
        gone = isinstance(owner, QObject) and not isValid(owner)
        if told is not None and not gone and not self._closed:
            told(result if error is None else error)


def _carry_out(call: _Call) -> _Outcome:
    try:
        return _Outcome(call, call.function())
    except UploaderError as error:
        return _Outcome(call, error=error)
    except Exception as error:
        logger.exception("What ran in the background failed")
        message = f"The program made a mistake: {error}."
        hint = "Please send the log to those who maintain it."
        return _Outcome(call, error=UploaderError(message, hint=hint, code="window.failed"))
