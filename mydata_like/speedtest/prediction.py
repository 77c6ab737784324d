"""Predictions from the results: speed of a run, bottleneck, and faster alternatives.

Every stage takes some seconds for each byte and some for each file. Stages work in parallel, so the
stage that takes the most time for a file is the bottleneck and sets the speed of all. Checksums and
encryption share the processors, so their times add up. Nothing is measured here.
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

TINY: Final = 3_000  # bytes of a tiny file; half of the tiny files of real instruments are smaller
_EXPLAINED: Final = 0.7  # of the total time; a part that takes this much is the cause
_NOTHING: Final = 0.01  # of the bottleneck's time; a stage that takes less is left out
_STRIPES: Final = 2  # streams of a large file at least, see `transfer.crew`
_DISKS: Final = frozenset({StageResult.SERVER_DISK, StageResult.FOLDER})
_PROCESSORS: Final = frozenset({StageResult.HASH, StageResult.CIPHER, StageResult.SERVER_CPU})


class Workload(StrEnum):
    """The kind of files that are sent; each kind can have another bottleneck."""

    LARGE = "large"
    MIXED = "mixed"
    TINY = "tiny"


SIZES: Final[Mapping[Workload, int]] = {
    Workload.LARGE: 256_000_000,
    Workload.MIXED: 260_000,  # the mean of the archive mix in docs/performance.md
    Workload.TINY: TINY,
}


class TransferMode(NamedTuple):
    """The way files are sent: choices that settings or the server's administrator can change.

    `shrunk` is the compressed size of a file as a share of its size. `relieved` is a stage that is
    assumed to be no limit. Large files are `striped` over several streams if the host is far away.
    `usual_batches` assumes the default batch sizes, which are larger than those of the settings.
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
    """The predicted speed of a workload, its bottleneck, and the next slowest stage.

    `rates` has the speed of each stage alone in bytes a second, the slowest first. A stage that was
    not measured is missing.
    """

    workload: Workload
    rates: Mapping[StageResult, float]

    @property
    def rate(self) -> float:
        """Bytes a second; 0 if unknown."""
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


def predict(findings: SpeedTestResult, mode: TransferMode, workload: Workload) -> Prediction:
    """Return the predicted speed of a workload in a transfer mode."""
    if workload is Workload.TINY and findings.floods() and not findings.measured_tiny:
        return Prediction(workload, {})
    size = SIZES[workload]
    far = (findings.value(StageResult.NETWORK, ROUND_TRIP) or 0.0) >= FAR
    mode = mode._replace(striped=far and size >= LARGE)
    slowest: dict[StageResult, float] = {}
    for load in list_costs(findings, mode):
        if load.stage is not mode.relieved and (needed := load.seconds(size)) > 0:
            slowest[load.stage] = max(needed, slowest.get(load.stage, 0.0))
    order = sorted(slowest, key=lambda stage: -slowest[stage])
    counting = [stage for stage in order if slowest[stage] > _NOTHING * slowest[order[0]]]
    return Prediction(workload, {stage: size / slowest[stage] for stage in counting})


def list_costs(findings: SpeedTestResult, mode: TransferMode) -> list[StageCost]:
    """Return the cost of every stage that was measured."""
    value = findings.value
    overheads = _find_overheads(findings)
    sending = [
        load._replace(per_byte=load.per_byte * overheads.get(load.stage, 1.0))
        for load in _send(findings, mode)
    ]
    tiny = carried(TINY_FILES)
    whole = inverse(
        value(StageResult.CHANNELS, in_usual_batches(tiny) if mode.usual_batches else tiny)
    )
    if max(load.seconds(TINY) for load in sending) < _EXPLAINED * whole:
        sending.append(StageCost(StageResult.CHANNELS, per_file=whole))
    record = 0.0 if mode.archived else inverse(value(StageResult.API, RECORDS))
    return [
        _disk(findings, StageResult.SOURCE),
        *sending,
        StageCost(StageResult.API, per_file=record),
    ]


