"""Predictions from the results: speed of a run, bottleneck, and faster alternatives.

Every stage needs some seconds for each byte, and some for each file. Stages work side by side, so
the one that needs the most time for a file is the limit, and what it needs is the pace of all.
Checksums and encryption share the processors: what they need adds up. Nothing is measured here.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import islice
from statistics import mean
from typing import Final, NamedTuple

from mydata_like.speedtest.results import (
    CEILING,
    COMPRESSION,
    LARGE_FILES,
    MD5,
    MD5_ALL,
    RECORDS,
    ROUND_TRIP,
    TINY_FILES,
    CpuCost,
    SpeedTestResult,
    StageResult,
    carried,
    in_usual_batches,
)
from mydata_like.transfer.multi_stream import FAR, LARGE

TINY: Final = 3_000  # bytes of a tiny file: half of those in an archive of instruments are smaller
_EXPLAINED: Final = 0.7  # of the time that the whole takes; a part that takes so much is the cause
_NOTHING: Final = 0.01  # of the limit's time: a stage that takes less is none
_STRIPES: Final = 2  # streams of a large file at least, see `transfer.crew`
_PROCESSORS: Final = frozenset({StageResult.HASH, StageResult.CIPHER, StageResult.SERVER_CPU})


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


class TransferMode(NamedTuple):
    """How files are carried: what a setting, or somebody at the server, could change.

    `shrunk` is the part of its size to which a file is compressed on its way; `relieved` is a
    stage that is no limit any more. Where the host is far, large files are `striped` over streams.
    `usual_batches` are larger than those of the settings.
    """

    cipher: str
    channels: int
    shrunk: float = 1.0
    archived: bool = False
    relieved: StageResult | None = None
    striped: bool = False
    usual_batches: bool = False


class StageCost(NamedTuple):
    """The cost of a stage: seconds for each byte, and for each file in addition to its bytes."""

    stage: StageResult
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
    rates: Mapping[StageResult, float]

    @property
    def rate(self) -> float:
        """Bytes a second; 0 where nothing is known."""
        return next(iter(self.rates.values()), 0.0)

    @property
    def limit(self) -> StageResult | None:
        return next(iter(self.rates), None)

    @property
    def behind(self) -> StageResult | None:
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


def predict(findings: SpeedTestResult, way: TransferMode, workload: Workload) -> Prediction:
    """Return how fast such files would go in this way."""
    if workload is Workload.TINY and findings.floods() and not findings.tells_of_tiny:
        return Prediction(workload, {})
    size = SIZES[workload]
    far = (findings.value(StageResult.NETWORK, ROUND_TRIP) or 0.0) >= FAR
    way = way._replace(striped=far and size >= LARGE)
    slowest: dict[StageResult, float] = {}
    for load in weigh(findings, way):
        if load.stage is not way.relieved and (needed := load.seconds(size)) > 0:
            slowest[load.stage] = max(needed, slowest.get(load.stage, 0.0))
    order = sorted(slowest, key=lambda stage: -slowest[stage])
    counting = [stage for stage in order if slowest[stage] > _NOTHING * slowest[order[0]]]
    return Prediction(workload, {stage: size / slowest[stage] for stage in counting})


def weigh(findings: SpeedTestResult, way: TransferMode) -> list[StageCost]:
    """Return what every stage needs that anything is known of."""
    value = findings.value
    overheads = _find_overheads(findings)
    sending = [
        load._replace(per_byte=load.per_byte * overheads.get(load.stage, 1.0))
        for load in _send(findings, way)
    ]
    tiny = carried(TINY_FILES)
    whole = inverse(
        value(StageResult.CHANNELS, in_usual_batches(tiny) if way.usual_batches else tiny)
    )
    if max(load.seconds(TINY) for load in sending) < _EXPLAINED * whole:
        sending.append(StageCost(StageResult.CHANNELS, per_file=whole))
    record = 0.0 if way.archived else inverse(value(StageResult.API, RECORDS))
    return [
        _disk(findings, StageResult.SOURCE),
        *sending,
        StageCost(StageResult.API, per_file=record),
    ]


def inverse(rate: float | None) -> float:
    """Return the seconds that one takes of which so many go in a second; 0 where unknown."""
    return 1 / rate if rate else 0.0


def _disk(findings: SpeedTestResult, stage: StageResult) -> StageCost:
    """Return what a disk needs; the bytes of a tiny file are part of what was measured for it."""
    byte, tiny = (inverse(findings.value(stage, what)) for what in (LARGE_FILES, TINY_FILES))
    return StageCost(stage, byte, max(0.0, tiny - TINY * byte))


def _send(findings: SpeedTestResult, way: TransferMode) -> Iterator[StageCost]:
    """Yield what it takes to send a byte, as far as it was measured."""
    yield from _processors(findings, way)
    yield from _wire(findings, way)
    yield _disk(findings, StageResult.SERVER_DISK)


def _find_overheads(findings: SpeedTestResult) -> Mapping[StageResult, float]:
    """Return how many times what was measured of them stages really need.

    Processors read, write and tell beside what is measured of them, and share a host that moves
    bytes from one to another at times: where they were the limit of large files that were carried
    together for seconds, that is what they need. A disk may take a short look's bytes faster than
    many, and into memory: there it is never less than was measured.
    """
    together = findings.find(StageResult.CHANNELS, carried(LARGE_FILES))
    slowest = max(_send(findings, TransferMode(findings.cipher, findings.channels)), key=_each_byte)
    if together is None or not slowest.per_byte:
        return {}
    carrying = mean(map(inverse, together.looks))  # each look is at as many bytes
    overhead = carrying / slowest.per_byte
    if slowest.stage in _PROCESSORS:
        return dict.fromkeys(_PROCESSORS, overhead)
    return (
        {StageResult.SERVER_DISK: max(1.0, overhead)}
        if slowest.stage is StageResult.SERVER_DISK
        else {}
    )


def _each_byte(load: StageCost) -> float:
    return load.per_byte


def _processors(findings: SpeedTestResult, way: TransferMode) -> Iterator[StageCost]:
    """Yield what the processors of both sides need, which may be the same ones.

    A channel's session keeps one core busy on either side, so a channel alone has one; the host's
    have to write what arrives, too. The limit is named after what takes the most of their time.
    """
    checksum = _checksum(findings)
    here, there, *_ = encryption(findings, way.cipher)
    disk = findings.find(StageResult.SERVER_DISK, LARGE_FILES)
    writing = (disk.cost.there if disk else None) or 0.0
    packing = inverse(findings.value(StageResult.SOURCE, COMPRESSION)) if way.shrunk < 1 else 0.0
    work = {
        StageResult.HASH: checksum,
        StageResult.CIPHER: packing + way.shrunk * (here or 0.0),
        StageResult.SERVER_CPU: way.shrunk * (there or 0.0) + writing,
    }
    if findings.one_machine:
        cores = min(2 * way.channels, _cores_of_both(findings))
        yield StageCost(max(work, key=work.__getitem__), sum(work.values()) / cores)
    yield StageCost(
        StageResult.SERVER_CPU, work.pop(StageResult.SERVER_CPU) / _cores_there(findings, way)
    )
    cores = min(way.channels, _cores_here(findings))
    yield StageCost(max(work, key=work.__getitem__), sum(work.values()) / cores)


def _checksum(findings: SpeedTestResult) -> float:
    """Return the seconds that a byte's checksum keeps a core busy, whatever else it had to do."""
    found = findings.find(StageResult.HASH, MD5)
    if found is None:
        return 0.0
    return found.cost.here or inverse(found.value)


