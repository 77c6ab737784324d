import json
import os
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.cli.main import build_app
from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.errors import Problem
from mydata_like.core.model import UNSENT, DatafileId, DatasetId, Entry, EntryState, Outcome
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.builders import a_file
from tests.privileges import needs_one_case

app = build_app()

MODIFIED_NS = 1_600_000_000 * 10**9
ARCHIVE = ArchiveRecord(
    DatasetId(7),
    "raw/raw-0123abcd-0001.tar",
    4096,
    MODIFIED_NS,
    EntryState.VERIFIED,
    "1" * 32,
    "S-7/x",
)


def entry(key: bytes, state=EntryState.VERIFIED, size=3, archive="") -> Entry:
    return Entry(
        key, size, MODIFIED_NS, state, DatasetId(7), "0" * 32, "S-7/x", DatafileId(9), "", archive
    )


@pytest.fixture
def place(tmp_path):
    """A data directory with two files, a ledger that knows four."""
    config, data = tmp_path / "settings.toml", tmp_path / "data"
    config.write_text(
        f"[server]\nurl = \"https://data.example.org\"\n[data]\ndirectory = '{data}'\n"
        f"[advanced]\nstate_directory = '{tmp_path / 'state'}'\n"
    )
    a_file(data / "alice/S/a.txt", 3, MODIFIED_NS / 1e9)
    a_file(data / "alice/S/raw/b.txt", 4, MODIFIED_NS / 1e9)
    settings = load_settings(config).settings
    file = ledger_file(settings, find_places(config), os.fsencode(data))
    with SqliteLedger.open(file, os.fsencode(data), SystemClock()) as ledger:
        ledger.record([entry(b"alice/S/a.txt", EntryState.REGISTERED), entry(b"bob/T/a.txt")])
        members = [
            entry(b"alice/S/raw/b.txt", archive=ARCHIVE.path),
            entry(b"alice/S/raw/c.txt", archive=ARCHIVE.path),
        ]
        ledger.record_archive(ARCHIVE, members)
    return config, data, file


def call(place, *words):
    result = CliRunner().invoke(app, ["where", *map(str, words), "--config", str(place[0])])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def test_what_lies_in_an_added_folder_is_found_by_its_path(place, tmp_path):
    key = os.fsencode((tmp_path / "usb" / "a.txt").as_posix())
    with SqliteLedger.open(place[2], os.fsencode(place[1]), SystemClock()) as ledger:
        ledger.record([entry(key)])

    assert os.fsdecode(key) in call(place, tmp_path / "usb" / "a.txt").output
    assert os.fsdecode(key) in call(place, tmp_path / "usb").output


@needs_one_case
def test_a_path_in_other_letters_finds_the_same_files(place, tmp_path):
    added = a_file(tmp_path / "usb" / "a.txt")
    key = os.fsencode(added.as_posix())
    with SqliteLedger.open(place[2], os.fsencode(place[1]), SystemClock()) as ledger:
        ledger.record([entry(key)])

    assert paths(call(place, place[1] / "ALICE/s/A.txt", "--json")) == ["alice/S/a.txt"]
    assert paths(call(place, "ALICE/s/RAW/B.txt", "--json")) == ["alice/S/raw/b.txt"]
    assert paths(call(place, str(added).upper(), "--json")) == [os.fsdecode(key)]


def paths(result):
    return [file["path"] for file in json.loads(result.output)["files"]]


def test_a_path_shows_the_history_of_a_file(place):
    result = call(place, place[1] / "alice/S/a.txt")

    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "alice/S/a.txt",
        "  registered; the server has not verified it yet",
        f"  3 bytes, modified 2020-09-13 12:26:40Z, MD5 {'0' * 32}",
        "  dataset: https://data.example.org/dataset/7",
        "  path on the server: S-7/x",
    ]


