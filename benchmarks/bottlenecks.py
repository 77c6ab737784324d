"""Check the speed test: whether it finds known bottlenecks, and what its advice gains in real runs.

    python -m benchmarks.bottlenecks [--rounds 20] [--seed 1] [--only NAME] [--sweep] [--json FILE]

Each round creates one random bottleneck, runs `mydata-like doctor --quick` and then `mydata-like
run` with the same bottleneck. With `--sweep`, a recommended setting is applied, and the speed of a
run with it is compared with the speeds of all ciphers and numbers of channels.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from benchmarks.corpus import Scale, make_large, make_tiny
from benchmarks.groups import may_hold_back
from benchmarks.injection import BOTTLENECKS, Injection
from benchmarks.measure import ContestError
from benchmarks.report import table
from benchmarks.site import Plan, Site, fix

_BEST = 0.95  # the share of the sweep's best that a good recommendation reaches
_SCALE = Scale(large_count=2, large_size=256 * 2**20, tiny_count=5000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One bottleneck, the result of the speed test, and the speed of the run.

    `together` is the speed at which the test sent large files; a run of tiny ones has other units.
    Speeds are bytes a second. `sweep` has the speed of each cipher and number of channels. `turns`
    are pairs of speeds: with the recommendation, and with the best of the sweep.
    """

    kind: str
    text: str
    limit: str
    together: float
    carried: float
    advice: list[str]
    busy: float | None
    sweep: dict[str, float] = field(default_factory=dict)
    turns: list[tuple[float, float]] = field(default_factory=list)
    findings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        return self.limit in BOTTLENECKS[self.kind].right

    @property
    def reached(self) -> float:
        """The speed with the recommendation as a share of the sweep's best; 0 without a sweep."""
        if not self.turns:
            return 0.0
        advised, best = zip(*self.turns, strict=True)
        return float(median(advised) / median(best))


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    # On SIGTERM, exit normally, so that disks and files in memory are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    chosen = draw(options.seed, options.rounds, options.only, held_back=may_hold_back())
    directory = Path(tempfile.mkdtemp(prefix="mydata-like-bottlenecks-", dir=options.directory))
    rounds: list[Round] = []
    failed = False
    try:
        large = make_large(directory / "large", _SCALE)
        tiny = make_tiny(directory / "tiny", _SCALE)
        plan = Plan(directory / "round", large, tiny, options.seconds, options.sweep)
        print("\n".join(table(_HEAD, [])), flush=True)
        for kind, injection in chosen:
            try:
                rounds.append(carry_out(plan, kind, injection))
            except ContestError as error:
                failed = True
                print(f"{injection.text}: {error}", file=sys.stderr, flush=True)
                continue
            print(table(_HEAD, [row(rounds[-1])])[-1], flush=True)
            if options.json:
                options.json.write_text(
                    json.dumps(to_record(options.seed, rounds), indent=1) + "\n"
                )
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print("\n".join(["", *summarize(rounds)]))
    return int(failed)


def draw(
    seed: int, rounds: int, only: str = "", *, held_back: bool = True
) -> list[tuple[str, Injection]]:
    """Return the bottleneck of each round; all kinds are used before any is repeated."""
    chance = Random(seed)
    names = [name for name in BOTTLENECKS if only in ("", name)]
    if not names:
        raise SystemExit(f"There is no bottleneck {only}: {', '.join(BOTTLENECKS)}.")
    if not held_back:
        names = [name for name in names if not BOTTLENECKS[name].held_back]
    chosen: list[str] = []
    while len(chosen) < rounds:
        chosen += chance.sample(names, len(names))
    return [(name, BOTTLENECKS[name].draw(chance)) for name in chosen[:rounds]]


def carry_out(plan: Plan, kind: str, injection: Injection) -> Round:
    """Inject a bottleneck, run the speed test and an upload, and optionally a sweep."""
    bottleneck = BOTTLENECKS[kind]
    applied = plan.sweep and bottleneck.advised
    with ExitStack() as stack:
        site = Site(plan, bottleneck, injection, stack)
        found = site.ask(apply=applied)
        carried = site.carry()
        sweep = dict(site.sweep()) if applied else {}
        turns = []
        if sweep and found["proof"]:
            best = max(sweep, key=lambda one: sweep[one])
            turns = list(site.compare(found["proof"]["changes"], fix(best)))
    workload = "tiny" if bottleneck.tiny else "large"
    verdict = found["verdict"]
    (found_for,) = [one for one in verdict["workloads"] if one["workload"] == workload]
    return Round(
        kind=kind,
        text=injection.text,
        limit=found_for["limit"],
        together=0.0 if bottleneck.tiny else found_for["together"] or 0.0,
        carried=carried,
        advice=[one["code"] for one in verdict["advice"] if one["changes"]],
        busy=found["findings"]["here"]["busy"],
        sweep=sweep,
        turns=turns,
        findings=found,
    )


_HEAD = ("kind", "bottleneck", "limit found", "right", "together", "carried",
         "advice", "of the sweep's best", "busy before")  # fmt: skip


def row(done: Round) -> list[str]:
    """Return a row of the table, speeds in MB/s."""
    best = max(done.sweep, key=lambda one: done.sweep[one]) if done.turns else ""
    busy = "" if done.busy is None else f"{done.busy:.0%}"
    return [
        *(done.kind, done.text, done.limit, "yes" if done.right else "NO"),
        *(f"{done.together / 1e6:.1f}", f"{done.carried / 1e6:.1f}"),
        ", ".join(done.advice) or "-",
        f"{done.reached:.0%} of {best}" if best else "-",
        busy,
    ]


def summarize(rounds: Sequence[Round]) -> list[str]:
    """Return a table of the results of all rounds and their targets."""
    right = sum(done.right for done in rounds)
    swept = [done.reached for done in rounds if done.sweep]  # 0 without a recommendation
    lines = [["slowest part right", ">= 95 %", _part(right, len(rounds))]]
    if swept:
        good = sum(each >= _BEST for each in swept)
        lines.append([f"after the advice, {_BEST:.0%} of the best", "all", _part(good, len(swept))])
    return table(("what", "wanted", "found"), lines)


def _part(some: int, all_: int) -> str:
    return f"{some} of {all_} ({some / all_:.0%})" if all_ else "-"


def to_record(seed: int, rounds: Sequence[Round]) -> Mapping[str, object]:
    """Return all rounds as plain values for JSON."""
    own = ("right", "reached")
    records = [asdict(one) | {name: getattr(one, name) for name in own} for one in rounds]
    return {"seed": seed, "rounds": records}


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bottlenecks", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=20, help="number of bottlenecks to inject")
    add("--seed", type=int, default=1, help="seed of the random choice")
    add("--only", default="", help=f"only this kind: {', '.join(BOTTLENECKS)}")
    add(
        "--sweep",
        action="store_true",
        help="apply recommendations, and compare them with all settings",
    )
    add("--seconds", type=float, default=8, help="longest time that a run sends")
    add("--json", type=Path, help="also write all rounds to this file")
    add("--directory", type=Path, default=Path("/dev/shm"), help="folder of the test data")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
