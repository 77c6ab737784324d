"""Two installations over one data directory: the second one waits, and learns who is at work."""

import pytest

from tests.site import Picture, a_site, finish_reading, kill_group, wait_for
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]


site = a_site(tiny_files=5, large=100_000)


def other_of(site) -> str:
    """Return the setting that makes a command one of another account of this computer."""
    return f"advanced.state_directory={site.place.folder / 'other state'}"


def test_a_run_of_another_account_is_refused_and_names_the_running_one(site):
    before, folder = Picture.take(site.data), site.data.stat().st_mtime_ns
    site.server.hold_verification()
    process = site.start("run", "--events")
    for _ in site.place.expected_files():  # from now on, only the second run makes changes
        wait_for(process, "file_registered")
    requests = len(site.server.requests)

    second = site.run(other_of(site))
    changes = site.changes(requests)

    site.server.release_verification()
    first = finish_reading(process)
    assert (second.code, second.problem) == (3, "run.already-running")
    assert f"process {process.pid} on " in second.sums["problem"]["message"]
    assert "account " in second.sums["problem"]["message"]
    assert [it for it in changes if "experiment" in it or "dataset/" in it] == []
    assert (first.code, first.problem) == (0, None)
    assert before.differences() == []
    assert site.data.stat().st_mtime_ns == folder


def test_a_killed_run_blocks_nothing_and_leaves_nothing(site):
    before = Picture.take(site.data)
    process = site.start("run", "--events")
    wait_for(process, "folder_found")
    kill_group(process)
    process.communicate()
    changed = before.differences()

    after = site.command("run", "--events", settings=[other_of(site)])

    assert changed == []
    assert (after.code, after.problem) == (0, None)
    assert before.differences() == []
    assert site.find_wrongs() == []


def test_the_lease_of_a_killed_shard_counts_no_longer_and_goes_with_the_next(site):
    assert site.command("register").code == 0
    before = Picture.take(site.data)
    process = site.start("run", "--shard", "1/2", "--events")
    wait_for(process, "run_started")
    kill_group(process)
    process.communicate()
    left = [path.name for path in site.data.glob(".*")]

    after = site.command("run", "--shard", "1/2", "--json", settings=[other_of(site)])

    assert left == [".mydata-like-1-of-2.lock"]
    assert (after.code, after.problem) == (0, None)
    assert before.differences() == []
