"""A short look at every parser of foreign bytes; `python -m tests.fuzz` takes as long as asked."""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("resource", reason="the fuzzer measures the memory of POSIX processes")

from tests.fuzz.runner import make_input
from tests.fuzz.targets import TARGETS

INPUTS = 200
FEW = 12  # of a target that takes longer for one


@pytest.mark.parametrize("name", TARGETS)
def test_sound_input_is_understood(name, tmp_path):
    target = TARGETS[name]
    parse = target.open(tmp_path)

    assert all(parse(sample) for sample in target.samples)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_anything_else_is_refused_with_the_errors_that_are_declared(name, tmp_path):
    target = TARGETS[name]
    parse = target.open(tmp_path)

    @settings(
        max_examples=FEW if target.slow else INPUTS,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**32))
    def refuse(seed: int) -> None:
        data = make_input(Random(seed), target)
        with suppress(*target.declared):
            parse(data)

    for data in target.others:
        with suppress(*target.declared):
            parse(data)
    refuse()
