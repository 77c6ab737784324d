"""Runs killed at random moments, a few; `python -m tests.trials.kill` does it at length."""

import pytest

from tests.sshd_fixture import needs_sshd
from tests.trials.kill import KillTest

pytestmark = [pytest.mark.e2e, needs_sshd]


@pytest.mark.parametrize("defaults", [False, True])
def test_killed_runs_lose_nothing_and_the_next_one_completes_them(defaults):
    said = []
    test = KillTest(300, 7, said.append, ("tar",), ("libssh",), defaults=defaults)

    report = test.run(3)

    assert report.wrongs == [], said
    assert report.replaced > 0
