"""What findings mean: how fast files would go, which stage is the limit, what would be faster.

Every stage needs some seconds for each byte, and some for each file. Stages work side by side, so
the one that needs the most time for a file is the limit, and what it needs is the pace of all.
Checksums and encryption share the processors: what they need adds up. Nothing is measured here.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple

from mydata_like.doctor.findings import (
    CEILING,
    COMPRESSION,
    LARGE_FILES,
    MD5,
    MD5_ALL,
    RECORDS,
    TINY_FILES,
    Cost,
    Findings,
    Stage,
    carried,
)

TINY: Final = 3_000  # bytes of a tiny file: half of those in an archive of instruments are smaller
_EXPLAINED: Final = 0.7  # of the time that the whole takes; a part that takes so much is the cause
_NOTHING: Final = 0.01  # of the limit's time: a stage that takes less is none
_LEFT: Final = 0.5  # of the cores at least, however busy others are


class Workload(StrEnum):
    """Which files are carried; what is the limit for some is none for others."""

    LARGE = "large"
    MIXED = "mixed"
    TINY = "tiny"


SIZES: Final[Mapping[Workload, int]] = {
    Workload.LARGE: 256_000_000,
    Workload.MIXED: 260_000,  # the mean of the archive mix in docs/performance.md
    Workload.TINY: TINY,
}


class Way(NamedTuple):
    """How files are carried: what a setting, or somebody at the server, could change.

    `shrunk` is the part of its size to which a file is compressed on its way; `relieved` is a
    stage that is no limit any more.
    """

    cipher: str
    channels: int
    shrunk: float = 1.0
    archived: bool = False
    relieved: Stage | None = None


class Load(NamedTuple):
    """What a stage needs for a byte, and for a file beside its bytes, in seconds."""

    stage: Stage
    per_byte: float = 0.0
    per_file: float = 0.0

    def seconds(self, size: int) -> float:
        return self.per_file + size * self.per_byte


class Prediction(NamedTuple):
    """How fast files of a workload go, which stage is the limit, and which one is behind it.

    `rates` are what each stage would carry alone, in bytes a second, the slowest first; where
    nothing was measured there is none.
    """

    workload: Workload
    rates: Mapping[Stage, float]

    @property
    def rate(self) -> float:
        """Bytes a second; 0 where nothing is known."""
        return next(iter(self.rates.values()), 0.0)

    @property
    def limit(self) -> Stage | None:
        return next(iter(self.rates), None)

    @property
    def behind(self) -> Stage | None:
        return next(islice(self.rates, 1, None), None)

    @property
    def files(self) -> float:
        """Files a second."""
        return self.rate / SIZES[self.workload]

    def as_record(self) -> dict[str, object]:
        """Return this as plain values for JSON."""
        return {
            "workload": self.workload,
            "rate": self.rate,
            "files_per_second": self.files,
            "limit": self.limit,
            "behind": self.behind,
            "rates": dict(self.rates),
        }


def predict(findings: Findings, way: Way, workload: Workload) -> Prediction:
    """Return how fast such files would go in this way."""
    size = SIZES[workload]
    slowest: dict[Stage, float] = {}
    for load in weigh(findings, way):
        if load.stage is not way.relieved and (needed := load.seconds(size)) > 0:
            slowest[load.stage] = max(needed, slowest.get(load.stage, 0.0))
    order = sorted(slowest, key=lambda stage: -slowest[stage])
    counting = [stage for stage in order if slowest[stage] > _NOTHING * slowest[order[0]]]
    return Prediction(workload, {stage: size / slowest[stage] for stage in counting})


def weigh(findings: Findings, way: Way) -> list[Load]:
    """Return what every stage needs that anything is known of."""
    value = findings.value
    sending = [*_processors(findings, way), *_wire(findings, way)]
    sending.append(_disk(findings, Stage.SERVER_DISK))
    whole = inverse(value(Stage.CHANNELS, carried(TINY_FILES)))
    if max(load.seconds(TINY) for load in sending) < _EXPLAINED * whole:
        sending.append(Load(Stage.CHANNELS, per_file=whole))
    record = 0.0 if way.archived else inverse(value(Stage.API, RECORDS))
    return [_disk(findings, Stage.SOURCE), *sending, Load(Stage.API, per_file=record)]


def inverse(rate: float | None) -> float:
    """Return the seconds that one takes of which so many go in a second; 0 where unknown."""
    return 1 / rate if rate else 0.0


def _disk(findings: Findings, stage: Stage) -> Load:
    """Return what a disk needs; the bytes of a tiny file are part of what was measured for it."""
    byte, tiny = (inverse(findings.value(stage, what)) for what in (LARGE_FILES, TINY_FILES))
    return Load(stage, byte, max(0.0, tiny - TINY * byte))


def _processors(findings: Findings, way: Way) -> Iterator[Load]:
    """Yield what the processors of both sides need, which may be the same ones.

    A channel's session keeps one core busy, so a channel alone has one. The limit is named
    after what takes the most of their time.
    """
    checksum = inverse(findings.value(Stage.HASH, MD5))
    here, there = encryption(findings, way.cipher)
    packing = inverse(findings.value(Stage.SOURCE, COMPRESSION)) if way.shrunk < 1 else 0.0
    work = {
        Stage.HASH: checksum,
        Stage.CIPHER: packing + way.shrunk * (here or 0.0),
        Stage.SERVER_CPU: way.shrunk * (there or 0.0),
    }
    if not findings.one_machine:
        yield Load(Stage.SERVER_CPU, work.pop(Stage.SERVER_CPU) / _cores_there(findings, way))
    largest = max(work, key=lambda stage: work[stage])
    busy = max(way.channels, 2) if findings.one_machine else way.channels
    yield Load(largest, sum(work.values()) / min(busy, _cores_here(findings)))


def encryption(findings: Findings, cipher: str) -> Cost:
    """Return what a byte on its way costs the processors of both sides."""
    found = findings.ciphers().get(cipher)
    return found.cost if found else Cost()


def _cores_here(findings: Findings) -> float:
    """Return how many cores' work all of them do: twins share one, and others may take some."""
    one, all_ = (findings.value(Stage.HASH, what) for what in (MD5, MD5_ALL))
    cores = float(findings.here.cpus or 1)
    if one and all_:
        cores = max(1.0, min(all_ / one, cores))
    return cores * max(_LEFT, 1 - (findings.here.busy or 0.0))


