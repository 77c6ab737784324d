"""On what channels spent their time while they carried payloads; each second counts once."""

from operator import add, sub
from typing import NamedTuple, Self


class TimeByCause(NamedTuple):
    """Seconds of channels, in all, by what they were needed for."""

    source: float = 0.0  # waiting for the disk here
    hash: float = 0.0  # computing checksums, and whatever else takes this processor
    cipher: float = 0.0  # computing what goes over the line
    line: float = (
        0.0  # waiting until the line takes more: the network, or a server too busy to read
    )
    channels: float = 0.0  # waiting for one round trip: with more channels, others use the line
    server: float = 0.0  # waiting longer than that for the server to take or to acknowledge bytes
    bandwidth: float = 0.0  # held back by the bandwidth that is set

    @property
    def in_all(self) -> float:
        return sum(self)

    @property
    def processor(self) -> float:
        """Seconds of a processor."""
        return self.hash + self.cipher

    def plus(self, other: Self) -> Self:
        return type(self)(*map(add, self, other))

    def minus(self, other: Self) -> Self:
        return type(self)(*map(sub, self, other))

    def times(self, factor: float) -> Self:
        return type(self)(*(seconds * factor for seconds in self))


NOTHING_SPENT = TimeByCause()
