"""Files with dates beyond every database: they stop no other file and arrive where they can."""

import os

import pytest

from mydata_like.core.events import FileWaiting
from tests.invariants import check_carried, check_law
from tests.settled import settle
from tests.site import make_data, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

FUTURE = 15_032_385_535  # seconds: the year 2446, the end of ext4; too many nanoseconds for 64 bits
PAST = -11_644_473_600  # the year 1601, where Windows begins


@pytest.fixture
def some_file(tmp_path):
    data = make_data(tmp_path / "site", tiny_files=3, large=1000)
    return next(path for path in sorted(data.rglob("*")) if path.is_file())


def test_a_file_of_the_far_future_waits_alone(tmp_path, some_file):
    os.utime(some_file, (FUTURE, FUTURE))
    with open_site(tmp_path / "site") as site:
        carried = site.carry()

        check_law(carried)
        waiting = [event.path.rpartition(b"/")[2] for event in carried.of_kind(FileWaiting)]
        assert waiting == [os.fsencode(some_file.name)]
        assert carried.sums.verified == carried.sums.found - 1
        assert carried.sums.problem is None


def test_a_file_of_the_far_past_arrives(tmp_path, some_file):
    os.utime(some_file, (PAST, PAST))
    if some_file.stat().st_mtime != PAST:
        pytest.skip("this file system has no such dates")
    settle(some_file)
    with open_site(tmp_path / "site") as site:
        check_carried(site, site.carry())
