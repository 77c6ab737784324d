"""Files with dates beyond every database: they stop no other file and arrive where they can."""

import os
import time

import pytest

from mydata_like.core.events import FileWaiting, Notice
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


@pytest.mark.parametrize("when", [2_147_483_648 + 86_400, FUTURE], ids=["2038", "2446"])
def test_a_file_of_the_future_arrives_once_it_was_seen_unchanged(tmp_path, some_file, when):
    os.utime(some_file, (when, when))
    with open_site(tmp_path / "site") as site:
        begun = time.time()
        first = site.carry("filters.settle_seconds=2592000")
        check_law(first)
        (waiting,) = [it for it in first.of_kind(FileWaiting) if it.modified_ns > begun * 1e9]
        assert waiting.problem.code == "waiting.future"

        carried = site.carry()

        check_carried(site, carried)
        notices = [event.problem.code for event in carried.of_kind(Notice)]
        assert "file.sent-future" in notices
        assert site.carry().sums.sent == 0


def test_a_file_of_the_far_past_arrives(tmp_path, some_file):
    os.utime(some_file, (PAST, PAST))
    if some_file.stat().st_mtime != PAST:
        pytest.skip("this file system has no such dates")
    settle(some_file)
    with open_site(tmp_path / "site") as site:
        check_carried(site, site.carry())
