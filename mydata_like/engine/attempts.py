"""How often a payload is tried before its files fail."""

from collections.abc import Iterable
from typing import Final

from mydata_like.core.errors import Problem

# What a channel says whose session was ended because of another channel.
DROPPED: Final = "channel.dropped"
GAIN: Final = 64 << 20  # bytes by which an attempt has to get further, at least
STEPS: Final = 256  # in which a payload may get there at most
BLAMELESS: Final = 20  # times as many vain attempts as are allowed, whoever is to blame


class Attempts:
    """The attempts of one payload; those that are its own failures count.

    One that got further than all before has not failed: the next goes on from there. One that
    was broken off because of another channel has not, either. Both are bounded all the same.
    """

    def __init__(self, allowed: int, size: int) -> None:
        self.made = 0
        self.told = False  # that one has begun, and not yet that it has ended
        self.failed = 0
        self._allowed = allowed
        self._vain = 0
        self._gain = max(GAIN, size // STEPS)
        self._furthest = 0
        self._reached = 0

    @property
    def used_up(self) -> bool:
        return self.failed >= self._allowed or self._vain >= self._allowed * BLAMELESS

    def begin(self) -> None:
        self.made += 1

    def reach(self, size: int) -> None:
        """Note that so many bytes have gone in this attempt, those among them that were there."""
        self._reached = max(self._reached, size)

    def end(self, problems: Iterable[Problem]) -> None:
        """Judge an attempt that has left something to be sent, for these reasons."""
        if self._reached - self._furthest >= self._gain:
            self._furthest = self._reached
            return
        self._vain += 1
        self.failed += any(problem.code != DROPPED for problem in problems)
