"""A mounted folder in the place of a staging host, next to copies by other programs."""

from dataclasses import replace

from benchmarks import corpus, peers
from benchmarks.cases.tiny import describe_tiny
from benchmarks.contest import Case, Contestant, Target
from benchmarks.corpus import Corpus, Scale
from benchmarks.ours import Sending
from benchmarks.wire import Wire


def _contestants(_: Corpus) -> list[Contestant]:
    return [
        *(Sending(channels, to_folder=True) for channels in (1, 2, 4, 8)),
        peers.md5sum_cp(1),
        peers.md5sum_cp(2),
        peers.rsync_here(),
    ]


def _distant(_: Corpus) -> list[Contestant]:
    return [
        *(Sending(channels, to_folder=True) for channels in (1, 4, 8, 16)),
        *(peers.md5sum_cp(streams) for streams in (1, 2, 8)),
        peers.rsync_here(),
    ]


def _fewer(scale: Scale) -> Scale:
    """Return a fifth of the tiny files: over a network, one copy takes two minutes otherwise."""
    return scale._replace(tiny_count=scale.tiny_count // 5)


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
    describe=describe_tiny,
)
ON_DISK = replace(
    TINY, name="P16C", title="tiny files to a mounted disk", on_disk=True, mount="disk"
)
DISTANT = replace(
    TINY,
    name="P16D",
    title="tiny files to a folder mounted over a network",
    make=lambda root, scale: corpus.make_tiny_folders(root, _fewer(scale)),
    contestants=_distant,
    describe=lambda scale: f"{describe_tiny(_fewer(scale))}, 1 ms round trip",
    wire=Wire(round_trip=0.001),
    mount="sshfs",
)
LARGE_DISTANT = replace(
    LARGE,
    name="P16E",
    title="large files to a folder mounted over a network",
    wire=Wire(round_trip=0.001),
    mount="sshfs",
)
