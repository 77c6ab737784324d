"""Room for the frames of nested calls."""

import sys
import threading

import pytest

from mydata_like.hostos.process import call_with_large_stack

resource = pytest.importorskip("resource", reason="Windows does not count page faults like this")
DEPTHS = 400
CALLS = 500


def nothing(a=0, b=0, c=0, d=0):
    """Do nothing, with a frame larger than that of `count_faults`, so one depth is too deep."""


def count_faults(depth):
    """Return how many pages were mapped by many calls at this depth of the stack."""
    if depth:
        return count_faults(depth - 1)
    nothing()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        nothing()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def measure(call):
    """Return the highest count of any depth, in a thread with a new stack."""
    counts = []
    work = threading.Thread(
        target=call, args=(lambda: counts.extend(map(count_faults, range(DEPTHS))),)
    )
    work.start()
    work.join()
    return max(counts)


def test_no_depth_of_nested_calls_maps_memory_for_each_call():
    assert measure(call_with_large_stack) < CALLS / 2


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="fixed in CPython 3.13.13")
def test_without_a_large_frame_some_depth_does():
    assert measure(lambda function: function()) >= CALLS
