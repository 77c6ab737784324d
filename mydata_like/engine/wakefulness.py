"""Keeps the computer awake while bytes move, and no longer."""

from typing import Final

from mydata_like.core.ports import Clock, Wakefulness
from mydata_like.engine.progress import RunProgress

LOOK: Final = 1.0  # seconds between two looks
DROWSY: Final = 30.0  # seconds without a byte after which the computer may sleep


class Vigil:
    """Looks again and again whether bytes have moved; a held or waiting run keeps nobody awake."""

    def __init__(self, wakefulness: Wakefulness, progress: RunProgress, clock: Clock) -> None:
        self._wakefulness = wakefulness
        self._progress = progress
        self._clock = clock
        self._moved_at: float | None = None

    def __call__(self) -> None:
        """Look once."""
        now = self._clock.monotonic()
        if self._progress.totals.byte_rate:
            self._moved_at = now
            self._wakefulness.keep()
        elif self._moved_at is not None and now - self._moved_at >= DROWSY:
            self._moved_at = None
            self._wakefulness.end()
