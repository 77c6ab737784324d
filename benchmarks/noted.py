"""Contestants with further figures: bytes on the network, on the disk, and stored by the server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.arena import Arena, count_tree
from benchmarks.contest import Contestant, Entrant
from benchmarks.corpus import forget_pages
from benchmarks.measure import ContestError, Sample

WIRE = "on the wire per byte of data"
HELD = "stored per byte of data"
READ = "read from the disk per byte"


@dataclass(frozen=True)
class Noted:
    """A contestant with an action before each run, and further facts for each sample."""

    inner: Contestant
    before: Callable[[Arena], None]
    note: Callable[[Arena, Sample], dict[str, float]]

    @property
    def entrants(self) -> Sequence[Entrant]:
        return self.inner.entrants

    def prepare(self, arena: Arena) -> None:
        self.inner.prepare(arena)

    def run(self, arena: Arena) -> Sequence[Sample]:
        self.before(arena)
        samples = self.inner.run(arena)
        return [
            sample._replace(facts=sample.facts | self.note(arena, sample)) for sample in samples
        ]


def cold(contestant: Contestant) -> Noted:
    """Drop the files from the page cache before each run; measure the bytes read from the disk."""
    return Noted(contestant, lambda arena: forget_pages(arena.corpus), _note_disk)


def sparse(contestant: Contestant) -> Noted:
    """Measure the bytes sent and the bytes stored by the server, per byte outside holes."""
    return Noted(contestant, lambda arena: None, _note_holes)


def _note_disk(arena: Arena, sample: Sample) -> dict[str, float]:
    if not sample.disk:
        raise ContestError("no bytes read from a disk: not a disk, or no accounting")
    return {READ: sample.disk / arena.corpus.held}


def _note_holes(arena: Arena, sample: Sample) -> dict[str, float]:
    stored = sum(count_tree(place)[2] for place in (arena.target, arena.whole))
    return {WIRE: sample.loopback / arena.corpus.held, HELD: stored / arena.corpus.held}
