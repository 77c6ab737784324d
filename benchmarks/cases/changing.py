"""What a change of the source costs: files that were renamed, appended to, or that grow."""

from collections.abc import Callable
from functools import partial

from benchmarks import corpus
from benchmarks.changing import (
    ALL_BYTES,
    WATCH,
    Change,
    Changed,
    append,
    make_growing_file,
    rename_folders,
)
from benchmarks.contest import OURS, Case, Contestant, Target
from benchmarks.corpus import Corpus, Scale
from benchmarks.noted import WIRE

_FILES = 1000  # in one folder


def _few(scale: Scale) -> Scale:
    return scale._replace(tiny_count=min(_FILES, scale.tiny_count))


def _one(size: int) -> Callable[[Scale], Scale]:
    """Return a function for a scale with a single large file, of at most this size."""
    return lambda scale: scale._replace(
        large_count=1, large_size=min(size, scale.large_count * scale.large_size)
    )


_APPENDED, _GROWING = _one(256 * 2**20), _one(200 * 2**20)


def _both(change: Change, _: Corpus) -> list[Contestant]:
    return [Changed(change=change), Changed(change=change, peer=True)]


def _describe(scale: Scale) -> str:
    return f"one file of {scale.large_size >> 20} MiB"


RENAMED = Case(
    name="P19A",
    title="copy, a renamed folder",
    unit="s",
    make=lambda root, scale: corpus.make_tiny(root, _few(scale)),
    contestants=partial(_both, rename_folders),
    targets=(Target(("rsync",), "not the bytes of the files", at_most=0.5, figure=ALL_BYTES),),
    describe=lambda scale: f"{_few(scale).tiny_count:,} files of {scale.tiny_size:,} bytes",
)
APPENDED = Case(
    name="P19B",
    title="copy, an appended file",
    unit="s",
    make=lambda root, scale: corpus.make_single(root, _APPENDED(scale)),
    contestants=partial(_both, append),
    targets=(Target(("rsync",), "no more bytes than rsync", at_most=1.2, figure=ALL_BYTES),),
    describe=lambda scale: f"{_describe(_APPENDED(scale))}, and one more",
)
GROWING = Case(
    name="P19C",
    title="a file that an instrument writes",
    unit="s",
    make=lambda root, scale: corpus.make_single(root, _GROWING(scale)),
    contestants=make_growing_file,
    targets=tuple(
        target
        for family in (OURS, WATCH)
        for target in (
            Target((), "each byte is sent once", at_most=1.05, figure=WIRE, ours=family),
            Target((), "seconds from its end to its proof", at_most=20, ours=family),
        )
    ),
    describe=lambda scale: f"{_describe(_GROWING(scale))}, in up to 30 s",
)
CASES = (RENAMED, APPENDED, GROWING)
