"""A link and two computers as a model: how much some channels carry, with noise and delay."""

from dataclasses import dataclass, field
from functools import cache
from random import Random

from mydata_like.engine.channel_tuner import ChannelTuner, ThroughputSample

MB = 1_000_000
TICK = 0.5
FRESH = 5.0  # seconds in which there is nothing to be verified yet


@dataclass(frozen=True)
class Mix:
    """The payloads of a run: mean size of one, files in it."""

    size: float
    files: float


LARGE = Mix(256 * MB, 1)
STRIPED = Mix(64 * MB, 1)
TINY = Mix(3 * MB, 1000)
ARCHIVE = Mix(16 * MB, 240)


@dataclass(frozen=True)
class Road:
    """What limits the channels: the round trip, the link, the processors of both sides."""

    rtt: float = 0.0  # seconds
    cores: int = 2  # that client and server share
    link: float = 1250 * MB  # bytes a second
    per_byte: float = 3.7e-9  # seconds of client and server together
    per_file: float = 100e-6
    turns: float = 2.0  # round trips between two payloads of a channel
    window: float = 2 * MB  # bytes under way on a channel
    crowd: float = 0.07  # what each channel beyond the cores costs all

    def carry(self, mix: Mix, channels: int) -> float:
        """Return payloads a second."""
        return _carry(self, mix, channels)

    def best(self, mix: Mix, capacity: int) -> float:
        """Return the payloads a second of the best number of channels."""
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
    """A run over a road by the clock of the model: the climb says how many channels there are.

    `moves` are its moments, numbers and reasons.
    """

    road: Road
    capacity: int = 16
    noise: float = 0.15
    seed: int = 1
    climb: ChannelTuner = field(default_factory=ChannelTuner)
    bandwidth: float = 0.0  # that is allowed
    gusts: float = 1.0  # seconds for which the noise stays the same
    slowing: float = 0.0  # by which it goes faster before the server has begun to verify
    moves: list[tuple[float, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._sight = ThroughputSample(0.0, 0.0, 0.0, 0.0)
        self._opened = 0
        self._opening = 0.0  # since when more are on their way
        self._weather = 1.0

    @property
    def moment(self) -> float:
        return self._sight.moment

    def go(self, seconds: float, mix: Mix, *, supply: float = 1.0) -> float:
        """Carry on so long and return the bytes a second; there is work for this share of it."""
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
        """Let what is to be opened take its round trips; what is to be closed is closed."""
        wanted = self.climb.channels
        if wanted <= self._opened:
            self._opened, self._opening = max(wanted, 1), self.moment
        elif self.moment - self._opening >= 0.2 + 4 * self.road.rtt:
            self._opened = wanted
            self._opening = self.moment
