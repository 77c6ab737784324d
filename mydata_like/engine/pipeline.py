"""The threads and bounded queues in which the stages of a run work."""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from time import monotonic
from types import TracebackType
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar
from weakref import WeakSet

from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.ports import CancelSignal

K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")

TICK = 0.1  # seconds after which every wait checks whether to continue
# Work-around: Python 3.11 on Windows obeys Ctrl+C only after the main thread's wait for a lock.
# https://github.com/python/cpython/issues/125541. Remove when Python 3.14 is required.
_LONGEST_WAIT: Final = 0.2 if os.name == "nt" else threading.TIMEOUT_MAX  # seconds


class StageInput(Protocol[T_co]):
    """The input of a stage, shared by its workers. Items are never None."""

    def __iter__(self) -> Iterator[T_co]: ...

    def poll(self, timeout: float | None) -> T_co | None:
        """Wait for an item for so many seconds (None: without limit); return None if none came.

        `finished` is true if none will come later either.
        """

    def take_ready(self, most: int) -> Sequence[T_co]:
        """Return up to so many of the items that are available now."""

    @property
    def finished(self) -> bool:
        """Whether all items have been taken and no more will come."""

    @property
    def starving(self) -> bool:
        """Whether a worker of the next stage waits for items that this stage may hold back."""

    def wait_for_room(self, item: object) -> bool:
        """Wait briefly until the next stage has room for an item; return whether it has."""


def count_one(_: object) -> int:
    """Return 1, whatever the item contains."""
    return 1


class WorkQueue(Generic[T]):
    """A bounded queue that ends when it is closed and empty, and breaks when cancelled.

    The total weight of its items is bounded: another item is accepted while that is below `limit`.
    Every method that takes or puts items raises `Cancelled` once `cancel` is set. `starved` is for
    how many seconds consumers have waited for items, `blocked` for how many seconds producers have
    waited for room.
    """

    def __init__(
        self, cancel: CancelSignal, limit: int = 16, weigh: Callable[[T], int] = count_one
    ) -> None:
        self._cancel = cancel
        self._limit = max(1, limit)
        self._weigh = weigh
        self._items: deque[tuple[T, int, int]] = deque()  # with its weight and rank
        self._rank: Callable[[T], int] | None = None
        self._exceeds = False  # whether the next item needs no room
        self._weight = 0
        self._closed = False
        self._lock = threading.Lock()
        self._filled = threading.Condition(self._lock)
        self._drained = threading.Condition(self._lock)
        self._takers = 0
        self._offered: list[T] = []  # that wait for room
        self.starved = 0.0
        self.blocked = 0.0

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        while (item := self.poll(None)) is not None:
            yield item

    def put(self, item: T) -> None:
        """Add an item as soon as there is room."""
        weight = max(1, self._weigh(item))
        with self._lock:
            self._check()
            while self._is_full(item):
                self._await_room(item)
            self._insert(item, weight)
            self._weight += weight
            if self._takers:
                self._filled.notify()
            if self._offered and self._weight < self._limit:
                self._drained.notify()  # the items that were taken may have made room for several

    def wait_for_room(self, item: T) -> bool:
        """Wait briefly until there is room for an item; return whether there is."""
        with self._lock:
            self._check()
            if self._is_full(item):
                self._await_room(item)
            return not self._is_full(item)

    def order_by(self, rank: Callable[[T], int]) -> None:
        """Sort the items by rank, the highest first, now and when others are added.

        An item with a rank above 0 needs only as much room as those of its rank or above have left.
        A producer that waits for room adds its item at once, since a higher one may come next.
        """
        with self._lock:
            self._rank = rank
            ranked = [(item, weight, rank(item)) for item, weight, _ in self._items]
            self._items = deque(sorted(ranked, key=lambda it: -it[2]))
            self._exceeds = True
            self._drained.notify_all()

    def peek(self) -> list[T]:
        """Return the items in their order, and those that wait for room; they stay."""
        with self._lock:
            return [*(item for item, _, _ in self._items), *self._offered]

    def poll(self, timeout: float | None) -> T | None:
        """Return the next item, or None at the end or after the timeout."""
        with self._lock:
            self._check()
            if not self._items and not self._closed:
                self._wait_filled(timeout)
            return self._take() if self._items else None

    def take_ready(self, most: int) -> list[T]:
        """Return up to so many of the items that are available now."""
        with self._lock:
            self._check()
            return [self._take() for _ in range(min(most, len(self._items)))]

    def close(self) -> None:
        """Close the queue: no more items will come."""
        with self._lock:
            self._closed = True
            self._filled.notify_all()

    def wake(self) -> None:
        """Wake all waiting threads, so that they check whether to continue."""
        with self._lock:
            self._filled.notify_all()
            self._drained.notify_all()

    @property
    def finished(self) -> bool:
        return self._closed and not self._items

    @property
    def starving(self) -> bool:
        """Whether a thread waits for an item and there is none."""
        return self._takers > 0 and not self._items

    def _check(self) -> None:
        if self._cancel.is_set():
            raise Cancelled

    def _await_room(self, item: T) -> None:
        self._offered.append(item)
        self.blocked += _wait(self._drained, TICK)
        self._offered.remove(item)
        self._check()

    def _is_full(self, item: T) -> bool:
        if self._weight < self._limit:
            return False
        if self._rank is None or self._exceeds:
            return not self._exceeds
        rank = self._rank(item)
        return not rank or sum(it[1] for it in self._items if it[2] >= rank) >= self._limit

    def _insert(self, item: T, weight: int) -> None:
        rank = self._rank(item) if self._rank is not None else 0
        self._exceeds = False
        if not rank:
            self._items.append((item, weight, rank))
            return
        place = sum(other >= rank for _, _, other in self._items)
        self._items.insert(place, (item, weight, rank))

    def _take(self) -> T:
        item, weight, _ = self._items.popleft()
        self._weight -= weight
        if self._offered:
            self._drained.notify()
        return item

    def _wait_filled(self, timeout: float | None) -> None:
        deadline = None if timeout is None else monotonic() + timeout
        while not self._items and not self._closed:
            rest = TICK if deadline is None else min(TICK, deadline - monotonic())
            if rest <= 0:
                return
            self._takers += 1
            waited = _wait(self._filled, rest)  # others may have added theirs in the meantime
            self.starved += waited
            self._takers -= 1
            self._check()


