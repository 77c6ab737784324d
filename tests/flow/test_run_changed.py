"""Changed files that do not get to the server: no view calls them safe."""

import os
from collections import Counter

import pytest

from mydata_like.app.file_status_service import find_files
from mydata_like.app.ledger_status import open_listing, open_survey
from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.core.errors import HELD
from mydata_like.core.events import FileVerified, FileWaiting, FileWanted
from mydata_like.core.file_status import FileSafety, LocalState
from mydata_like.core.model import EntryState
from mydata_like.core.queries import View
from mydata_like.engine.local_cleanup import CHANGED, judge_entry
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.builders import a_file
from tests.invariants import check_carried
from tests.site import kill_group, open_site, wait_for, yield_processor
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

LONG_AGO = 1_600_000_000
HTTP = "transfer.method=http"
KEY = "alice/Scan/a.tif"


@pytest.fixture(params=["transfer.method=auto", HTTP])
def site(request, tmp_path):
    """A site whose files are verified, and one has other bytes here since then."""
    for name in ("a.tif", "b.tif"):
        a_file(tmp_path / "data/alice/Scan" / name, 1000, LONG_AGO)
    with open_site(tmp_path) as opened:
        check_carried(opened, opened.carry(request.param))
        a_file(opened.data / KEY, 2000, LONG_AGO + 100)
        yield opened


def settings_of(site):
    return load_settings(site.config).settings


def entry_of(site):
    root = os.fsencode(site.data)
    file = ledger_file(settings_of(site), find_places(site.config), root)
    with SqliteLedger.open_to_read(file, root, SystemClock()) as ledger:
        return ledger.find_entries([KEY.encode()])[KEY.encode()]


def check_never_safe(site):
    """No reader of the ledger calls the changed file verified."""
    settings = settings_of(site)
    (status,) = find_files(settings, site.config, KEY)
    with open_listing(settings, site.config, View(order="name", descending=False)) as listing:
        states = {row.key: row.state for row in listing.first(10)}

    assert (status.local, status.safety) == (LocalState.CHANGED, FileSafety.CHANGED)
    assert (status.as_record()["state"], status.entry.state) == ("changed", EntryState.CHANGED)
    assert states[KEY.encode()] != "verified"
    assert states[b"alice/Scan/b.tif"] == "verified"
    assert judge_entry(entry_of(site)) == CHANGED


def test_what_cannot_be_replaced_is_changed_here_and_not_there(site):
    for _ in range(2):
        ended = site.carry(HTTP)

        (waiting,) = ended.of_kind(FileWaiting)
        assert waiting.problem.code == HELD
        assert (ended.code, ended.sums.verified, ended.sums.waiting) == (0, 1, 1)
        check_never_safe(site)
        (folder,) = open_survey(settings_of(site), site.config).list_folders("alice", "", None)
        assert (folder.found, folder.verified, folder.waiting) == (2, 1, 1)


def test_a_changed_file_of_a_run_that_was_cut_off_is_changed_here_and_not_there(site):
    process = site.start("run", "--events", settings=("limits.bandwidth=0.0001",))
    wait_for(process, "folder_found")
    while entry_of(site).state is EntryState.VERIFIED and process.poll() is None:
        yield_processor()
    kill_group(process)
    process.communicate()

    check_never_safe(site)


def test_a_file_that_is_as_it_was_again_is_verified_again(site):
    site.carry(HTTP)
    a_file(site.data / KEY, 1000, LONG_AGO)

    ended = site.carry(HTTP)

    assert (ended.code, ended.sums.verified, ended.sums.sent) == (0, 2, 0)
    assert entry_of(site).state is EntryState.VERIFIED


def kind_of(request):
    """Return the method and resource of a request about datafiles; empty for others."""
    path = request.path.partition("?")[0].removeprefix("/api/v1/")
    words = ["N" if word[0].isdigit() else word for word in path.split("/") if word]
    return " ".join([request.method, *words]) if "dataset_" in path else ""


@pytest.mark.parametrize(("datasets", "changed"), [(1, 1), (1, 20), (3, 1), (3, 8)])
def test_two_requests_for_each_changed_file_and_the_others_for_each_dataset(
    tmp_path, datasets, changed
):
    def write(dataset, number, size, modified):
        a_file(tmp_path / f"data/alice/Scan {dataset}/{number}.tif", size, modified)

    for dataset in range(datasets):
        for number in range(150):
            write(dataset, number, 10, LONG_AGO)
    with open_site(tmp_path) as site:
        check_carried(site, site.carry())
        site.carry()  # after which the ledger has the numbers of all records
        for dataset in range(datasets):
            for number in range(changed):
                write(dataset, number, 11 + number, LONG_AGO + 100)
        before = len(site.server.requests)

        ended = site.carry()

        check_carried(site, ended)
        assert ended.sums.sent == datasets * changed
        asked = Counter(kind_of(request) for request in site.server.requests[before:])
        del asked[""]
        looks = asked.pop("GET mydata_dataset_file set N")
        # One to find the records that the scan finds soon after one another, one before their bytes
        # are moved, one for the verification; a busy server is asked again.
        assert looks >= 3
        assert asked == {
            "GET mydata_dataset_file": datasets,
            "GET mydata_dataset_stats N": datasets,
            "PATCH mydata_dataset_file": datasets,
            "GET dataset_file N verify": 2 * datasets * changed,
        }


def test_a_changed_file_is_verified_once_it_has_been_replaced(tmp_path):
    a_file(tmp_path / "data" / KEY, 1000, LONG_AGO)
    with open_site(tmp_path) as site:
        check_carried(site, site.carry())
        a_file(site.data / KEY, 2000, LONG_AGO + 100)

        ended = site.carry()

        assert (len(ended.of_kind(FileWanted)), len(ended.of_kind(FileVerified))) == (1, 1)
        assert entry_of(site).state is EntryState.VERIFIED
