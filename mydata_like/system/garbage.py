"""Garbage collection that leaves a run alone."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SELDOM: Final = (50_000, 20, 50)  # new values until the young, the older, all are looked at


@contextmanager
def imported_for_good() -> Iterator[None]:
    """Look for no garbage while this lasts, and never again at what it leaves.

    Modules stay until the end; walking through them again and again while they are imported
    takes a fifth of the start of a run.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def collect_seldom() -> None:
    """Look seldom for values that keep each other alive, from now on.

    A run makes named tuples by the million, none of which does; but with Python's own
    thresholds it walks through those under way again and again, which took half its time.
    """
    gc.set_threshold(*SELDOM)
