"""Runs that are cut off at the worst moments: what the next one believes, and what it does not."""

import os

import pytest

from mydata_like.core.events import FileVerified
from mydata_like.demo.middleware import Fault, Hang
from tests.invariants import check_carried, check_idle
from tests.site import a_site, kill_group, wait_for
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

OLD = 1_600_000_000


site = a_site(tiny_files=5, large=100_000)


def test_a_repair_whose_reply_was_lost_is_not_verified_by_the_old_copy(site):
    check_carried(site, site.carry())
    path = site.data / "bob" / "Long run" / "part_0.csv"
    path.write_bytes(b"other bytes" * 5000)
    os.utime(path, (OLD, OLD))
    site.server.hold_verification()
    site.server.faults.add(Fault(action=Hang(handled=True), method="PATCH", path="dataset_file"))
    _cut_off(site, "file_staged", lambda: _record_of(site, path).size == path.stat().st_size)

    before = site.carry("advanced.verify_patience=0.5")
    site.server.release_verification()
    after = site.carry()

    assert before.of_kind(FileVerified) == []
    assert before.sums.waiting == 1
    assert (after.sums.sent, after.sums.bytes) == (0, 0)
    check_carried(site, after)


def test_records_whose_creation_was_not_confirmed_are_found_again(site):
    site.server.faults.add(
        Fault(action=Hang(handled=True), method="PATCH", path="dataset_file", count=None)
    )
    _cut_off(site, "file_staged", lambda: bool(site.server.datafiles()))
    site.server.faults.clear()

    check_carried(site, site.carry())
    check_idle(site)


def _cut_off(site, event, happened):
    """Kill a run as soon as something has happened on the server, after an event of the run."""
    process = site.start("run", "--events")
    wait_for(process, event)
    while not happened():
        assert process.poll() is None
    kill_group(process)
    process.communicate()


def _record_of(site, path):
    (record,) = [file for file in site.server.datafiles() if file.filename == path.name]
    return record


def test_an_experiment_that_got_no_owners_before_the_kill_gets_them_later(site):
    site.server.faults.add(Fault(action=Hang(), path="objectacl/", count=None))
    _cut_off(site, "folder_found", lambda: bool(_experiments(site)))
    site.server.faults.clear()
    alone = _group_owners(site)

    check_carried(site, site.carry())
    owned = _group_owners(site)
    check_carried(site, site.carry())

    assert alone == []
    assert owned == _experiments(site)
    assert _group_owners(site) == owned


def test_an_empty_experiment_of_another_owner_keeps_its_owners(site):
    site.carry()
    store = site.server.site.store
    store.change("DELETE FROM acl WHERE plugin = 'django_group'")
    store.change("DELETE FROM dataset_experiment")
    store.change("UPDATE parameter SET value = 'somebody else' WHERE name = 'uploader'")

    site.carry()

    assert _group_owners(site) == []


def _experiments(site):
    rows = site.server.site.store.rows("SELECT id FROM experiment ORDER BY id")
    return [row["id"] for row in rows]


def _group_owners(site):
    sql = "SELECT DISTINCT experiment FROM acl WHERE plugin = 'django_group' ORDER BY experiment"
    return [row["experiment"] for row in site.server.site.store.rows(sql)]
