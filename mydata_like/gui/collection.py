"""Garbage is collected in the GUI thread only.

Python collects wherever it happens to allocate, and would end Qt's objects in a thread that they
do not belong to, which crashes.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QObject, QTimer, Slot

EVERY = 5000  # milliseconds


class Collector(QObject):
    """Collects what automatic collection would have, from a timer."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=EVERY)
        self._timer.timeout.connect(self._collect)
        self._timer.start()

    @Slot()
    def _collect(self) -> None:
        """Collect the oldest generation that is due, and with it the younger ones."""
        states = zip(gc.get_count(), gc.get_threshold(), strict=True)
        due = [number for number, (count, threshold) in enumerate(states) if count > threshold]
        if due:
            gc.collect(max(due))


@contextmanager
def collected_here(parent: QObject | None = None) -> Iterator[None]:
    """Collect only in this thread while this lasts."""
    gc.disable()
    collector = Collector(parent)
    try:
        yield
    finally:
        collector.deleteLater()
        gc.enable()