def _wait(condition: threading.Condition, timeout: float) -> float:
    """Wait for a notification; return how many seconds that took."""
    begun = monotonic()
    condition.wait(timeout)
    return monotonic() - begun


logger = logging.getLogger(__name__)
In = TypeVar("In")
Out = TypeVar("Out")

# The lock for other data that the engine shares between threads.
Lock = threading.Lock
Condition = threading.Condition


class CancelFlag:
    """A request to stop that can be set once, from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._reason = ""
        self._parts: WeakSet[CancelFlag] = WeakSet()

    @property
    def reason(self) -> str:
        """The source of the first request to stop, and its reason."""
        return self._reason

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout: float) -> bool:
        deadline = monotonic() + timeout
        while (rest := deadline - monotonic()) > 0 and not self._event.is_set():
            self._event.wait(min(rest, _LONGEST_WAIT))
        return self._event.is_set()

    def set(self, reason: str = "") -> None:
        with self._lock:
            if not self._event.is_set():
                self._reason = reason
                self._event.set()
        for part in list(self._parts):
            part.set(reason)

    def part(self) -> "CancelFlag":
        """Return a separate request for a part of the work; it is also set when this one is."""
        part = CancelFlag()
        self._parts.add(part)
        if self.is_set():
            part.set(self._reason)
        return part


class Stoppable(CancelSignal, Protocol):
    """A request to stop that can be set here as well."""

    def set(self, reason: str = "") -> None: ...


class StageWaits(NamedTuple):
    """The number of a stage's workers, and the total seconds for which they have waited.

    They wait for something to do, or for the next stage to take their results.
    """

    workers: int
    starved: float
    blocked: float


class _Inlet(Generic[T]):
    """A stage's view of its input queue and of the state of the next stage."""

    def __init__(self, queue: WorkQueue[T], next_queue: WorkQueue[Any]) -> None:
        self._queue = queue
        self._next = next_queue
        self.poll = queue.poll
        self.take_ready = queue.take_ready
        self.wait_for_room = next_queue.wait_for_room

    def __iter__(self) -> Iterator[T]:
        return iter(self._queue)

    @property
    def finished(self) -> bool:
        return self._queue.finished

    @property
    def starving(self) -> bool:
        return self._next.starving


class WorkerGroup:
    """The owner of a run's threads: the first error stops all of them and is raised at the end.

    Leaving the context joins every thread; after a cancellation that takes at most `patience`
    seconds. Raises `Cancelled` if a worker was interrupted without an error.
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
                logger.error("Another worker failed as well", exc_info=self._error)
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
        """Return the waiting times of each stage's workers, by the name of the stage."""
        return {name: read() for name, read in list(self._stages.items())}

    def note_stage(self, name: str, read: Callable[[], StageWaits]) -> None:
        """Include a stage in `stage_waits`."""
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
            # Any early end of a worker ends the run: otherwise it would look like success.
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


