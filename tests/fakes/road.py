"""A model of a network and two computers: the throughput of channels, with noise and delay."""

from dataclasses import dataclass, field
from functools import cache
from random import Random

from mydata_like.engine.channel_tuner import ChannelTuner, ThroughputSample

MB = 1_000_000
TICK = 0.5
FRESH = 5.0  # seconds at the start without any verification


@dataclass(frozen=True)
class Mix:
    """The payloads of a run: mean size, and files per payload."""

    size: float
    files: float


LARGE = Mix(256 * MB, 1)
STRIPED = Mix(64 * MB, 1)
TINY = Mix(3 * MB, 1000)
ARCHIVE = Mix(16 * MB, 240)


@dataclass(frozen=True)
class Road:
    """The limits of channels: the round trip, the network, the processors of both sides."""

    rtt: float = 0.0  # seconds
    cores: int = 2  # that client and server share
    link: float = 1250 * MB  # bytes a second
    per_byte: float = 3.7e-9  # seconds of client and server together
    per_file: float = 100e-6
    turns: float = 2.0  # round trips between two payloads of a channel
    window: float = 2 * MB  # bytes under way on a channel
    crowd: float = 0.07  # the cost for all channels of each one beyond the cores

    def carry(self, mix: Mix, channels: int) -> float:
        """Return the payloads a second of a number of channels."""
        return _carry(self, mix, channels)

    def best(self, mix: Mix, capacity: int) -> float:
        """Return the payloads a second of the best number of channels up to `capacity`."""
        return max(self.carry(mix, channels) for channels in range(1, capacity + 1))


@cache
def _carry(road: Road, mix: Mix, channels: int) -> float:
    if not channels:
        return 0.0
    cost = mix.size * road.per_byte + mix.files * road.per_file
    alone = max(mix.size * road.rtt / road.window, cost / 1.5) + road.turns * road.rtt + 0.002
    crowded = 1 + road.crowd * max(0, channels - road.cores)
    bounds = (channels / alone, road.cores / cost / crowded, road.link / mix.size)
    return sum(bound**-8.0 for bound in bounds) ** (-1 / 8)


@dataclass
class Trip:
    """A run in the model's time, in which a `ChannelTuner` sets the number of channels.

    `moves` has the time, the new number and the reason of each change.
    """

    road: Road
    capacity: int = 16
    noise: float = 0.15
    seed: int = 1
    climb: ChannelTuner = field(default_factory=ChannelTuner)
    bandwidth: float = 0.0  # the limit in bytes a second; 0 is none
    gusts: float = 1.0  # seconds for which the noise stays the same
    slowing: float = 0.0  # the gain in speed before the server starts to verify
    moves: list[tuple[float, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._sight = ThroughputSample(0.0, 0.0, 0.0, 0.0)
        self._opened = 0
        self._opening = 0.0  # the time since when more channels are being opened
        self._weather = 1.0

    @property
    def moment(self) -> float:
        return self._sight.moment

    def go(self, seconds: float, mix: Mix, *, supply: float = 1.0) -> float:
        """Continue for some seconds with work for a share of them; return the bytes a second."""
        before, until = self._sight, self.moment + seconds
        while self.moment < until - TICK / 2:
            self._tick(mix, supply)
        return (self._sight.bytes - before.bytes) / seconds

    def _tick(self, mix: Mix, supply: float) -> None:
        self._open()
        if self.moment % self.gusts == 0:
            self._weather = 1 + self._random.uniform(-self.noise, self.noise)
        fresh = 1 + self.slowing * (self.moment < FRESH)
        payloads = fresh * self._weather * supply * self.road.carry(mix, self._opened) * TICK
        if self.bandwidth:
            payloads = min(payloads, self.bandwidth * TICK / mix.size)
        sight = self._sight
        self._sight = ThroughputSample(
            sight.moment + TICK,
            sight.bytes + payloads * mix.size,
            sight.files + payloads * mix.files,
            sight.busy + supply * self._opened * TICK,
        )
        reason = self.climb.begin(self.road.rtt or 0.0005, self.capacity)
        reason = reason or self.climb.look(self._sight, self.capacity, self.bandwidth)
        if reason:
            self.moves.append((self.moment, self.climb.channels, reason))

    def _open(self) -> None:
        """Open channels after their round trips, or close them immediately."""
        wanted = self.climb.channels
        if wanted <= self._opened:
            self._opened, self._opening = max(wanted, 1), self.moment
        elif self.moment - self._opening >= 0.2 + 4 * self.road.rtt:
            self._opened = wanted
            self._opening = self.moment
