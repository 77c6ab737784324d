"""What the ledger says of one file or folder, in sums that need no lists."""

from contextlib import closing
from sqlite3 import connect

import pytest

from mydata_like.core.errors import Problem, RunError
from mydata_like.core.file_status import Amount, StepTimes
from mydata_like.core.model import DatasetId, Entry, EntryState, FolderSums, Outcome
from mydata_like.ledger.file_queries import FileQueries
from mydata_like.ledger.ledger_file import note_restored
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.fakes.clock import FakeClock

ROOT = b"/data"
SAFE, SENT = EntryState.VERIFIED, EntryState.STAGED
WAITS = Problem("waiting.settling", "It may still be written.", "Later.")


def an_entry(key, state=SAFE, dataset=7):
    return Entry(key, 10, 0, state, DatasetId(dataset), "0" * 32, "d/x")


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "ledger.db"
    with SqliteLedger.open(file, ROOT, FakeClock()) as ledger:
        ledger.record([an_entry(b"a/S/1"), an_entry(b"a/S/2"), an_entry(b"a/S0/9", dataset=8)])
        ledger.record([an_entry(b"a/S/3", SENT), an_entry(b"/else/x", dataset=9)])
        ill = [
            Outcome(b"a/S/2", 25, 0, "waiting", WAITS),
            Outcome(b"a/S/4", 1, 0, "failed", WAITS),
            Outcome(b"a/T", 0, 0, "folder-skipped", WAITS),
        ]
        ledger.record_outcomes(ill)
        ledger.record_folders([FolderSums(b"a/S%1", "S", "E", "a", "", 3, 30)])
    return file


def ask(file, question):
    with FileQueries.opened(file, ROOT) as queries:
        return question(queries)


def test_every_file_of_a_folder_counts_once_and_what_is_ill_as_that(file):
    assert ask(file, lambda queries: queries.sum_folder(b"a/S")) == {
        "verified": Amount(1, 10),
        "staged": Amount(1, 10),
        "waiting": Amount(1, 25),
        "failed": Amount(1, 1),
    }


def test_the_data_directory_has_all_but_what_was_dropped(file):
    sums = ask(file, lambda queries: queries.sum_folder(b""))
    assert sums["verified"] == Amount(2, 20)
    dropped = ask(file, lambda queries: queries.sum_folder(b"/else"))
    assert dropped == {"verified": Amount(1, 10)}


def test_a_file_is_as_ill_as_the_folder_above_it(file):
    found = ask(file, lambda queries: queries.find_outcome_above(b"a/T/deep/file"))
    assert (found.kind, found.path, found.problem) == ("folder-skipped", b"a/T", WAITS)
    assert ask(file, lambda queries: queries.find_outcome_above(b"a/S/1")) is None


def test_times_are_shown_as_far_as_they_are_known(file):
    now = int(FakeClock().now().timestamp())
    assert ask(file, lambda queries: queries.find(b"a/S/3")).times == StepTimes(staged=now)
    assert ask(file, lambda queries: queries.find(b"none")) is None


def test_what_came_back_is_noted_while_a_run_writes_and_only_for_these_bytes(file):
    clock = FakeClock()
    came = [(b"a/S/1", "0" * 32), (b"a/S/2", "1" * 32)]

    with SqliteLedger.open(file, ROOT, clock) as run:
        note_restored(file, ROOT, came, clock.now())
        run.record([an_entry(b"a/S/3"), an_entry(b"a/S/1")])

    now = int(clock.now().timestamp())
    found = ask(file, lambda queries: dict(queries.iter_below(b"a/S")))
    restored = {key: it.times.restored for key, it in found.items()}
    assert restored == {b"a/S/1": now, b"a/S/2": None, b"a/S/3": None, b"a/S/4": None}


def test_a_ledger_of_an_older_version_is_left_to_the_next_run(file):
    with closing(connect(file)) as connection:
        connection.execute("PRAGMA user_version = 12")
    before = file.read_bytes()

    with pytest.raises(RunError) as caught:
        note_restored(file, ROOT, [(b"a/S/1", "0" * 32)], FakeClock().now())

    assert caught.value.problem_code == "ledger.outdated"
    assert file.read_bytes() == before


def test_a_folder_is_in_one_dataset_or_in_several(file):
    assert ask(file, lambda queries: queries.find_datasets(b"a/S")) == (7, 7)
    assert ask(file, lambda queries: queries.find_datasets(b"a")) == (7, 8)
    assert ask(file, lambda queries: queries.find_datasets(b"none")) == ()


def test_folders_are_found_by_text_and_not_by_pattern(file):
    found = ask(file, lambda queries: queries.find_folders("s%", 5))
    assert [suggestion.key for suggestion in found] == [b"a/S%1"]
    assert ask(file, lambda queries: queries.find_folders("a_S", 5)) == []


def test_before_the_first_run_there_is_nothing_to_ask(tmp_path):
    assert ask(tmp_path / "none.db", lambda queries: queries) is None


def test_what_is_known_of_files_comes_with_what_is_not_well_in_the_order_of_keys(file):
    listed = ask(file, lambda queries: list(queries.iter_below(b"a/S")))

    assert [
        (key, known.entry and known.entry.state, known.outcome and known.outcome.kind)
        for key, known in listed
    ] == [
        (b"a/S/1", SAFE, None),
        (b"a/S/2", SAFE, "waiting"),
        (b"a/S/3", SENT, None),
        (b"a/S/4", None, "failed"),
    ]


def test_files_are_found_by_a_part_of_their_path_and_those_not_well_as_well(file):
    assert ask(file, lambda queries: queries.find_keys("s/4", 5)) == [b"a/S/4"]
    assert ask(file, lambda queries: queries.find_keys("a/S/", 2)) == [b"a/S/1", b"a/S/2"]
    named = ask(file, lambda queries: list(queries.iter_named(b"4")))
    assert [key for key, _ in named] == [b"a/S/4"]
