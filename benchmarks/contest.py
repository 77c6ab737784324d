"""The contest of a case: run its contestants in turns, and collect their samples."""

import re
import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from benchmarks.arena import Arena
from benchmarks.corpus import Corpus, Scale
from benchmarks.measure import Command, ContestError, Sample, measure, tree_cpu
from benchmarks.wire import Wire

OURS = "ours"

Say = Callable[[str], None]


class Entrant(NamedTuple):
    """A row of the result: `family` groups the variants of a peer, `checks` is what it verifies."""

    name: str
    family: str
    checks: str = ""
    needs: tuple[str, ...] = ()

    @property
    def is_ours(self) -> bool:
        return self.family.startswith(OURS)

    def missing(self) -> list[str]:
        return [program for program in self.needs if shutil.which(program) is None]


class Contestant(Protocol):
    """One way to do the work of a case."""

    @property
    def entrants(self) -> Sequence[Entrant]:
        """Its rows: the first is its own, the others are further views of its runs."""

    def prepare(self, arena: Arena) -> None:
        """Prepare the first run; not timed."""

    def run(self, arena: Arena) -> Sequence[Sample]:
        """Do the work once and return a sample for each row."""


@dataclass(frozen=True)
class Peer:
    """A contestant made of commands that run in parallel and fill the target."""

    entrant: Entrant
    commands: Callable[[Arena], list[Command]]

    @property
    def entrants(self) -> Sequence[Entrant]:
        return [self.entrant]

    def prepare(self, arena: Arena) -> None:
        """Do nothing."""

    def run(self, arena: Arena) -> Sequence[Sample]:
        arena.clear()
        sample, _ = measure(self.commands(arena), arena.servers)
        arena.check_target()
        return [sample]


class Target(NamedTuple):
    """A target for a figure of ours, relative to the fastest peer, or absolute without peers.

    `at_least` is how many times as fast ours must be, `at_most` the largest share of the figure
    that ours may need. The figure is a field of `Sample` or the name of a fact. Families select the
    rows.
    """

    peers: tuple[str, ...]
    text: str
    at_least: float = 0.0
    at_most: float = 0.0
    figure: str = "seconds"
    ours: str = OURS

    def ratio(self, ours: float, peer: float) -> float:
        return ours / peer if self.at_most else peer / ours

    def is_met(self, ratio: float) -> bool:
        return ratio <= self.at_most if self.at_most else ratio >= self.at_least


@dataclass(frozen=True, kw_only=True)
class Case:
    """One table of docs/measurements.md.

    `unit` is `MB/s`, `files/s` or `s`. `wire` is the network emulation in front of the sshd.
    `on_disk` requires data on a disk instead of in memory. The target may have a file system of its
    own: `mount` is "disk" for a new ext4 in a file, "sshfs" for a folder of the private sshd.
    """

    name: str
    title: str
    unit: str
    make: Callable[[Path, Scale], Corpus]
    contestants: Callable[[Corpus], list[Contestant]]
    targets: tuple[Target, ...]
    describe: Callable[[Scale], str]
    wire: Wire | None = None

    @property
    def names(self) -> set[str]:
        """The names that select it: P6B is also selected by P6."""
        return {self.name, re.sub(r"(?<=\d)[A-Z]$", "", self.name)}

    on_disk: bool = False
    mount: Literal["", "disk", "sshfs"] = ""


@dataclass
class Row:
    """All samples of one entrant."""

    entrant: Entrant
    samples: list[Sample] = field(default_factory=list)
    trouble: str = ""

    def median(self, figure: str) -> float:
        return statistics.median(sample.figure(figure) for sample in self.samples)

    @property
    def seconds(self) -> float:
        return self.median("seconds")


@dataclass(frozen=True)
class Outcome:
    """The result of a case: its rows, and the contestants that were skipped."""

    case: Case
    corpus: Corpus
    rows: list[Row]
    skipped: list[str]

    def best(self, families: Sequence[str]) -> Row | None:
        """Return the fastest row of some families, by its median."""
        rows = [row for row in self.rows if row.entrant.family in families and row.samples]
        return min(rows, key=lambda row: row.seconds, default=None)


def turns(count: int, rounds: int) -> list[list[int]]:
    """Return the order of each round; each one starts with another contestant."""
    step = max(count // max(rounds, 1), 1)
    return [[(place + number * step) % count for place in range(count)] for number in range(rounds)]


def compete(case: Case, arena: Arena, rounds: int, only: str, say: Say) -> Outcome:
    """Run all contestants whose programs are installed, in turns."""
    present, skipped = _sort_out(case.contestants(arena.corpus), only)
    for line in skipped:
        say(line)
    tables = [[Row(entrant) for entrant in one.entrants] for one in present]
    for contestant, rows in zip(present, tables, strict=True):
        _try(rows, partial(contestant.prepare, arena), say)
    for number, order in enumerate(turns(len(present), rounds) if present else [], 1):
        for index in order:
            rows = tables[index]
            if rows[0].trouble:
                continue
            say(f"{case.name} round {number}: {rows[0].entrant.name}")
            _try(rows, partial(_once, present[index], rows, arena), say)
    return Outcome(case, arena.corpus, [row for rows in tables for row in rows], skipped)


def _once(contestant: Contestant, rows: list[Row], arena: Arena) -> None:
    before = tree_cpu(arena.carriers)
    samples = contestant.run(arena)
    if arena.carriers:
        carried = {"CPU of the wire (s)": tree_cpu(arena.carriers) - before}
        samples = [sample._replace(facts={**sample.facts, **carried}) for sample in samples]
    for row, sample in zip(rows, samples, strict=True):
        row.samples.append(sample)


def _try(rows: list[Row], action: Callable[[], None], say: Say) -> None:
    """Exclude a contestant after its first failure; its earlier samples count."""
    try:
        action()
    except ContestError as error:
        say(f"{rows[0].entrant.name} failed: {error}")
        for row in rows:
            row.trouble = str(error)


def _sort_out(contestants: Sequence[Contestant], only: str) -> tuple[list[Contestant], list[str]]:
    present, skipped = [], []
    for contestant in contestants:
        first = contestant.entrants[0]
        if not re.search(only, first.name):
            continue
        missing = first.missing()
        if missing:
            skipped.append(f"Skipped: {first.name}, because {', '.join(missing)} is missing.")
        else:
            present.append(contestant)
    return present, skipped
