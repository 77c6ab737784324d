"""Runs functions beside the GUI thread, and brings their results back to it."""

import logging
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from queue import SimpleQueue
from time import monotonic
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, Qt, Signal, Slot
from shiboken6 import isValid

from mydata_like.core.errors import UploaderError

logger = logging.getLogger(__name__)

LEAVE_AFTER = 1.0  # seconds after which the program ends without waiting any longer


class _Call(NamedTuple):
    """A function, and who is told what came of it."""

    function: Callable[[], Any]
    done: Callable[[Any], object]
    failed: Callable[[UploaderError], object] | None


class _Outcome(NamedTuple):
    result: Any = None
    error: UploaderError | None = None


class Background(QObject):
    """Runs functions in a few threads, in the order in which they came.

    What they return or raise comes back in the GUI thread, unless the object whose method is to
    be told has died meanwhile. Qt's own pool is not used: it looks at a job once more after
    Python may have freed it. A thread holds nothing once it has told of its end: the last one to
    let go of a widget destroys it, and that must be the GUI thread.
    """

    _ended = Signal(object)  # the number of a call, from any thread

    def __init__(self, parent: QObject | None = None, threads: int = 4) -> None:
        super().__init__(parent)
        self._most = threads
        self._threads: list[threading.Thread] = []
        self._numbers = count()
        self._queue: SimpleQueue[int | None] = SimpleQueue()
        self._calls: dict[int, _Call] = {}
        self._outcomes: dict[int, _Outcome] = {}
        self._closed = False
        self._ended.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def run(
        self,
        function: Callable[[], Any],
        done: Callable[[Any], object],
        failed: Callable[[UploaderError], object] | None = None,
    ) -> None:
        """Call `done` with what the function returns, or `failed` with what it raises.

        Either may be a method with its first arguments (`partial`), which say what was asked.
        What is no error of ours is a bug: it is logged, and told as one.
        """
        if self._closed:
            return
        number = next(self._numbers)
        self._calls[number] = _Call(function, done, failed)
        self._queue.put(number)
        if len(self._threads) < min(self._most, len(self._calls)):
            thread = threading.Thread(target=self._work, name="background", daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """Tell nobody any more; what hangs is left behind."""
        self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        deadline = monotonic() + LEAVE_AFTER
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))

    @property
    def busy(self) -> bool:
        """Whether any function has not come back yet."""
        return bool(self._calls)

    def _work(self) -> None:
        while (number := self._queue.get()) is not None:
            if not self._closed:
                self._carry_out(number)
            if not self._closed:
                self._ended.emit(number)

    def _carry_out(self, number: int) -> None:
        self._outcomes[number] = _find_outcome(self._calls[number].function)

    @Slot(object)
    def _deliver(self, number: int) -> None:
        call, outcome = self._calls.pop(number), self._outcomes.pop(number)
        told = call.done if outcome.error is None else call.failed
        method = told.func if isinstance(told, partial) else told
        owner = getattr(method, "__self__", None)
        gone = isinstance(owner, QObject) and not isValid(owner)
        if told is not None and not gone and not self._closed:
            told(outcome.result if outcome.error is None else outcome.error)


def _find_outcome(function: Callable[[], Any]) -> _Outcome:
    try:
        return _Outcome(function())
    except UploaderError as error:
        return _Outcome(error=error)
    except Exception as error:
        logger.exception("What ran in the background failed")
        message = f"The program made a mistake: {error}."
        hint = "Please send the log to those who maintain it."
        return _Outcome(error=UploaderError(message, hint=hint, code="window.failed"))