def encryption(findings: SpeedTestResult, cipher: str) -> CpuCost:
    """Return what a byte on its way costs the processors of both sides."""
    found = findings.ciphers().get(cipher)
    if found is None and cipher == findings.cipher:
        found = findings.floods().get(1)
    return found.cost if found else CpuCost()


def _cores_here(findings: SpeedTestResult) -> float:
    """Return how many cores' work all of them do: twins share one, and others may take some."""
    cores = float(findings.here.cpus or 1)
    together = findings.value(StageResult.HASH, MD5_ALL)
    return min(cores, together * _checksum(findings)) if together else cores


def _cores_of_both(findings: SpeedTestResult) -> float:
    """Return how many cores there are for both sides, where these are one computer.

    What only we are kept from, by a quota, is there for the other side.
    """
    here, there = findings.here, findings.there
    idle = (here.cpus or 1) * (1 - (here.busy or 0.0))
    return max(idle, _cores_here(findings)) + min(here.others, there.cpus or 0)


def _cores_there(findings: SpeedTestResult, way: TransferMode) -> float:
    """Return how many of the host's cores work for us: no more than a flood that they held back."""
    cores = float(min(way.channels, findings.there.cpus or way.channels))
    for number, flood in findings.floods().items():
        if number == way.channels and _name_wire(findings, number) is StageResult.SERVER_CPU:
            cores = min(cores, (flood.cost.there or cores) * flood.value)
    return cores


