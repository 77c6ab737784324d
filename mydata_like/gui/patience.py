"""How long an engine that ended unexpectedly is left alone before the next one is started."""

from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Final

FIRST: Final = 5.0  # seconds after the first unexpected end
LONGEST: Final = 1800.0


class Patience:
    """Longer after each end, until an engine has done some work."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._delay = 0.0
        self._due = -inf

    @property
    def is_over(self) -> bool:
        """Whether an engine may be started by itself now."""
        return self._now() >= self._due

    def begin(self) -> None:
        """An engine has ended unexpectedly."""
        self._delay = min(self._delay * 2, LONGEST) or FIRST
        self._due = self._now() + self._delay

    def forget(self) -> None:
        """An engine has worked, or what kept it from that is mended."""
        self._delay, self._due = 0.0, -inf
