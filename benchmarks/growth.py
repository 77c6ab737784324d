"""One of our contestants over ever larger parts of a corpus: what the next file or MiB costs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from benchmarks.arena import Arena
from benchmarks.contest import OURS, Contestant, Entrant
from benchmarks.corpus import Corpus
from benchmarks.measure import Sample

EACH_FURTHER = "µs for each further one"
CPU_FURTHER = "CPU µs for each further one"
ENGINE = "engine (MB)"


def step(things: str, number: int) -> str:
    """Return the family of a step, as targets name it: the first is number 1."""
    return f"{OURS}, {things} {number}"


@dataclass(frozen=True)
class Growing:
    """Runs a contestant over each part of the corpus named in `things`; a row for each.

    `things` are `files` or `MiB`, and parts are called `100 files`. The start of the program
    and of its channels costs the same whatever comes after it, so each part is compared with
    the one before. The seconds are those of the contestant's last row: for a whole run those
    of its summary.
    """

    contestant: Contestant
    things: str
    parts: tuple[str, ...]

    @classmethod
    def over(cls, corpus: Corpus, contestant: Contestant, things: str) -> "Growing":
        tops = dict.fromkeys(folder.partition("/")[0] for folder in corpus.folders)
        return cls(contestant, things, tuple(top for top in tops if top.endswith(f" {things}")))

    @property
    def entrants(self) -> Sequence[Entrant]:
        last = self.contestant.entrants[-1]
        return [
            Entrant(f"{last.name}: {part}", step(self.things, number), last.checks)
            for number, part in enumerate(self.parts, 1)
        ]

    def prepare(self, arena: Arena) -> None:
        """Everything is new in every run."""

    def run(self, arena: Arena) -> Sequence[Sample]:
        samples = [
            self.contestant.run(replace(arena, corpus=arena.corpus.part(part)))[-1]
            for part in self.parts
        ]
        counts = [int(part.partition(" ")[0]) for part in self.parts]
        growth = [{}, *map(_compare, pairwise(samples), pairwise(counts))]
        return [
            sample._replace(facts={ENGINE: sample.engine / 1e6, **facts})
            for sample, facts in zip(samples, growth, strict=True)
        ]


def _compare(samples: tuple[Sample, Sample], counts: tuple[int, int]) -> dict[str, float]:
    """Return the microseconds that each file or MiB took that the part before did not have."""
    before, after = samples
    more = (counts[1] - counts[0]) / 1e6
    return {
        EACH_FURTHER: (after.seconds - before.seconds) / more,
        CPU_FURTHER: (after.client - before.client) / more,
    }
