"""A distant server or a slow network, and the effect of compression there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from benchmarks import corpus, peers
from benchmarks.arena import Arena
from benchmarks.contest import OURS, Case, Contestant, Entrant, Peer, Target
from benchmarks.corpus import Corpus, Scale
from benchmarks.measure import Sample
from benchmarks.ours import Sending
from benchmarks.plain import PlainTcp
from benchmarks.whole import WholeRun
from benchmarks.wire import Wire

FAR = Wire(round_trip=0.028)
FARTHER = Wire(round_trip=0.04)
SLOW = Wire(rate=100e6 / 8)
_CHANNELS = (1, 2, 4, 8)
_UNCOMPRESSED = f"{OURS}, uncompressed"
_NEVER = (("compression", "never"),)


class _Data(NamedTuple):
    make: Callable[[Path, Scale], Corpus]
    describe: Callable[[Scale], str]


@dataclass(frozen=True)
class OneFolder:
    """A peer that waits for every file: it sends one folder, and its time is extrapolated."""

    peer: Contestant

    @property
    def entrants(self) -> Sequence[Entrant]:
        [entrant] = self.peer.entrants
        return [entrant._replace(name=f"{entrant.name}, by its first folder")]

    def prepare(self, arena: Arena) -> None:
        self.peer.prepare(arena)

    def run(self, arena: Arena) -> Sequence[Sample]:
        whole = arena.corpus
        part = whole.part(whole.folders[0])._replace(folders=("",))
        times = len(whole.files) / len(part.files)
        [sample] = self.peer.run(replace(arena, corpus=part))
        return [
            sample._replace(
                seconds=sample.seconds * times,
                client=sample.client * times,
                server=sample.server * times,
            )
        ]


def _tiny_far(_: Corpus) -> list[Contestant]:
    return [
        *(Sending(channels) for channels in _CHANNELS),
        *(peers.tar(streams) for streams in (1, 4)),
        *(OneFolder(peers.scp_folders(mode)) for mode in ("scp protocol", "sftp mode")),
        OneFolder(peers.rclone(16)),
        peers.rsync(),
    ]


def _large_far(_: Corpus) -> list[Contestant]:
    return [
        *(Sending(channels) for channels in _CHANNELS),
        _alone(peers.scp(1, "scp protocol")),
        *(peers.scp(streams, "scp protocol") for streams in (2, 4, 8)),
        peers.tar(1),
        peers.rsync(),
        *(peers.rclone(transfers) for transfers in (4, 8)),
    ]


def _single_far(_: Corpus) -> list[Contestant]:
    return [
        Sending(1),
        *(peers.scp(1, mode) for mode in ("scp protocol", "sftp mode")),
        peers.tar(1),
        peers.rsync(),
        peers.rclone(4),
    ]


def _tiny_slow(_: Corpus) -> list[Contestant]:
    return [
        *(Sending(channels) for channels in (1, 2)),
        peers.tar(1),
        peers.scp_folders("scp protocol"),
        peers.rsync(),
        peers.rclone(16),
    ]


def _large_slow(_: Corpus) -> list[Contestant]:
    return [
        PlainTcp(),
        *(Sending(channels) for channels in (1, 2, 4)),
        _alone(peers.scp(1, "scp protocol")),
        peers.scp(4, "scp protocol"),
        peers.rsync(),
        peers.rclone(4),
    ]


def _compressing(_: Corpus) -> list[Contestant]:
    return [
        *(Sending(channels) for channels in (1, 2)),
        *(Sending(channels, _UNCOMPRESSED, settings=_NEVER) for channels in (1, 2)),
        *(peers.scp_compressed(streams) for streams in (1, 2)),
        peers.scp(2, "scp protocol"),
        peers.tar_compressed(),
        peers.rsync(),
        peers.rsync("-aWz"),
    ]


def _compressing_tiny(_: Corpus) -> list[Contestant]:
    return [
        *(Sending(channels) for channels in (1, 2)),
        *(Sending(channels, _UNCOMPRESSED, settings=_NEVER) for channels in (1, 2)),
    ]


def _whole_far(_: Corpus) -> list[Contestant]:
    return [WholeRun(distant=True), peers.rsync()]


def _alone(peer: Peer) -> Peer:
    """Give a single scp a separate family."""
    return replace(peer, entrant=peer.entrant._replace(family="scp, one"))


def _part(make: Callable[[Path, Scale], Corpus], parts: int) -> _Data:
    """Return data with large files of a fraction of their size, for a slow network."""

    def smaller(scale: Scale) -> Scale:
        return scale._replace(large_size=scale.large_size // parts)

    return _Data(
        lambda root, scale: make(root, smaller(scale)),
        lambda scale: f"{scale.large_count} files of {smaller(scale).large_size >> 20} MiB",
    )


def _few(scale: Scale) -> Scale:
    """Return a scale with a twentieth of the tiny files."""
    return scale._replace(tiny_count=scale.tiny_count // 20)


_TINY = _Data(
    corpus.make_tiny, lambda scale: f"{scale.tiny_count:,} files of {scale.tiny_size:,} bytes"
)
_TINY_FOLDERS = _TINY._replace(make=corpus.make_tiny_folders)
_FEW = _Data(
    lambda root, scale: corpus.make_tiny(root, _few(scale)),
    lambda scale: f"{_few(scale).tiny_count} files of {scale.tiny_size:,} bytes",
)
_TINY_TEXT = _TINY._replace(make=corpus.make_tiny_text)
_SINGLE = _part(corpus.make_single, 16)
_QUARTER = _part(corpus.make_large, 4)
_SIXTEENTH = _part(corpus.make_large, 16)
_TEXT = _part(corpus.make_text, 16)
_MORE_TEXT = _part(corpus.make_text, 4)


CASES = (
    Case(
        name="P2B",
        title="one large file, 28 ms round trip, where a stream's window is the limit",
        unit="MB/s",
        make=_SINGLE.make,
        describe=lambda scale: f"one file of {scale.large_count * scale.large_size >> 24} MiB",
        contestants=_single_far,
        targets=(Target(("scp",), "faster than scp, by several streams of one session", 1.2),),
        wire=FAR,
    ),
    Case(
        name="P6A",
        title="tiny files, 28 ms round trip",
        unit="files/s",
        **_TINY_FOLDERS._asdict(),
        contestants=_tiny_far,
        targets=(
            Target(("tar",), "as fast as tar over ssh, which waits for nothing", 0.9),
            Target(("scp -r",), "faster than scp -r", 20),
        ),
        wire=FAR,
    ),
    Case(
        name="P6B",
        title="large files, 28 ms round trip",
        unit="MB/s",
        **_QUARTER._asdict(),
        contestants=_large_far,
        targets=(
            Target(("scp, one",), "faster than one scp", 1.5),
            Target(("scp, one", "scp"), "as fast as several of them", 1.0),
        ),
        wire=FAR,
    ),
    Case(
        name="P6C",
        title="tiny files, 100 Mbit/s",
        unit="files/s",
        **_TINY._asdict(),
        contestants=_tiny_slow,
        targets=(Target(("tar",), "as fast as tar over ssh", 0.9),),
        wire=SLOW,
    ),
    Case(
        name="P6D",
        title="large files, 100 Mbit/s",
        unit="MB/s",
        **_SIXTEENTH._asdict(),
        contestants=_large_slow,
        targets=(Target(("wire",), "fills the wire, as one plain connection does", 0.95),),
        wire=SLOW,
    ),
    Case(
        name="P6E",
        title="few tiny files, 40 ms round trip to the staging host and the server, the whole "
        "command",
        unit="s",
        **_FEW._asdict(),
        contestants=_whole_far,
        targets=(
            Target(("rsync",), "nearly as fast as rsync, which asks no server", 0.75),
            Target((), "seconds of the whole command", at_most=2.0),
        ),
        wire=FARTHER,
    ),
    Case(
        name="P10A",
        title="text, 100 Mbit/s",
        unit="MB/s",
        **_TEXT._asdict(),
        contestants=_compressing,
        targets=(
            Target((_UNCOMPRESSED,), "faster than uncompressed", 2.0),
            Target(("scp -C", "tar --zstd", "rsync"), "as fast as peers that compress", 1.0),
        ),
        wire=SLOW,
    ),
    Case(
        name="P10B",
        title="incompressible data, 100 Mbit/s",
        unit="MB/s",
        **_SIXTEENTH._asdict(),
        contestants=_compressing,
        targets=(Target((_UNCOMPRESSED,), "no slower than uncompressed", 0.97),),
        wire=SLOW,
    ),
    Case(
        name="P10C",
        title="text, no slow wire",
        unit="MB/s",
        **_MORE_TEXT._asdict(),
        contestants=_compressing,
        targets=(Target((_UNCOMPRESSED,), "no slower than uncompressed", 0.97),),
    ),
    Case(
        name="P10D",
        title="tiny files of text, no slow wire",
        unit="files/s",
        **_TINY_TEXT._asdict(),
        contestants=_compressing_tiny,
        targets=(Target((_UNCOMPRESSED,), "no slower than uncompressed", 0.97),),
    ),
)
