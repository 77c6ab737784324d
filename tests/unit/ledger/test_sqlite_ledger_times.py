"""When a file was sent, registered and verified, and what is not well, as the ledger keeps it."""

import sqlite3
from contextlib import closing

import pytest

from mydata_like.core.errors import Problem
from mydata_like.core.model import DatasetId, Entry, EntryState, FolderSums, Outcome
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.fakes.clock import FakeClock

COLUMNS = "staged_at, registered_at, verified_at, changed_at"


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def ledger(tmp_path, clock):
    with SqliteLedger.open(tmp_path / "ledger.db", b"/data", clock) as opened:
        yield opened


def entry(state, checksum="c"):
    return Entry(b"a", 1, 2, state, DatasetId(3), checksum)


def read(ledger, query):
    with closing(sqlite3.connect(ledger._file._path)) as connection:
        return connection.execute(query).fetchall()


def record_steps(ledger, clock, *steps):
    begin = int(clock.now().timestamp())
    for step in steps:
        ledger.record([step])
        clock.move(10)
    return [
        time if time is None else time - begin
        for time in read(ledger, f"SELECT {COLUMNS} FROM files")[0]
    ]


def test_each_step_of_a_file_keeps_its_time(ledger, clock):
    states = EntryState.STAGED, EntryState.REGISTERED, EntryState.VERIFIED

    assert record_steps(ledger, clock, *map(entry, states)) == [0, 10, 20, 20]


def test_many_files_come_on_at_once_each_with_its_times(ledger, clock):
    begin = int(clock.now().timestamp())
    for state in EntryState.STAGED, EntryState.VERIFIED:
        ledger.record([entry(state)._replace(key=b"%04d" % number) for number in range(250)])
        clock.move(10)

    rows = read(ledger, f"SELECT key, {COLUMNS} FROM files ORDER BY key")

    times = (begin, None, begin + 10, begin + 10)
    assert rows == [(b"%04d" % number, *times) for number in range(250)]


def test_of_many_that_were_not_well_only_those_stay_that_still_are_not(ledger):
    why = Problem("file.unreadable", "It cannot be read.", "Look.")
    paths = [b"%04d" % number for number in range(2000)]
    ledger.record_outcomes([Outcome(path, 3, 7, "failed", why) for path in paths])

    ledger.record_outcomes([], paths[1:])

    assert read(ledger, "SELECT key FROM files WHERE outcome IS NOT NULL") == [(b"0000",)]


def test_a_file_sent_again_shows_no_progress_yet(ledger, clock):
    states = EntryState.STAGED, EntryState.REGISTERED, EntryState.VERIFIED, EntryState.STAGED

    assert record_steps(ledger, clock, *map(entry, states)) == [30, None, None, 30]


def test_the_times_of_other_bytes_are_not_taken_over(ledger, clock):
    steps = entry(EntryState.STAGED), entry(EntryState.VERIFIED, "other")

    assert record_steps(ledger, clock, *steps) == [None, None, 10, 10]


def test_what_is_not_well_is_kept_until_it_is(ledger):
    why = Problem("file.unreadable", "It cannot be read.", "Look.")
    ledger.record_outcomes(
        [Outcome(b"a", 3, 7, "failed", why), Outcome(b"b", 0, 0, "skipped", why)]
    )
    ledger.record_outcomes([], [b"b"])

    columns = "key, seen_size, seen_modified_ns, outcome, code, message, hint"
    assert read(ledger, f"SELECT {columns} FROM files WHERE outcome IS NOT NULL") == [
        (b"a", 3, 7, "failed", *why)
    ]


def test_what_was_not_reported_again_can_be_forgotten(ledger, clock):
    why = Problem("file.unreadable", "It cannot be read.")
    ledger.record_outcomes([Outcome(b"old", 1, 0, "failed", why)])
    ledger.record_folders([FolderSums(b"old", "set", None, "", "")])
    clock.move(5)
    now = clock.now()
    ledger.record_outcomes([Outcome(b"new", 1, 0, "failed", why)])
    ledger.record_folders([FolderSums(b"new", "set", None, "", "")])
    ledger.forget_before(now, [], inside=True)

    assert read(ledger, "SELECT key FROM files WHERE outcome IS NOT NULL") == [(b"new",)]
    assert read(ledger, "SELECT path FROM folders") == [(b"new",)]


def test_what_a_run_did_not_look_at_is_not_forgotten(ledger, clock):
    why = Problem("file.unreadable", "It cannot be read.")
    for path in (b"inside", b"/usb/a/file", b"/usb/b/file", b"/usb/a-file", b"/usb/a"):
        ledger.record_outcomes([Outcome(path, 1, 0, "failed", why)])
    clock.move(5)
    left = [b"/usb/a-file", b"/usb/b/file"]

    ledger.forget_before(clock.now(), [b"/usb/a"], inside=False)
    assert read(ledger, "SELECT key FROM files WHERE outcome IS NOT NULL ORDER BY key") == [
        (it,) for it in (*left, b"inside")
    ]
    ledger.forget_before(clock.now(), [], inside=True)
    assert read(ledger, "SELECT key FROM files WHERE outcome IS NOT NULL ORDER BY key") == [
        (it,) for it in left
    ]
