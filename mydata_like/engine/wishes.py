"""What a person wishes of a watch from outside: a run now, or that this run is its last."""

from mydata_like.engine.watching import FOLDER, SOURCE
from mydata_like.engine.workers import CancelFlag


class Wishes:
    """Wakes a watch that rests; stands in for its request to stop, from any thread."""

    def __init__(self, cancel: CancelFlag) -> None:
        self._cancel = cancel
        self._bell = cancel.part()
        self._start = ""
        self._only = ""  # the one folder that a run is wished for
        self._leaving = False

    def start(self, *, alone: bool = False) -> None:
        """Wish for a run, now; with `alone` for one that carries nothing but added sources."""
        self._start = self._start or SOURCE if alone else "person"
        self._bell.set("a run is wanted")

    def start_only(self, folder: str) -> None:
        """Wish for a run over one folder, now; of two such wishes comes one over everything."""
        another = self._start == FOLDER and self._only != folder
        self._start = "person" if another or self._start == "person" else FOLDER
        self._only = folder
        self._bell.set("a run is wanted")

    @property
    def only(self) -> str:
        """The folder that was wished for last."""
        return self._only

    def leave(self) -> None:
        """Wish that the watch ends, after the run that is under way."""
        self._leaving = True
        self._bell.set("the watch is to end")

    def take(self) -> str:
        """Return which run was wished for since this was asked last; empty for none."""
        if self._bell.is_set() and not self._leaving:
            self._bell = self._cancel.part()  # before the wish is read, so that none is lost
        wished, self._start = self._start, ""
        return wished

    def is_set(self) -> bool:
        """Return whether the watch is to end."""
        return self._leaving or self._cancel.is_set()

    def wait(self, timeout: float) -> bool:
        """Rest for so many seconds at most; a wish ends it."""
        self._bell.wait(timeout)
        return self.is_set()
