"""The cases: what is carried, who competes, what ours must reach."""

from benchmarks.cases import growth, holes, large, second, start, tiny

CASES = (
    large.MANY,
    large.SINGLE,
    tiny.SENDING,
    tiny.WHOLE,
    tiny.MIXED,
    second.UNCHANGED,
    second.MODIFIED,
    holes.SPARSE,
    large.READ_ONCE,
    growth.MEMORY,
    start.START,
    growth.GROWTH,
    large.HOG,
)
