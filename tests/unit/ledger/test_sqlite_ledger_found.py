"""Files that were found and not sent yet, as the ledger keeps and shows them."""

import pytest

from mydata_like.core.errors import Problem
from mydata_like.core.extra_sources import Destination, ExtraSource
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import UNSENT, DatasetId, Entry, EntryState, FolderSums, Outcome
from mydata_like.core.queries import Table, View
from mydata_like.ledger.file_queries import FileQueries
from mydata_like.ledger.row_query import RowQuery
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.ledger.summaries import LedgerSummary
from tests.fakes.clock import FakeClock

WHY = Problem("file.unreadable", "It cannot be read.")
PATTERN = Problem("skipped.pattern", "A pattern leaves it out.")
NO_OWNER = Problem("skipped.owner", "The server knows no such user.")
SOURCE = ExtraSource(b"/usb/a", Destination("ada", "mice", "day 1"))


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(file, clock):
    with SqliteLedger.open(file, b"/data", clock) as opened:
        yield opened


def found(key, size=3, modified_ns=7):
    return LocalFile(b"/data/" + key, key, b"", key, size, modified_ns, 1, 1)


def entry(key, state, size=3, modified_ns=7):
    return Entry(key, size, modified_ns, state, DatasetId(3), "c")


def show(file, view=View()):  # noqa: B008 - it is frozen
    with RowQuery.open(file, b"/data", view.ordered("name", descending=False)) as listing:
        return [(row.key, row.state, row.size, row.code) for row in listing.first(100)]


def risk(ledger, below=None):
    measured = ledger.measure_risk(below)
    return measured.files, measured.bytes


def test_a_found_file_shows_how_far_it_is_on_its_way(ledger, file, clock):
    keys = [b"d/new", b"d/sent", b"d/told", b"d/changed", b"d/failed"]
    ledger.record([entry(b"d/sent", EntryState.STAGED), entry(b"d/told", EntryState.REGISTERED)])
    ledger.record([entry(b"d/changed", EntryState.REGISTERED, size=2)])
    ledger.record([entry(b"d/failed", EntryState.FAILED)])
    ledger.record_found([found(key) for key in keys], clock.now())

    unsent = "found", 3, "waiting.unsent"
    assert show(file) == [
        (b"d/changed", *unsent),
        (b"d/failed", *unsent),
        (b"d/new", *unsent),
        (b"d/sent", "staged", 3, ""),
        (b"d/told", "registered", 3, ""),
    ]
    assert [row[0] for row in show(file, View(states=frozenset({"found"})))] == [
        b"d/changed",
        b"d/failed",
        b"d/new",
    ]
    assert [row[0] for row in show(file, View(states=frozenset({"staged"})))] == [b"d/sent"]


def test_found_files_are_a_group_of_problems(ledger, file, clock):
    ledger.record_found([found(b"d/a"), found(b"d/b")], clock.now())

    (group,) = LedgerSummary(file, b"/data").group_problems()

    assert (group.kind, group.files, group.size, group.problem) == ("found", 2, 6, UNSENT)
    assert len(show(file, View(table=Table.PROBLEMS))) == 2


def test_found_files_count_in_the_sums_of_their_folders(ledger, file, clock):
    ledger.record([entry(b"d/sub/b", EntryState.STAGED), entry(b"d/sub/c", EntryState.VERIFIED)])
    ledger.record_found([found(b"d/sub/a"), found(b"d/sub/b")], clock.now())

    (inside,) = LedgerSummary(file, b"/data").list_inside(b"d")
    with FileQueries.opened(file, b"/data") as queries:
        sums = queries.sum_folder(b"d")
        new = queries.find(b"d/sub/a").outcome

    assert (inside.found, inside.verified, inside.open) == (3, 1, 2)
    assert {state: amount.files for state, amount in sums.items()} == {
        "found": 1,
        "staged": 1,
        "verified": 1,
    }
    assert (new.kind, new.problem) == ("found", UNSENT)


def test_what_is_open_in_a_folder_is_reported(ledger, file):
    ledger.record_folders([FolderSums(b"d", "d", None, "", "", 9, 90, 2, 20, 1, 1, 1)])

    (owner,) = LedgerSummary(file, b"/data").list_folders()

    assert owner.open == 4


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        (Outcome(b"a", 3, 7, "waiting", WHY), "found"),
        (Outcome(b"a", 3, 7, "failed", WHY), "failed"),
        (Outcome(b"a", 2, 7, "failed", WHY), "found"),
        (Outcome(b"a", 3, 0, "skipped", PATTERN), "found"),
        (Outcome(b"a", 3, 0, "skipped", NO_OWNER), "found"),
    ],
    ids=["waited", "failed as it is", "failed otherwise", "left out", "unknown owner"],
)
def test_the_outcome_of_an_earlier_run_is_replaced(ledger, file, clock, before, kind):
    ledger.record_outcomes([before])
    clock.move(5)

    ledger.record_found([found(b"a")], clock.now())

    assert [row[1] for row in show(file)] == [kind]
    assert risk(ledger) == (1, 3)


