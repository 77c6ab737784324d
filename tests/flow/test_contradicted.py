"""An answer that contradicts what was known as verified is believed at once, by every view."""

import hashlib
import os
import sqlite3
import time
from collections import Counter
from contextlib import closing

import pytest

from mydata_like.catalogues.mytardis.dataset_index import Audit, AuditPolicy
from mydata_like.core.events import FileStaged, FileVerified, Notice, RunStarted
from mydata_like.core.parsing import moment_of
from mydata_like.demo.uploaders import STAGING_BOX
from mydata_like.hostos.clock import SystemClock
from tests.builders import a_file
from tests.embedded import Api, staged
from tests.settled import settle
from tests.site import open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

OLD = 1_600_000_000
FOLDER = "alice/Scan 1"
NAME = f"{FOLDER}/3.dat"
TINY = "alice/Tiny"
OTHERS = "other.dat"


@pytest.fixture
def site(tmp_path):
    """A site whose files are verified, some of them in an archive."""
    data = tmp_path / "site" / "data"
    for number in range(6):
        settle(a_file(data / FOLDER / f"{number}.dat", 100 + number, OLD + number))
        settle(a_file(data / TINY / f"{number}.txt", 10 + number, OLD + number))
    with open_site(tmp_path / "site") as site:
        assert run(site).code == 0
        assert run(site).code == 0  # after which the ledger has the numbers of all records
        yield site


def run(site):
    return site.carry('archive.rules=["*.txt below 1 kB from 2 files"]')


def record_of(site, name):
    (record,) = [file for file in site.server.datafiles() if file.filename == name]
    return record


def damage(site, record):
    """Change a byte of the server's copy, which its record still describes as verified."""
    (content := bytearray(record.path.read_bytes()))[0] ^= 1
    record.path.write_bytes(content)


def give_away(site, record):
    """Let the record's number be that of another file, as after a restored backup."""
    content, uri = b"of somebody else", f"others/{OTHERS}"
    site.server.lose(record.id)
    api = Api(site.server)
    api.put_file(uri, content)
    dataset = f"/api/v1/dataset/{record.dataset}/"
    facts = {"md5sum": hashlib.md5(content).hexdigest(), "size": len(content)}
    document = staged(OTHERS, uri, STAGING_BOX, dataset=dataset, **facts)
    assert api.post("mydata_dataset_file/", json=document).status_code == 201
    assert site.server.wait_verified()
    other, store = record_of(site, OTHERS), site.server.site.store
    store.change("UPDATE replica SET datafile = ? WHERE datafile = ?", record.id, other.id)
    store.change("UPDATE datafile SET id = ? WHERE id = ?", record.id, other.id)


KINDS = {
    "damaged": damage,
    "gone": lambda site, record: record.path.unlink(),
    "other checksum": lambda site, record: site.server.rewrite(record.id, "f" * 32),
    "no record": lambda site, record: site.server.lose(record.id),
    "record of another file": give_away,
    "older record": lambda site, record: site.server.site.store.change(
        "UPDATE datafile SET size = 1, md5sum = ? WHERE id = ?", "f" * 32, record.id
    ),
}


def views(site, *names):
    """Return the JSON and the text of `where` for files, then those of `status`."""
    words = [("where", name, "--json") for name in names] + [("where", name) for name in names]
    *where, record, text = site.commands([*words, ("status", "--json"), ("status",)])
    files = [file for each in where[: len(names)] for file in each.sums["files"]]
    return files, "".join(each.output for each in where[len(names) :]), record.sums, text.output


def assert_doubted(site, *names):
    files, told, status, text = views(site, *names)
    assert [file["safe"] for file in files] == [False] * len(names)
    assert "safe on the server" not in told
    assert status["safety"] != "safe"
    assert status["at_risk"]["files"] >= len(names)
    assert "safe on the server" not in text


def assert_all_safe_and_idle(site, *names):
    files, _, status, text = views(site, *names)
    assert {file["safe"] for file in files} == {True}
    assert (status["safety"], status["at_risk"]["files"]) == ("safe", 0)
    assert "safe on the server" in text
    before = len(site.server.requests)
    again = run(site)
    assert (again.code, again.sums.sent, again.of_kind(FileVerified)) == (0, 0, [])
    asked = Counter(
        request.path.split("?")[0].rstrip("/").rpartition("/v1/")[2].split("/")[0]
        for request in site.server.requests[before:]
    )
    assert asked["mydata_dataset_file"] == 2
    assert [it for it in site.find_wrongs() if OTHERS not in it] == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_free_has_heard_is_honoured_until_a_run_has_repaired_it(site, kind):
    KINDS[kind](site, record_of(site, "3.dat"))

    kept = site.command("free", str(site.data / NAME), "--yes", "--json")

    assert (kept.sums["freed"], kept.sums["kept"]) == (0, 1)
    assert_doubted(site, NAME)
    again = site.command("free", str(site.data / NAME), "--yes").output
    assert "contradicts" in again
    assert "has not verified" not in again
    carried = run(site)
    assert carried.code == 0
    assert carried.sums.verified == 12
    assert {os.fsdecode(it.path) for it in carried.of_kind(FileStaged)} <= {NAME}
    assert_all_safe_and_idle(site, NAME)


ARCHIVE_KINDS = ("gone", "other checksum", "no record", "older record")


