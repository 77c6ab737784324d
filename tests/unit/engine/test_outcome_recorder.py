"""What is kept in the ledger for those who look later."""

import pytest

from mydata_like.core.errors import Problem, RunError
from mydata_like.core.events import (
    FileFailed,
    FileRetried,
    FileSkipped,
    FilesKnown,
    FilesSeen,
    FileVerified,
    FileWaiting,
    FolderFailed,
    FolderFound,
)
from mydata_like.core.model import UNSENT, FolderSums, Outcome
from mydata_like.engine.outcome_recorder import OutcomeRecorder

WHY = Problem("file.unreadable", "It cannot be read.")
FOUND = FolderFound(path=b"ada/set", dataset="set", title="mice", owner="ada")


class Shelf:
    def __init__(self):
        self.written = []

    def record_outcomes(self, outcomes, well=()):
        self.written.append((list(outcomes), list(well)))

    def record_folders(self, folders):
        self.written.append(list(folders))


def keep(*events):
    shelf = Shelf()
    chronicle = OutcomeRecorder(shelf)
    for event in events:
        chronicle.add(event)
    chronicle.write()
    return shelf, chronicle


def test_what_is_not_well_is_kept_with_its_reason():
    shelf, _ = keep(
        FileFailed(path=b"ada/set/a", size=3, problem=WHY, modified_ns=7),
        FolderFailed(path=b"bob", problem=WHY),
    )

    assert shelf.written == [
        (
            [
                Outcome(b"ada/set/a", 3, 7, "failed", WHY),
                Outcome(b"bob", 0, 0, "folder-failed", WHY),
            ],
            [],
        )
    ]


def test_each_folder_keeps_the_sums_of_the_files_below_it():
    shelf, _ = keep(
        FOUND,
        FilesSeen(folder=b"ada/set", files=5, bytes=50),
        FilesKnown(folder=b"ada/set", files=1, bytes=10),
        FileVerified(path=b"ada/set/deep/b", size=4, checksum="c"),
        FileWaiting(path=b"ada/set/c", size=1, problem=WHY),
        FileSkipped(path=b"ada/set/d", size=1, problem=WHY),
        FileFailed(path=b"elsewhere/e", size=1, problem=WHY),
    )

    sums = FolderSums(b"ada/set", "set", "mice", "ada", "", 5, 50, 2, 14, 1, 1, 0)
    assert shelf.written[-1] == [sums]


def test_a_file_that_becomes_well_is_forgotten_and_counted_once():
    failed = FileFailed(path=b"ada/set/a", size=3, problem=WHY)
    shelf, _ = keep(
        FOUND,
        failed,
        FileRetried(path=b"ada/set/a", size=3, outcome="failed"),
        FileVerified(path=b"ada/set/a", size=3, checksum="c"),
    )

    assert shelf.written[0] == ([], [b"ada/set/a"])
    assert shelf.written[1][0].failed == 0


def test_nothing_is_written_twice():
    shelf, chronicle = keep(FOUND)
    chronicle.write()

    assert len(shelf.written) == 1


def test_single_files_of_one_folder_are_counted_together():
    seen = FilesSeen(folder=b"ada/set", files=1, bytes=10)
    shelf, _ = keep(FOUND, seen, FOUND, seen)

    assert shelf.written[-1] == [FolderSums(b"ada/set", "set", "mice", "ada", "", 2, 20)]


def test_a_file_that_is_to_be_sent_after_all_exists_only_here_until_then():
    shelf, _ = keep(
        FOUND,
        FileFailed(path=b"ada/set/a", size=3, problem=WHY, modified_ns=7),
        FileRetried(path=b"ada/set/a", size=3, outcome="failed", modified_ns=7),
    )

    assert shelf.written[0] == ([Outcome(b"ada/set/a", 3, 7, "found", UNSENT)], [])
    assert shelf.written[1][0].failed == 0


def test_what_could_not_be_written_is_written_the_next_time():
    shelf = Shelf()
    chronicle = OutcomeRecorder(shelf)
    failing = Shelf()
    failing.record_outcomes = fail
    broken = OutcomeRecorder(failing)
    for each in (chronicle, broken):
        each.add(FOUND)
        each.add(FileFailed(path=b"ada/set/a", size=3, problem=WHY))
        each.add(FileFailed(path=b"ada/set/b", size=3, problem=WHY))
        each.add(FileVerified(path=b"ada/set/c", size=3, checksum="c"))
    with pytest.raises(RunError):
        broken.write()
    del failing.record_outcomes
    for each in (chronicle, broken):
        each.add(FileVerified(path=b"ada/set/b", size=3, checksum="c"))
        each.write()

    assert failing.written == shelf.written


def fail(*_):
    raise RunError("The disk is full.")
