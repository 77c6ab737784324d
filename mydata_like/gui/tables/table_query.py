"""Reads the rows of a view of the ledger in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.queries import Row, View

if TYPE_CHECKING:
    from mydata_like.app.ledger_status import RowQuery


Open = Callable[[View], "RowQuery | None"]  # such as `ledger_query.open_listing`


class QueryResult(NamedTuple):
    """The result of one query step."""

    absent: bool = False  # there is no ledger yet
    rows: Sequence[Row] = ()  # the first rows
    length: int = 0  # the number of all rows
    found: Mapping[object, int] = MappingProxyType({})  # the row numbers of the anchors
    pages: Mapping[int, Sequence[Row]] = MappingProxyType({})


class TableQuery:
    """Sorts and reads the rows of a view; all methods except `interrupt` are for background tasks.

    They run one at a time, and raise `UploaderError`, or `Cancelled` if they are interrupted.
    """

    def __init__(self, open_listing: Open, view: View) -> None:
        self._open_listing = open_listing
        self._view = view
        self._listing: RowQuery | None = None
        self._lock = Lock()
        self._interrupted = False

    def read_first(self, count: int) -> QueryResult:
        """Return the first rows."""
        with self._opened() as listing:
            return QueryResult(rows=listing.first(count)) if listing else QueryResult(absent=True)

    def order(self) -> QueryResult:
        """Sort all rows, and return their number."""
        with self._opened() as listing:
            return QueryResult(length=listing.build()) if listing else QueryResult(absent=True)

    def refresh(self, anchors: Sequence[object], pages: Sequence[int], size: int) -> QueryResult:
        """Sort all rows, find the anchors again, and read these pages of this many rows."""
        with self._opened() as listing:
            if listing is None:
                return QueryResult(absent=True)
            length, found = listing.build(), listing.find(anchors)
            rows = {page: listing.rows(page * size, size) for page in pages}
            return QueryResult(length=length, found=found, pages=rows)

    def read_pages(self, pages: Sequence[int], size: int) -> dict[int, Sequence[Row]]:
        """Return the current rows of these pages of this many rows."""
        return {page: self._read(page * size, size) for page in pages}

    def read_ranges(self, ranges: Iterable[range]) -> list[Row]:
        """Return the current content of these rows."""
        return [row for rows in ranges for row in self._read(rows.start, len(rows))]

    def interrupt(self) -> None:
        """Interrupt the active step; callable from any thread."""
        self._interrupted = True
        if self._listing is not None:
            self._listing.interrupt()

    def close(self) -> None:
        """Close the ledger."""
        with self._lock:
            self._close()

    def _read(self, start: int, count: int) -> Sequence[Row]:
        """Return rows; none if the query has ended, or they cannot be read."""
        try:
            with self._lock:
                return self._listing.rows(start, count) if self._listing is not None else ()
        except (Cancelled, UploaderError):
            return ()

    @contextmanager
    def _opened(self) -> Iterator[RowQuery | None]:
        """Open the ledger if there is one, and close it on any error."""
        with self._lock:
            try:
                if self._listing is None and not self._interrupted:
                    self._listing = self._open_listing(self._view)
                yield None if self._interrupted else self._listing
            except (Cancelled, UploaderError):
                self._close()
                raise

    def _close(self) -> None:
        if self._listing is not None:
            self._listing.close()
            self._listing = None