def inverse(rate: float | None) -> float:
    """Return the seconds for one unit at `rate` units a second; 0 if the rate is unknown."""
    return 1 / rate if rate else 0.0


def _disk(findings: SpeedTestResult, stage: StageResult) -> StageCost:
    """Return the cost of a disk."""
    return _by_file(findings, stage, inverse(findings.value(stage, LARGE_FILES)))


def _by_file(findings: SpeedTestResult, stage: StageResult, byte: float) -> StageCost:
    """Return the cost of a stage that takes `byte` seconds for a byte of a large file.

    The measured time of a tiny file includes that of its bytes.
    """
    tiny = inverse(findings.value(stage, TINY_FILES))
    return StageCost(stage, byte, max(0.0, tiny - TINY * byte))


def _folder(findings: SpeedTestResult, mode: TransferMode) -> StageCost:
    """Return the cost of a mounted folder, to which each channel writes one file after another."""
    floods = findings.floods()
    measured = max((number for number in floods if number <= mode.channels), default=1)
    byte = inverse(floods[measured].value) if floods else 0.0
    return _by_file(findings, StageResult.FOLDER, byte)


def _send(findings: SpeedTestResult, mode: TransferMode) -> Iterator[StageCost]:
    """Yield the measured costs of sending a byte."""
    yield from _processors(findings, mode)
    if findings.in_folder:
        yield _folder(findings, mode)
        return
    yield from _wire(findings, mode)
    yield _disk(findings, StageResult.SERVER_DISK)


def _find_overheads(findings: SpeedTestResult) -> Mapping[StageResult, float]:
    """Return the factors by which the real costs of stages exceed the measured ones.

    Processors also read, write and report progress, which the single measurements do not include.
    If they limited the end-to-end measurement of large files, its time is their real cost. A disk
    can take a short sample faster than many bytes, for example into memory, so its factor is never
    below 1.
    """
    together = findings.find(StageResult.CHANNELS, carried(LARGE_FILES))
    slowest = max(_send(findings, TransferMode(findings.cipher, findings.channels)), key=_each_byte)
    if together is None or not slowest.per_byte:
        return {}
    carrying = mean(map(inverse, together.samples))  # all samples have the same number of bytes
    overhead = carrying / slowest.per_byte
    if slowest.stage in _PROCESSORS:
        return dict.fromkeys(_PROCESSORS, overhead)
    return {slowest.stage: max(1.0, overhead)} if slowest.stage in _DISKS else {}


def _each_byte(load: StageCost) -> float:
    return load.per_byte


def _processors(findings: SpeedTestResult, mode: TransferMode) -> Iterator[StageCost]:
    """Yield the costs of the processors on both sides, which can be the same ones.

    A channel's session uses one core on either side. The host's processors also write what arrives.
    The cost is named after the work that takes the most of their time.
    """
    checksum = _checksum(findings)
    here, there, *_ = encryption(findings, mode.cipher)
    disk = findings.find(StageResult.SERVER_DISK, LARGE_FILES)
    writing = (disk.cost.there if disk else None) or 0.0
    packing = inverse(findings.value(StageResult.SOURCE, COMPRESSION)) if mode.shrunk < 1 else 0.0
    work = {
        StageResult.HASH: checksum,
        StageResult.CIPHER: packing + mode.shrunk * (here or 0.0),
        StageResult.SERVER_CPU: mode.shrunk * (there or 0.0) + writing,
    }
    if findings.one_machine:
        cores = min(2 * mode.channels, _cores_of_both(findings))
        yield StageCost(max(work, key=work.__getitem__), sum(work.values()) / cores)
    yield StageCost(
        StageResult.SERVER_CPU, work.pop(StageResult.SERVER_CPU) / _cores_there(findings, mode)
    )
    cores = min(mode.channels, _cores_here(findings))
    yield StageCost(max(work, key=work.__getitem__), sum(work.values()) / cores)


