"""Notes about what must be checked again are durable, bounded, and seen by all readers."""

from datetime import UTC, datetime

import pytest

from mydata_like.core.model import DatasetId, Entry, EntryState, NewestDatafile, Recheck
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.file_queries import FileQueries
from mydata_like.ledger.rechecks import ALL, MOST, RecheckFile
from mydata_like.ledger.sql import PastRunRow
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.fakes.clock import FakeClock

ROOT = b"/data"
SCAN, OTHER = DatasetId(7), DatasetId(8)


def row(key, dataset=SCAN, archive="", state=EntryState.VERIFIED, number=1):
    return Entry(key, 5, 1, state, dataset, "c" * 32, "x", number, "", archive, 1, 1)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "ledger-host-0.db"


@pytest.fixture
def ledger(file):
    rows = [row(b"a/S/1"), row(b"a/S/2", number=2), row(b"a/S/3", archive="a.tar", number=3)]
    rows += [row(b"a/S/4", archive="a.tar", number=3), row(b"b/T/1", OTHER, number=9)]
    with SqliteLedger.open(file, ROOT, SystemClock()) as opened:
        opened.record(rows)
        opened.record_listed(SCAN, NewestDatafile(3, 3), 4)
        yield opened


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def notes(file, clock):
    return RecheckFile(file, clock)


def doubted(file):
    """Return the keys that a reader does not see as verified, and the number at risk."""
    ledger = SqliteLedger.open_to_read(file, ROOT, SystemClock())
    with ledger, FileQueries.opened(file, ROOT) as queries:
        keys = [entry.key for entry in ledger.iter_entries() if entry.state != "verified"]
        found = [key for key, evidence in queries.iter_below(b"") if not evidence.verified]
        assert found == keys
        assert ledger.measure_risk().files == ledger.count_rechecks() == len(keys)
        sums = queries.sum_folder(b"")
        assert sums.get("waiting", (0,))[0] == len(keys)
        return [bytes(key) for key in keys]


@pytest.mark.parametrize(
    ("note", "keys"),
    [
        (Recheck(SCAN, b"a/S/2"), [b"a/S/2"]),
        (Recheck(SCAN, archive="a.tar"), [b"a/S/3", b"a/S/4"]),
        (Recheck(SCAN, b"a/S/3"), [b"a/S/3"]),
        (Recheck(SCAN), [b"a/S/1", b"a/S/2", b"a/S/3", b"a/S/4"]),
        (ALL, [b"a/S/1", b"a/S/2", b"a/S/3", b"a/S/4", b"b/T/1"]),
        (Recheck(OTHER, b"a/S/1"), []),
        (Recheck(SCAN, b"gone"), []),
    ],
)
def test_a_note_concerns_exactly_its_rows_before_and_after_the_ledger_takes_it(
    file, ledger, notes, note, keys
):
    assert doubted(file) == []
    notes.add([note])
    assert doubted(file) == keys

    ledger.recheck(notes.load())
    notes.remove(notes.load())

    assert not notes.path.exists()
    assert doubted(file) == keys
    listed = ledger.find_listed(SCAN)
    assert listed is not None
    assert (listed.at.timestamp() == 0) is (note.dataset in (SCAN, ALL.dataset))


def test_the_files_wait_in_the_totals_of_the_newest_run(file, ledger, notes):
    for number in range(3):
        at = datetime(2026, 1, 1 + number, tzinfo=UTC)
        sums = {"found": 5, "verified": 5, "waiting": 0, "skipped": 0}
        ledger.record_run(PastRunRow(str(number), at, at if number < 2 else None, sums))
    notes.add([Recheck(SCAN, archive="a.tar")])

    with SqliteLedger.open_to_read(file, ROOT, SystemClock()) as reader:
        counts = [(it.summary["verified"], it.summary["waiting"]) for it in reader.find_runs()]

    assert counts == [(5, 0), (3, 2), (5, 0)]  # the newest has not ended


def test_a_row_that_is_verified_again_is_at_risk_no_more(file, ledger, notes):
    ledger.recheck([Recheck(SCAN, b"a/S/2")])
    assert doubted(file) == [b"a/S/2"]
    ledger.record([row(b"a/S/2", number=2)])
    assert doubted(file) == []


def test_a_file_that_its_archive_does_not_contain_belongs_to_no_archive(ledger):
    ledger.recheck([Recheck(SCAN, b"a/S/3")])
    found = ledger.find_entries([b"a/S/3", b"a/S/4"])
    assert (found[b"a/S/3"].state, found[b"a/S/3"].archive) == (EntryState.FAILED, "")
    assert found[b"a/S/4"].state is EntryState.VERIFIED


def test_equal_notes_collapse_and_many_become_one_about_their_dataset(notes):
    notes.add([Recheck(SCAN, b"a/S/2")] * 3)
    notes.add([Recheck(SCAN, b"a/S/2"), Recheck(OTHER, b"b/T/1")])
    assert len(notes.load()) == 2
    notes.add(Recheck(SCAN, b"%d" % number) for number in range(MOST))
    assert set(notes.load()) == {Recheck(SCAN), Recheck(OTHER, b"b/T/1")}
    notes.add(Recheck(DatasetId(number), b"x") for number in range(100, 100 + MOST))
    assert set(notes.load()) == {ALL}


def test_a_note_that_is_written_again_outlives_the_removal_of_the_first_one(notes, clock):
    first = Recheck(SCAN, b"a/S/1")
    notes.add([first, Recheck(SCAN, b"a/S/2")])
    taken = notes.load()
    clock.move(1)
    notes.add([first])
    notes.remove(taken)
    assert set(notes.load()) == {first}
