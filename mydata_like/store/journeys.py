"""Answers where files are, from the ledger, while another process may be writing it."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Self

from mydata_like.core.errors import Problem
from mydata_like.core.journeys import Amount, Ill, Suggestion, Times
from mydata_like.store import schema
from mydata_like.store.ledger import NO_ROOT
from mydata_like.store.listing import connect_to_current
from mydata_like.store.statements import FIND_ROOT, SHOWN

_TIMES: Final = (
    "SELECT staged_at, registered_at, verified_at FROM entries WHERE root = :root AND key = :key"
)
_ILL: Final = (
    "SELECT outcome, code, message, hint, at, path FROM outcomes"  # noqa: S608 - all of it is ours
    f" WHERE root = :root AND path = :key AND (outcome LIKE 'folder-%' OR {SHOWN})"
)
# In a folder are the keys between its own followed by "/" and by "0", which comes next; in the
# data directory all that do not begin with "/", as those of dropped folders do.
_BELOW: Final = "{0} > :low AND {0} < :high"
_INSIDE: Final = "substr({0}, 1, 1) != x'2f'"
_SUM: Final = "SELECT state, count(*), sum(size) FROM entries WHERE root = :root AND {0} GROUP BY 1"
_SUM_ILL: Final = (
    "SELECT outcome, count(*), sum(size) FROM outcomes WHERE root = :root AND {0}"  # noqa: S608
    f" AND {SHOWN} GROUP BY 1"
)
# What is ill counts as that, even where an earlier state of it is safe.
_SUM_BOTH: Final = (
    "SELECT entries.state, -count(*), -sum(entries.size) FROM outcomes JOIN entries"  # noqa: S608
    " ON entries.root = outcomes.root AND key = path WHERE outcomes.root = :root AND {0}"
    f" AND {SHOWN} GROUP BY 1"
)
_DATASET: Final = "SELECT min(dataset), max(dataset) FROM entries WHERE root = :root AND {0}"
_FOLDERS: Final = (
    "SELECT path, found_bytes FROM folders WHERE root = :root"
    " AND CAST(path AS TEXT) LIKE :like ESCAPE '\\' ORDER BY path LIMIT :most"
)


class Journeys:
    """Asks the ledger of one data directory; every method raises `RunError` where it fails."""

    def __init__(self, connection: sqlite3.Connection, file: Path, root: int) -> None:
        self._connection = connection
        self._file = file
        self._root = root

    @classmethod
    @contextmanager
    def opened(cls, file: Path, data_directory: bytes) -> Iterator[Self | None]:
        """Open the ledger to read it; None where there is none yet."""
        connection = connect_to_current(file)
        if connection is None:
            yield None
            return
        with closing(connection):
            try:
                row = connection.execute(FIND_ROOT, (data_directory,)).fetchone()
                yield cls(connection, file, row[0] if row else NO_ROOT)
            except schema.FAILURES as error:
                raise schema.failure(file, error) from error

    def find_times(self, key: bytes) -> Times:
        """Return when a file reached each step."""
        rows = self._ask(_TIMES, key=key)
        return Times(*rows[0]) if rows else Times()

    def find_ill(self, key: bytes) -> Ill | None:
        """Return what is not well with a file or folder, or with a folder above it."""
        while key:
            for kind, code, message, hint, at, path in self._ask(_ILL, key=key):
                return Ill(kind, Problem(code, message, hint), at, path)
            key = key.rpartition(b"/")[0]
        return None

    def sum_folder(self, key: bytes) -> dict[str, Amount]:
        """Return how many files are in each state in a folder and below; all with an empty key."""
        rows = [*self._sum(_SUM, "key", key), *self._sum(_SUM_BOTH, "path", key)]
        rows += self._sum(_SUM_ILL, "path", key)
        sums: dict[str, Amount] = {}
        for state, files, size in rows:
            known = sums.get(state, Amount())
            sums[state] = Amount(known.files + files, known.bytes + size)
        return {state: amount for state, amount in sums.items() if amount.files}

    def find_dataset(self, key: bytes) -> int | None:
        """Return the dataset that all of a folder is in; None for several, or none."""
        ((least, most),) = self._sum(_DATASET, "key", key)
        return least if least == most else None

    def find_folders(self, text: str, most: int) -> list[Suggestion]:
        """Return the dataset folders whose path has this text."""
        for special in "\\%_":
            text = text.replace(special, f"\\{special}")
        rows = self._ask(_FOLDERS, like=f"%{text}%", most=most)
        return [Suggestion(path, size, "", folder=True) for path, size in rows]

    def _sum(self, query: str, column: str, key: bytes) -> Sequence[Any]:
        which = (_BELOW if key else _INSIDE).format(column)
        return self._ask(query.format(which), low=key + b"/", high=key + b"0")

    def _ask(self, query: str, **values: object) -> Sequence[Any]:
        return self._connection.execute(query, {"root": self._root, **values}).fetchall()
