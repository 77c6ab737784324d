"""Whole runs against a server whose workers are blocked for good by a second writer."""

import shutil

import pytest

from mydata_like.core.events import Notice
from mydata_like.demo.middleware import Fault, Hang, Slow
from tests.invariants import check_carried, check_idle
from tests.site import kill_group, make_data, open_site, wait_for
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

RECORDS = r"/mydata_dataset_file/$"
WORKERS = 5


@pytest.fixture
def site(tmp_path):
    make_data(tmp_path / "site", tiny_files=10, large=100_000)
    with open_site(tmp_path / "site") as site:
        site.server.limit_workers(WORKERS)
        yield site


def test_a_run_that_is_started_at_once_after_a_kill_does_not_block_the_server(site):
    site.server.faults.add(Fault(action=Slow(3.0), method="PATCH", path=RECORDS, count=None))
    settings = ["server.write_timeout=60", "advanced.register_requests=1"]
    process = site.start("run", "--events", settings=settings)
    wait_for(process, "file_staged")
    while not site.server.locked:
        assert process.poll() is None
    kill_group(process)
    process.communicate()
    site.server.faults.clear()

    carried = site.carry("server.write_timeout=60")

    assert site.server.blocked_workers == 0
    assert "server.unanswered" in {event.problem.code for event in carried.of_kind(Notice)}
    check_carried(site, carried)
    assert carried.sums.seconds < 30  # as soon as it is seen that it is over
    check_idle(site)


def test_a_request_that_outlasts_the_time_for_reading_is_not_repeated(site):
    site.server.faults.add(Fault(action=Slow(3.0), method="PATCH", path=RECORDS, count=2))

    carried = site.carry("server.read_timeout=1", "server.write_timeout=30")

    assert site.server.blocked_workers == 0
    assert carried.of_kind(Notice) == []
    check_carried(site, carried)


@pytest.mark.parametrize("path", ["mydata_experiment/$", "/dataset/$", "objectacl/$"])
def test_nothing_is_made_twice_that_is_being_made(site, path):
    # One dataset: files of another one may be registered when the kill comes, and the next run
    # would wait for that registration, which is not the subject here.
    for folder in [*(site.data / "alice").iterdir(), *(site.data / "bob").glob("Odd names*")]:
        shutil.rmtree(folder)
    site.server.faults.add(Fault(action=Slow(3.0), method="POST", path=path))
    process = site.start("run", "--events", settings=["server.write_timeout=60"])
    while not site.server.locked and process.poll() is None:
        pass
    kill_group(process)
    process.communicate()
    site.server.faults.clear()

    carried = site.carry("server.write_timeout=60")

    assert site.server.blocked_workers == 0
    assert carried.sums.seconds < 30
    check_carried(site, carried)


def test_a_gateway_that_gives_up_leaves_the_request_at_work(site):
    site.server.faults.add(
        Fault(action=Slow(4.0, patience=1.0), method="PATCH", path=RECORDS, count=1)
    )

    carried = site.carry("server.write_timeout=60")

    assert site.server.blocked_workers == 0
    check_carried(site, carried)


def test_a_request_that_never_arrived_is_waited_for_and_sent_again(site):
    site.server.faults.add(Fault(action=Hang(), method="PATCH", path=RECORDS, count=1))

    carried = site.carry("server.write_timeout=2", "server.read_timeout=1")

    check_carried(site, carried)
