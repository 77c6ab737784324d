"""The start of the shortest command and of the window; P4 and P5 include runs from a cold start."""

import sys

from benchmarks import corpus
from benchmarks.contest import Case, Contestant, Entrant, Target
from benchmarks.corpus import Corpus
from benchmarks.starting import VERSION, WINDOW, Painted, Version


def _start(_: Corpus) -> list[Contestant]:
    ours = (sys.executable, "-m", "mydata_like", "--version")
    return [
        Version(Entrant("mydata-like --version", VERSION), ours),
        Painted(),
        Version(Entrant("python -c pass", "python"), (sys.executable, "-c", "pass")),
        Version(Entrant("rsync --version", "rsync", "", ("rsync",)), ("rsync", "--version")),
        Version(Entrant("rclone version", "rclone", "", ("rclone",)), ("rclone", "version")),
    ]


START = Case(
    name="P14",
    title="starting",
    unit="s",
    make=lambda root, scale: corpus.make_tiny(root, scale._replace(tiny_count=1)),
    contestants=_start,
    targets=(
        Target((), "seconds until the version is printed", at_most=0.25, ours=VERSION),
        Target((), "seconds until the window is painted", at_most=1.5, ours=WINDOW),
    ),
    describe=lambda scale: "the start of programs",
)
