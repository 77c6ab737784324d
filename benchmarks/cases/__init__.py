"""The cases: test data, contestants, and the targets for ours."""

from benchmarks.cases import distant, growth, holes, large, second, start, tiny

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
    start.START,
    growth.GROWTH,
    large.HOG,
)
