"""Growth: time per file and per byte, and memory, for growing amounts of data."""

from benchmarks import corpus
from benchmarks.contest import Case, Contestant, Target
from benchmarks.corpus import Corpus
from benchmarks.growth import EACH_FURTHER, ENGINE, Growing, step
from benchmarks.ours import Sending
from benchmarks.whole import WholeRun

FILES, MIB = "files", "MiB"


def _growing(made: Corpus) -> list[Contestant]:
    return [Growing.over(made, WholeRun(), FILES), Growing.over(made, Sending(2), MIB)]


def _flat(things: str, number: int) -> Target:
    text = f"each further one of the {things} takes as long as before"
    families = step(things, number - 1), step(things, number)
    return Target(families[:1], text, at_most=1.1, figure=EACH_FURTHER, ours=families[1])


def _constant(things: str, figure: str) -> Target:
    text = f"memory does not grow with the {things}"
    return Target((step(things, 1),), text, at_most=1.1, figure=figure, ours=step(things, 2))


MEMORY = Case(
    name="P12",
    title="memory: many files in a run, a giant file that is nearly all holes",
    unit="s",
    make=corpus.make_memory,
    contestants=_growing,
    targets=(
        Target((), "MB of the engine", at_most=300, figure=ENGINE, ours=step(FILES, 2)),
        _constant(FILES, ENGINE),
        _constant(MIB, "memory"),
    ),
    describe=lambda scale: (
        f"up to {scale.growing_counts[-1]:,} files, and a file of "
        f"{scale.growing_holes[-1] >> 30:,} GiB with {scale.sparse_held >> 20} MiB of data"
    ),
)
GROWTH = Case(
    name="P15",
    title="growth, end to end by files, sending alone by bytes",
    unit="s",
    make=corpus.make_growing,
    contestants=_growing,
    targets=(_flat(FILES, 3), _flat(FILES, 4), _flat(MIB, 3)),
    describe=lambda scale: (
        f"up to {scale.growing_counts[-1]:,} files, and a file of up to "
        f"{scale.growing_sizes[-1] >> 20:,} MiB"
    ),
)
