"""Ordered and filtered rows of the ledger, while another process writes to it."""

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self

from mydata_like.core.errors import Cancelled
from mydata_like.core.frozen import frozen
from mydata_like.core.model import EntryState
from mydata_like.core.parsing import parse_json, parse_moment
from mydata_like.core.queries import FileRow, Row, RunRow, Table, View
from mydata_like.ledger import ledger_file, rechecks
from mydata_like.ledger.sql import CODE, HINT, MESSAGE, SHOWN
from mydata_like.ledger.sqlite_ledger import KEYS_AT_ONCE

FILE_KINDS: Final = frozenset({"found", "waiting", "skipped", "failed"})  # of files
ENTRY_STATES: Final = frozenset(state.value for state in EntryState)


@frozen()
class FilteredQuery:
    """A fragment of SQL and its parameters."""

    sql: str
    values: tuple[object, ...] = ()

    def and_also(self, condition: str, *values: object) -> Self:
        return replace(self, sql=f"{self.sql} AND {condition}", values=(*self.values, *values))


# The columns by which the rows of each table can be ordered: the name in `View`, the column in SQL.
_ORDERS: Final = {
    Table.FILES: {"name": "key", "size": "size", "state": "state", "at": "at"},
    Table.PROBLEMS: {"name": "key", "size": "size", "state": "state", "at": "at", "code": "code"},
    Table.RUNS: {
        "at": "started",
        "reason": "json_extract(summary, '$.reason')",
        "files": "json_extract(summary, '$.sent')",
        "size": "coalesce(json_extract(summary, '$.bytes'), json_extract(summary, '$.sent_bytes'))"
        " - coalesce(json_extract(summary, '$.omitted'), 0)",
        "span": "json_extract(summary, '$.seconds')",
        "failed": "json_extract(summary, '$.failed')",
    },
}
# A file is shown by its outcome, or else by its entry. In separate queries, an index orders the
# entries by time; the plus prevents SQLite from using it for another order.
_BY_ENTRY: Final = (
    "SELECT key, size, state, changed_at AS at, NULL AS code FROM files"
    " WHERE root = ? AND {} IS NOT NULL"
    f" AND (outcome IS NULL OR NOT {SHOWN})"
)
_BY_OUTCOME: Final = (
    f"SELECT key, seen_size AS size, outcome AS state, seen_at AS at, {CODE} AS code FROM files"
    " WHERE root = ? AND outcome IS NOT NULL"
)
_RUNS: Final = "SELECT id AS key, started, summary FROM runs WHERE root = ? AND json_valid(summary)"


def query_keys(view: View, root: int, most: int = -1) -> FilteredQuery:
    """Return the query for the keys of a view's rows, in order: the first `most` or all."""
    column = _ORDERS[view.table].get(view.order) or next(iter(_ORDERS[view.table].values()))
    parts = _query_parts(view, root, "state" if column == "at" else "+state")
    source = " UNION ALL ".join(part.sql for part in parts)
    way = "DESC" if view.descending else "ASC"
    # The second column makes the order unique; the index of times has it, too. With order and limit
    # in the inner queries, SQLite merges them while they run; outside, it would read them
    # completely first.
    order = f"ORDER BY {column} {way}, key {way} LIMIT ?"
    values = [value for part in parts for value in part.values]
    return FilteredQuery(" ".join(("SELECT key FROM (", source, order, ")")), (*values, most))


def _query_parts(view: View, root: int, known: str) -> Sequence[FilteredQuery]:
    if view.table is Table.RUNS:
        return [FilteredQuery(_RUNS, (root,))]
    by_outcome = _narrow(FilteredQuery(_BY_OUTCOME, (root,)), view, "outcome", "seen_at")
    if view.run_began is not None:
        later = "(outcome = 'found' OR (outcome = 'failed' AND seen_at < ?))"
        by_outcome = by_outcome.and_also(f"NOT {later}", view.run_began)
    if view.code:
        by_outcome = by_outcome.and_also(f"{CODE} = ?", view.code)
    if view.table is Table.PROBLEMS:
        return [by_outcome]
    parts = []
    if not view.code and (not view.states or view.states & ENTRY_STATES):
        by_entry = FilteredQuery(_BY_ENTRY.format(known), (root,))
        parts.append(_narrow(by_entry, view, "state", "changed_at"))
    if not parts or not view.states or view.states & FILE_KINDS:
        parts.append(by_outcome.and_also(SHOWN))
    return parts


def _narrow(query: FilteredQuery, view: View, state: str, at: str) -> FilteredQuery:
    """Add the view's filters; `state` and `at` are the columns of state and time."""
    if view.states:
        marks = ", ".join("?" * len(view.states))
        query = query.and_also(f"{state} IN ({marks})", *sorted(view.states))
    if view.folder:
        # "0" is the character after "/".
        query = query.and_also("key >= ? AND key < ?", view.folder + b"/", view.folder + b"0")
    if view.since is not None:
        query = query.and_also(f"{at} >= ?", view.since)
    if view.until is not None:
        query = query.and_also(f"{at} <= ?", view.until)
    if view.text:
        query = query.and_also("CAST(key AS TEXT) LIKE ? ESCAPE '\\'", _pattern(view.text))
    return query


