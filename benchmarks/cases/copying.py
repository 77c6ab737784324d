"""`mydata-like copy` to a plain host, next to copies that prove nothing, and to proven ones."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from benchmarks import corpus, peers
from benchmarks.cases.distant import FARTHER, OneFolder
from benchmarks.cases.tiny import describe_tiny
from benchmarks.contest import Case, Contestant, Target
from benchmarks.copying import CPU, Copying, compared
from benchmarks.corpus import Corpus, Scale
from benchmarks.known import KnownRsync

_MODES = ("scp protocol", "sftp mode")


def _tiny(_: Corpus, one_by_one: Callable[[Contestant], Contestant] = compared) -> list[Contestant]:
    """Return the contestants for tiny files; some peers carry these one by one."""
    slow = [
        *(peers.scp_folders(mode) for mode in _MODES),
        peers.rclone(16),
        peers.rclone_default(),
    ]
    return [*_all(2), *map(one_by_one, slow)]


def _large(_: Corpus, streams: int = 2) -> list[Contestant]:
    large = [
        *(peers.scp(number, mode) for mode in _MODES for number in range(1, streams + 1)),
        peers.by_hand(streams, "scp"),
        peers.rclone(4),
        peers.rclone_default(),
    ]
    return [*_all(streams), *map(compared, large)]


def _all(streams: int) -> list[Contestant]:
    """Return the contestants of every first copy, with up to `streams` streams."""
    contestants: list[Contestant] = [
        *(Copying(agent) for agent in (False, True)),
        peers.rsync("-a"),
        peers.rsync_twice(),
        *(peers.tar(number) for number in range(1, streams + 1)),
        peers.by_hand(streams, "tar"),
        peers.mscp(2),
    ]
    return [compared(contestant) for contestant in contestants]


def _known(_: Corpus, modify: int = 0) -> list[Contestant]:
    return [
        *(Copying(agent, known=True, modify=modify) for agent in (False, True)),
        *(KnownRsync(modify, proven) for proven in (False, True)),
    ]


def _some(scale: Scale) -> Scale:
    """Return a scale with a few known files."""
    return scale._replace(known_count=scale.known_count * 3 // 100)


def _half(scale: Scale) -> Scale:
    """Return a scale with large files of half their size, and half of the tiny files."""
    return scale._replace(large_size=scale.large_size // 2, tiny_count=scale.tiny_count // 2)


def _describe_many(scale: Scale) -> str:
    return describe_tiny(scale._replace(tiny_count=scale.known_count))


_TARGETS = (
    Target(("by hand",), "nearly as fast as by hand", 0.9),
    Target(("rsync",), "not much slower than rsync, which proves nothing", 0.7),
)

TINY = Case(
    name="P17A",
    title="copy, tiny files",
    unit="files/s",
    make=corpus.make_tiny,
    contestants=_tiny,
    targets=_TARGETS,
    describe=describe_tiny,
)
MANY = replace(
    TINY,
    name="P17B",
    title="copy, many tiny files",
    make=corpus.make_known,
    targets=(
        *_TARGETS,
        Target((), "CPU of the client for each file, in microseconds", at_most=60, figure=CPU),
    ),
    describe=_describe_many,
)
LARGE = Case(
    name="P17C",
    title="copy, large files",
    unit="MB/s",
    make=lambda root, scale: corpus.make_large(root, _half(scale)),
    contestants=_large,
    targets=(
        *_TARGETS,
        Target(("scp",), "nearly as fast as the best scp, which proves nothing", 0.9),
        Target(("scp",), "CPU of the client, which hashes as well", at_most=1.3, figure="client"),
    ),
    describe=lambda scale: f"{scale.large_count} files of {_half(scale).large_size >> 20} MiB",
)
SINGLE = replace(
    LARGE,
    name="P17D",
    title="copy, one large file",
    make=lambda root, scale: corpus.make_single(root, _half(scale)),
    contestants=partial(_large, streams=1),
    describe=lambda scale: f"one file of {scale.large_count * _half(scale).large_size >> 20} MiB",
)
MIXED = replace(
    TINY,
    name="P17E",
    title="copy, an archive's files",
    unit="MB/s",
    make=corpus.make_mixed,
    describe=lambda scale: f"{scale.mixed_count:,} files of all sizes",
)
UNCHANGED = Case(
    name="P17F",
    title="copy, nothing changed",
    unit="s",
    make=corpus.make_known,
    contestants=_known,
    targets=(Target(("rsync -n",), "as fast as a dry run of rsync", 1.0),),
    describe=_describe_many,
)
MODIFIED = replace(
    UNCHANGED,
    name="P17H",
    title="copy, one file in a thousand modified",
    contestants=partial(_known, modify=1000),
    targets=(
        Target(("rsync",), "not much slower than rsync", 0.6),
        Target(("rsync, proven",), "nearly as fast as rsync that reads all files", 0.9),
    ),
)
MODIFIED_FEW = replace(
    MODIFIED,
    name="P17I",
    title="copy, one file in a hundred modified",
    make=lambda root, scale: corpus.make_known(root, _some(scale)),
    contestants=partial(_known, modify=100),
    describe=lambda scale: _describe_many(_some(scale)),
)
DISTANT = replace(
    TINY,
    name="P17G",
    title="copy, tiny files, 40 ms round trip",
    make=lambda root, scale: corpus.make_tiny_folders(root, _half(scale)),
    contestants=partial(_tiny, one_by_one=lambda peer: OneFolder(compared(peer))),
    describe=lambda scale: describe_tiny(_half(scale)),
    wire=FARTHER,
)
CASES = (TINY, MANY, LARGE, SINGLE, MIXED, UNCHANGED, MODIFIED, MODIFIED_FEW, DISTANT)