def test_a_file_in_an_archive_names_it_and_json_has_all(place):
    (file,) = json.loads(call(place, "b.txt", "--json").output)["files"]

    assert file == {
        "path": "alice/S/raw/b.txt",
        "local": "changed",
        "state": "changed",
        "safe": False,
        "compared": None,
        "size": 3,
        "modified": "2020-09-13T12:26:40+00:00",
        "checksum": "0" * 32,
        "dataset": 7,
        "web": "https://data.example.org/dataset/7",
        "datafile": 9,
        "remote": "S-7/x",
        "archive": "raw/raw-0123abcd-0001.tar",
        "restored": None,
        "problem": None,
        "kept": [],
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("alice/S/raw", ["alice/S/raw/b.txt", "alice/S/raw/c.txt"]),
        ("a.txt", ["alice/S/a.txt", "bob/T/a.txt"]),
        ("raw-0123abcd-0001.tar", ["alice/S/raw/b.txt", "alice/S/raw/c.txt"]),
        ("bob/T/a.txt", ["bob/T/a.txt"]),
        ("raw", ["alice/S/raw/b.txt", "alice/S/raw/c.txt"]),
        ("S/raw/", ["alice/S/raw/b.txt", "alice/S/raw/c.txt"]),
        ("T", ["bob/T/a.txt"]),
        ("txt", []),
        ("aw", []),
        ("../elsewhere", []),
        ("'; DROP TABLE entries", []),
    ],
)
def test_folders_names_and_archives_mean_several_files(place, text, found):
    result = call(place, text, "--json")

    assert paths(result) == found
    assert result.exit_code == (0 if found else 1)


def test_the_data_directory_means_all(place):
    assert len(paths(call(place, place[1], "--json"))) == 4


def test_what_is_gone_or_unknown_is_said_in_a_sentence(place):
    assert "The local file is no longer there." in call(place, "c.txt").output
    assert "Nothing is known of nothing.txt" in call(place, "nothing.txt").output


def test_what_was_left_out_is_reported_with_the_reason(place):
    problem = Problem("skipped.pattern", "The patterns leave it out.", "Change them.")
    data, file = place[1], place[2]
    with SqliteLedger.open(file, os.fsencode(data), SystemClock()) as ledger:
        ledger.record_outcomes([Outcome(b"alice/S/x.tmp", 3, 0, "skipped", problem)])

    told = call(place, "alice/S/x.tmp").output
    assert told.endswith("skipped: The patterns leave it out. Change them.\n")
    a_file(data / "alice/S/new.txt", 3)
    assert "No run has come across it" in call(place, "alice/S/new.txt").output
    assert "does not lie below the data directory" in call(place, "/elsewhere/x").output


def test_before_the_first_run_nothing_is_known(place):
    place[2].unlink()

    assert call(place, "a.txt").exit_code == 1


def test_a_ledger_of_an_older_version_is_reported(place):
    with closing(sqlite3.connect(place[2])) as connection:
        connection.execute("PRAGMA user_version = 1")

    result = call(place, "a.txt", "--json")

    assert result.exit_code == 3
    assert json.loads(result.output)["problem"]["code"] == "ledger.outdated"


def test_what_was_found_and_not_sent_is_a_part_of_the_answer(place):
    with SqliteLedger.open(place[2], os.fsencode(place[1]), SystemClock()) as ledger:
        ledger.record_outcomes([Outcome(b"alice/S/new.tif", 5, MODIFIED_NS, "found", UNSENT)])
    a_file(place[1] / "alice/S/new.tif", 5, MODIFIED_NS / 1e9)

    (file,) = json.loads(call(place, "new.tif", "--json").output)["files"]
    assert (file["state"], file["safe"], file["size"]) == ("found", False, 5)
    assert file["problem"]["code"] == "waiting.unsent"
    told = call(place, "alice/S").output
    assert "alice/S/new.tif\n  not on the server" in told
    assert "found: Not sent yet. The next run sends it." in told


def test_bytes_that_changed_since_they_were_verified_are_never_called_safe(place):
    told = call(place, "b.txt").output

    assert "changed since it was sent: the server does not have these bytes" in told
    assert "safe" not in told


def record_evidence(place, file, **changes):
    """Let the ledger know a file of the disk as verified, but for the changes."""
    status = file.stat()
    known = entry(os.fsencode(file.relative_to(place[1]).as_posix()), size=status.st_size)._replace(
        modified_ns=status.st_mtime_ns, ctime_ns=status.st_ctime_ns, inode=status.st_ino
    )
    with SqliteLedger.open(place[2], os.fsencode(place[1]), SystemClock()) as ledger:
        ledger.record([known._replace(**changes)])


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "verified"),
        ({"ctime_ns": None, "inode": None}, "verified"),
        ({"ctime_ns": 1}, "uncertain"),
        ({"inode": 1}, "uncertain"),
    ],
    ids=["as it was", "of an older version", "touched", "another file"],
)
def test_same_size_and_time_is_not_enough_where_the_system_knows_more(place, changes, state):
    file = a_file(place[1] / "alice/S/kept.tif", 5, MODIFIED_NS / 1e9)
    record_evidence(place, file, **changes)

    (told,) = json.loads(call(place, file, "--json").output)["files"]
    assert (told["state"], told["safe"]) == (state, state == "verified")
    assert ("may have changed" in call(place, file).output) == (state == "uncertain")
