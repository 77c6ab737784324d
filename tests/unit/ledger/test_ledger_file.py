"""Ledgers that an earlier version wrote, as this one reads them."""

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from mydata_like.core.model import UNSENT, DatasetId
from mydata_like.core.queries import View
from mydata_like.ledger import sql
from mydata_like.ledger.file_queries import FileQueries
from mydata_like.ledger.row_query import RowQuery
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.ledger.summaries import LedgerSummary
from tests.fakes.clock import FakeClock

RECORDING = Path(__file__).with_name("recordings") / "version-9.sql"
ROOTS = {1: b"/data", 2: b"/other\xff"}
ENTRY = (
    "key, size, modified_ns, state, dataset, checksum, remote, datafile, problem, archive,"
    " ctime_ns, inode"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a ledger of version 9, with files in every state, and two data directories."""
    file = tmp_path / "ledger.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(RECORDING.read_text("ascii"))
    return file


def ask(file: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def open_ledger(file: Path, root: int = 1) -> SqliteLedger:
    return SqliteLedger.open(file, ROOTS[root], FakeClock())


@pytest.mark.parametrize("root", ROOTS)
def test_what_version_9_had_of_each_file_is_kept(file: Path, root: int) -> None:
    entries = ask(file, f"SELECT {ENTRY} FROM entries WHERE root = {root} ORDER BY key")
    times = ask(
        file,
        "SELECT key, staged_at, registered_at, verified_at FROM entries"
        f" WHERE root = {root} ORDER BY key",
    )
    outcomes = ask(
        file,
        "SELECT path, outcome, code, message, hint, at, size, modified_ns FROM outcomes"
        f" WHERE root = {root} ORDER BY path",
    )

    with open_ledger(file, root) as ledger:
        assert ledger.problem is None
        assert [tuple(entry) for entry in ledger.iter_entries()] == entries
    with FileQueries.opened(file, ROOTS[root]) as queries:
        assert queries is not None
        for key, *expected in times:
            found = queries.find(key)
            assert found is not None
            assert list(found.times) == [*expected, None]
        above = [(path, queries.find_outcome_above(path)) for path, *_ in outcomes]
    assert [
        (path, it and it.kind, *(it.problem if it else ()), it and (it.at, it.size, it.modified_ns))
        for path, it in above
    ] == [
        (path, kind, *(UNSENT if kind == "found" else problem), (at, size, modified))
        for path, kind, *problem, at, size, modified in outcomes
    ]


def count_rows(file: Path) -> Counter[tuple[object, ...]]:
    with RowQuery.open(file, ROOTS[1], View(order="name")) as listing:
        return Counter((row.state, row.code, row.size) for row in listing.first(100))


def test_views_and_totals_of_version_9_are_as_they_were(file: Path) -> None:
    here = DatasetId(7)
    with open_ledger(file) as ledger:
        assert ledger.measure_risk()[:2] == (19, 56)
        assert (ledger.count_kept(), ledger.count_rechecks()) == (1, 2)
        assert ledger.count_files(here) == 23
        assert ledger.count_records(here) == (16, 401)
        assert ledger.count_verified(here) == 10
        assert len(list(ledger.iter_known())) == 30
        assert list(ledger.find_archives(here)) == ["b.tar", "raw/a.tar"]
        assert sorted(it.key for it in ledger.iter_verified(here)) == VERIFIED
        assert ledger.find_batches() == {1: [b"d/found", b"d/\xff\xfe raw"]}
        staged = {(f"d-7/{number}", "c" * 32) for number in (6, 9, 17, 20)}
        assert ledger.find_writes()[here].staged == staged
    assert count_rows(file) == ROWS
    problems = LedgerSummary(file, ROOTS[1]).group_problems()
    assert {(it.kind, it.problem.code): it.files for it in problems} == PROBLEMS


VERIFIED = [
    b"d/L\xc3\xa4nge.tif",
    b"d/held",
    b"d/kept",
    b"d/new\nline",
    b"d/old",
    b"d/quote'\"%_",
    b"d/rewritten",
    b"d/skipped",
    b"d/touched",
    b"d/verified",
    b"d/\xff\xfe raw",
]
ROWS = {
    ("verified", "", 3): 8,
    ("found", "waiting.unsent", 3): 6,
    ("staged", "", 3): 3,
    ("failed", "file.unreadable", 3): 2,
    ("waiting", "waiting.recheck", 3): 2,
    ("failed", "file.unreadable", 1): 1,
    ("waiting", "waiting.verification", 3): 1,
    ("skipped", "skipped.pattern", 3): 1,
    ("waiting", "waiting.settling", 1): 1,
    ("found", "waiting.unsent", 2): 1,
    ("found", "waiting.unsent", 9): 1,
    ("repaired", "", 3): 1,
    ("registered", "", 3): 1,
    ("skipped", "skipped.pattern", 12): 1,
    ("skipped", "skipped.changed", 1): 1,
    ("waiting", "waiting.changed", 1): 1,
}
PROBLEMS = {
    ("failed", "file.unreadable"): 3,
    ("folder-failed", "file.unreadable"): 1,
    ("folder-skipped", "skipped.owner"): 1,
    ("found", "waiting.unsent"): 11,
    ("skipped", "skipped.changed"): 1,
    ("skipped", "skipped.pattern"): 2,
    ("waiting", "waiting.changed"): 1,
    ("waiting", "waiting.recheck"): 2,
    ("waiting", "waiting.settling"): 1,
    ("waiting", "waiting.verification"): 1,
}
KILLED = """
import os, sqlite3, sys
from pathlib import Path
from mydata_like.ledger import ledger_file

file = Path(sys.argv[1])
connection = sqlite3.connect(file, isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.set_progress_handler(lambda: os._exit(9), int(sys.argv[2]))
ledger_file.migrate(connection, file, ledger_file.MIGRATIONS)
"""


@pytest.mark.process
@pytest.mark.parametrize("steps", [1, 100, 500, 1000])
def test_a_run_that_is_killed_while_it_converts_a_ledger_loses_nothing(
    file: Path, steps: int
) -> None:
    path = os.pathsep.join(folder for folder in sys.path if folder)
    command = [sys.executable, "-c", KILLED, str(file), str(steps)]
    killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False)

    assert killed.returncode == 9
    with open_ledger(file) as ledger:
        assert ledger.problem is None
    assert count_rows(file) == ROWS


def test_the_first_connection_has_the_statistics(tmp_path):
    """Without them, SQLite reads all rows where an index finds a few."""
    with SqliteLedger.open(tmp_path / "ledger.db", b"/data", FakeClock()) as ledger:
        query = sql.FIND_OF_INODES % "?,?"
        ((*_, plan),) = ledger._fetch(f"EXPLAIN QUERY PLAN {query}", (1, 5, 6))
    assert "files_by_inode" in plan
