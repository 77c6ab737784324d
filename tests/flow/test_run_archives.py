"""Runs that keep tiny files in archives: few records, every file safe, and nothing sent twice."""

import os
import subprocess
from pathlib import Path

import pytest

from mydata_like.core.events import FileStaged, FileVerified, FileWaiting, Notice
from mydata_like.demo.invariants import list_archived
from mydata_like.demo.middleware import Fault, Hang, Reply
from mydata_like.transfer import tar
from tests.invariants import check_carried, check_idle, check_law, check_untouched, find_falsehoods
from tests.settled import settle
from tests.site import Picture, kill_group, open_site, wait_for, yield_processor
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

RULES = 'archive.rules=["*.dat below 100 kB from 50 files"]'
OLD = 1_600_000_000
FOLDER = Path("alice/Scan 1")


def write(path: Path, content: bytes, modified: int = OLD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (modified, modified))
    return path


def make_tiny(data: Path, count: int, folder: str = "raw", prefix: str = "f") -> list[Path]:
    return [
        write(data / FOLDER / folder / f"{prefix}{n:05d}.dat", os.urandom(n % 300), OLD + n)
        for n in range(count)
    ]


@pytest.fixture
def site(tmp_path):
    data = tmp_path / "site" / "data"
    settle(make_tiny(data, 120)[-1])
    write(data / FOLDER / "notes.txt", b"by hand")
    settle(write(data / "bob" / "Few" / "a.dat", b"alone"))
    with open_site(tmp_path / "site") as site:
        yield site


def archives(site):
    return [file for file in site.server.datafiles() if file.filename.endswith(".tar")]


def test_three_thousand_tiny_files_become_a_handful_of_records(tmp_path):
    data = tmp_path / "site" / "data"
    for folder in ("raw", "raw/deep", "Größe 1"):
        settle(make_tiny(data, 1000, folder)[-1])
    before = Picture.take(data)
    with open_site(tmp_path / "site") as site:
        carried = site.carry(RULES)

        check_carried(site, carried)
        assert (carried.sums.found, carried.sums.verified, carried.sums.sent) == (3000, 3000, 3000)
        assert len(carried.of_kind(FileStaged)) == len(carried.of_kind(FileVerified)) == 3000
        names = [(file.directory, file.filename[:-18]) for file in site.server.datafiles()]
        assert sorted(names) == [("Größe 1", "Größe 1"), ("raw", "raw"), ("raw/deep", "deep")]
        check_idle(site, RULES)

        out = tmp_path / "out"
        out.mkdir()
        for file in archives(site):
            subprocess.run(["tar", "-xf", file.path], cwd=out, check=True)
        difference = ["diff", "-r", data / "alice", out, "--exclude=*.index.json"]
        subprocess.run(difference, check=True)
    check_untouched(before)


def test_files_that_no_rule_fits_have_records_of_their_own(site):
    check_carried(site, site.carry(RULES))

    names = sorted(file.filename for file in site.server.datafiles())
    assert names[:2] == ["a.dat", "notes.txt"]
    assert len(names) == 3


def test_what_has_changed_or_come_since_goes_into_a_further_archive(site):
    check_carried(site, site.carry(RULES))
    (first,) = archives(site)
    write(site.data / FOLDER / "raw" / "f00007.dat", b"changed", OLD + 5000)
    settle(*make_tiny(site.data, 2, prefix="new")[-1:])

    carried = site.carry(RULES)

    check_carried(site, carried)
    assert carried.sums.sent == 3
    again, second = archives(site)
    assert again == first
    assert [inside.filename for inside in list_archived(second.path)] == [
        "f00007.dat",
        "new00000.dat",
        "new00001.dat",
    ]
    assert second.filename.endswith("-0002.tar")
    check_idle(site, RULES)


def test_a_changed_file_without_the_rule_gets_a_record_of_its_own(site):
    check_carried(site, site.carry(RULES))
    settle(write(site.data / FOLDER / "raw" / "f00007.dat", b"changed", OLD + 5000))

    carried = site.carry()

    check_carried(site, carried)
    assert "f00007.dat" in [file.filename for file in site.server.datafiles()]
    check_idle(site)


def test_a_file_that_changes_while_it_is_archived_waits_and_the_others_are_safe(site):
    bad = site.data / FOLDER / "raw" / "f00007.dat"

    def spoil(event):
        if type(event).__name__ == "TransferStarted" and event.files > 1:
            bad.write_bytes(b"written just now")

    carried = site.carry(RULES, watch=spoil)

    check_law(carried)
    assert carried.sums.waiting == 1
    assert [event.path for event in carried.of_kind(FileWaiting)] == [
        os.fsencode(FOLDER / "raw" / "f00007.dat")
    ]
    settle(bad)
    check_carried(site, site.carry(RULES))


@pytest.mark.parametrize("rule", [RULES, "archive.rules=[]"], ids=["with rules", "without"])
def test_without_the_ledger_nothing_is_sent_again(site, rule):
    check_carried(site, site.carry(RULES))
    settle(write(site.data / FOLDER / "raw" / "f00007.dat", b"changed", OLD + 5000))
    check_carried(site, site.carry(RULES))
    for file in site.ledgers:
        file.unlink()

    carried = site.carry(rule)

    check_carried(site, carried)
    assert (carried.sums.sent, carried.sums.bytes) == (0, 0)
    check_idle(site, rule)


