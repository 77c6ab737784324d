"""An answer that contradicts what was known as verified is believed at once, by every view."""

import os
from collections import Counter

import pytest

from mydata_like.core.events import FileStaged, FileVerified, RunStarted
from tests.builders import a_file
from tests.settled import settle
from tests.site import open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

OLD = 1_600_000_000
FOLDER = "alice/Scan 1"
NAME = f"{FOLDER}/3.dat"
TINY = "alice/Tiny"


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


KINDS = {
    "damaged": damage,
    "gone": lambda site, record: record.path.unlink(),
    "other checksum": lambda site, record: site.server.rewrite(record.id, "f" * 32),
    "no record": lambda site, record: site.server.lose(record.id),
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
    assert site.find_wrongs() == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_free_has_heard_is_honoured_until_a_run_has_repaired_it(site, kind):
    KINDS[kind](site, record_of(site, "3.dat"))

    kept = site.command("free", str(site.data / NAME), "--yes", "--json")

    assert (kept.sums["freed"], kept.sums["kept"]) == (0, 1)
    assert_doubted(site, NAME)
    carried = run(site)
    assert carried.code == 0
    assert carried.sums.verified == 12
    assert {os.fsdecode(it.path) for it in carried.of_kind(FileStaged)} <= {NAME}
    assert_all_safe_and_idle(site, NAME)


ARCHIVE_KINDS = [kind for kind in KINDS if kind != "damaged"]  # its index could not be read


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
