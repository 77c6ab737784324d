"""Does something again and again beside a run."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
