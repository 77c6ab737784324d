"""A contestant of ours with growing parts of a corpus: the cost of each further file or MiB."""

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
    """Return the family of a step, as in targets; the first is number 1."""
    return f"{OURS}, {things} {number}"


@dataclass(frozen=True)
class Growing:
    """A contestant that runs with each part of the corpus of one kind; each part has a row.

    `things` is `files` or `MiB`; a part has a name such as `100 files`. The start of the program
    and of its channels always costs the same, so each part is compared with the previous one. The
    seconds are those of the contestant's last row, which for a whole run is its summary.
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
        """Do nothing: every run starts from scratch."""

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
    """Return the microseconds for each file or MiB that the previous part did not have."""
    before, after = samples
    more = (counts[1] - counts[0]) / 1e6
    return {
        EACH_FURTHER: (after.seconds - before.seconds) / more,
        CPU_FURTHER: (after.client - before.client) / more,
    }
