"""Ids that were seen, compared with a plain set of them."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.id_set import IdSet

NUMBERS = st.integers(-300, 300) | st.integers(2**63 - 200, 2**63)


@given(st.lists(NUMBERS), st.lists(NUMBERS))
def test_what_was_added_is_in_it_and_nothing_else(added, asked):
    ids = IdSet()
    ids.update(added)

    ids.update(added)  # a second time

    assert len(ids) == len(set(added))
    assert all((number in ids) == (number in added) for number in asked + added)


def test_a_hundred_thousand_that_follow_one_another_take_little():
    ids = IdSet()
    ids.update(range(10**7, 10**7 + 100_000))

    assert sys.getsizeof(ids._blocks) + 40 * len(ids._blocks) < 200_000
