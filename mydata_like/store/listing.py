"""Rows of the ledger in an order of one's own, while another process writes it."""

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self

from mydata_like.core.errors import Cancelled, RunError, SettingsError
from mydata_like.core.parsing import parse_json, parse_moment
from mydata_like.core.queries import FileRow, Row, RunRow, Table, View
from mydata_like.store import schema
from mydata_like.store.ledger import KEYS_AT_ONCE, NO_ROOT
from mydata_like.store.statements import FIND_ROOT, SHOWN
from mydata_like.store.views import query_keys

logger = logging.getLogger(__name__)

# The order lies in a temporary table, in a file of its own that nobody else sees. What the rows
# say is always what the ledger says now.
_MAKE_ORDER: Final = "CREATE TEMP TABLE IF NOT EXISTS ordered (pos INTEGER PRIMARY KEY, key)"
_COUNT: Final = "SELECT coalesce(max(pos), 0) FROM ordered"
_FIND: Final = "SELECT key, pos - 1 FROM ordered WHERE key IN (%s)"
_READ: Final = {
    Table.FILES: f"""
        SELECT ordered.key, coalesce(outcomes.size, entries.size),
            coalesce(outcome, entries.state, ''), coalesce(outcomes.at, entries.changed_at),
            coalesce(code, ''), coalesce(message, ''), coalesce(hint, ''),
            entries.dataset, entries.verified_at, coalesce(entries.archive, '')
        FROM ordered
        LEFT JOIN entries ON entries.root = :root AND entries.key = ordered.key
        LEFT JOIN outcomes ON outcomes.root = :root AND outcomes.path = ordered.key AND {SHOWN}
        WHERE pos BETWEEN :first AND :last ORDER BY pos
    """,  # noqa: S608 - all of it is ours
    Table.PROBLEMS: """
        SELECT ordered.key, coalesce(size, 0), coalesce(outcome, ''), at, coalesce(code, ''),
            coalesce(message, ''), coalesce(hint, ''), NULL, NULL, ''
        FROM ordered
        LEFT JOIN outcomes ON outcomes.root = :root AND outcomes.path = ordered.key
        WHERE pos BETWEEN :first AND :last ORDER BY pos
    """,
    Table.RUNS: """
        SELECT ordered.key, started, finished, coalesce(summary, '{}') FROM ordered
        LEFT JOIN runs ON runs.id = ordered.key
        WHERE pos BETWEEN :first AND :last ORDER BY pos
    """,
}


class Listing:
    """The rows of one view of one data directory's ledger.

    Calls wait for one another; `interrupt` ends the one that is at work, from any thread, by
    `Cancelled`. Every method raises `RunError` when the disk or the file fails.
    """

    def __init__(self, connection: sqlite3.Connection, file: Path, view: View, root: int) -> None:
        self.view = view
        self._connection = connection
        self._file = file
        self._root = root
        self._lock = Lock()
        self._interrupted = False

    @classmethod
    def open(cls, file: Path, data_directory: bytes, view: View) -> Self | None:
        """Open the ledger to read it; None where there is none yet.

        Raises `RunError` for one of an older version, `SettingsError` for one of a newer.
        """
        connection = connect_to_current(file)
        if connection is None:
            return None
        listing = cls(connection, file, view, NO_ROOT)
        with listing._closed_on_error(), listing._errors():
            row = connection.execute(FIND_ROOT, (data_directory,)).fetchone()
            listing._root = row[0] if row else NO_ROOT
        return listing

    def first(self, count: int) -> Sequence[Row]:
        """Return the first rows of the order, much faster than all of it can be known."""
        self.build(count)
        return self.rows(0, count)

    def build(self, most: int = -1) -> int:
        """Lay down the order as it is now, all of it by default; return how many rows it has."""
        query = query_keys(self.view, self._root, most)
        with self._errors():
            self._connection.execute(_MAKE_ORDER)
            self._connection.execute("DELETE FROM temp.ordered")
            insert = f"INSERT INTO temp.ordered (key) {query.sql}"
            self._connection.execute(insert, query.values)
            (count,) = self._connection.execute(_COUNT).fetchone()
        return int(count)

    def rows(self, start: int, count: int) -> Sequence[Row]:
        """Return what the ledger says now of so many rows of the order, from `start` on."""
        chosen = {"root": self._root, "first": start + 1, "last": start + count}
        parse = _parse_run if self.view.table is Table.RUNS else FileRow._make
        with self._errors():
            found = self._connection.execute(_READ[self.view.table], chosen).fetchall()
        return [parse(row) for row in found]

    def find(self, keys: Sequence[object]) -> dict[object, int]:
        """Return where in the order these keys are; those that are not there are left out."""
        found: dict[object, int] = {}
        for start in range(0, len(keys), KEYS_AT_ONCE):
            part = keys[start : start + KEYS_AT_ONCE]
            query = _FIND % ",".join("?" * len(part))
            with self._errors():
                found.update(self._connection.execute(query, tuple(part)).fetchall())
        return found

    def interrupt(self) -> None:
        """End what is at work, and all that is asked from now on."""
        self._interrupted = True
        # One that is closed meanwhile has nothing to interrupt.
        with suppress(sqlite3.ProgrammingError):
            self._connection.interrupt()

    def close(self) -> None:
        """Let the file go, and the order with it, when what is at work has ended."""
        self.interrupt()
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Have the connection to oneself, and tell in our words what goes wrong."""
        try:
            with self._lock:
                if self._interrupted:
                    raise Cancelled
                yield
        except schema.FAILURES as error:
            if self._interrupted:
                raise Cancelled from error
            raise schema.failure(self._file, error) from error


def connect_to_current(file: Path) -> sqlite3.Connection | None:
    """Connect to a ledger of this version, to read it; None where there is none yet."""
    if not file.exists():
        return None
    connection = schema.connect_to_read(file)
    try:
        _check_version(connection)
    except schema.FAILURES as error:
        connection.close()
        raise schema.failure(file, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _check_version(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version < len(schema.MIGRATIONS):
        raise RunError(
            "The ledger was written by an older version of this program.",
            hint="The next run brings it up to date.",
            code="ledger.outdated",
        )
    if version > len(schema.MIGRATIONS):
        raise SettingsError(
            "The ledger was written by a newer version of this program.",
            hint="Install that version, or choose another folder in advanced.state_directory.",
            code="ledger.newer",
        )


def _parse_run(row: Sequence[Any]) -> RunRow:
    key, started, finished, summary = row
    try:
        record = parse_json(summary)
        times = [parse_moment(time) if time else None for time in (started, finished)]
        return RunRow(key, times[0], times[1], record if isinstance(record, dict) else {})
    except (ValueError, TypeError):
        logger.warning("The ledger has a run that makes no sense")
        return RunRow(str(key), None, None, {})
