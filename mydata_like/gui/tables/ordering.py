"""One view on its way to the screen: what is done in threads, one step after the other."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import NamedTuple, Protocol, Self

from mydata_like.core.errors import Cancelled, Problem, UploaderError
from mydata_like.core.views import Row, View


class Listing(Protocol):
    """The rows of a view, as `app.reading` opens them."""

    def first(self, count: int) -> Sequence[Row]: ...

    def build(self, most: int = -1) -> int: ...

    def rows(self, start: int, count: int) -> Sequence[Row]: ...

    def find(self, keys: Sequence[object]) -> dict[object, int]: ...

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


Open = Callable[[View], Listing | None]


class Ordering:
    """A view whose rows are put in order; whoever no longer wants it gives it up.

    Its methods but `give_up` are for threads, one at a time. They raise nothing: `problem`
    says what went wrong, `given_up` that what is here is of no use.
    """

    def __init__(self, open_listing: Open, view: View) -> None:
        self.view = view
        self.problem: Problem | None = None
        self.absent = False  # there is no ledger yet
        self.given_up = False
        self.rows: Sequence[Row] = ()  # the first
        self.pages: dict[int, Sequence[Row]] = {}
        self.count = 0
        self.found: dict[object, int] = {}  # where the anchors are
        self.seconds = 0.0  # that the last step took
        self._open_listing = open_listing
        self._listing: Listing | None = None

    def begin(self, count: int) -> Self:
        """Find the first rows."""
        return self._step(lambda listing: self._begin(listing, count))

    def build(self) -> Self:
        """Put all rows in order."""
        return self._step(self._build)

    def renew(self, anchors: Sequence[object], pages: Sequence[int], size: int) -> Self:
        """Put all rows in order, and find these again; read these pages of so many rows."""
        return self._step(lambda listing: self._renew(listing, anchors, pages, size))

    def read(self, pages: Sequence[int], size: int) -> "Reading":
        """Return what these pages say now."""
        return Reading(self, {page: self.read_rows(page * size, size) for page in pages})

    def read_rows(self, start: int, count: int) -> Sequence[Row]:
        """Return what so many rows say now, from `start` on; none where that cannot be told."""
        listing = self._listing
        try:
            return listing.rows(start, count) if listing is not None else ()
        except (Cancelled, UploaderError):
            return ()

    def give_up(self) -> None:
        """End what is at work, from any thread."""
        self.given_up = True
        if self._listing is not None:
            self._listing.interrupt()

    def close(self) -> None:
        """Let the ledger go."""
        if self._listing is not None:
            self._listing.close()
            self._listing = None

    def _step(self, act: Callable[[Listing], None]) -> Self:
        begun = monotonic()
        try:
            if self._listing is None and not self.given_up:
                self._listing = self._open_listing(self.view)
            self.absent = self._listing is None
            if self._listing is not None and not self.given_up:
                act(self._listing)
        except Cancelled:
            self.given_up = True
        except UploaderError as error:
            self.problem = error.problem
        self.seconds = monotonic() - begun
        if self.given_up or self.problem:
            self.close()
        return self

    def _begin(self, listing: Listing, count: int) -> None:
        self.rows = listing.first(count)
        self.count = len(self.rows)

    def _build(self, listing: Listing) -> None:
        self.count = listing.build()

    def _renew(
        self, listing: Listing, anchors: Sequence[object], pages: Sequence[int], size: int
    ) -> None:
        self.count = listing.build()
        self.found = listing.find(anchors)
        self.pages = {page: listing.rows(page * size, size) for page in pages}


class Reading(NamedTuple):
    """Pages that were read of an ordering."""

    ordering: Ordering
    pages: dict[int, Sequence[Row]]
