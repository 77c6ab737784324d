"""Does something beside a run: once, or again and again."""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TypeVar

from mydata_like.core.errors import Cancelled, UploaderError

T = TypeVar("T")

logger = logging.getLogger(__name__)


@contextmanager
def repeated(action: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call `action` at once, then every so many seconds in a thread, while this lasts.

    An action that fails is logged and called again the next time: it must not end the run, nor
    leave it held for ever.
    """
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            try:
                action()
            except Exception:  # the house's guard for threads, as in `workers`
                logger.exception("What is done beside the run failed")

    action()
    thread = threading.Thread(target=repeat, name="ticker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def begin(work: Callable[[], T]) -> Callable[[], T]:
    """Begin to work in a thread; return what waits for the end and gives, or raises, what came."""
    future: Future[T] = Future()

    def carry_out() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # it is for who waits
            future.set_exception(error)

    threading.Thread(target=carry_out, name="beside", daemon=True).start()
    return future.result


def settle(wait: Callable[[], object]) -> None:
    """Wait for the end of what was begun, whatever comes of it: that is raised elsewhere."""
    with suppress(UploaderError, Cancelled):
        wait()