def _cores_there(findings: Findings, way: Way) -> int:
    return min(way.channels, findings.there.cpus or way.channels)


def _wire(findings: Findings, way: Way) -> Iterator[Load]:
    """Yield what the way takes, unless the flood was as fast as the processors are.

    Near the ceiling that the server's window sets, further channels are what is missing.
    """
    floods = findings.floods()
    if not floods:
        return
    fewer = [number for number in floods if number <= way.channels]
    number = max(fewer, default=min(floods))
    needed = inverse(floods[number].value)
    plain = Way(findings.cipher, number)
    if _flood_needs(findings, plain) >= _EXPLAINED * needed:
        return
    ceiling = number * (findings.value(Stage.NETWORK, CEILING) or 0.0)
    near = ceiling and floods[number].value > _EXPLAINED * ceiling
    stage = Stage.CHANNELS if near else Stage.NETWORK
    yield Load(stage, needed * way.shrunk)


def _flood_needs(findings: Findings, way: Way) -> float:
    """Return what the processors need for a byte that is neither read nor has a checksum."""
    here, there = (cost or 0.0 for cost in encryption(findings, way.cipher))
    cores = _cores_here(findings)
    if findings.one_machine:
        return (here + there) / min(max(way.channels, 2), cores)
    return max(here / min(way.channels, cores), there / _cores_there(findings, way))
