"""`mydata-like get` from a plain host, next to programs that fetch and prove nothing."""

from benchmarks import corpus
from benchmarks.cases.tiny import describe_tiny
from benchmarks.contest import Case, Contestant, Target
from benchmarks.copying import compared
from benchmarks.corpus import Corpus, Scale
from benchmarks.getting import Getting, fetch_by_hand, fetch_rsync, fetch_scp, fetch_tar
from benchmarks.noted import HELD, WIRE, sparse


def _tiny(_: Corpus) -> list[Contestant]:
    peers = (fetch_tar(1), fetch_tar(2), fetch_by_hand(2), fetch_rsync())
    return [compared(it) for it in (Getting(), *peers)]


def _large(_: Corpus) -> list[Contestant]:
    return [compared(it) for it in (Getting(), fetch_scp(1), fetch_scp(2), fetch_by_hand(2))]


def _sparse(_: Corpus) -> list[Contestant]:
    peers = (fetch_tar(1, sparse=True), fetch_rsync("-aS"))
    return [sparse(it) for it in (Getting(), *peers)]


def _half(scale: Scale) -> Scale:
    return scale._replace(large_size=scale.large_size // 2)


TINY = Case(
    name="P20A",
    title="get, tiny files",
    unit="files/s",
    make=corpus.make_tiny,
    contestants=_tiny,
    targets=(Target(("tar, several",), "as fast as two tar, which prove nothing", 1.0),),
    describe=describe_tiny,
)
LARGE = Case(
    name="P20B",
    title="get, large files",
    unit="MB/s",
    make=lambda root, scale: corpus.make_large(root, _half(scale)),
    contestants=_large,
    targets=(
        Target(("scp",), "nearly as fast as the best scp, which proves nothing", 0.9),
        Target(("scp",), "CPU of the client, which hashes as well", at_most=1.2, figure="client"),
    ),
    describe=lambda scale: f"{scale.large_count} files of {_half(scale).large_size >> 20} MiB",
)
SPARSE = Case(
    name="P20C",
    title="get, a sparse file",
    unit="s",
    make=corpus.make_sparse,
    contestants=_sparse,
    targets=(
        Target((), "bytes on the wire per byte of data", at_most=1.05, figure=WIRE),
        Target((), "bytes that are stored here per byte of data", at_most=1.1, figure=HELD),
    ),
    describe=lambda scale: (
        f"one file of {scale.sparse_size >> 20:,} MiB with {scale.sparse_held >> 20} MiB of data"
    ),
)
CASES = (TINY, LARGE, SPARSE)
