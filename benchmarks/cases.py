"""The cases: what is carried, who competes, what ours must reach."""

from benchmarks import corpus, peers
from benchmarks.contest import OURS, Case, Contestant, Target
from benchmarks.corpus import Corpus
from benchmarks.known import KnownRsync, KnownRun
from benchmarks.ours import Sending
from benchmarks.whole import WholeRun


def _large(_: Corpus) -> list[Contestant]:
    scp = [
        peers.scp(streams, mode) for mode in ("scp protocol", "sftp mode") for streams in (1, 2, 4)
    ]
    return [
        *(Sending(channels, batched=False) for channels in (1, 2, 4)),
        WholeRun(f"{OURS}, end to end"),
        *scp,
        peers.scp(1, "sftp mode", cipher=None),
        *(peers.md5sum_scp(streams) for streams in (1, 2)),
        peers.rsync(),
        *(peers.rclone(transfers) for transfers in (2, 4)),
    ]


def _tiny_sending(_: Corpus) -> list[Contestant]:
    return [
        *(Sending(channels, batched=True) for channels in (1, 2)),
        *(peers.tar(streams) for streams in (1, 2, 4)),
        *(peers.scp_folders(mode) for mode in ("scp protocol", "sftp mode")),
        peers.rsync(),
        *(peers.rclone(transfers) for transfers in (4, 16)),
    ]


def _tiny_whole(_: Corpus) -> list[Contestant]:
    return [
        WholeRun(),
        peers.tar(1),
        *(peers.scp_folders(mode) for mode in ("scp protocol", "sftp mode")),
        peers.rsync(),
    ]


def _known(_: Corpus) -> list[Contestant]:
    return [KnownRun(), KnownRsync()]


CASES = (
    Case(
        name="P1",
        title="large files",
        unit="MB/s",
        make=corpus.make_large,
        contestants=_large,
        targets=(
            Target(("scp",), "as fast as the best scp, which checks nothing", 0.95),
            Target(("md5sum+scp",), "faster than the same work in two passes", 1.25),
            Target(("rclone",), "faster than rclone", 1.3),
            Target(("rsync",), "faster than rsync", 1.4),
            Target(("scp",), "CPU of the client per byte", at_most=1.5),
        ),
        describe=lambda scale: f"{scale.large_count} files of {scale.large_size >> 20} MiB",
    ),
    Case(
        name="P3",
        title="tiny files, sending alone",
        unit="files/s",
        make=corpus.make_tiny,
        contestants=_tiny_sending,
        targets=(
            Target(("tar",), "faster than tar over ssh", 1.3),
            Target(("tar", "tar, several"), "faster than several of them", 1.1),
            Target(("scp -r",), "faster than scp -r", 5),
            Target(("rclone",), "faster than rclone", 12),
        ),
        describe=lambda scale: f"{scale.tiny_count:,} files of {scale.tiny_size:,} bytes",
    ),
    Case(
        name="P4",
        title="tiny files, end to end: found, sent, registered, verified",
        unit="files/s",
        make=corpus.make_tiny,
        contestants=_tiny_whole,
        targets=(
            Target(("tar",), "not slower than half of tar over ssh, which does less", 0.5),
            Target(("scp -r",), "faster than scp -r", 3),
        ),
        describe=lambda scale: f"{scale.tiny_count:,} files of {scale.tiny_size:,} bytes",
    ),
    Case(
        name="P7",
        title="nothing changed",
        unit="s",
        make=corpus.make_known,
        contestants=_known,
        targets=(Target(("rsync -n",), "as fast as a dry run of rsync", 1.0),),
        describe=lambda scale: f"{scale.known_count:,} files of {scale.tiny_size:,} bytes",
    ),
)
