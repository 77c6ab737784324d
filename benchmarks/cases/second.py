"""Second runs: no file has changed since the first run, or one in a thousand."""

from benchmarks import corpus
from benchmarks.contest import Case, Contestant, Target
from benchmarks.corpus import Corpus, Scale
from benchmarks.growth import ENGINE
from benchmarks.known import REQUESTS, KnownRsync, KnownRun
from benchmarks.known import UNCHANGED as SAME


def _unchanged(_: Corpus) -> list[Contestant]:
    return [KnownRun(), KnownRsync()]


def _modified(_: Corpus) -> list[Contestant]:
    return [KnownRun(modify=True), KnownRsync(modify=1000)]


def _describe(scale: Scale) -> str:
    return f"{scale.known_count:,} files of {scale.tiny_size:,} bytes"


UNCHANGED = Case(
    name="P7",
    title="nothing changed, and no byte sent",
    unit="s",
    make=corpus.make_known,
    contestants=_unchanged,
    targets=(
        Target(("rsync -n",), "as fast as a dry run of rsync", 1.0),
        Target((), "requests for each dataset", at_most=1, figure=REQUESTS),
        Target((), "P12: MB of the engine that has them all", at_most=300, figure=ENGINE),
    ),
    describe=_describe,
)
MODIFIED = Case(
    name="P8",
    title="one file in a thousand modified",
    unit="s",
    make=corpus.make_known,
    contestants=_modified,
    targets=(
        Target(("rsync",), "as fast as rsync, which sends the same files", 1.0),
        Target((SAME,), "not much more than where nothing changed", at_most=1.5),
    ),
    describe=_describe,
)
