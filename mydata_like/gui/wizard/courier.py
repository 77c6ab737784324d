"""Brings what a thread finds on its way to the page that waits for it."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, Signal

Bring = Callable[[Any], None]


class Parcel(NamedTuple):
    """One thing that was found, and on which journey."""

    journey: int
    content: Any


class Courier(QObject):
    """Carries parcels from any thread; those of an earlier journey are awaited no more.

    It has no parent: a thread that still holds it may outlive the page.
    """

    arrived = Signal(object)  # a Parcel; connect it queued

    def __init__(self) -> None:
        super().__init__()
        self._journey = 0

    def leave(self) -> Bring:
        """Begin a journey; return what brings something on it."""
        self._journey += 1
        return partial(self._bring, self._journey)

    def is_awaited(self, parcel: Parcel) -> bool:
        """Return whether a parcel belongs to the latest journey."""
        return parcel.journey == self._journey

    def _bring(self, journey: int, content: Any) -> None:
        self.arrived.emit(Parcel(journey, content))
