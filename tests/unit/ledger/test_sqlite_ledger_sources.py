"""What the ledger remembers of folders outside of the data directory."""

import sqlite3
from contextlib import closing

import pytest

from mydata_like.core.errors import Problem
from mydata_like.core.extra_sources import Destination, ExtraSource
from mydata_like.core.model import DatasetId, Entry, EntryState, FolderSums, Outcome
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.fakes.clock import FakeClock

PLACE = Destination("ada", "mice", "day 1")
WHY = Problem("file.unreadable", "It cannot be read.")
NOT_KNOWN = Problem("skipped.owner", "The server knows no such user.")
PATTERN = Problem("skipped.pattern", "A pattern leaves it out.")


@pytest.fixture
def ledger(tmp_path):
    with SqliteLedger.open(tmp_path / "ledger.db", b"/data", FakeClock()) as opened:
        opened.record_source(ExtraSource(b"/usb/a", PLACE))
        yield opened


def is_finished(ledger):
    ledger.finish_source(b"/usb/a")
    return [known.finished is not None for known in ledger.find_sources()] == [True]


def test_what_a_source_becomes_is_remembered_until_it_is_added_again(ledger):
    ledger.finish_source(b"/usb/a")
    assert ledger.find_destination(b"/usb/a") == PLACE
    assert ledger.find_destination(b"/usb") is None

    ledger.record_source(ExtraSource(b"/usb/a", PLACE._replace(owner="bob")))
    (known,) = ledger.find_sources()
    assert (known.destination.owner, known.finished) == ("bob", None)


@pytest.mark.parametrize(
    ("path", "kind", "problem", "finished"),
    [
        (b"/usb/a/file", "failed", WHY, False),
        (b"/usb/a/file", "waiting", WHY, False),
        (b"/usb/a", "folder-failed", WHY, False),
        (b"/usb/a/file", "skipped", NOT_KNOWN, False),
        (b"/usb/a/file", "skipped", PATTERN, True),
        (b"/usb/ab/file", "failed", WHY, True),
        (b"a/file", "failed", WHY, True),
    ],
)
def test_a_source_is_finished_when_nothing_of_it_has_to_come(ledger, path, kind, problem, finished):
    ledger.record_outcomes([Outcome(path, 1, 0, kind, problem)])

    assert is_finished(ledger) is finished


def test_a_removed_source_is_forgotten_with_what_is_not_well_in_it(tmp_path):
    problem = Problem("waiting.unsent", "It is not sent yet.", "")
    paths = [b"/usb/Day", b"/usb/Day/a", b"/usb/Day 2/a", b"alice/a"]
    with SqliteLedger.open(tmp_path / "ledger.db", b"/data", FakeClock()) as ledger:
        for path in (b"/usb/Day", b"/usb/Day 2"):
            ledger.record_source(ExtraSource(path, Destination("", "Mice", "Day")))
        ledger.record_outcomes([Outcome(path, 5, 0, "found", problem) for path in paths])
        ledger.record_folders([FolderSums(b"/usb/Day", "Day", "Mice", "", "", 2, 10)])

        ledger.remove_source(b"/usb/Day")

        assert [source.path for source in ledger.find_sources()] == [b"/usb/Day 2"]
        assert ledger.find_folders(Destination("", "Mice", "Day")) == []
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        left = connection.execute(
            "SELECT key FROM files WHERE outcome IS NOT NULL ORDER BY key"
        ).fetchall()
    assert left == [(b"/usb/Day 2/a",), (b"alice/a",)]


def test_what_is_left_of_a_source_is_measured(tmp_path):
    unsent = Problem("waiting.unsent", "It is not sent yet.", "")
    ignored = Problem("skipped.ignored", "Nobody wants it.", "")
    with SqliteLedger.open(tmp_path / "ledger.db", b"/data", FakeClock()) as ledger:
        ledger.record_source(ExtraSource(b"/usb/Day", Destination("", "Mice", "Day")))
        (source,) = ledger.find_sources()
        assert ledger.measure_source(source).open_files is None

        states = EntryState.VERIFIED, EntryState.STAGED, EntryState.VERIFIED
        ledger.record(
            [
                Entry(b"/usb/Day/%d" % number, 10, 0, state, DatasetId(7), "0" * 32, "x")
                for number, state in enumerate(states)
            ]
        )
        ledger.record_outcomes(
            [
                Outcome(b"/usb/Day/2", 20, 0, "found", unsent),
                Outcome(b"/usb/Day/3", 40, 0, "failed", unsent),
                Outcome(b"/usb/Day/Thumbs.db", 80, 0, "skipped", ignored),
                Outcome(b"/usb/Day 2/0", 160, 0, "found", unsent),
            ]
        )

        measured = ledger.measure_source(source)
    assert (measured.open_files, measured.open_bytes) == (3, 70)
