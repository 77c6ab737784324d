"""Divides the bandwidth that all channels may use together."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

from mydata_like.core.ports import Channel, Clock
from mydata_like.engine.workers import Lock

HUNGRY = 0.75  # of its share; who uses that much could use more
GROWTH = 1.3  # what the others are left, for more than they use now
LEAST = 0.02  # of the total, for who uses next to nothing
NOTABLE = 0.01  # changes of a share below this part of it are not passed on


@dataclass(slots=True, eq=False)
class _Flow:
    """A channel at work, and what it made of its share."""

    channel: Channel
    since: float
    lent: bool = True
    share: float = inf
    moved: int = 0


class Meter:
    """Counts the bytes of one payload as a channel carries it."""

    def __init__(self, flow: _Flow) -> None:
        self._flow = flow
        self._counted = 0

    def reach(self, size: int) -> None:
        """Note that so many bytes of the payload have gone, in all."""
        self._flow.moved += size - self._counted
        self._counted = size


class Bandwidth:
    """A number of bytes a second, shared fairly by the channels at work; 0 sets no limit.

    What a channel leaves of its share goes to the others with the next `divide_anew`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._total = 0.0
        self._flows: dict[int, _Flow] = {}

    @property
    def total(self) -> float:
        """Bytes a second for all channels together."""
        return self._total

    def change(self, total: float) -> None:
        """Let so many bytes a second go from now on."""
        with self._lock:
            self._total = total
            self._share_out()

    @contextmanager
    def used_by(self, channel: Channel) -> Iterator[Meter]:
        """Give a channel its share while this lasts."""
        with self._lock:
            flow = self._flows.get(channel.number)
            if flow is None:
                flow = self._flows[channel.number] = _Flow(channel, self._clock.monotonic())
                self._share_out()
            flow.lent = True
        try:
            yield Meter(flow)
        finally:
            flow.lent = False

    def divide_anew(self) -> None:
        """Divide by what each channel has made of its share since the last time."""
        with self._lock:
            now = self._clock.monotonic()
            idle = [key for key, flow in self._flows.items() if not (flow.lent or flow.moved)]
            for key in idle:
                del self._flows[key]
            demands = {key: _demand(flow, now, self._total) for key, flow in self._flows.items()}
            for flow in self._flows.values():
                flow.since, flow.moved = now, 0
            self._share_out(demands)

    def _share_out(self, demands: Mapping[int, float] | None = None) -> None:
        keys = list(self._flows)
        wishes = [demands[key] if demands else inf for key in keys]
        for key, share in zip(keys, divide(self._total, wishes), strict=True):
            flow = self._flows[key]
            if abs(share - flow.share) > NOTABLE * flow.share or flow.share == inf:
                flow.share = share
                flow.channel.limit(share)


def divide(total: float, demands: Sequence[float]) -> list[float]:
    """Divide a total so that nobody lacks what another has beyond its demand.

    Whoever demands less than an equal part gets that, the others share the rest; what nobody
    demands is divided equally, so that the shares always sum up to the total.
    """
    shares = [0.0] * len(demands)
    rest = total
    order = sorted(range(len(demands)), key=lambda place: demands[place])
    for done, place in enumerate(order):
        shares[place] = min(demands[place], rest / (len(order) - done))
        rest -= shares[place]
    return [share + rest / len(shares) for share in shares]


def _demand(flow: _Flow, now: float, total: float) -> float:
    """Return what a channel could use: without end for one that uses up its share."""
    seconds = now - flow.since
    if seconds <= 0 or flow.moved >= HUNGRY * flow.share * seconds:
        return inf
    return max(GROWTH * flow.moved / seconds, LEAST * total)
