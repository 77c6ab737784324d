"""Files of holes, or of zeros: they are not sent, and become holes on the server."""

from benchmarks import corpus, peers
from benchmarks.contest import OURS, Case, Contestant, Target
from benchmarks.corpus import Corpus
from benchmarks.noted import HELD, WIRE, sparse
from benchmarks.ours import Sending
from benchmarks.whole import WholeRun

_LOOKING = (("find_zeros", True),)
_UNAWARE = f"{OURS}, unaware"


def _sparse(_: Corpus) -> list[Contestant]:
    contestants: list[Contestant] = [
        *(Sending(channels) for channels in (1, 2)),
        WholeRun(f"{OURS}, end to end"),
        peers.rsync("-aWS"),
        peers.tar(1, sparse=True),
        peers.scp(1, "sftp mode"),
    ]
    return [sparse(contestant) for contestant in contestants]


def _hollow(_: Corpus) -> list[Contestant]:
    contestants: list[Contestant] = [
        Sending(1, settings=_LOOKING),
        Sending(1, family=_UNAWARE),
        WholeRun(f"{OURS}, end to end", settings=_LOOKING),
        peers.rsync("-aWS"),
        peers.tar(1, sparse=True),  # detects holes only in files that occupy less than their size
    ]
    return [sparse(contestant) for contestant in contestants]


SPARSE = Case(
    name="P9",
    title="a sparse file",
    unit="s",
    make=corpus.make_sparse,
    contestants=_sparse,
    targets=(
        Target((), "bytes on the wire per byte of data", at_most=1.05, figure=WIRE),
        Target((), "bytes that the server stores per byte of data", at_most=1.05, figure=HELD),
        Target(("tar",), "bytes on the wire compared with tar -S", at_most=1.0, figure=WIRE),
    ),
    describe=lambda scale: (
        f"one file of {scale.sparse_size >> 20:,} MiB with {scale.sparse_held >> 20} MiB of data"
    ),
)

HOLLOW = Case(
    name="P9B",
    title="a file of zeros without holes",
    unit="s",
    make=corpus.make_hollow,
    contestants=_hollow,
    targets=(
        Target((), "bytes on the wire per byte of data", at_most=1.05, figure=WIRE),
        Target((), "bytes that the server stores per byte of data", at_most=1.05, figure=HELD),
        Target((_UNAWARE,), "faster than without looking for zeros", 1.0),
        Target(("rsync", "tar"), "as fast as the fastest peer, which checks nothing", 1.0),
    ),
    describe=lambda scale: (
        f"one file of {scale.hollow_size >> 20:,} MiB with {scale.sparse_held >> 20} MiB of data, "
        "the rest written as zeros"
    ),
)
