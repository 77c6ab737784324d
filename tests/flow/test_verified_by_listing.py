"""Whole runs against servers whose numbers and replies lie: verified is what a listing shows."""

import os

import pytest

from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.core.events import FileFailed, FileVerified
from mydata_like.demo.middleware import Cached, Fault, Reply, StoreHalf, StoreOtherChecksum
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.invariants import check_carried, check_law
from tests.site import a_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

RECORDS = r"/mydata_dataset_file/$"
LIES = {
    "nothing stored": [Fault(action=Reply(202), method="PATCH", path=RECORDS)],
    "half a batch stored": [Fault(action=StoreHalf(), method="PATCH", path=RECORDS, count=2)],
    "every second request lost": [
        Fault(action=Reply(202), method="PATCH", path=RECORDS, every=2, count=None)
    ],
    "another checksum stored": [
        Fault(action=StoreOtherChecksum(), method="PATCH", path=RECORDS, count=1)
    ],
    "a cache": [Fault(action=Cached(), method="GET", path="dataset", count=None)],
    "a cache that ignores no-cache": [
        Fault(action=Cached(honours_no_cache=False), method="GET", path="dataset", count=None)
    ],
}


site = a_site(tiny_files=10, large=100_000)


@pytest.mark.parametrize("faults", LIES.values(), ids=LIES)
def test_what_is_called_verified_has_a_verified_record_at_that_moment(site, faults):
    lies = []

    def watch(event):
        if isinstance(event, FileVerified):
            said = (os.fsdecode(event.path).rpartition("/")[2], event.checksum)
            stored = {(it.filename, it.md5sum) for it in kept(site) if it.verified}
            lies.extend([event] if said not in stored else [])

    site.server.faults.add(*faults)

    carried = site.carry(watch=watch)

    assert lies == []
    check_carried(site, carried)


def test_the_ledger_knows_the_record_of_every_verified_file(site):
    check_carried(site, site.carry())

    ids = {file.id for file in site.server.datafiles()}

    assert {entry.datafile for entry in entries(site)} == ids


def test_a_server_that_keeps_no_record_is_not_believed(site):
    site.server.faults.add(Fault(action=Reply(202), method="PATCH", path=RECORDS, count=None))

    carried = site.carry()

    check_law(carried)
    assert carried.of_kind(FileVerified) == []
    assert {event.problem.code for event in carried.of_kind(FileFailed)} == {"register.lost"}
    site.server.faults.clear()
    check_carried(site, site.carry())


def test_a_server_that_stores_other_checksums_each_time_is_not_believed(site):
    site.server.faults.add(
        Fault(action=StoreOtherChecksum(), method="PATCH", path=RECORDS, count=None)
    )

    carried = site.carry()

    check_law(carried)
    assert carried.of_kind(FileVerified) == []
    assert {event.problem.code for event in carried.of_kind(FileFailed)} == {"verify.failed"}
    site.server.faults.clear()
    check_carried(site, site.carry())


def test_numbers_that_count_a_file_with_two_copies_twice_verify_nothing(site):
    check_carried(site, site.carry())
    folder = site.data / "bob" / "Long run"
    (dataset,) = {it.dataset for it in kept(site) if it.filename == "part_0.csv"}
    (one, *_) = [it.id for it in kept(site) if it.dataset == dataset]
    site.server.add_copy(one)
    (folder / "new.csv").write_bytes(b"new")
    site.server.hold_verification()

    carried = site.carry("advanced.verify_patience=1")
    site.server.release_verification()

    check_law(carried)
    assert carried.of_kind(FileVerified) == []
    assert carried.sums.waiting == 1
    after = site.carry()
    assert (after.code, after.sums.verified) == (0, after.sums.found)


def kept(site):
    return site.server.datafiles()


def entries(site):
    settings = load_settings(site.config).settings
    root = os.fsencode(site.data)
    file = ledger_file(settings, find_places(site.config), root)
    with SqliteLedger.open_to_read(file, root, SystemClock()) as ledger:
        return [entry for entry in ledger.iter_entries() if not entry.archive]
