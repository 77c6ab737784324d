"""Rows of the ledger in an order of one's own, while another process writes it."""

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self

from mydata_like.core.errors import Cancelled, RunError, SettingsError
from mydata_like.core.model import EntryState
from mydata_like.core.parsing import parse_json, parse_moment
from mydata_like.core.queries import FileRow, Row, RunRow, Table, View
from mydata_like.ledger import ledger_file
from mydata_like.ledger.sql import FIND_ROOT, SHOWN
from mydata_like.ledger.sqlite_ledger import KEYS_AT_ONCE, NO_ROOT

FILE_KINDS: Final = frozenset({"found", "waiting", "skipped", "failed"})  # of files
ENTRY_STATES: Final = frozenset(state.value for state in EntryState)


@dataclass(frozen=True, slots=True)
class FilteredQuery:
    """A piece of SQL and what its question marks stand for."""

    sql: str
    values: tuple[object, ...] = ()

    def and_also(self, condition: str, *values: object) -> Self:
        return replace(self, sql=f"{self.sql} AND {condition}", values=(*self.values, *values))


# By what the rows of each table can be ordered: the name in `View`, the column in SQL.
_ORDERS: Final = {
    Table.FILES: {"name": "key", "size": "size", "state": "state", "at": "at"},
    Table.PROBLEMS: {"name": "key", "size": "size", "state": "state", "at": "at", "code": "code"},
    Table.RUNS: {
        "at": "started",
        "reason": "json_extract(summary, '$.reason')",
        "files": "json_extract(summary, '$.sent')",
        "size": "json_extract(summary, '$.bytes')",
        "span": "json_extract(summary, '$.seconds')",
        "failed": "json_extract(summary, '$.failed')",
    },
}
# Only what is asked for is read: by time, an index has it all.
_ENTRIES: Final = {
    "key": "SELECT key FROM entries WHERE root = ?",
    "size": "SELECT key, size FROM entries WHERE root = ?",
    "state": "SELECT key, state FROM entries WHERE root = ?",
    "at": "SELECT key, changed_at AS at FROM entries WHERE root = ?",
}
_UNLESS_ILL: Final = (
    "NOT EXISTS (SELECT 1 FROM outcomes WHERE outcomes.root = entries.root"  # noqa: S608
    f" AND outcomes.path = entries.key AND {SHOWN})"
)
_OUTCOMES: Final = (
    "SELECT path AS key, size, outcome AS state, at, code FROM outcomes WHERE root = ?"
)
_ILL: Final = f"FROM outcomes WHERE root = ? AND {SHOWN}"
_ILL_FILES: Final = {
    "key": f"SELECT path AS key {_ILL}",
    "size": f"SELECT path AS key, size {_ILL}",
    "state": f"SELECT path AS key, outcome AS state {_ILL}",
    "at": f"SELECT path AS key, at {_ILL}",
}
_RUNS: Final = "SELECT id AS key, started, summary FROM runs WHERE root = ? AND json_valid(summary)"


def query_keys(view: View, root: int, most: int = -1) -> FilteredQuery:
    """Return what selects the keys of a view's rows, in order, the first so many or all."""
    column = _ORDERS[view.table].get(view.order) or next(iter(_ORDERS[view.table].values()))
    parts = _query_parts(view, root, column)
    source = " UNION ALL ".join(part.sql for part in parts)
    way = "DESC" if view.descending else "ASC"
    # The second column makes the order a firm one; the index of times has it, too. Inside, order
    # and limit let SQLite merge the parts as they come; outside it would first read them all.
    order = f"ORDER BY {column} {way}, key {way} LIMIT ?"
    values = [value for part in parts for value in part.values]
    return FilteredQuery(" ".join(("SELECT key FROM (", source, order, ")")), (*values, most))


def _query_parts(view: View, root: int, column: str) -> Sequence[FilteredQuery]:
    if view.table is Table.RUNS:
        return [FilteredQuery(_RUNS, (root,))]
    if view.table is Table.PROBLEMS:
        return [_narrow(FilteredQuery(_OUTCOMES, (root,)), view, ("path", "outcome", "at"))]
    parts = []
    if not view.code and (not view.states or view.states & ENTRY_STATES):
        entries = FilteredQuery(_ENTRIES[column], (root,)).and_also(_UNLESS_ILL)
        parts.append(_narrow(entries, view, ("key", "state", "changed_at")))
    if not parts or not view.states or view.states & FILE_KINDS:
        ill = FilteredQuery(_ILL_FILES[column], (root,))
        parts.append(_narrow(ill, view, ("path", "outcome", "at")))
    return parts


def _narrow(query: FilteredQuery, view: View, names: tuple[str, str, str]) -> FilteredQuery:
    """Add the view's filters, which know the path, the state and the time by these names."""
    path, state, at = names
    if view.states:
        marks = ", ".join("?" * len(view.states))
        query = query.and_also(f"{state} IN ({marks})", *sorted(view.states))
    if view.code:
        query = query.and_also("code = ?", view.code)
    if view.folder:
        # "0" is the character after "/".
        query = query.and_also(
            f"{path} >= ? AND {path} < ?", view.folder + b"/", view.folder + b"0"
        )
    if view.since is not None:
        query = query.and_also(f"{at} >= ?", view.since)
    if view.until is not None:
        query = query.and_also(f"{at} <= ?", view.until)
    if view.text:
        query = query.and_also(f"CAST({path} AS TEXT) LIKE ? ESCAPE '\\'", _pattern(view.text))
    return query


def _pattern(text: str) -> str:
    for special in "\\%_":
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"


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


class RowQuery:
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
        except ledger_file.FAILURES as error:
            if self._interrupted:
                raise Cancelled from error
            raise ledger_file.failure(self._file, error) from error


def connect_to_current(file: Path) -> sqlite3.Connection | None:
    """Connect to a ledger of this version, to read it; None where there is none yet."""
    if not file.exists():
        return None
    connection = ledger_file.connect_to_read(file)
    try:
        _check_version(connection)
    except ledger_file.FAILURES as error:
        connection.close()
        raise ledger_file.failure(file, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _check_version(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version < len(ledger_file.MIGRATIONS):
        raise RunError(
            "The ledger was written by an older version of this program.",
            hint="The next run brings it up to date.",
            code="ledger.outdated",
        )
    if version > len(ledger_file.MIGRATIONS):
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