@pytest.mark.parametrize("kind", ARCHIVE_KINDS)
def test_all_files_of_an_archive_are_doubted_with_one_of_them(site, kind):
    (archive,) = [file for file in site.server.datafiles() if file.filename.endswith(".tar")]
    KINDS[kind](site, archive)

    kept = site.command("free", str(site.data / TINY / "0.txt"), "--yes", "--json")

    assert (kept.sums["freed"], kept.sums["kept"]) == (0, 1)
    assert_doubted(site, f"{TINY}/0.txt", f"{TINY}/5.txt")
    assert run(site).sums.verified == 12
    assert_all_safe_and_idle(site, f"{TINY}/0.txt", f"{TINY}/5.txt")


def test_a_preview_that_writes_nothing_is_honoured_as_well(site):
    site.server.unverify(record_of(site, "3.dat").id)
    site.server.lose(record_of(site, "4.dat").id)

    site.command("free", str(site.data / FOLDER), "--dry-run", "--json")

    assert_doubted(site, NAME, f"{FOLDER}/4.dat")
    kept = site.command("free", str(site.data / NAME), "--yes", "--json").sums
    assert kept["files"][0]["problem"]["code"] == "free.unverified"
    assert run(site).sums.verified == 12
    assert_all_safe_and_idle(site, NAME, f"{FOLDER}/4.dat")


def test_a_run_that_fails_forgets_nothing(site):
    damage(site, record_of(site, "3.dat"))
    site.command("free", str(site.data / NAME), "--yes", "--json")
    (note,) = site.state.glob("*.recheck.json")
    assert note.stat().st_mode & 0o777 == 0o600
    site.sshd.stop()

    failed = site.carry("advanced.pause_patience=1", "transfer.connect_timeout=2", patience=1)

    assert failed.code
    assert_doubted(site, NAME)
    site.sshd.start()
    assert run(site).sums.verified == 12
    assert_all_safe_and_idle(site, NAME)
    assert not note.exists()


def test_what_is_heard_while_a_run_ends_is_not_lost_with_the_notes_that_it_took(site):
    site.server.unverify(record_of(site, "3.dat").id)
    site.command("free", str(site.data / NAME), "--dry-run")
    site.server.unverify(record_of(site, "4.dat").id)
    heard = []

    def hear(event):
        if isinstance(event, RunStarted):
            heard.append(site.command("free", str(site.data / FOLDER / "4.dat"), "--dry-run"))

    site.carry('archive.rules=["*.txt below 1 kB from 2 files"]', watch=hear)

    # The listing that the first note demanded has repaired the other file as well; its note is new.
    assert heard
    assert_doubted(site, f"{FOLDER}/4.dat")
    assert run(site).sums.verified == 12
    assert_all_safe_and_idle(site, NAME, f"{FOLDER}/4.dat")


@pytest.mark.parametrize("content", [b"", b"{", b"[[1]]", b'[["a", "zz", "", 0]]', b"\xff" * 9])
def test_notes_that_cannot_be_read_stand_for_everything(site, content):
    (ledger,) = site.state.glob("ledger-*.db")
    ledger.with_name(f"{ledger.stem}.recheck.json").write_bytes(content)

    assert_doubted(site, NAME, f"{TINY}/0.txt")
    assert run(site).sums.verified == 12
    assert_all_safe_and_idle(site, NAME, f"{TINY}/0.txt")


# What a run notices without a note.


def test_a_copy_that_is_no_longer_verified_is_noticed_by_the_next_run(site):
    site.server.unverify(record_of(site, "3.dat").id)

    carried = run(site)

    assert (carried.code, carried.sums.verified, carried.sums.sent) == (0, 12, 0)
    assert [it.problem.code for it in carried.of_kind(Notice)] == ["server.lost"]
    assert_all_safe_and_idle(site, NAME)


def test_a_server_that_lacks_the_latest_records_is_repaired_in_the_same_run(site):
    for name in ("4.dat", "5.dat"):
        site.server.lose(record_of(site, name).id)

    carried = run(site)

    assert (carried.code, carried.sums.verified, carried.sums.sent) == (0, 12, 2)
    assert_all_safe_and_idle(site, NAME, f"{FOLDER}/5.dat")


def is_any_due(site, listed_at, days):
    """Return whether the full listing of any dataset is due, if the last one was at a time."""
    audit = Audit(None, id, SystemClock(), AuditPolicy(box="", full_check_days=days))
    datasets = {file.dataset for file in site.server.datafiles()}
    return any(audit.is_due(dataset, moment_of(listed_at)) for dataset in datasets)


def test_what_is_safe_is_said_with_the_day_of_the_last_comparison(site):
    (file,) = site.state.glob("ledger-*.db")
    ago = int(time.time()) - 4 * 86_400
    with closing(sqlite3.connect(file)) as ledger, ledger:
        ledger.execute("UPDATE datasets SET listed_at = ?", (ago,))
        ledger.execute("UPDATE files SET registered_at = ?", (ago,))
    period = next(days for days in (366, 311, 257) if not is_any_due(site, ago, days))
    settings = [
        'archive.rules=["*.txt below 1 kB from 2 files"]',
        f"advanced.full_check_days={period}",
    ]

    told = site.command("run", settings=settings).output

    assert "All 12 files are safe on the server (compared with the server 4 days ago)." in told
    files, where, status, text = views(site, NAME)
    assert "verified: safe on the server (compared with the server 4 days ago)" in where
    assert "safe on the server (compared with the server 4 days ago)." in text
    assert status["compared"][:10] == files[0]["compared"][:10]
    assert (
        "ago" not in site.command("run", settings=[*settings, "advanced.full_check_days=0"]).output
    )
