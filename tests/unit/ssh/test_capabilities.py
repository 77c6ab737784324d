"""Remote commands are built from bytes that no shell can misread."""

import shutil
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mydata_like.ssh.capabilities import build_scp, quote
from tests.privileges import needs_shell

SHELLS = [
    command for command in (["/bin/sh"], ["bash"], ["busybox", "sh"]) if shutil.which(command[0])
]
WORDS = st.lists(st.binary(max_size=60).filter(lambda word: b"\0" not in word), max_size=5)


def echo(shell, words):
    """Return the words as a program that the shell starts sees them."""
    command = b"printf '%s\\0' " + b" ".join(map(quote, words))
    output = subprocess.run([*shell, "-c", command], capture_output=True, check=True).stdout
    return output.split(b"\0")[:-1]


@needs_shell
@pytest.mark.process
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_any_bytes_arrive_as_one_word(shell):
    @settings(deadline=None, max_examples=60)
    @example([b"'", b"''", b"a'b", b"\n", b"$(touch x)", b"`id`", b"-rf", b"*", b"", b"\xff\xfe"])
    @example([b"!!", b"~root", b"\\", b"a\\'b", b"\r\n", b";reboot", b"&", b"|", b"<", b">", b"#"])
    @given(WORDS.filter(bool))
    def check(words):
        assert echo(shell, words) == words

    check()


def test_nul_cannot_be_said():
    with pytest.raises(ValueError, match="NUL"):
        quote(b"a\0b")


def test_scp_gets_a_folder_unquoted_where_it_can_be():
    assert build_scp(b"/srv/my%20box") == b"scp -r -p -t -- /srv/my%20box/"
    assert build_scp(b"/srv/my box/") == b"scp -r -p -t -- '/srv/my box/'"
