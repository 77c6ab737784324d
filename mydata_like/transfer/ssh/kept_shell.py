"""A shell on a host that stays, and runs one short script after the other.

For each command that sshd starts, it creates processes, and many login shells read the start files
of the account first: with an environment of conda or pyenv, that takes longer than most scripts.
"""

import re
import secrets
from typing import Final

from mydata_like.core.errors import TransientError
from mydata_like.ssh.capabilities import PREAMBLE, quote
from mydata_like.ssh.session import CommandResult, OpenSession

LONGEST: Final = 16 * 1024  # bytes of a script and its input: the shell reads them one by one
MOST_NOISE: Final = 64 * 1024  # bytes that login scripts may print
_READ: Final = 256 * 1024
_LOOP: Final = b"""printf '\\n%b\\n'; while IFS= read -r s; do eval "$s"; done"""
# In a subshell instead, not every shell would run the script's trap at its end.
_RUN: Final = b"%b sh -c \"$(printf %%b '%b')\" %b; printf '\\n%b %%d\\n' \"$?\"\n"
_INPUT: Final = b"printf %%b '%b' |"
_SPECIAL: Final = re.compile(rb"[^ -&(-\[\]-~]")


class KeptShell:
    """A shell that runs scripts in turn; what they print as errors is dropped.

    Every method raises `TransientError` if the connection breaks, there is no progress for the
    endpoint's stall timeout, or the shell ends.
    """

    def __init__(self, session: OpenSession) -> None:
        self._begin = make_nonce()  # printed after what login scripts print
        self._output = bytearray()
        self._stream = session.start(b"exec sh -c " + quote(PREAMBLE + _LOOP % self._begin))

    def run(self, script: bytes, stdin: bytes | None) -> CommandResult:
        """Run a script; without input, it reads nothing."""
        nonce = make_nonce()
        before, after = (_INPUT % _escape(stdin), b"") if stdin else (b"", b"</dev/null")
        self._stream.write(_RUN % (before, _escape(script), after, nonce))
        if self._begin:
            self._read_until(b"\n" + self._begin + b"\n", MOST_NOISE)
            self._begin = b""
        output = self._read_until(b"\n" + nonce + b" ")
        status = self._read_until(b"\n", MOST_NOISE)
        if not status.isdigit():
            raise unanswered()
        return CommandResult(int(status[:9]), output, b"")

    def end(self) -> None:
        """End the shell, and wait until the host has its channel back."""
        self._stream.finish()

    def _read_until(self, end: bytes, most: int | None = None) -> bytes:
        """Return the output before the next `end`."""
        searched = 0
        while (place := self._output.find(end, searched)) < 0:
            searched = max(0, len(self._output) - len(end) + 1)
            more = self._stream.read(_READ)
            if not more or (most and len(self._output) > most):
                raise unanswered()
            self._output += more
        found = bytes(self._output[:place])
        del self._output[: place + len(end)]
        return found


def unanswered() -> TransientError:
    """Return the error of a shell whose output makes no sense."""
    return TransientError("The shell of the host did not answer as expected.", code="staging.shell")


def make_nonce() -> bytes:
    """Return a word that nothing else prints."""
    return b"mydata-" + secrets.token_hex(8).encode()


def _escape(data: bytes) -> bytes:
    """Return data as POSIX's `printf %b` reads it, without quotes and newlines."""
    return _SPECIAL.sub(lambda found: b"\\0%03o" % found[0][0], data)
