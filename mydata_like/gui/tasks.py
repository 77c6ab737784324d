"""Runs functions in background threads and delivers their results in the GUI thread."""

import logging
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from queue import SimpleQueue
from time import monotonic
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, Qt, QTimerEvent, Signal, Slot
from shiboken6 import isValid

from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.engine.pipeline import CancelFlag

logger = logging.getLogger(__name__)

LEAVE_AFTER = 1.0  # seconds that the program waits at its end for tasks that only read
WRITE_AFTER = 10.0  # seconds that it waits for tasks that write
TYPING = 400  # milliseconds after the last key: the usual `delay` of a check during typing


class BackgroundTask:
    """One call in the background, as the GUI thread sees it."""

    def __init__(self) -> None:
        self.cancel_flag = CancelFlag()
        self.running = False  # its result has not been delivered yet
        self.failed = False

    def stop(self) -> None:
        """Request that the function ends early; its result is still delivered."""
        self.cancel_flag.set("stopped in the window")

    def cancel(self) -> None:
        """Request that the function ends early, and ignore all further results and reports."""
        self.running = self.failed = False
        self.stop()


class _Call(NamedTuple):
    """A function and the receivers of its result."""

    task: BackgroundTask
    function: Callable[..., Any]
    done: Callable[[Any], object] | None
    failed: Callable[[UploaderError], object] | None
    progress: Callable[[Any], object] | None
    latest: bool
    writes: bool
    ended: threading.Event


class _Outcome(NamedTuple):
    result: Any = None
    error: UploaderError | None = None
    cancelled: bool = False  # there is neither


class Tasks(QObject):
    """Runs functions in a few threads, in the order of the calls.

    Results, errors and progress are delivered in the GUI thread, unless the QObject whose method
    receives them has been deleted. Qt's own pool is not used: it accesses a job again after
    Python may have freed it. A thread drops its reference to a call when the call ends: a widget
    is destroyed by the thread that drops the last reference, which must be the GUI thread.
    """

    _ended = Signal(object)  # the number of a call, from any thread
    _reported = Signal(object)  # the number of a call and its progress, from any thread

    def __init__(self, parent: QObject | None = None, threads: int = 4) -> None:
        super().__init__(parent)
        self._most = threads
        self._threads: list[threading.Thread] = []
        self._numbers = count()
        self._queue: SimpleQueue[int | None] = SimpleQueue()
        self._calls: dict[int, _Call] = {}
        self._outcomes: dict[int, _Outcome] = {}
        self._delayed: dict[int, int] = {}  # numbers of calls by their timers
        self._closed = False
        self._ended.connect(self._deliver, Qt.ConnectionType.QueuedConnection)
        self._reported.connect(self._deliver_progress, Qt.ConnectionType.QueuedConnection)

    def run(
        self,
        function: Callable[..., Any],
        done: Callable[[Any], object] | None = None,
        failed: Callable[[UploaderError], object] | None = None,
        *,
        progress: Callable[[Any], object] | None = None,
        cancel: bool = False,
        latest: bool = False,
        writes: bool = False,
        delay: int = 0,
    ) -> BackgroundTask:
        """Run a function and call `done` with its result, or `failed` with its error.

        Both are bound methods, or a `partial` of one. With `progress`, the function receives
        `report=`, and its reports go to `progress`. With `cancel`, it receives `cancel=`, the
        task's `CancelFlag`. `latest` cancels earlier tasks with the same `done`. The program waits
        at its end for tasks with `writes`. `delay` is in milliseconds; a task that is cancelled
        during the delay never starts. An unexpected exception is a bug: it is logged, and `failed`
        receives an error that says so. Nothing runs after `close`.
        """
        task = BackgroundTask()
        if self._closed:
            return task
        for call in self._calls.values() if latest else ():
            if call.latest and _without_arguments(call.done) == _without_arguments(done):
                call.task.cancel()
        number = next(self._numbers)
        if progress is not None:
            function = partial(function, report=partial(self._report, number))
        if cancel:
            function = partial(function, cancel=task.cancel_flag)
        self._calls[number] = _Call(
            task, function, done, failed, progress, latest, writes, threading.Event()
        )
        task.running = True
        if delay:
            self._delayed[self.startTimer(delay)] = number
        else:
            self._enqueue(number)
        return task

    def close(self) -> None:
        """Stop all delivery; wait for tasks that write, and abandon those that hang."""
        self._closed = True
        for number in self._delayed.values():
            del self._calls[number]
        for call in self._calls.values():
            call.task.stop()
        for _ in self._threads:
            self._queue.put(None)
        deadline = monotonic() + WRITE_AFTER
        for call in self._calls.values():
            if call.writes:
                call.ended.wait(max(0.0, deadline - monotonic()))
        deadline = monotonic() + LEAVE_AFTER
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))

    @property
    def busy(self) -> bool:
        """Whether any function is running or scheduled."""
        return len(self._calls) > len(self._delayed)

    def timerEvent(self, event: QTimerEvent) -> None:
        self.killTimer(event.timerId())
        self._enqueue(self._delayed.pop(event.timerId()))

    def _enqueue(self, number: int) -> None:
        self._queue.put(number)
        if len(self._threads) < min(self._most, len(self._calls)):
            thread = threading.Thread(target=self._work, name="task", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while (number := self._queue.get()) is not None:
            self._run_task(number)
            if not self._closed:
                self._ended.emit(number)

    def _run_task(self, number: int) -> None:
        """Run a call; no reference to it is left in this thread afterwards."""
        call = self._calls[number]
        begins = call.task.running and (call.writes or not self._closed)
        self._outcomes[number] = _call(call.function) if begins else _Outcome(cancelled=True)
        call.ended.set()

    def _report(self, number: int, what: Any) -> None:
        if not self._closed:
            self._reported.emit((number, what))

    @Slot(object)
    def _deliver_progress(self, report: tuple[int, Any]) -> None:
        number, what = report
        call = self._calls.get(number)
        if call is not None and call.task.running:
            self._hand_over(call.progress, what)

    @Slot(object)
    def _deliver(self, number: int) -> None:
        call, outcome = self._calls.pop(number), self._outcomes.pop(number)
        if not call.task.running:
            return
        call.task.running = False
        call.task.failed = outcome.error is not None
        if outcome.error is not None:
            self._hand_over(call.failed, outcome.error)
        elif not outcome.cancelled:
            self._hand_over(call.done, outcome.result)

    def _hand_over(self, receive: Callable[[Any], object] | None, what: Any) -> None:
        owner = getattr(_without_arguments(receive), "__self__", None)
        deleted = isinstance(owner, QObject) and not isValid(owner)
        if receive is not None and not deleted and not self._closed:
            receive(what)


def _without_arguments(receive: Callable[[Any], object] | None) -> Callable[[Any], object] | None:
    return receive.func if isinstance(receive, partial) else receive


def _call(function: Callable[[], Any]) -> _Outcome:
    try:
        return _Outcome(function())
    except UploaderError as error:
        return _Outcome(error=error)
    except Cancelled:
        return _Outcome(cancelled=True)
    except Exception as error:
        logger.exception("A background task failed")
        message = f"Internal error: {error}."
        hint = "Please send the log to the maintainers."
        return _Outcome(error=UploaderError(message, hint=hint, code="window.failed"))
