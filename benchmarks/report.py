"""The report of a benchmark: Markdown for readers, JSON for programs."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import psutil

from benchmarks.contest import OURS, Outcome, Row, Target
from benchmarks.measure import Sample

_HEAD = (
    "contestant", "checks", "median", "min - max", "ours is", "client CPU", "server CPU",
    "cores busy", "memory",
)  # fmt: skip


class Judgement(NamedTuple):
    """The result of a target: the ratio of the medians, and that of each round."""

    ours: str
    peer: str
    ratio: float
    rounds: list[float]
    met: bool


def to_markdown(outcome: Outcome) -> str:
    """Return a case's tables; every figure is the median of the rounds."""
    case = outcome.case
    lines = [f"## {case.name}: {case.title}", "", _subtitle(outcome), ""]
    ranked = sorted(outcome.rows, key=lambda row: row.seconds if row.samples else float("inf"))
    lines += table(_HEAD, [_row(outcome, row) for row in ranked])
    verdicts = [_verdict(outcome, target) for target in case.targets]
    lines += ["", *table(("target", "wanted", "measured", "per round", "met"), verdicts)]
    notes = [line for row in ranked for line in _facts(row)] + outcome.skipped
    return "\n".join([*lines, *([""] if notes else []), *(f"- {note}" for note in notes), ""])


def to_record(outcome: Outcome) -> dict[str, object]:
    """Return a case's results as plain values for JSON, every sample of every round."""
    return {
        "case": outcome.case.name,
        "title": outcome.case.title,
        "unit": outcome.case.unit,
        "rounds": max((len(row.samples) for row in outcome.rows), default=0),
        "files": len(outcome.corpus.files),
        "bytes": outcome.corpus.bytes,
        "folders": len(outcome.corpus.folders),
        "rows": [
            {
                **row.entrant._asdict(),
                **(summarize(outcome, row) if row.samples else {}),
                "trouble": row.trouble,
                "samples": [sample._asdict() for sample in row.samples],
            }
            for row in outcome.rows
        ],
        "targets": [_target_record(outcome, target) for target in outcome.case.targets],
        "skipped": outcome.skipped,
    }


def _subtitle(outcome: Outcome) -> str:
    rounds = max((len(row.samples) for row in outcome.rows), default=0)
    corpus = outcome.corpus
    return (
        f"{len(corpus.files):,} files, {corpus.bytes / 1e6:,.0f} MB, {rounds} rounds. Speed in "
        f"{outcome.case.unit}; CPU in {_cpu_unit(outcome)}; memory in MB."
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    cells = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]


class Figures(TypedDict):
    """The figures of a row: median, lowest and highest speed, CPU time, MB of memory."""

    name: str
    checks: str
    speed: tuple[float, float, float]
    client_cpu: float
    server_cpu: float
    busy: float
    memory: float


def summarize(outcome: Outcome, row: Row) -> Figures:
    """Return the figures of a row with samples, in the units of its case."""
    speeds = [_speed(outcome, sample) for sample in row.samples]
    scale = _cpu_scale(outcome)
    return {
        "name": row.entrant.name,
        "checks": row.entrant.checks,
        "speed": (statistics.median(speeds), min(speeds), max(speeds)),
        "client_cpu": row.median("client") * scale,
        "server_cpu": row.median("server") * scale,
        "busy": statistics.median(map(_busy, row.samples)),
        "memory": row.median("memory") / 1e6,
    }


def _row(outcome: Outcome, row: Row) -> list[str]:
    entrant = row.entrant
    if not row.samples:
        return [entrant.name, entrant.checks or "-", "failed", *["-"] * 6]
    figures = summarize(outcome, row)
    speed, lowest, highest = figures["speed"]
    return [
        entrant.name,
        entrant.checks or "-",
        number(speed) + (" (failed later)" if row.trouble else ""),
        f"{number(lowest)} - {number(highest)}",
        _times(outcome, row),
        number(figures["client_cpu"]),
        number(figures["server_cpu"]),
        f"{figures['busy']:.0%}",
        f"{figures['memory']:.0f}",
    ]


def _times(outcome: Outcome, row: Row) -> str:
    best = outcome.best([OURS])
    if best is None or row.entrant.is_ours:
        return "-"
    return f"x {row.seconds / best.seconds:.2f}"


def judge(outcome: Outcome, target: Target) -> Judgement | None:
    """Compare our fastest row with the peers' fastest; None if a figure is missing."""
    ours, peer = outcome.best([target.ours]), outcome.best(target.peers)
    if ours is None or (target.peers and peer is None):
        return None
    mine = [sample.figure(target.figure) for sample in ours.samples]
    theirs = (
        [sample.figure(target.figure) for sample in peer.samples] if peer else [1.0] * len(mine)
    )
    if not all([*mine, *theirs]):
        return None
    rounds = [target.ratio(*pair) for pair in zip(mine, theirs, strict=False)]
    ratio = target.ratio(statistics.median(mine), statistics.median(theirs))
    name = peer.entrant.name if peer else ""
    return Judgement(ours.entrant.name, name, ratio, rounds, met=target.is_met(ratio))


def _verdict(outcome: Outcome, target: Target) -> list[str]:
    wanted = f"<= {target.at_most:g}" if target.at_most else f">= {target.at_least:g}"
    judged = judge(outcome, target)
    if judged is None:
        return [target.text, wanted, "not measured", "-", "-"]
    against = f" against {judged.peer}" if judged.peer else ""
    spread = f"{number(min(judged.rounds))} - {number(max(judged.rounds))}"
    verdict = [number(judged.ratio), spread, "yes" if judged.met else "no"]
    return [f"{target.text} ({judged.ours}{against})", wanted, *verdict]


def _target_record(outcome: Outcome, target: Target) -> dict[str, object]:
    judged = judge(outcome, target)
    return {**target._asdict(), "measured": judged._asdict() if judged else None}


def _facts(row: Row) -> list[str]:
    names = dict.fromkeys(name for sample in row.samples for name in sample.facts)
    shown = [f"{name} {number(row.median(name))}" for name in names]
    lines = [f"{row.entrant.name}: {', '.join(shown)}."] if shown else []
    return lines + ([f"{row.entrant.name} failed: {row.trouble}"] if row.trouble else [])


def _speed(outcome: Outcome, sample: Sample) -> float:
    match outcome.case.unit:
        case "MB/s":
            return outcome.corpus.bytes / 1e6 / sample.seconds
        case "files/s":
            return len(outcome.corpus.files) / sample.seconds
        case _:
            return sample.seconds


def _cpu_unit(outcome: Outcome) -> str:
    return {"MB/s": "seconds per GiB", "files/s": "seconds per 10,000 files"}.get(
        outcome.case.unit, "seconds"
    )


def _cpu_scale(outcome: Outcome) -> float:
    match outcome.case.unit:
        case "MB/s":
            return 2**30 / outcome.corpus.bytes
        case "files/s":
            return 10_000 / len(outcome.corpus.files)
        case _:
            return 1.0


def _busy(sample: Sample) -> float:
    """Return the share of all cores that both ends used; at 100 % the machine is the limit."""
    cores = psutil.cpu_count() or 1
    seconds = sample.facts.get("whole process (s)", sample.seconds)
    return (sample.client + sample.server) / (seconds * cores)


def number(value: float) -> str:
    """Return a figure with three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
