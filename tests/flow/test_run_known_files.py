"""Known files: the server is asked for proof, and files without a checksum are read."""

import hashlib
import os
from collections import Counter

import pytest

from mydata_like.core.events import FilesKnown, FileStaged, FileVerified, Notice
from mydata_like.demo.uploaders import STAGING_BOX
from tests.archives import MODIFIED_NS, NAME, members_of
from tests.archives import write as write_archive
from tests.embedded import Api, staged
from tests.invariants import check_carried
from tests.privileges import needs_change_times
from tests.settled import settle
from tests.site import open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

OLD = 1_600_000_000
FOLDER = "alice/Scan 1"
EACH_TIME = "advanced.full_check_days=0"


def write(path, content, modified=OLD):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (modified, modified))
    return path


@pytest.fixture
def site(tmp_path):
    """A site with two datasets, whose seven files are known."""
    data = tmp_path / "site" / "data"
    for number in range(5):
        write(data / FOLDER / f"raw/{number}.dat", b"content %d" % number, OLD + number)
    write(data / "bob/Scan 2/notes.txt", b"by hand")
    settle(write(data / "bob/Scan 2/empty.txt", b""))
    with open_site(tmp_path / "site") as site:
        check_carried(site, site.carry())
        site.carry()  # after which the ledger has the numbers of all records
        yield site


def record_of(site, name):
    (record,) = [file for file in site.server.datafiles() if file.filename == name]
    return record


def lost(carried):
    return [it.problem.code for it in carried.of_kind(Notice)].count("server.lost")


def staged_names(carried):
    return sorted(
        os.fsdecode(event.path).rpartition("/")[2] for event in carried.of_kind(FileStaged)
    )


def forget(site):
    for file in site.ledgers:
        file.unlink()


def add_to(site, like, name, content):
    """Let someone else put a file into the dataset of a record."""
    api = Api(site.server)
    uri = f"others/{name}"
    api.put_file(uri, content)
    document = staged(
        name,
        uri,
        STAGING_BOX,
        dataset=f"/api/v1/dataset/{like.dataset}/",
        md5sum=hashlib.md5(content).hexdigest(),
        size=len(content),
    )
    answer = api.post("mydata_dataset_file/", json=document)
    assert answer.status_code == 201, answer.text
    assert site.server.wait_verified()


# What the server has is proven.


def test_a_dataset_is_proven_by_one_question_and_one_about_its_verified_copies(site):
    before = len(site.server.requests)

    carried = site.carry()

    asked = Counter(
        request.path.split("?")[0].rstrip("/").rpartition("/v1/")[2].split("/")[0]
        for request in site.server.requests[before:]
    )
    assert asked["mydata_dataset_file"] == 2
    assert asked["mydata_dataset_stats"] == 2
    assert sum(event.files for event in carried.of_kind(FilesKnown)) == 7


def test_a_record_replaced_by_another_is_made_again_and_reported(site):
    gone = record_of(site, "3.dat")
    site.server.lose(gone.id)
    add_to(site, record_of(site, "2.dat"), "other.dat", b"of somebody else")

    carried = site.carry()

    assert (carried.code, staged_names(carried), lost(carried)) == (0, ["3.dat"], 1)
    assert record_of(site, "3.dat").verified
    again = site.carry()
    assert (again.sums.sent, lost(again)) == (0, 0)


def test_a_record_of_other_bytes_is_repaired_by_the_next_full_check(site):
    site.server.rewrite(record_of(site, "3.dat").id, "f" * 32)

    carried = site.carry(EACH_TIME)

    check_carried(site, carried)
    assert (staged_names(carried), lost(carried)) == (["3.dat"], 1)


def test_a_lost_copy_is_replaced_although_another_file_has_two(site):
    site.server.add_copy(record_of(site, "2.dat").id)
    site.server.lose_copy(record_of(site, "3.dat").id)

    carried = site.carry(EACH_TIME)

    assert carried.code == 0
    assert (staged_names(carried), lost(carried)) == (["3.dat"], 1)
    assert record_of(site, "3.dat").verified


def test_a_copy_that_is_no_longer_verified_is_checked_again_and_reported(site):
    site.server.unverify(record_of(site, "3.dat").id)

    carried = site.carry(EACH_TIME)

    check_carried(site, carried)
    assert (carried.sums.sent, lost(carried)) == (0, 1)