@pytest.mark.parametrize("kind", ["waiting", "failed", "skipped"])
def test_the_outcome_of_this_run_stays(ledger, file, clock, kind):
    began = clock.now()
    ledger.record_outcomes([Outcome(b"a", 3, 7, kind, NO_OWNER)])

    ledger.record_found([found(b"a")], began)

    assert [row[1] for row in show(file)] == [kind]


def test_an_outcome_of_the_run_replaces_what_was_found(ledger, file, clock):
    ledger.record_found([found(b"a"), found(b"b")], clock.now())

    ledger.record_outcomes(
        [Outcome(b"a", 3, 7, "skipped", PATTERN), Outcome(b"b", 3, 7, "failed", WHY)]
    )

    assert [row[1] for row in show(file)] == ["skipped", "failed"]
    assert risk(ledger) == (1, 3)


def test_what_waited_for_its_verification_is_safe_with_it(ledger):
    ledger.record_outcomes(
        [Outcome(b"a", 3, 7, "waiting", WHY), Outcome(b"b", 3, 0, "failed", WHY)]
    )

    ledger.record([entry(b"a", EntryState.VERIFIED), entry(b"b", EntryState.VERIFIED)])

    assert risk(ledger) == (0, 0)


def test_found_files_that_are_gone_are_forgotten_by_a_complete_run(ledger, clock):
    ledger.record_found([found(b"gone"), found(b"there")], clock.now())
    clock.move(5)
    began = clock.now()
    ledger.record_found([found(b"there")], began)

    ledger.forget_before(began, [], inside=True)

    assert risk(ledger) == (1, 3)


def test_what_lies_in_a_folder_that_cannot_be_read_is_not_forgotten(ledger, clock):
    keys = [b"d/locked/a", b"d/locked/deep/b", b"d/locked", b"d/lockedness"]
    ledger.record_found([found(key) for key in keys], clock.now())
    clock.move(5)
    began = clock.now()
    ledger.record_outcomes([Outcome(b"d/locked", 0, 0, "folder-failed", WHY)])

    ledger.forget_before(began, [], inside=True)
    ledger.forget_before(began, [], inside=True)

    assert risk(ledger) == (2, 6)


def test_a_found_file_that_was_verified_in_the_meantime_is_forgotten(ledger, clock):
    began = clock.now()
    ledger.record([entry(b"a", EntryState.VERIFIED)._replace(ctime_ns=1)])
    ledger.record_found([found(b"a")._replace(ctime_ns=2)], began)
    assert risk(ledger) == (1, 3)

    ledger.forget_before(began, [], inside=True)

    assert risk(ledger) == (0, 0)


def test_a_source_is_at_risk_until_all_of_it_is_verified(ledger, clock):
    ledger.record_source(SOURCE)
    ledger.record_found([found(b"/usb/a/x"), found(b"/usb/ab")], clock.now())
    assert risk(ledger, SOURCE.path) == (1, 3)

    ledger.finish_source(SOURCE.path)
    assert [known.finished for known in ledger.find_sources()] == [None]

    ledger.record([entry(b"/usb/a/x", EntryState.VERIFIED)])
    ledger.finish_source(SOURCE.path)
    assert [known.finished is None for known in ledger.find_sources()] == [False]
    assert risk(ledger) == (1, 3)


def test_a_removed_source_is_forgotten_with_what_is_open_in_it(ledger, clock):
    ledger.record_source(SOURCE)
    ledger.record([entry(b"/usb/a/sent", EntryState.VERIFIED)])
    ledger.record_found([found(b"/usb/a/x"), found(b"/usb/ab"), found(b"inside")], clock.now())
    ledger.record_folders([FolderSums(b"/usb/a", "day 1", "mice", "ada", "")])

    ledger.remove_source(SOURCE.path)

    assert ledger.find_sources() == []
    assert ledger.find_folders(SOURCE.destination) == []
    assert risk(ledger) == (2, 6)
    assert list(ledger.find_entries([b"/usb/a/sent"])) == [b"/usb/a/sent"]


def test_rows_leave_few_gaps_in_the_file(ledger, file, clock):
    """Folders are often read from the end."""
    keys = [b"folder/plate %04d/image.tif" % number for number in reversed(range(6000))]
    for start in range(0, len(keys), 1000):
        part = keys[start : start + 1000]
        ledger.record_found([found(key) for key in part], clock.now())
        for first in range(0, len(part), 200):
            ledger.record([entry(key, EntryState.VERIFIED) for key in part[first : first + 200]])
    ledger.flush()

    assert file.stat().st_size < 200 * len(keys)
