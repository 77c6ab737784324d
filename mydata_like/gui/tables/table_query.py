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


class SortedRows(NamedTuple):
    """What is known of all rows once they are sorted; without a ledger there are none."""

    length: int = 0
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

    def read_first(self, count: int) -> Sequence[Row]:
        """Return the first rows, before all are sorted."""
        with self._opened() as listing:
            return listing.first(count) if listing else ()

    def sort(self, anchors: Sequence[object], pages: Sequence[int], size: int) -> SortedRows:
        """Sort all rows, find the anchors, and read these pages of this many rows."""
        with self._opened() as listing:
            if listing is None:
                return SortedRows()
            length, found = listing.build(), listing.find(anchors)
            rows = {page: listing.rows(page * size, size) for page in pages}
            return SortedRows(length, found, rows)

    def read_ranges(self, ranges: Iterable[range]) -> list[Sequence[Row]]:
        """Return the current rows of each range; none once the query has ended, or on an error."""
        found = []
        for rows in ranges:
            try:
                with self._lock:
                    listing = self._listing
                    found.append(listing.rows(rows.start, len(rows)) if listing else ())
            except (Cancelled, UploaderError):
                found.append(())
        return found

    def interrupt(self) -> None:
        """Interrupt the active step; callable from any thread."""
        self._interrupted = True
        if self._listing is not None:
            self._listing.interrupt()

    def close(self) -> None:
        """Close the ledger."""
        with self._lock:
            self._close()

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
