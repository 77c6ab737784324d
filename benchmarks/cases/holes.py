"""A sparse file: its holes do not travel, and are holes again on the server."""

from benchmarks import corpus, peers
from benchmarks.contest import OURS, Case, Contestant, Target
from benchmarks.corpus import Corpus
from benchmarks.noted import HELD, WIRE, sparse
from benchmarks.ours import Sending
from benchmarks.whole import WholeRun


def _sparse(_: Corpus) -> list[Contestant]:
    contestants: list[Contestant] = [
        *(Sending(channels) for channels in (1, 2)),
        WholeRun(f"{OURS}, end to end"),
        peers.rsync("-aWS"),
        peers.tar(1, sparse=True),
        peers.scp(1, "sftp mode"),
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
        Target(("tar",), "bytes on the wire beside tar -S", at_most=1.0, figure=WIRE),
    ),
    describe=lambda scale: (
        f"one file of {scale.sparse_size >> 20:,} MiB with {scale.sparse_held >> 20} MiB of data"
    ),
)
