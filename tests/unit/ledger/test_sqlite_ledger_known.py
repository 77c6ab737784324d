"""What the ledger knows for a while: files as a whole for a week, that it is sound for a day."""

import sqlite3
from contextlib import closing

import pytest

from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import DatafileId, DatasetId, Entry, EntryState, Recheck, hash_keys
from mydata_like.ledger.ledger_file import CHECK_INTERVAL, CHECKED, MOST_TOUCHED
from mydata_like.ledger.sqlite_ledger import KNOWN_FOR, SqliteLedger
from tests.fakes.clock import FakeClock

HERE = DatasetId(3)
PART, GROUP = b"a part of the list", b"a group of files"
FILE = LocalFile(b"/data/a", b"a", b"", b"a", 1, 2, 5, 4, 3)
ROW = Entry(b"a", 1, 2, EntryState.VERIFIED, HERE, "c" * 32, "d/a", DatafileId(7), "", "", 3, 4)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def ledger(tmp_path, clock):
    with SqliteLedger.open(tmp_path / "ledger.db", b"/data", clock) as opened:
        opened.record([ROW])
        opened.record_listing(HERE, opened.begin_listing(HERE), {PART: hash_keys([b"a"])})
        opened.find_open_parts([(GROUP, [FILE])])
        yield opened


def known(ledger):
    """Return whether a part of the listing is known, and the group of files."""
    return PART in ledger.begin_listing(HERE).digests, GROUP in ledger.find_known([GROUP])


def test_files_are_compared_again_after_a_week(ledger, clock):
    clock.move(KNOWN_FOR - 1)
    assert known(ledger) == (True, True)

    clock.move(1)
    assert known(ledger) == (False, False)


def test_files_are_compared_again_if_the_clock_was_set_back(ledger, clock):
    clock.move(-3600)

    assert known(ledger) == (False, False)


def test_what_is_too_old_is_forgotten_when_the_ledger_is_opened(ledger, clock, tmp_path):
    clock.move(KNOWN_FOR)
    SqliteLedger.open(tmp_path / "ledger.db", b"/data", clock).close()
    clock.move(-KNOWN_FOR)

    assert known(ledger) == (True, False)


def test_nothing_is_known_of_files_that_are_to_be_checked_again(ledger):
    ledger.recheck([Recheck(HERE, b"a")])

    assert known(ledger) == (False, False)


def touch(ledger, key):
    """Change a verified row, and verify it again."""
    row = ROW._replace(key=key, remote="d/other", datafile=DatafileId(8))
    ledger.record([row])
    ledger.record([row._replace(state=EntryState.CHANGED)])


def test_nothing_is_known_after_more_changes_than_are_stored(ledger, clock, tmp_path):
    with SqliteLedger.open(tmp_path / "ledger.db", b"/data", clock) as writer:
        keys = [b"%d" % number for number in range(MOST_TOUCHED)]
        rows = [ROW._replace(key=key) for key in keys]
        writer.record(rows)
        writer.record([row._replace(datafile=DatafileId(8)) for row in rows])
        assert known(ledger) == (True, True)
        touch(writer, b"one more")
        assert known(ledger) == (False, False)


def test_changes_before_all_comparisons_are_forgotten(ledger, clock, tmp_path):
    begun = ledger.begin_listing(HERE)  # what changes from here on must not be forgotten
    for key in (b"b", b"a", b"c"):
        touch(ledger, key)
    ledger.record([ROW])
    with SqliteLedger.open(tmp_path / "ledger.db", b"/data", clock) as another:
        another.find_open_parts([(GROUP, [FILE])])
        another.record_listing(HERE, another.begin_listing(HERE), {PART: hash_keys([b"a"])})
    SqliteLedger.open(tmp_path / "ledger.db", b"/data", clock).close()

    assert count_touched(tmp_path / "ledger.db") == 1
    assert known(ledger) == (True, True)
    ledger.record_listing(HERE, begun, {PART: b"", b"part with b": hash_keys([b"b"])})
    assert ledger.begin_listing(HERE).digests == {PART}


def count_touched(file):
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT count(*) FROM touched").fetchone()[0]


def test_no_part_is_known_while_a_step_of_a_file_is_not_written(ledger):
    ledger.record_late([ROW._replace(state=EntryState.STAGED)])

    assert known(ledger)[0] is False
    assert ledger.find_verified(HERE, [b"a"]) == {}


def test_other_data_directories_know_nothing_of_it(ledger, clock, tmp_path):
    with SqliteLedger.open(tmp_path / "ledger.db", b"/other", clock) as other:
        assert known(other) == (False, False)


def test_the_pages_of_the_file_are_checked_once_a_day_and_after_a_kill(tmp_path, clock):
    file = tmp_path / "ledger.db"

    def check():
        """Return whether the pages are checked when the ledger is opened after a second."""
        clock.move(1)
        with SqliteLedger.open(file, b"/data", clock) as ledger:
            return ledger.find_meta(CHECKED) == str(int(clock.now().timestamp()))

    assert [check() for _ in range(3)] == [False, True, False]  # a new file has nothing to check
    clock.move(CHECK_INTERVAL)
    assert [check() for _ in range(2)] == [True, False]
    clock.move(-100)
    assert check(), "the clock was set back"
    file.with_name("ledger.db-wal").touch()
    assert check(), "a process was killed"
