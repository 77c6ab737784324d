"""A mounted folder in the place of a staging host, next to copies by other programs."""

from benchmarks import corpus, peers
from benchmarks.contest import Case, Contestant, Target
from benchmarks.corpus import Corpus
from benchmarks.ours import Sending


def _contestants(_: Corpus) -> list[Contestant]:
    return [
        *(Sending(channels, to_folder=True) for channels in (1, 2, 4, 8)),
        peers.md5sum_cp(1),
        peers.md5sum_cp(2),
        peers.rsync_here(),
    ]


_TARGETS = (
    Target(("md5sum+cp",), "faster than reading twice", 1.0),
    Target(("rsync",), "as fast as rsync", 1.0),
)

LARGE = Case(
    name="P16A",
    title="large files to a mounted folder",
    unit="MB/s",
    make=corpus.make_large,
    contestants=_contestants,
    targets=_TARGETS,
    describe=lambda scale: f"{scale.large_count} files of {scale.large_size >> 20} MiB",
)
TINY = Case(
    name="P16B",
    title="tiny files to a mounted folder",
    unit="files/s",
    make=corpus.make_tiny,
    contestants=_contestants,
    targets=_TARGETS,
    describe=lambda scale: f"{scale.tiny_count:,} files of {scale.tiny_size:,} bytes",
)
