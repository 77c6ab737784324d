"""A view of the ledger as SQL."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from mydata_like.core.model import EntryState
from mydata_like.core.queries import Table, View
from mydata_like.store.statements import SHOWN

FILE_KINDS: Final = frozenset({"found", "waiting", "skipped", "failed"})  # of files
ENTRY_STATES: Final = frozenset(state.value for state in EntryState)


@dataclass(frozen=True, slots=True)
class Query:
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


def query_keys(view: View, root: int, most: int = -1) -> Query:
    """Return what selects the keys of a view's rows, in order, the first so many or all."""
    column = _ORDERS[view.table].get(view.order) or next(iter(_ORDERS[view.table].values()))
    parts = _query_parts(view, root, column)
    source = " UNION ALL ".join(part.sql for part in parts)
    way = "DESC" if view.descending else "ASC"
    # The second column makes the order a firm one; the index of times has it, too. Inside, order
    # and limit let SQLite merge the parts as they come; outside it would first read them all.
    order = f"ORDER BY {column} {way}, key {way} LIMIT ?"
    values = [value for part in parts for value in part.values]
    return Query(" ".join(("SELECT key FROM (", source, order, ")")), (*values, most))


def _query_parts(view: View, root: int, column: str) -> Sequence[Query]:
    if view.table is Table.RUNS:
        return [Query(_RUNS, (root,))]
    if view.table is Table.PROBLEMS:
        return [_narrow(Query(_OUTCOMES, (root,)), view, ("path", "outcome", "at"))]
    parts = []
    if not view.code and (not view.states or view.states & ENTRY_STATES):
        entries = Query(_ENTRIES[column], (root,)).and_also(_UNLESS_ILL)
        parts.append(_narrow(entries, view, ("key", "state", "changed_at")))
    if not parts or not view.states or view.states & FILE_KINDS:
        ill = Query(_ILL_FILES[column], (root,))
        parts.append(_narrow(ill, view, ("path", "outcome", "at")))
    return parts


def _narrow(query: Query, view: View, names: tuple[str, str, str]) -> Query:
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
