"""The threads of the engine: stages joined by bounded queues, stopped and joined together."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import Generic, NamedTuple, Protocol, Self, TypeVar
from weakref import WeakSet

from mydata_like.core.errors import Cancelled
from mydata_like.core.ports import CancelSignal
from mydata_like.engine.queues import TICK, Source, WorkQueue, count_one

logger = logging.getLogger(__name__)

T = TypeVar("T")
In = TypeVar("In")
Out = TypeVar("Out")

# For what else the engine shares between threads.
Lock = threading.Lock
Condition = threading.Condition


class CancelFlag:
    """A request to stop, made once and for all, from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._reason = ""
        self._parts: WeakSet[CancelFlag] = WeakSet()

    @property
    def reason(self) -> str:
        """Who asked to stop, and why; the first one to ask is remembered."""
        return self._reason

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout: float) -> bool:
        return self._event.wait(timeout)

    def set(self, reason: str = "") -> None:
        with self._lock:
            if not self._event.is_set():
                self._reason = reason
                self._event.set()
        for part in list(self._parts):
            part.set(reason)

    def part(self) -> "CancelFlag":
        """Return a request of its own for a part of the work: made with this one, or alone."""
        part = CancelFlag()
        self._parts.add(part)
        if self.is_set():
            part.set(self._reason)
        return part


class Stoppable(CancelSignal, Protocol):
    """A request to stop that can be made here, too."""

    def set(self, reason: str = "") -> None: ...


class StageWaits(NamedTuple):
    """How many workers a stage has, and the seconds for which they have waited in all.

    That is for something to do, or for the next stage to take what they had done.
    """

    workers: int
    starved: float
    blocked: float


class _Inlet(Generic[T]):
    """A stage's view of its work: the queue before it, and how the next stage fares."""

    def __init__(self, queue: WorkQueue[T], next_queue: WorkQueue[Out]) -> None:
        self._queue = queue
        self._next = next_queue
        self.poll = queue.poll
        self.take_ready = queue.take_ready

    def __iter__(self) -> Iterator[T]:
        return iter(self._queue)

    @property
    def finished(self) -> bool:
        return self._queue.finished

    @property
    def starving(self) -> bool:
        return self._next.starving


class WorkerGroup:
    """Owns the threads of a run: the first error stops them all and is raised at the end.

    Leaving it joins every thread; once the run is cancelled that takes at most `patience`
    seconds. Raises `Cancelled` when a worker was cut short without an error.
    """

    def __init__(self, cancel: Stoppable, *, patience: float = 10.0) -> None:
        self.cancel = cancel
        self._patience = patience
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._queues: list[WorkQueue[object]] = []
        self._stages: dict[str, Callable[[], StageWaits]] = {}
        self._error: BaseException | None = None
        self._cut_short = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._stop(f"the run ended early: {type(error).__name__}")
        try:
            self._join()
        except BaseException:
            self._stop("interrupted")
            raise
        if error is not None and not isinstance(error, Cancelled):
            if self._error is not None:
                logger.error("A worker failed as well", exc_info=self._error)
            return
        if self._error is not None:
            raise self._error
        if error is None and self._cut_short:
            raise Cancelled

    def open_queue(self, limit: int, weigh: Callable[[Out], int] = count_one) -> WorkQueue[Out]:
        """Return a queue that breaks with this group."""
        queue: WorkQueue[Out] = WorkQueue(self.cancel, limit, weigh)
        self._queues.append(queue)  # type: ignore[arg-type]  # only woken through this list
        return queue

    def stage_waits(self) -> Mapping[str, StageWaits]:
        """Return how much the workers of each stage have waited, by the name of the stage."""
        return {name: read() for name, read in list(self._stages.items())}

    def note_stage(self, name: str, read: Callable[[], StageWaits]) -> None:
        """Have a stage among those that `stage_waits` tells of."""
        self._stages[name] = read

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Run `work` in a thread of this group."""
        thread = threading.Thread(target=self._guard, args=(work,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Cancelled:
            self._cut_short = True
            self._stop("a worker was cancelled")
        except BaseException as error:
            # Whatever ends a worker early ends the run: a silent end would look like success.
            self._note(error)

    def _note(self, error: BaseException) -> None:
        with self._lock:
            first = self._error is None and not self.cancel.is_set()
            if first:
                self._error = error
        if not first:
            logger.warning("A worker failed while the run was stopping", exc_info=error)
        self._stop(f"a worker failed: {type(error).__name__}")

    def _stop(self, reason: str) -> None:
        self.cancel.set(reason)
        for queue in self._queues:
            queue.wake()

    def _join(self) -> None:
        deadline: float | None = None
        for thread in self._threads:
            while thread.is_alive():
                if deadline is None and self.cancel.is_set():
                    deadline = monotonic() + self._patience
                if deadline is not None and monotonic() >= deadline:
                    logger.error("The worker %s did not stop in time", thread.name)
                    break
                thread.join(TICK)


def stage(  # noqa: PLR0913 - two of them say how much may wait
    group: WorkerGroup,
    function: Callable[[Source[In]], Iterator[Out]],
    source: WorkQueue[In] | Iterable[In],
    *,
    workers: int = 1,
    limit: int = 16,
    weigh: Callable[[Out], int] = count_one,
) -> WorkQueue[Out]:
    """Start workers that turn what comes from `source` into what waits in the queue returned.

    The workers share the source; `limit` bounds what they may do in advance, by its weight.
    """
    queue = source if isinstance(source, WorkQueue) else feed(group, source, limit)
    output: WorkQueue[Out] = group.open_queue(limit, weigh)
    name = getattr(function, "__name__", type(function).__name__).strip("_").lower()
    running = _start_all(group, name, workers, lambda: function(_Inlet(queue, output)), output)
    group.note_stage(name, lambda: StageWaits(len(running), queue.starved, output.blocked))
    return output


def feed(
    group: WorkerGroup,
    items: Iterable[In],
    limit: int = 16,
    weigh: Callable[[In], int] = count_one,
) -> WorkQueue[In]:
    """Iterate in a thread of its own what waits in the queue returned."""
    queue: WorkQueue[In] = group.open_queue(limit, weigh)
    running = _start_all(group, "source", 1, lambda: iter(items), queue)
    group.note_stage("source", lambda: StageWaits(len(running), 0.0, queue.blocked))
    return queue


def _start_all(
    group: WorkerGroup,
    name: str,
    workers: int,
    produce: Callable[[], Iterator[Out]],
    output: WorkQueue[Out],
) -> Sequence[None]:
    """Start workers that fill the output; the last one to end closes it. Return who is at it."""
    running = [None] * workers

    def work() -> None:
        for item in produce():
            output.put(item)
        running.pop()  # a worker that fails never gets here: its queue breaks instead
        if not running:
            output.close()

    for number in range(1, workers + 1):
        group.start(f"{name}-{number}", work)
    return running