# A file without a checksum is read.


@pytest.mark.parametrize("with_ledger", [True, False], ids=["with ledger", "without"])
@pytest.mark.parametrize(
    "seconds",
    [pytest.param(0, marks=needs_change_times), 900, -3600],
    ids=["same time", "900 s", "an hour"],
)
def test_other_bytes_of_the_same_size_are_sent_whatever_their_time_is(site, with_ledger, seconds):
    path = site.data / FOLDER / "raw/3.dat"
    settle(write(path, b"CONTENT 3", OLD + 3 + seconds))
    if not with_ledger:
        forget(site)

    carried = site.carry()

    check_carried(site, carried)
    assert staged_names(carried) == ["3.dat"]
    assert lost(carried) == 0


@pytest.mark.parametrize("seconds", [0, 123], ids=["same times", "other times"])
def test_without_the_ledger_equal_files_are_read_and_not_sent(site, seconds):
    forget(site)
    path = site.data / FOLDER / "raw/3.dat"
    os.utime(path, (OLD + 3 + seconds, OLD + 3 + seconds))
    settle(path)

    carried = site.carry()

    check_carried(site, carried)
    assert (carried.sums.sent, carried.sums.bytes) == (0, 0)
    assert len(carried.of_kind(FileVerified)) == 7
    again = site.carry()
    assert sum(event.files for event in again.of_kind(FilesKnown)) == 7


@needs_change_times
def test_files_that_were_copied_back_are_read_once_and_not_sent(site):
    path = site.data / FOLDER / "raw/3.dat"
    copy = write(path.with_name("copy"), path.read_bytes(), OLD + 3)
    copy.replace(path)
    other = site.data / FOLDER / "raw/4.dat"
    other.chmod(0o600)
    settle(other)

    carried = site.carry()

    check_carried(site, carried)
    assert carried.sums.sent == 0
    assert sorted(event.path for event in carried.of_kind(FileVerified)) == [
        os.fsencode(f"{FOLDER}/raw/{number}.dat") for number in (3, 4)
    ]
    assert site.carry().of_kind(FileVerified) == []


def test_what_is_unverified_on_the_server_is_read_and_waits_for_it(site):
    forget(site)
    site.server.unverify(record_of(site, "3.dat").id)

    carried = site.carry()

    check_carried(site, carried)
    assert carried.sums.sent == 0


def add_archive(site, folder, content, spoil=lambda tar: tar):
    """Let a dataset get an archive of a local file that is new, with this content of it."""
    path = site.data / FOLDER / "raw/new.dat"
    write(path, b"NEW FILE")
    os.utime(path, ns=(MODIFIED_NS, MODIFIED_NS))
    tar, *_ = write_archive(members_of(folder, {b"Scan 1/raw/new.dat": content}))
    settle(path)
    add_to(site, record_of(site, "3.dat"), NAME.decode(), spoil(tar))


@pytest.mark.parametrize("crafted", ["of other bytes", "with the right checksum"])
def test_a_crafted_archive_claims_nothing_that_it_does_not_hold(site, tmp_path, crafted):
    """Its index reports a local file of this name, size and time that was never sent."""
    if crafted == "of other bytes":
        add_archive(site, tmp_path / "made", b"new file")
    else:
        add_archive(
            site, tmp_path / "made", b"NEW FILE", lambda tar: tar.replace(b"NEW FILE", b"no bytes")
        )

    carried = site.carry()

    assert (carried.code, staged_names(carried)) == (0, ["new.dat"])
    assert record_of(site, "new.dat").verified


def test_an_archive_that_holds_the_local_file_s_bytes_is_believed(site, tmp_path):
    add_archive(site, tmp_path / "made", b"NEW FILE")

    carried = site.carry()

    check_carried(site, carried)
    assert staged_names(carried) == []
    verified = [event.path for event in carried.of_kind(FileVerified)]
    assert verified == [os.fsencode(f"{FOLDER}/raw/new.dat")]


def test_a_dry_run_reads_nothing_and_claims_nothing(site):
    forget(site)

    ended = site.command("scan", "--json")

    assert (ended.code, ended.sums["found"], ended.sums["verified"]) == (0, 7, 0)
    assert ended.sums["waiting"] == 7