def _checksum(findings: SpeedTestResult) -> float:
    """Return the seconds of one core for the checksum of a byte, without the load of others."""
    found = findings.find(StageResult.HASH, MD5)
    if found is None:
        return 0.0
    return found.cost.here or inverse(found.value)


def encryption(findings: SpeedTestResult, cipher: str) -> CpuCost:
    """Return the processor time that encrypting and sending a byte takes on both sides."""
    found = findings.ciphers().get(cipher)
    if found is None and cipher == findings.cipher:
        found = findings.floods().get(1)
    return found.cost if found else CpuCost()


def _cores_here(findings: SpeedTestResult) -> float:
    """Return the effective number of cores: hyper-threads share one, other programs use some."""
    cores = float(findings.here.cpus or 1)
    together = findings.value(StageResult.HASH, MD5_ALL)
    return min(cores, together * _checksum(findings)) if together else cores


def _cores_of_both(findings: SpeedTestResult) -> float:
    """Return the number of cores for both sides if they are one computer.

    Cores that a quota denies to this program are available to the other side.
    """
    here, there = findings.here, findings.there
    idle = (here.cpus or 1) * (1 - (here.busy or 0.0))
    return max(idle, _cores_here(findings)) + min(here.others, there.cpus or 0)


def _cores_there(findings: SpeedTestResult, mode: TransferMode) -> float:
    """Return the number of the host's cores that we can use, limited by floods they held back."""
    cores = float(min(mode.channels, findings.there.cpus or mode.channels))
    for number, flood in findings.floods().items():
        if number == mode.channels and _name_wire(findings, number) is StageResult.SERVER_CPU:
            cores = min(cores, (flood.cost.there or cores) * flood.value)
    return cores


def _wire(findings: SpeedTestResult, mode: TransferMode) -> Iterator[StageCost]:
    """Yield the cost of the network, unless processors explain the speed of the flood.

    If one side was running or waiting for a processor nearly all the time, its processors are the
    limit. If the flood was near the limit that the server's SSH window sets, more channels would
    help.
    """
    floods = findings.floods()
    if not floods:
        return
    streams = mode.channels * (_STRIPES if mode.striped else 1)
    fewer = [number for number in floods if number <= streams]
    number = max(fewer, default=min(floods))
    needed = inverse(floods[number].value)
    plain = TransferMode(findings.cipher, number)
    if _flood_needs(findings, plain) >= _EXPLAINED * needed:
        return
    stage = _name_wire(findings, number)
    yield StageCost(stage, needed * mode.shrunk * _compare(findings, mode.cipher, stage))


def is_short_of_processors(findings: SpeedTestResult, channels: int) -> bool:
    """Return whether a processor limited a flood over `channels` channels."""
    return channels in findings.floods() and _name_wire(findings, channels) in _PROCESSORS


def _name_wire(findings: SpeedTestResult, number: int) -> StageResult:
    """Return the stage that limited a flood over `number` channels."""
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
    """Return the cost of a cipher relative to the measured one if a processor was the limit."""
    was, other = (encryption(findings, name) for name in (findings.cipher, cipher))
    match stage:
        case StageResult.CIPHER:
            return other.here / was.here if was.here and other.here else 1.0
        case StageResult.SERVER_CPU:
            return other.there / was.there if was.there and other.there else 1.0
        case _:
            return 1.0


def _flood_needs(findings: SpeedTestResult, mode: TransferMode) -> float:
    """Return the processor time for sending a byte, without reading it and its checksum."""
    here, there, *_ = (cost or 0.0 for cost in encryption(findings, mode.cipher))
    apart = max(
        here / min(mode.channels, _cores_here(findings)), there / _cores_there(findings, mode)
    )
    if not findings.one_machine:
        return apart
    return max(apart, (here + there) / min(2 * mode.channels, _cores_of_both(findings)))
