"""Time of channels by cause while they send payloads; each second counts once."""

from operator import add, sub
from typing import NamedTuple, Self


class TimeByCause(NamedTuple):
    """Seconds of all channels together, by cause."""

    source: float = 0.0  # waiting for the local disk
    hash: float = 0.0  # computing checksums, and other work of the processor
    cipher: float = 0.0  # encrypting
    line: float = 0.0  # waiting to write: for the network, or an overloaded server
    channels: float = 0.0  # waiting for a round trip, which other channels could use
    server: float = 0.0  # waiting longer than that for the server to accept or acknowledge bytes
    bandwidth: float = 0.0  # delayed by the bandwidth limit

    @property
    def in_all(self) -> float:
        return sum(self)

    @property
    def processor(self) -> float:
        """Processor time in seconds."""
        return self.hash + self.cipher

    def plus(self, other: Self) -> Self:
        return type(self)._make(map(add, self, other))

    def minus(self, other: Self) -> Self:
        return type(self)._make(map(sub, self, other))

    def times(self, factor: float) -> Self:
        return type(self)._make(seconds * factor for seconds in self)


NOTHING_SPENT = TimeByCause()
