"""Large files: several, a single one, from a disk, and next to a busy thread or process."""

from benchmarks import corpus, peers
from benchmarks.contest import OURS, Case, Contestant, Target
from benchmarks.corpus import Corpus, Scale
from benchmarks.noted import READ, cold
from benchmarks.ours import Sending
from benchmarks.whole import WholeRun

_END_TO_END = f"{OURS}, end to end"
_OUTSIDE, _INSIDE = f"{OURS}, a hog outside", f"{OURS}, a hog inside"


def _many(_: Corpus) -> list[Contestant]:
    scp = [
        peers.scp(streams, mode) for mode in ("scp protocol", "sftp mode") for streams in (1, 2, 4)
    ]
    return [
        *(Sending(channels) for channels in (1, 2, 4, 8, 16)),
        WholeRun(_END_TO_END),
        *scp,
        peers.scp(1, "sftp mode", cipher=None),
        *(peers.md5sum_scp(streams) for streams in (1, 2)),
        *(peers.by_hand(streams, "scp") for streams in (1, 2)),
        peers.by_hand(1, "rsync"),
        peers.mscp(2),
        peers.sftp(),
        peers.lftp(4),
        peers.rsync(),
        *(peers.rclone(transfers) for transfers in (2, 4)),
        peers.rclone_default(),
    ]


def _single(_: Corpus) -> list[Contestant]:
    return [
        *(Sending(channels) for channels in (1, 2, 4)),
        WholeRun(_END_TO_END),
        *(peers.scp(1, mode) for mode in ("scp protocol", "sftp mode")),
        peers.md5sum_scp(1),
        peers.sftp(),
        peers.lftp(4),
        peers.tar(1),
        peers.rsync(),
        peers.rclone(4),
        peers.rclone_default(),
    ]


def _read_once(_: Corpus) -> list[Contestant]:
    contestants: list[Contestant] = [
        Sending(2),
        WholeRun(_END_TO_END),
        peers.tar(1),
        peers.rsync(),
    ]
    return [cold(contestant) for contestant in contestants]


def _hog(_: Corpus) -> list[Contestant]:
    return [
        Sending(2),
        Sending(2, _OUTSIDE, "outside"),
        Sending(2, _INSIDE, "inside"),
        WholeRun(),
        WholeRun(f"{_OUTSIDE}, end to end", "outside"),
        WholeRun(f"{_INSIDE}, end to end", "inside"),
    ]


def _describe(scale: Scale) -> str:
    return f"{scale.large_count} files of {scale.large_size >> 20} MiB"


MANY = Case(
    name="P1",
    title="large files",
    unit="MB/s",
    make=corpus.make_large,
    contestants=_many,
    targets=(
        Target(("scp",), "as fast as the best scp, which checks nothing", 0.95),
        Target(("by hand",), "the whole run, faster than by hand", 1.2, ours=_END_TO_END),
        Target(("md5sum+scp",), "faster than the same work in two passes", 1.4),
        Target(("rclone",), "faster than rclone", 1.3),
        Target(("rsync",), "faster than rsync", 1.4),
        Target(("scp",), "CPU of the client, which hashes as well", at_most=1.0, figure="client"),
    ),
    describe=_describe,
)
SINGLE = Case(
    name="P2",
    title="one very large file",
    unit="MB/s",
    make=corpus.make_single,
    contestants=_single,
    targets=(Target(("scp",), "as fast as scp, which checks nothing", 1.0),),
    describe=lambda scale: f"one file of {scale.large_count * scale.large_size >> 20} MiB",
)
READ_ONCE = Case(
    name="P11",
    title="an archive's files, read from a disk",
    unit="MB/s",
    make=corpus.make_mixed,
    contestants=_read_once,
    targets=(
        Target((), "bytes read from the disk per byte uploaded", at_most=1.02, figure=READ),
        Target(("tar",), "reads each byte once, as tar does", at_most=1.02, figure=READ),
        Target(
            ("tar",),
            "the whole run as well",
            at_most=1.02,
            figure=READ,
            ours=_END_TO_END,
        ),
    ),
    describe=lambda scale: f"{scale.mixed_count:,} files of all sizes, on a disk",
    on_disk=True,
)
HOG = Case(
    name="HOG",
    title="a busy thread inside the engine process",
    unit="MB/s",
    make=corpus.make_large,
    contestants=_hog,
    targets=(
        Target(
            (_OUTSIDE,),
            "sending is as fast as with the thread in another process",
            0.9,
            ours=_INSIDE,
        ),
        Target(
            (f"{_OUTSIDE}, end to end, summary",),
            "and so is a whole run, once Python has started",
            0.9,
            ours=f"{_INSIDE}, end to end, summary",
        ),
    ),
    describe=_describe,
)
