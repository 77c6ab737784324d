"""The cases: test data, contestants, and the targets for ours."""

from benchmarks.cases import (
    changing,
    copying,
    distant,
    folder,
    growth,
    holes,
    large,
    second,
    start,
    tiny,
)

CASES = (
    large.MANY,
    large.SINGLE,
    tiny.SENDING,
    tiny.WHOLE,
    tiny.MIXED,
    *distant.CASES,
    second.UNCHANGED,
    second.MODIFIED,
    holes.SPARSE,
    holes.HOLLOW,
    large.READ_ONCE,
    growth.MEMORY,
    folder.LARGE,
    folder.TINY,
    folder.ON_DISK,
    folder.DISTANT,
    folder.LARGE_DISTANT,
    *copying.CASES,
    *changing.CASES,
    start.START,
    growth.GROWTH,
    large.HOG,
)
