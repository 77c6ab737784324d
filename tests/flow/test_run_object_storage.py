"""Whole runs to object storage: every file verified by the server, in the bucket, and found again.

They run against a service in memory, and against a real one where it is installed.
"""

import pytest

from mydata_like.core.errors import NotApprovedError, SettingsError
from mydata_like.core.events import ChannelChanged, FileWaiting, RunPaused
from mydata_like.transfer.s3.s3_upload import PART
from tests.builders import a_file
from tests.fakes.objects import ACCOUNT, ObjectServer, refusal
from tests.invariants import check_carried, check_idle, check_law, check_untouched
from tests.object_site import BOX, add_storage, keep_secret
from tests.s3_service import SERVICES, open_service
from tests.site import Picture, a_site, make_data, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

LARGE = 20_000_000
LONG_AGO = 1_600_000_000


@pytest.fixture(scope="module", params=SERVICES)
def service(request, tmp_path_factory):
    with open_service(request.param, tmp_path_factory.mktemp("s3")) as service:
        yield service


site = a_site(tiny_files=20, large=LARGE)


def test_a_run_leaves_every_file_verified_in_the_bucket(site, service):
    settings = add_storage(site, service.url)
    before = Picture.take(site.data)

    carried = site.carry(*settings)

    check_carried(site, carried)
    check_untouched(before)
    files = site.server.datafiles()
    assert {file.box for file in files} == {BOX}
    assert all(file.verified for file in files)
    assert {event.rung for event in carried.of_kind(ChannelChanged) if event.rung} == {"s3"}
    check_idle(site, *settings)


def test_a_lost_ledger_costs_no_second_upload(site, service):
    settings = add_storage(site, service.url)
    check_carried(site, site.carry(*settings))
    for file in site.ledgers:
        file.unlink()

    carried = site.carry(*settings)

    check_carried(site, carried)
    assert carried.sums.sent == 0


def test_changed_files_replace_verified_ones(site, service):
    settings = add_storage(site, service.url)
    check_carried(site, site.carry(*settings))
    for name, size in (("small.csv", 300), ("large.raw", 9_000_000)):
        a_file(site.data / "alice/Tomogram 7" / name, size, LONG_AGO)
    check_carried(site, site.carry(*settings))
    for name, size in (("small.csv", 301), ("large.raw", 9_000_001)):
        a_file(site.data / "alice/Tomogram 7" / name, size, LONG_AGO + 100)

    carried = site.carry(*settings)

    check_carried(site, carried)
    assert carried.sums.sent == 2


@pytest.mark.parametrize("kind", ["CreateMultipartUpload", "UploadPart"])
def test_files_that_do_not_fit_wait_and_the_others_are_sent(site, kind):
    with ObjectServer() as service:
        settings = add_storage(site, service.url)
        service.interfere = lambda it: refusal("QuotaExceeded", 403) if it.kind == kind else None
        full = site.carry(*settings)
        service.interfere = lambda _: None
        after = site.carry(*settings)

        check_law(full)
        waiting = full.of_kind(FileWaiting)
        assert {(it.size > PART, it.problem.code) for it in waiting} == {(True, "staging.full")}
        assert full.sums.verified == full.sums.found - len(waiting)
        assert (full.code, full.sums.problem.code) == (3, "staging.full")
        assert [it.problem.code for it in full.of_kind(RunPaused)] == ["staging.full"]
        check_carried(site, after)


def test_archives_are_objects(site, service):
    rules = 'archive.rules=["*.tif below 100 kB from 5 files by dataset"]'
    settings = (*add_storage(site, service.url), rules)

    check_carried(site, site.carry(*settings))

    assert [file for file in site.server.datafiles() if file.filename.endswith(".tar")]
    check_idle(site, *settings)


def approved_settings(site, service):
    """Return the settings of an uploader whose approved storage box names the bucket."""
    add_storage(site, service.url)
    keep_secret(site)
    return ("transfer.method=s3", f"transfer.s3_access_key={ACCOUNT}")


def test_the_approved_storage_box_names_the_bucket(tmp_path, service):
    make_data(tmp_path / "site", tiny_files=5, large=100_000)
    with open_site(tmp_path / "site", auto_approve=False) as site:
        settings = approved_settings(site, service)
        with pytest.raises(NotApprovedError):
            site.carry(*settings, "advanced.pause_patience=0")
        site.server.approve(site.uuid, box=BOX)

        carried = site.carry(*settings)

        check_carried(site, carried)
        assert {file.box for file in site.server.datafiles()} == {BOX}


def test_a_dry_run_sends_nothing(site, service):
    settings = add_storage(site, service.url)

    ended = site.command("scan", "--json", settings=settings)

    assert (ended.code, site.server.datafiles()) == (0, [])


@pytest.mark.parametrize("name", ["s3_bucket", "s3_box"])
def test_nothing_is_sent_for_a_storage_box_without_the_bucket(site, service, name):
    """The approved storage box, to which the settings leave the choice, is reached by SSH."""
    settings = (*add_storage(site, service.url), f"transfer.{name}=")

    with pytest.raises(SettingsError, match="storage box staging") as caught:
        site.carry(*settings)

    assert caught.value.problem_code == "s3.other-box"
    assert site.server.datafiles() == []


def test_a_missing_access_key_is_named(site, service):
    settings = (*add_storage(site, service.url), "transfer.s3_access_key=")

    with pytest.raises(SettingsError, match="s3_access_key") as caught:
        site.carry(*settings)

    assert caught.value.problem_code == "s3.incomplete"


def test_without_its_secret_a_run_says_how_to_store_it(site, service):
    settings = (*add_storage(site, service.url), "transfer.s3_access_key=OTHER")

    with pytest.raises(SettingsError) as caught:
        site.carry(*settings)

    assert caught.value.problem_code == "s3.no-secret"
    assert "set-key --s3" in caught.value.hint


def test_what_the_server_verified_in_the_bucket_is_freed(site, service):
    settings = add_storage(site, service.url)
    check_carried(site, site.carry(*settings))
    path = site.data / "alice/Tomogram 7/volume.raw"

    ended = site.command("free", str(path), "--yes", settings=settings)

    assert (ended.code, path.exists()) == (0, False)
