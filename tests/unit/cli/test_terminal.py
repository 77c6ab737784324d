"""Standard output and error: the last place where control characters are escaped."""

import io
import os
import subprocess
import sys

import pytest

from mydata_like.cli.output import PlainLines
from mydata_like.cli.terminal import GuardedStream, drawing_stream
from mydata_like.core.errors import Problem
from mydata_like.core.events import FileFailed, Notice


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_what_a_command_forgot_to_escape_is_escaped_where_it_leaves():
    stream = io.StringIO()
    guarded = GuardedStream(stream)

    length = guarded.write("one\x1b[31m\x9b\u202e\ntwo\r\n")
    guarded.writelines(["a\x07\n", "b\n"])
    guarded.flush()

    assert length == len("one\x1b[31m\x9b\u202e\ntwo\r\n")
    assert stream.getvalue() == "one\\x1b[31m\\x9b\\u202e\ntwo\\r\na\\x07\nb\n"


def test_on_a_terminal_colours_pass_and_nothing_else():
    stream = Terminal()

    GuardedStream(stream).write("\x1b[1;31mred\x1b[0m \x1b[2J \x1b]0;title\x07 \x1b[8A\n")

    shown = "\x1b[1;31mred\x1b[0m \\x1b[2J \\x1b]0;title\\x07 \\x1b[8A\n"
    assert stream.getvalue() == shown


def test_what_draws_gets_the_stream_itself():
    stream = Terminal()

    assert drawing_stream(GuardedStream(stream)) is stream
    assert drawing_stream(stream) is stream


def test_a_line_stays_one_line_whatever_a_server_says():
    lines = []
    report = PlainLines(lines.append)

    report.show(Notice(problem=Problem("x.y", "It says:\nFailed: \x1b[2J", "Do\r\nthis.")))
    report.show(FileFailed(path=b"a\nb", size=1, problem=Problem("x.y", "n\u2028o")))

    assert lines == [
        "Note: It says:\\nFailed: \\x1b[2J Do\\r\\nthis.\n",
        "Failed: a\\nb: n\\u2028o\n",
    ]


@pytest.mark.process
def test_a_pipe_gets_utf_8_whatever_the_encoding_of_the_system():
    """The encoding of a pipe is cp1252 on many computers with Windows."""
    words = r"from mydata_like.cli.terminal import guard_streams as g; g(); print('\u03bc \udcff')"

    ended = subprocess.run(
        [sys.executable, "-c", words],
        env=os.environ | {"PYTHONIOENCODING": "cp1252"},
        capture_output=True,
        check=True,
    )

    assert ended.stdout.split() == ["\u03bc".encode(), rb"\udcff"]


@pytest.mark.process
def test_a_reader_that_has_gone_is_a_broken_pipe_on_every_system():
    words = (
        "import os, sys; from mydata_like.cli.terminal import guard_streams\n"
        "reader, writer = os.pipe(); sys.stdout = open(writer, 'w'); guard_streams()\n"
        "os.close(reader)\n"
        "try: print('x', flush=True)\n"
        "except BrokenPipeError: os._exit(7)"
    )

    ended = subprocess.run([sys.executable, "-c", words], capture_output=True, check=False)

    assert (ended.returncode, ended.stderr) == (7, b"")
