"""Sums over the ledger: which problems there are, and how the folders stand."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from mydata_like.core.errors import Problem
from mydata_like.core.views import FolderGroup, ProblemGroup
from mydata_like.store import schema
from mydata_like.store.ledger import NO_ROOT
from mydata_like.store.listing import connect_to_current
from mydata_like.store.statements import FIND_ROOT

# With `min` SQLite takes the other columns from the row that has the least.
_GROUP_PROBLEMS: Final = (
    "SELECT outcome, code, count(*), sum(size), max(at), min(path), message, hint FROM outcomes"
    " WHERE root = ? GROUP BY outcome, code"
)
_SUMS: Final = (
    "sum(found), sum(found_bytes), sum(verified), sum(verified_bytes), sum(waiting),"
    " sum(skipped), sum(failed) FROM folders WHERE root = ?"
)
_OWNERS: Final = " ".join(
    ("SELECT owner, grp, NULL, NULL, NULL, count(*),", _SUMS, "GROUP BY grp, owner")
)
_OF_OWNER: Final = "AND owner = ? AND grp = ? GROUP BY title"
_EXPERIMENTS: Final = " ".join(
    ("SELECT owner, grp, title, NULL, NULL, count(*),", _SUMS, _OF_OWNER)
)
_DATASETS: Final = (
    "SELECT owner, grp, title, dataset, path, 1, found, found_bytes, verified, verified_bytes,"
    " waiting, skipped, failed FROM folders WHERE root = ?"
    " AND owner = ? AND grp = ? AND title IS ? ORDER BY dataset, path"
)
_FIND_DATASET: Final = "SELECT dataset FROM entries WHERE root = ? AND key >= ? AND key < ? LIMIT 1"


class Survey:
    """Asks the ledger of one data directory for sums; each question opens it anew.

    Every method raises `RunError` where the ledger cannot be read; nothing is known where there
    is none yet.
    """

    def __init__(self, file: Path, data_directory: bytes) -> None:
        self._file = file
        self._directory = data_directory

    def group_problems(self) -> list[ProblemGroup]:
        """Return what is not well, by kind and code."""
        return [
            ProblemGroup(kind, files, size, at, path, Problem(code, message, hint))
            for kind, code, files, size, at, path, message, hint in self._ask(_GROUP_PROBLEMS)
        ]

    def list_folders(self, *parents: str | None) -> list[FolderGroup]:
        """Return the owners; those of an owner and group the experiments; of these the datasets.

        `parents` are the owner, the group, and the experiment's title, as far as they are given.
        """
        query = {0: _OWNERS, 2: _EXPERIMENTS, 3: _DATASETS}[len(parents)]
        return [FolderGroup._make(row) for row in self._ask(query, *parents)]

    def find_dataset(self, folder: bytes) -> int | None:
        """Return the server's number of the dataset that a folder's files are in."""
        rows = self._ask(_FIND_DATASET, folder + b"/", folder + b"0")
        return int(rows[0][0]) if rows else None

    def _ask(self, query: str, *values: object) -> Sequence[Any]:
        with self._opened() as connection:
            if connection is None:
                return []
            row = connection.execute(FIND_ROOT, (self._directory,)).fetchone()
            return connection.execute(query, (row[0] if row else NO_ROOT, *values)).fetchall()

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection | None]:
        connection = connect_to_current(self._file)
        if connection is None:
            yield None
            return
        with closing(connection):
            try:
                yield connection
            except schema.FAILURES as error:
                raise schema.failure(self._file, error) from error
