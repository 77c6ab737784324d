"""Hosts that greet with other things than SFTP, and never stop."""

import pytest

from mydata_like.core.errors import RejectedError, TransientError
from mydata_like.ssh.session import CommandResult
from mydata_like.ssh.sftp import Sftp

VERSION = b"\x02\0\0\0\x03"
LONGEST = (256 * 1024).to_bytes(4, "big")


class Endless:
    """A stream that begins with some words, and goes on for ever."""

    blocked_seconds = 0.0

    def __init__(self, said: bytes) -> None:
        self._said = said
        self.taken = 0

    def write(self, data: bytes | memoryview) -> None:
        """Take what we say."""

    def read(self, size: int, least: int = 1) -> bytes:
        more, self._said = self._said[:size].ljust(size, b"\xff"), self._said[size:]
        self.taken += size
        assert self.taken < 2_000_000
        return more

    def read_ready(self) -> bytes:
        return b""

    def finish(self) -> CommandResult:
        return CommandResult(0, b"", b"")

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    "said",
    [b"\xff\xff\xff\xff" + VERSION, b"\0\0\0\0" + VERSION, b"\0\0\0\x04" + VERSION, b"Welcome!"],
    ids=["four gigabytes", "nothing", "too little", "words"],
)
def test_a_greeting_of_no_sensible_length_is_refused_at_once(said):
    with pytest.raises(RejectedError) as raised:
        Sftp(Endless(said))

    assert raised.value.problem_code == "ssh.sftp-refused"


def test_extensions_without_end_are_read_in_a_moment():
    sftp = Sftp(Endless(LONGEST + VERSION + bytes(256 * 1024 - 5)))

    with pytest.raises(TransientError, match="does not follow the SFTP protocol"):
        sftp.receive()


@pytest.mark.parametrize("length", [0, 4, 2**32 - 1])
def test_an_answer_of_no_sensible_length_ends_sftp(length):
    sftp = Sftp(Endless(b"\0\0\0\x05" + VERSION + length.to_bytes(4, "big")))

    with pytest.raises(TransientError, match="does not follow the SFTP protocol"):
        sftp.receive()