def test_without_the_ledger_new_files_are_found_among_those_in_archives(site):
    check_carried(site, site.carry(RULES))
    for file in site.ledgers:
        file.unlink()
    settle(*make_tiny(site.data, 1, prefix="new"))

    carried = site.carry(RULES)

    assert carried.sums.sent == 1
    check_carried(site, carried)
    check_idle(site, RULES)


def test_an_archive_that_the_server_does_not_give_back_is_sent_again_under_another_name(site):
    check_carried(site, site.carry(RULES))
    for file in site.ledgers:
        file.unlink()
    site.server.faults.add(Fault(action=Reply(403), method="GET", path="/download/", count=None))

    carried = site.carry(RULES)

    assert [event.problem.code for event in carried.of_kind(Notice)] == ["archive.unreadable"]
    first, second = archives(site)
    assert first.filename != second.filename
    assert first.md5sum != second.md5sum or first.path != second.path
    check_idle(site, RULES)


@pytest.mark.parametrize("name", ["17", "null", "[]", '"\\ud800"'])
def test_an_archive_whose_index_makes_no_sense_fails_alone(site, name):
    # Someone who may write into one dataset has put it there, under the name of an archive.
    index = (
        '{"format": "mydata-like archive 1", "members": [\n'
        f'{{"name": {name}, "size": 0, "modified_ns": 0, "offset": 512, "md5": ""}}\n]}}\n'
    ).encode()
    parts = (
        tar.header(b"raw/a", 0, 0),
        tar.header(b"raw-0123abcd-0001.index.json", len(index), 0),
        index + tar.padding(len(index)),
        tar.END,
    )
    settle(write(site.data / FOLDER / "raw" / "raw-0123abcd-0001.tar", b"".join(parts)))
    assert site.carry(RULES).code == 0
    for file in site.ledgers:
        file.unlink()
    settle(*make_tiny(site.data, 1, prefix="new"))

    carried = site.carry(RULES)

    check_law(carried)
    assert (carried.code, carried.sums.problem, carried.sums.sent) == (0, None, 1)
    assert [event.problem.code for event in carried.of_kind(Notice)] == ["archive.unreadable"]


def test_without_the_ledger_unverified_archives_are_waited_for(site):
    site.server.hold_verification()
    site.carry(RULES, "advanced.verify_patience=0.3")
    for file in site.ledgers:
        file.unlink()

    waiting = site.carry(RULES, "advanced.verify_patience=0.3")
    site.server.release_verification()
    site.server.wait_verified()
    after = site.carry(RULES)

    assert waiting.sums.sent == 0
    assert {event.problem.code for event in waiting.of_kind(FileWaiting)} >= {"waiting.archive"}
    check_carried(site, after)
    assert after.sums.sent == 0


def test_an_archive_that_was_lost_on_the_server_is_made_again(site):
    check_carried(site, site.carry(RULES))
    (lost,) = archives(site)
    site.server.lose(lost.id)

    carried = site.carry(RULES)

    check_carried(site, carried)
    assert carried.sums.sent == 120
    check_idle(site, RULES)


@pytest.mark.parametrize(
    ("event", "way"),
    [
        ("file_staged", "transfer.method=auto"),
        ("file_registered", "transfer.method=auto"),
        ("transfer_started", "transfer.method=http"),
    ],
)
def test_a_run_that_is_killed_loses_and_doubles_nothing(site, event, way):
    before = Picture.take(site.data)
    process = site.start("run", "--events", settings=(RULES, way))
    wait_for(process, event)
    kill_group(process)
    process.communicate()
    assert find_falsehoods(site) == []

    site.server.wait_verified()
    check_carried(site, site.carry(RULES, way))
    check_idle(site, RULES, way)
    check_untouched(before)


def test_a_killed_run_whose_records_were_made_unheard_finds_them_again(site):
    site.server.faults.add(
        Fault(action=Hang(handled=True), method="PATCH", path="dataset_file", count=None)
    )
    process = site.start("run", "--json", settings=(RULES,))
    while not archives(site):
        assert process.poll() is None
        yield_processor()
    kill_group(process)
    process.communicate()
    site.server.faults.clear()

    carried = site.carry(RULES)

    check_carried(site, carried)
    assert not [event for event in carried.of_kind(FileStaged) if b"f00" in event.path]
    assert len(archives(site)) == 1


def test_over_http_archives_travel_and_are_found_again(site):
    check_carried(site, site.carry(RULES, "transfer.method=http"))
    assert len(archives(site)) == 1
    for file in site.ledgers:
        file.unlink()

    carried = site.carry(RULES, "transfer.method=http")

    check_carried(site, carried)
    assert carried.sums.sent == 0


def test_a_local_file_with_an_archives_name_never_replaces_it(site):
    check_carried(site, site.carry(RULES))
    (archive,) = archives(site)
    settle(write(site.data / FOLDER / "raw" / archive.filename, b"something else"))

    carried = site.carry(RULES)

    assert (carried.code, carried.sums.failed) == (1, 1)
    assert archives(site) == [archive]