def _pattern(text: str) -> str:
    for special in "\\%_":
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"


logger = logging.getLogger(__name__)

# The order is stored in a temporary table, whose file no other process sees. The contents of the
# rows are always read from the ledger.
_MAKE_ORDER: Final = "CREATE TEMP TABLE IF NOT EXISTS ordered (pos INTEGER PRIMARY KEY, key)"
_COUNT: Final = "SELECT coalesce(max(pos), 0) FROM ordered"
_FIND: Final = "SELECT key, pos - 1 FROM ordered WHERE key IN (%s)"
_READ: Final = {
    Table.FILES: f"""
        SELECT ordered.key, iif(shown, seen_size, size),
            coalesce(iif(shown, outcome, state), ''), iif(shown, seen_at, changed_at),
            iif(shown, {CODE}, ''), iif(shown, {MESSAGE}, ''), iif(shown, {HINT}, ''),
            dataset, verified_at, coalesce(archive, '')
        FROM ordered LEFT JOIN (SELECT *, {SHOWN} AS shown FROM files) AS it
            ON it.root = :root AND it.key = ordered.key
        WHERE pos BETWEEN :first AND :last ORDER BY pos
    """,
    Table.PROBLEMS: f"""
        SELECT ordered.key, coalesce(seen_size, 0), coalesce(outcome, ''), seen_at,
            iif(outcome IS NULL, '', {CODE}), iif(outcome IS NULL, '', {MESSAGE}),
            iif(outcome IS NULL, '', {HINT}), NULL, NULL, ''
        FROM ordered LEFT JOIN files ON files.root = :root AND files.key = ordered.key
        WHERE pos BETWEEN :first AND :last ORDER BY pos
    """,
    Table.RUNS: """
        SELECT ordered.key, started, finished, coalesce(summary, '{}') FROM ordered
        LEFT JOIN runs ON runs.id = ordered.key
        WHERE pos BETWEEN :first AND :last ORDER BY pos
    """,
}


class RowQuery:
    """The rows of one view of one data directory's ledger.

    Calls are serialized; `interrupt` ends the current one from any thread, with `Cancelled`. Every
    method raises `RunError` if the disk or the file fails.
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
        """Open the ledger for reading; returns None if there is none yet.

        Raises `RunError` for one of an older version, `SettingsError` for one of a newer version.
        """
        connection = ledger_file.connect_to_current(file)
        if connection is None:
            return None
        listing = cls(connection, file, view, ledger_file.NO_ROOT)
        with ExitStack() as stack:
            stack.callback(listing.close)
            with listing._errors():
                listing._root = ledger_file.find_root(connection, data_directory)
            stack.pop_all()
        return listing

    def first(self, count: int) -> Sequence[Row]:
        """Return the first rows, much faster than the complete order."""
        self.build(count)
        return self.rows(0, count)

    def build(self, most: int = -1) -> int:
        """Build the order as of now, all of it by default; return the number of its rows."""
        query = query_keys(self.view, self._root, most)
        with self._errors():
            rechecks.overlay(self._connection, self._file)
            self._connection.execute(_MAKE_ORDER)
            self._connection.execute("DELETE FROM temp.ordered")
            self._connection.execute(f"INSERT INTO temp.ordered (key) {query.sql}", query.values)
            (count,) = self._connection.execute(_COUNT).fetchone()
        return int(count)

    def rows(self, start: int, count: int) -> Sequence[Row]:
        """Return the current contents of `count` rows of the order, from `start` on."""
        chosen = {"root": self._root, "first": start + 1, "last": start + count}
        parse = _parse_run if self.view.table is Table.RUNS else FileRow._make
        with self._errors():
            found = self._connection.execute(_READ[self.view.table], chosen).fetchall()
        return [parse(row) for row in found]

    def find(self, keys: Sequence[object]) -> dict[object, int]:
        """Return the positions of keys in the order; missing ones are omitted."""
        found: dict[object, int] = {}
        for start in range(0, len(keys), KEYS_AT_ONCE):
            part = keys[start : start + KEYS_AT_ONCE]
            query = _FIND % ",".join("?" * len(part))
            with self._errors():
                found.update(self._connection.execute(query, tuple(part)).fetchall())
        return found

    def interrupt(self) -> None:
        """End the current query, and all later ones."""
        self._interrupted = True
        # The connection may be closed by now, with nothing to interrupt.
        with suppress(sqlite3.ProgrammingError):
            self._connection.interrupt()

    def close(self) -> None:
        """Close the file and delete the order, when the current query has ended."""
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
    def _errors(self) -> Iterator[None]:
        """Lock the connection, and convert its errors to ours."""
        try:
            with self._lock:
                if self._interrupted:
                    raise Cancelled
                yield
        except ledger_file.FAILURES as error:
            if self._interrupted:
                raise Cancelled from error
            raise ledger_file.failure(self._file, error) from error


def _parse_run(row: Sequence[Any]) -> RunRow:
    key, started, finished, summary = row
    try:
        record = parse_json(summary)
        times = [parse_moment(time) if time else None for time in (started, finished)]
        return RunRow(key, times[0], times[1], record if isinstance(record, dict) else {})
    except (ValueError, TypeError):
        logger.warning("The ledger has an invalid run")
        return RunRow(str(key), None, None, {})
