"""Lines from a pipe: however they are cut, never more of them in memory than a command has."""

import pytest

from mydata_like.cli.stdin_commands import split_lines
from mydata_like.core.commands import LONGEST


def split(*pieces):
    left = iter([*pieces, b""])
    return list(split_lines(lambda: next(left)))


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([], []),
        ([b"a\nb\n"], [b"a\n", b"b\n"]),
        ([b"a", b"b", b"\nc"], [b"ab\n", b"c"]),
        ([b"\n", b"  \r\n", b"a\r\n"], [b"a\r\n"]),
        ([b"a\rb\n"], [b"a\rb\n"]),
    ],
)
def test_lines_are_put_together(pieces, lines):
    assert split(*pieces) == lines


def test_what_is_too_long_is_cut_and_the_next_line_is_whole():
    lines = split(*[b"x" * LONGEST] * 3, b"\nnext\n")

    assert [len(line) for line in lines] == [LONGEST + 1, 5]