def _wire(findings: SpeedTestResult, way: TransferMode) -> Iterator[StageCost]:
    """Yield what the way takes, unless the flood was as fast as the processors are.

    Where either side was at work, or ready for it, nearly all the time, its processors are the
    limit: others take their share. Near the ceiling that the server's window sets, further
    channels are what is missing.
    """
    floods = findings.floods()
    if not floods:
        return
    streams = way.channels * (_STRIPES if way.striped else 1)
    fewer = [number for number in floods if number <= streams]
    number = max(fewer, default=min(floods))
    needed = inverse(floods[number].value)
    plain = TransferMode(findings.cipher, number)
    if _flood_needs(findings, plain) >= _EXPLAINED * needed:
        return
    stage = _name_wire(findings, number)
    yield StageCost(stage, needed * way.shrunk * _compare(findings, way.cipher, stage))


def is_short_of_processors(findings: SpeedTestResult, channels: int) -> bool:
    """Return whether a processor held back a flood over so many channels."""
    return channels in findings.floods() and _name_wire(findings, channels) in _PROCESSORS


def _name_wire(findings: SpeedTestResult, number: int) -> StageResult:
    """Return what held back a flood over so many channels."""
    flood = findings.floods()[number]
    here, there, here_waited, there_waited = (cost or 0.0 for cost in flood.cost)
    ready = {StageResult.CIPHER: here + here_waited, StageResult.SERVER_CPU: there + there_waited}
    side = max(ready, key=ready.__getitem__)
    machine = findings.here if side is StageResult.CIPHER else findings.there
    cpus = min(number, findings.sessions, machine.cpus or number)
    if ready[side] * flood.value > _EXPLAINED * cpus:
        return side
    ceiling = number * (findings.value(StageResult.NETWORK, CEILING) or 0.0)
    return (
        StageResult.CHANNELS
        if ceiling and flood.value > _EXPLAINED * ceiling
        else StageResult.NETWORK
    )


def _compare(findings: SpeedTestResult, cipher: str, stage: StageResult) -> float:
    """Return how many times what it took such a cipher takes, where a processor was the limit."""
    was, other = (encryption(findings, name) for name in (findings.cipher, cipher))
    match stage:
        case StageResult.CIPHER:
            return other.here / was.here if was.here and other.here else 1.0
        case StageResult.SERVER_CPU:
            return other.there / was.there if was.there and other.there else 1.0
        case _:
            return 1.0


def _flood_needs(findings: SpeedTestResult, way: TransferMode) -> float:
    """Return what the processors need for a byte that is neither read nor has a checksum."""
    here, there, *_ = (cost or 0.0 for cost in encryption(findings, way.cipher))
    apart = max(
        here / min(way.channels, _cores_here(findings)), there / _cores_there(findings, way)
    )
    if not findings.one_machine:
        return apart
    return max(apart, (here + there) / min(2 * way.channels, _cores_of_both(findings)))