def stage(
    group: WorkerGroup,
    function: Callable[[StageInput[In]], Iterator[Out]],
    source: WorkQueue[In] | Iterable[In],
    *,
    workers: int = 1,
    limit: int = 16,
    weigh: Callable[[Out], int] = count_one,
) -> WorkQueue[Out]:
    """Start workers that turn the items of `source` into items of the returned queue.

    The workers share the source. `limit` bounds the weight of the output that may wait.
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
    """Iterate in a separate thread, and return the queue with the items."""
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
    """Start workers that fill the output; the last one to end closes it. Return the active ones."""
    running = [None] * workers

    def work() -> None:
        for item in produce():
            output.put(item)
        running.pop()  # not reached by a worker that fails: its queue breaks instead
        if not running:
            output.close()

    for number in range(1, workers + 1):
        group.start(f"{name}-{number}", work)
    return running


@contextmanager
def repeated(action: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call `action` at once, then every so many seconds in a thread, while in this context.

    An action that fails is logged and called again the next time. It must neither end the run nor
    hold it forever.
    """
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            try:
                action()
            except Exception:  # the project's guard for threads, as in `workers`
                logger.exception("A background task of the run failed")

    action()
    thread = threading.Thread(target=repeat, name="ticker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def map_concurrently(action: Callable[[T], R], items: Sequence[T], workers: int) -> list[R]:
    """Return the result of `action` for each item; after an error, no further item is begun."""
    if len(items) <= 1:
        return [action(item) for item in items]
    failed: list[BaseException] = []

    def call(item: T) -> R:
        if failed:
            raise Cancelled
        try:
            return action(item)
        except BaseException as error:
            failed.append(error)
            raise

    with ThreadPoolExecutor(min(workers, len(items)), "concurrently") as threads:
        futures = [threads.submit(call, item) for item in items]
    if failed:
        raise failed[0]
    return [future.result() for future in futures]


def ahead(items: Iterator[T], cancel: Stoppable, limit: int) -> Iterator[T]:
    """Take items in a thread, at most so many in advance, until `cancel` is set; yield them."""
    queue: WorkQueue[T] = WorkQueue(cancel, limit)

    def take() -> None:
        try:
            for item in items:
                queue.put(item)
        finally:
            queue.close()
            if isinstance(items, Generator):
                items.close()

    ended = begin(take)

    def items_taken() -> Iterator[T]:
        yield from queue
        ended()  # raises the error of the thread, if any

    return items_taken()


def begin(work: Callable[[], T]) -> Callable[[], T]:
    """Start work in a thread; return a function that waits for its result, or raises its error."""
    future: Future[T] = Future()

    def run_work() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # it is raised in the thread that waits
            future.set_exception(error)

    def find_result() -> T:
        while not future.done():
            wait((future,), _LONGEST_WAIT)
        return future.result()

    threading.Thread(target=run_work, name="background call", daemon=True).start()
    return find_result


def call_unless(cancel: CancelSignal, work: Callable[[], T]) -> T:
    """Return the result of work that runs in a thread; raise `Cancelled` once that is requested.

    The work then goes on, and its result is ignored.
    """
    ended = threading.Event()

    def run_work() -> T:
        try:
            return work()
        finally:
            ended.set()

    find_result = begin(run_work)
    while not ended.wait(TICK):
        if cancel.is_set():
            raise Cancelled
    return find_result()


def settle(wait: Callable[[], object]) -> None:
    """Wait for the end of work that was started; ignore its errors, which are raised elsewhere."""
    with suppress(UploaderError, Cancelled):
        wait()


class SingleFlight(Generic[K, V]):
    """A cache that computes each value once per key; concurrent callers wait for the result.

    An error is raised in all waiting callers and is not cached: the next call tries again.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[K, V] = {}
        self._pending: dict[K, Future[V]] = {}

    def __call__(self, key: K, compute: Callable[[], V]) -> V:
        with self._lock:
            if key in self._values:
                return self._values[key]
            future = self._pending.get(key)
            asked = future is not None
            if future is None:
                future = self._pending[key] = Future()
        if not asked:
            self._compute(key, compute, future)
        return future.result()

    def forget(self, key: K) -> None:
        """Forget a value, even one that is being computed: the next call computes it again."""
        with self._lock:
            self._values.pop(key, None)
            self._pending.pop(key, None)

    def _compute(self, key: K, compute: Callable[[], V], future: "Future[V]") -> None:
        try:
            value = compute()
        except BaseException as error:
            self._settle(key, future)
            future.set_exception(error)
            return
        with self._lock:
            if self._pending.get(key) is future:
                self._values[key] = value
        self._settle(key, future)
        future.set_result(value)

    def _settle(self, key: K, future: "Future[V]") -> None:
        with self._lock:
            if self._pending.get(key) is future:
                del self._pending[key]
