"""Which rows of the ledger a view shows, in which order, while another process writes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from mydata_like.core.errors import Cancelled, Problem, RunError, SettingsError
from mydata_like.core.model import UNSENT, DatasetId, Entry, EntryState, FolderSums, Outcome
from mydata_like.core.queries import MAX_UNFINISHED, ProblemGroup, Table, View
from mydata_like.ledger.row_query import RowQuery
from mydata_like.ledger.sql import PastRunRow
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.ledger.summaries import FOLDERS_AT_ONCE, LedgerSummary
from tests.fakes.clock import FakeClock

ROOT = b"/data"
PROBLEM = Problem("file.changed", "It changed.", "Wait.")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(file: Path, clock: FakeClock) -> Iterator[SqliteLedger]:
    with SqliteLedger.open(file, ROOT, clock) as opened:
        yield opened


def entry(key: bytes, size: int = 1, state: EntryState = EntryState.VERIFIED) -> Entry:
    return Entry(key, size, 0, state, DatasetId(7), "0" * 32, "d/x")


def ill(path: bytes, kind: str = "failed", problem: Problem = PROBLEM) -> Outcome:
    return Outcome(path, 5, 0, kind, problem)


def keys(file: Path, view: View) -> list[object]:
    listing = RowQuery.open(file, ROOT, view)
    assert listing is not None
    with listing:
        return [row.key for row in listing.rows(0, listing.build())]


@pytest.fixture
def full(ledger: SqliteLedger, clock: FakeClock, file: Path) -> Path:
    for number, name in enumerate((b"a/one.tif", b"a/Two.tif", b"b/three.dat")):
        ledger.record([entry(name, size=10 - number)])
        clock.move(10)
    ledger.record([entry(b"a/sent", state=EntryState.STAGED), entry(b"a/one")])
    clock.move(10)
    ledger.record_outcomes([ill(b"a/one"), ill(b"c/new", "waiting"), ill(b"d", "folder-failed")])
    return file


def test_the_newest_comes_first(full: Path) -> None:
    assert keys(full, View()) == [
        b"c/new",
        b"a/one",
        b"a/sent",
        b"b/three.dat",
        b"a/Two.tif",
        b"a/one.tif",
    ]


@pytest.mark.parametrize(
    ("order", "descending", "first"),
    [
        ("name", False, b"a/Two.tif"),
        ("name", True, b"c/new"),
        ("size", True, b"a/one.tif"),
        ("size", False, b"a/sent"),
        ("state", False, b"a/one"),
        ("at", False, b"a/one.tif"),
    ],
)
def test_rows_come_in_the_order_that_is_wanted(full, order, descending, first) -> None:
    assert keys(full, View(order=order, descending=descending))[0] == first


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (View(text="TWO"), [b"a/Two.tif"]),
        (View(text="%"), []),
        (View(text="."), [b"b/three.dat", b"a/Two.tif", b"a/one.tif"]),
        (View(states=frozenset({"staged"})), [b"a/sent"]),
        (View(states=frozenset({"failed"})), [b"a/one"]),
        (View(states=frozenset({"waiting", "staged"})), [b"c/new", b"a/sent"]),
        (View(folder=b"b"), [b"b/three.dat"]),
        (View(code="file.changed", states=frozenset({"waiting"})), [b"c/new"]),
        (View(table=Table.PROBLEMS, states=frozenset({"folder-failed"})), [b"d"]),
        (View(table=Table.PROBLEMS, code="file.other"), []),
    ],
)
def test_a_filter_leaves_rows_out(full: Path, view: View, expected: list[bytes]) -> None:
    assert keys(full, view) == expected


def test_what_a_run_sends_later_is_left_out(full, ledger, clock) -> None:
    began = int(clock.now().timestamp()) + 1
    clock.move(2)
    ledger.record_outcomes([ill(b"b/found", "found"), ill(b"b/failed now")])

    rest = [b"b/failed now", b"c/new", b"a/sent", b"b/three.dat", b"a/Two.tif", b"a/one.tif"]
    assert keys(full, View(run_began=began)) == rest


def test_a_window_of_time_has_what_changed_in_it(full: Path, clock: FakeClock) -> None:
    start = int(clock.now().timestamp()) - 40

    view = View(since=start + 10, until=start + 20)

    assert keys(full, view) == [b"b/three.dat", b"a/Two.tif"]


def test_an_unhealthy_file_shows_why_and_what_is_known_of_its_bytes(full: Path) -> None:
    listing = RowQuery.open(full, ROOT, View(text="a/one", order="name", descending=False))
    assert listing is not None
    with listing:
        row = listing.first(1)[0]

    assert (row.key, row.state, row.message, row.dataset) == (b"a/one", "failed", "It changed.", 7)


def test_rows_say_what_the_ledger_says_now(full: Path, ledger: SqliteLedger) -> None:
    with opened(full, View(text="sent")) as listing:
        listing.build()
        ledger.record([entry(b"a/sent"), entry(b"a/sent too")])

        assert [(row.key, row.state) for row in listing.rows(0, 9)] == [(b"a/sent", "verified")]
        assert listing.build() == 2


def test_rows_are_found_again_where_they_are_now(full: Path) -> None:
    with opened(full, View(order="name", descending=False)) as listing:
        listing.build()

        assert listing.find([b"b/three.dat", b"nowhere"]) == {b"b/three.dat": 4}


def test_an_interrupted_listing_says_nothing_any_more(full: Path) -> None:
    with opened(full, View()) as listing:
        listing.interrupt()

        with pytest.raises(Cancelled):
            listing.build()


def test_runs_come_with_their_sums(ledger: SqliteLedger, clock: FakeClock, file: Path) -> None:
    for number, name in enumerate("xyz"):
        ledger.record_run(PastRunRow(name, clock.now(), None, {"sent": number % 2}))
        clock.move(1)

    assert keys(file, View(table=Table.RUNS)) == ["z", "y", "x"]
    assert keys(file, View(table=Table.RUNS, order="files"))[0] == "y"


def test_runs_are_ordered_by_what_they_sent(
    ledger: SqliteLedger, clock: FakeClock, file: Path
) -> None:
    sums = {
        "resumed": {"bytes": 100, "omitted": 90},
        "old": {"bytes": 20},
        "interrupted": {"sent_bytes": 80, "omitted": 65},
    }
    for name, summary in sums.items():
        ledger.record_run(PastRunRow(name, clock.now(), None, summary))

    assert keys(file, View(table=Table.RUNS, order="size")) == ["old", "interrupted", "resumed"]


def test_without_a_ledger_there_is_no_listing(tmp_path: Path) -> None:
    assert RowQuery.open(tmp_path / "none.db", ROOT, View()) is None
    assert LedgerSummary(tmp_path / "none.db", ROOT).group_problems() == []


@pytest.mark.parametrize(
    ("version", "error", "code"),
    [(1, RunError, "ledger.outdated"), (99, SettingsError, "ledger.newer")],
)
def test_a_ledger_of_another_version_is_not_read(file, ledger, version, error, code) -> None:
    ledger.close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")

    with pytest.raises(error) as told:
        RowQuery.open(file, ROOT, View())
    assert told.value.problem_code == code


def test_a_damaged_ledger_is_reported(file: Path) -> None:
    file.write_bytes(b"no ledger at all" * 100)

    with pytest.raises(RunError) as told:
        RowQuery.open(file, ROOT, View())
    assert told.value.problem_code == "ledger.failed"


def test_problems_are_summed_by_kind_and_code(full: Path, clock: FakeClock) -> None:
    now = int(clock.now().timestamp())

    assert LedgerSummary(full, ROOT).group_problems() == [
        ProblemGroup("failed", 1, 5, now, b"a/one", PROBLEM),
        ProblemGroup("folder-failed", 1, 5, now, b"d", PROBLEM),
        ProblemGroup("waiting", 1, 5, now, b"c/new", PROBLEM),
    ]


def test_folders_are_listed_level_by_level(ledger: SqliteLedger, file: Path) -> None:
    sums = {"found": 3, "found_bytes": 30, "verified": 2, "verified_bytes": 20}
    ledger.record_folders(
        [
            FolderSums(b"ann/x/1", "1", "x", "ann", "", **sums),
            FolderSums(b"ann/x/2", "2", "x", "ann", "", **sums),
            FolderSums(b"bob/1", "1", None, "bob", "", **sums),
        ]
    )
    survey = LedgerSummary(file, ROOT)

    assert [(it.owner, it.folders, it.found) for it in survey.list_folders()] == [
        ("ann", 2, 6),
        ("bob", 1, 3),
    ]
    assert [it.title for it in survey.list_folders("bob", "")] == [None]
    assert [it.path for it in survey.list_folders("ann", "", "x")] == [b"ann/x/1", b"ann/x/2"]
    assert [it.path for it in survey.list_folders("bob", "", None)] == [b"bob/1"]


def test_the_folders_of_a_dataset_have_the_sums_of_all_below_them(ledger, file) -> None:
    ledger.record([entry(b"d/one/a/x", 4), entry(b"d/one/y", 2), entry(b"d/loose", 9)])
    ledger.record([entry(b"d/one/sent", 1, EntryState.STAGED), entry(b"d.old/z"), entry(b"d0/z")])
    # Of what is not well counts the size that it has now, not that of earlier bytes.
    ledger.record_outcomes([ill(b"d/one/y"), ill(b"d/two/new", "waiting"), ill(b"d/loose")])
    ledger.record_outcomes([ill(b"d/three", "folder-failed"), ill(b"d/two/odd", "skipped")])

    one, two = LedgerSummary(file, ROOT).list_inside(b"d")

    assert (one.path, one.found, one.found_bytes) == (b"d/one", 3, 10)
    assert (one.verified, one.verified_bytes, one.sent_bytes, one.failed) == (1, 4, 1, 1)
    assert (two.path, two.found, two.waiting, two.skipped) == (b"d/two", 2, 1, 1)
    assert [it.path for it in LedgerSummary(file, ROOT).list_inside(b"d/one")] == [b"d/one/a"]
    assert LedgerSummary(file, ROOT).list_inside(b"d/one/a") == []


def test_files_lead_to_their_innermost_dataset_folders(ledger, file) -> None:
    sums = {"found": 3, "found_bytes": 30, "verified": 2, "verified_bytes": 20}
    paths = b"ann", b"ann/1", b"bob/1", b"bob/2"
    ledger.record_folders([FolderSums(path, "d", None, "ann", "", **sums) for path in paths])
    files = b"bob/1/deep/x", b"ann/1/a", b"ann/1/b", b"ann/10/c", b"eve/1/d", b"loose"

    found = LedgerSummary(file, ROOT).find_dataset_folders(files)

    assert [it.path for it in found] == [b"ann", b"ann/1", b"bob/1"]
    assert {(it.found, it.verified, it.verified_bytes) for it in found} == {(3, 2, 20)}


def test_the_datasets_that_changed_last_come_after_those_that_are_asked_for(
    ledger, file, clock
) -> None:
    paths = b"ann/1", b"ann/2", b"bob/1", b"bob/2", b"eve/1"
    ledger.record_folders([FolderSums(path, "d", None, "ann", "") for path in paths])
    times = {}
    for path in (*paths[:3], b"in no dataset", b"ann/1"):
        ledger.record([entry(path + b"/deep/%d" % number) for number in range(3)])
        times[path] = int(clock.now().timestamp())
        clock.move(10)
    summary = LedgerSummary(file, ROOT)

    found = summary.find_recent_datasets([b"bob/2/x"], 9)

    newest = [(path, times[path]) for path in (b"ann/1", b"bob/1", b"ann/2")]
    assert [(it.group.path, it.at) for it in found] == [(b"bob/2", None), *newest]
    assert summary.find_recent_datasets([b"bob/2/x"], 2) == found[:2]
    assert LedgerSummary(file.with_name("none.db"), ROOT).find_recent_datasets([], 3) == []


def test_a_share_is_the_whole_only_if_every_wanted_file_is_verified(ledger, file) -> None:
    sums = {"found": 3, "found_bytes": 1000, "skipped": 1}
    ledger.record_folders(
        [
            FolderSums(b"d", "all", None, "ann", "", verified=2, verified_bytes=990, **sums),
            FolderSums(b"e", "half", None, "ann", "", verified=1, verified_bytes=500, **sums),
            FolderSums(b"f", "nearly", None, "ann", "", verified=1, verified_bytes=999, **sums),
        ]
    )

    found = LedgerSummary(file, ROOT).list_folders("ann", "", None)

    assert [it.verified_share for it in found] == [1.0, 0.5, MAX_UNFINISHED]


def test_what_was_sent_and_is_not_verified_yet_is_summed_up(ledger, file) -> None:
    states = EntryState.STAGED, EntryState.REGISTERED, EntryState.VERIFIED
    names = b"d/a", b"d/b", b"d/c"
    ledger.record_outcomes([ill(key, "found", UNSENT) for key in (*names, b"d/unsent")])
    ledger.record([entry(key, 5, state) for key, state in zip(names, states, strict=True)])
    sums = {"found": 4, "found_bytes": 20, "verified": 1, "verified_bytes": 5}
    ledger.record_folders([FolderSums(b"d", "d", None, "ann", "", **sums)])
    summary = LedgerSummary(file, ROOT)

    groups = [*summary.list_folders(), *summary.find_dataset_folders([b"d/a"])]

    assert [(it.verified, it.verified_bytes, it.sent_bytes) for it in groups] == [(1, 5, 10)] * 2


def test_a_folder_that_is_a_dataset_itself_is_in_no_other(ledger, file) -> None:
    keys = b"ann/loose", b"ann/1/a", b"ann/2/in/b", b"ann/3/c"
    ledger.record([entry(key) for key in keys])
    paths = b"ann", b"ann/1", b"ann/2/in"
    ledger.record_folders([FolderSums(path, "d", None, "ann", "") for path in paths])

    assert [it.path for it in LedgerSummary(file, ROOT).list_inside(b"ann")] == [b"ann/3"]


def test_of_very_many_folders_the_rest_is_summed_up(ledger, file) -> None:
    ledger.record([entry(b"d/%06d/a" % number) for number in range(FOLDERS_AT_ONCE + 2)])

    *listed, rest = LedgerSummary(file, ROOT).list_inside(b"d")

    assert len(listed) == FOLDERS_AT_ONCE
    assert not any(it.rest for it in listed)
    assert (rest.rest, rest.path, rest.found) == (True, None, 2)


def test_the_dataset_of_a_folder_is_known_by_its_files(full: Path) -> None:
    assert LedgerSummary(full, ROOT).find_dataset(b"a") == 7
    assert LedgerSummary(full, ROOT).find_dataset(b"z") is None


def test_times_are_those_of_the_ledger(full: Path, clock: FakeClock) -> None:
    with opened(full, View(text="three")) as listing:
        row = listing.first(1)[0]

    assert row.at == int((clock.now() - timedelta(seconds=20)).timestamp())


def opened(file: Path, view: View) -> RowQuery:
    listing = RowQuery.open(file, ROOT, view)
    assert listing is not None
    return listing
