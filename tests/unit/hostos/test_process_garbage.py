"""Garbage collection during a run."""

import gc

import pytest

from mydata_like.hostos.process import SELDOM, collect_less_often


@pytest.fixture
def before():
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield gc.get_threshold()
    gc.set_threshold(*thresholds)


def test_garbage_is_looked_for_seldom_from_now_on(before):
    collect_less_often()

    assert gc.get_threshold() == SELDOM != before
