"""Steps on the way are written only if a file takes long; a kill then loses seconds of work."""

from datetime import UTC, datetime

import pytest

from mydata_like.core.errors import RunError
from mydata_like.core.model import DatafileId, DatasetId, Entry, EntryState
from mydata_like.ledger.file_queries import FileQueries
from mydata_like.ledger.ledger_file import LockWaiting
from mydata_like.ledger.sqlite_ledger import LATE, LATE_IF_SMALL, SMALL, SqliteLedger
from tests.fakes.clock import FakeClock

HERE, THERE = DatasetId(3), DatasetId(4)
STAGED, REGISTERED, VERIFIED = EntryState.STAGED, EntryState.REGISTERED, EntryState.VERIFIED


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(file, clock):
    waiting = LockWaiting(seconds=0, patience=0)
    with SqliteLedger.open(file, b"/data", clock, waiting=waiting) as opened:
        yield opened


def entry(key, state=STAGED, dataset=HERE, datafile=None, size=SMALL):
    return Entry(key, size, 2, state, dataset, "c" * 32, f"d/{key.decode()}", datafile)


def written(file):
    """Return the states that another process sees, by key."""
    with SqliteLedger.open_to_read(file, b"/data", FakeClock()) as reader:
        return {it.key: it.state for it in reader.iter_entries()}


def test_late_steps_are_known_at_once_and_written_after_some_seconds(ledger, file, clock):
    ledger.record_late([entry(b"a"), entry(b"b")])
    clock.move(LATE - 1)
    ledger.record_late([entry(b"b", REGISTERED), entry(b"c")])
    ledger.write_late()

    assert ledger.find_entries([b"a", b"b"])[b"b"].state is REGISTERED
    assert written(file) == {}
    clock.move(1)
    ledger.write_late()
    assert written(file) == {b"a": STAGED}
    clock.move(LATE)
    ledger.write_late()
    assert written(file) == {b"a": STAGED, b"b": REGISTERED, b"c": STAGED}


def test_steps_of_small_files_are_written_later(ledger, file, clock):
    ledger.record_late([entry(b"large"), entry(b"small", size=SMALL - 1)])
    clock.move(LATE_IF_SMALL - 1)
    ledger.write_late()
    assert written(file) == {b"large": STAGED}

    clock.move(1)
    ledger.write_late()
    assert written(file) == {b"large": STAGED, b"small": STAGED}


def test_what_is_verified_before_is_written_once_with_all_its_times(ledger, file, clock):
    begin = int(clock.now().timestamp())
    ledger.record_late([entry(b"a")])
    clock.move(1)
    ledger.record_late([entry(b"a", REGISTERED)])
    clock.move(1)
    ledger.record([entry(b"a", VERIFIED, datafile=DatafileId(7))])
    clock.move(LATE)
    ledger.write_late()

    assert written(file) == {b"a": VERIFIED}
    with FileQueries.opened(file, b"/data") as queries:
        assert queries.find(b"a").times == (begin, begin + 1, begin + 2, None)


def test_steps_that_were_written_keep_their_times(ledger, file, clock):
    begin = int(clock.now().timestamp())
    ledger.record_late([entry(b"a")])
    clock.move(LATE)
    ledger.write_late()
    ledger.record_late([entry(b"a", REGISTERED)])
    clock.move(LATE)
    ledger.record([entry(b"a", VERIFIED)])

    with FileQueries.opened(file, b"/data") as queries:
        assert queries.find(b"a").times == (begin, begin + LATE, begin + 2 * LATE, None)


def test_a_run_that_ends_writes_them(file, clock):
    with SqliteLedger.open(file, b"/data", clock) as ledger:
        ledger.record_late([entry(b"a")])

    assert written(file) == {b"a": STAGED}


def test_a_batch_stays_noted_until_the_steps_of_its_files_are_written(ledger, clock):
    note = ledger.note_batch([b"a"])
    ledger.record_late([entry(b"a")])
    ledger.forget_batches([note])
    clock.move(LATE_IF_SMALL - 1)
    ledger.record_late([entry(b"b")])
    ledger.write_late()
    assert ledger.find_batches() == {note: [b"a"]}

    clock.move(1)
    ledger.write_late()
    assert ledger.find_batches() == {}


def test_a_request_is_noted_with_the_files_that_were_sent_and_not_written_yet(file, clock):
    until = datetime(2026, 1, 5, 9, 5, tzinfo=UTC)
    ledger = SqliteLedger.open(file, b"/data", clock)
    ledger.record_late([entry(b"a"), entry(b"b"), entry(b"elsewhere", dataset=THERE)])
    ledger.record_late([entry(b"b", REGISTERED)])
    ledger.note_write(HERE, until)

    # As after a kill: nothing else was written.
    with SqliteLedger.open(file, b"/data", clock) as next_one:
        assert next_one.find_writes()[HERE].staged == {("d/a", "c" * 32)}
    ledger.close()


def test_steps_that_cannot_be_written_now_are_written_later(ledger, file, clock):
    ledger.record_late([entry(b"a")])
    with (
        SqliteLedger.open(file, b"/data", clock) as other,
        other._file.transaction(),
        pytest.raises(RunError),
    ):
        ledger.write_late(also_early=True)

    ledger.write_late(also_early=True)
    assert written(file) == {b"a": STAGED}
