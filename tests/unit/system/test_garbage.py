"""Garbage collection beside a run."""

import gc

from mydata_like.system.garbage import SELDOM, collected_seldom


def test_garbage_is_looked_for_seldom_for_as_long_as_that_lasts() -> None:
    before = gc.get_threshold()

    with collected_seldom():
        assert gc.get_threshold() == SELDOM

    assert gc.get_threshold() == before != SELDOM
