"""Runs killed at random moments, a few; `python -m tests.killtest` does it at length."""

import pytest

from tests.killtest import WAYS, KillTest
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_run_loses_nothing_and_the_next_one_completes_it(way):
    said = []
    test = KillTest(files=300, seed=7, say=said.append)

    report = test.run(2, (way,))

    assert report.wrongs == [], said
