"""Runs killed at random moments, a few; `python -m tests.killtest` does it at length."""

import pytest

from tests.killtest import KillTest
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]


@pytest.mark.parametrize("defaults", [False, True])
def test_killed_runs_lose_nothing_and_the_next_one_completes_them(defaults):
    said = []
    test = KillTest(300, 7, said.append, ("tar",), ("libssh",), defaults=defaults)

    report = test.run(3)

    assert report.wrongs == [], said
    assert report.replaced > 0
