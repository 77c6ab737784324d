"""Tiny files, and the mix of sizes in an archive, where most files are tiny."""

from benchmarks import corpus, peers
from benchmarks.contest import OURS, Case, Contestant, Target
from benchmarks.corpus import Corpus, Scale
from benchmarks.ours import Sending
from benchmarks.whole import WholeRun

_MODES = ("scp protocol", "sftp mode")
_END_TO_END = f"{OURS}, end to end"


def _sending(_: Corpus) -> list[Contestant]:
    return [*(Sending(channels) for channels in (1, 2)), *_peers()]


def _whole(_: Corpus) -> list[Contestant]:
    return [
        WholeRun(),
        peers.by_hand(2, "tar"),
        peers.tar(1),
        *(peers.scp_folders(mode) for mode in _MODES),
        peers.rsync(),
    ]


def _mixed(_: Corpus) -> list[Contestant]:
    sending = (Sending(channels) for channels in (1, 2, 4, 8))
    by_hand = peers.by_hand(2, "tar")
    return [*sending, WholeRun(_END_TO_END), by_hand, peers.by_hand(1, "rsync"), *_peers()]


def _peers() -> list[Contestant]:
    return [
        *(peers.tar(streams) for streams in (1, 2, 3, 4)),
        *(peers.scp_folders(mode) for mode in _MODES),
        peers.sftp(),
        *(peers.lftp(parallel) for parallel in (4, 16)),
        peers.rsync(),
        *(peers.rclone(transfers) for transfers in (4, 16)),
        peers.rclone_default(),
    ]


def describe_tiny(scale: Scale) -> str:
    """Return number and size of the tiny files."""
    return f"{scale.tiny_count:,} files of {scale.tiny_size:,} bytes"


SENDING = Case(
    name="P3",
    title="tiny files, sending alone",
    unit="files/s",
    make=corpus.make_tiny,
    contestants=_sending,
    targets=(
        Target(("tar",), "faster than tar over ssh", 1.3),
        Target(("tar", "tar, several"), "faster than several of them", 1.1),
        Target(("scp -r",), "faster than scp -r", 5),
        Target(("rclone",), "faster than rclone", 12),
    ),
    describe=describe_tiny,
)
WHOLE = Case(
    name="P4",
    title="tiny files, end to end: found, sent, registered, verified",
    unit="files/s",
    make=corpus.make_tiny,
    contestants=_whole,
    targets=(
        Target(("by hand",), "faster than by hand", 1.1),
        Target(("scp -r",), "faster than scp -r", 3),
        Target(("rsync",), "P14: from a cold start not slower than rsync", 1.0),
    ),
    describe=describe_tiny,
)
MIXED = Case(
    name="P5",
    title="an archive's files, most of them tiny, most bytes in few",
    unit="MB/s",
    make=corpus.make_mixed,
    contestants=_mixed,
    targets=(
        Target(
            ("tar", "tar, several", "scp -r", "sftp", "lftp", "rsync", "rclone"),
            "faster than the fastest peer",
            1.2,
        ),
        Target(
            ("tar", "tar, several"), "sending, nearly as fast as tar, which checks nothing", 0.8
        ),
        Target(("by hand",), "the whole run, faster than by hand", 1.1, ours=_END_TO_END),
        Target(("rsync",), "P14: from a cold start not slower than rsync", 1.0, ours=_END_TO_END),
    ),
    describe=lambda scale: f"{scale.mixed_count:,} files of all sizes",
)
