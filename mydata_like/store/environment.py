"""The environment variables that are for this process alone: none that it starts inherits them.

The system keeps a copy of what the process was started with, which this cannot change: on Linux
/proc/PID/environ, which only the same account and root can read.
"""

import os
from collections import ChainMap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

API_KEY: Final = "MYDATA_LIKE_API_KEY"
KEY_LOG: Final = "SSLKEYLOGFILE"  # where OpenSSL writes the keys of every connection, if it is set
# Set where the API key is the first line of standard input: for the engine of the window.
KEY_ON_INPUT: Final = "MYDATA_LIKE_API_KEY_ON_INPUT"
_LONGEST: Final = 4096  # bytes of that line
_taken: dict[str, str] = {}


def take_private() -> None:
    """Take these variables out of `os.environ`, before anything is imported or started."""
    for name in (API_KEY, KEY_LOG):
        if text := os.environ.pop(name, ""):
            _taken[name] = text
    if os.environ.pop(KEY_ON_INPUT, ""):
        _taken[API_KEY] = os.fsdecode(_read_line())


def environment() -> Mapping[str, str]:
    """Return the environment as it was given to us: with the API key, if it has one."""
    private = {name: text for name, text in _taken.items() if name == API_KEY}
    return MappingProxyType(ChainMap(private, os.environ))


def hand_over() -> tuple[Mapping[str, str], bytes]:
    """Return what gives a process of ours the API key that was taken: variables, and its input."""
    if API_KEY not in _taken:
        return {}, b""
    return {KEY_ON_INPUT: "1"}, os.fsencode(_taken[API_KEY]) + b"\n"


def list_ignored() -> tuple[str, ...]:
    """Return the names of the variables that were set, and count for nothing."""
    return (KEY_LOG,) if KEY_LOG in _taken else ()


def _read_line() -> bytes:
    """Read a line from standard input, and no byte more: what follows is for others."""
    line = bytearray()
    while len(line) < _LONGEST and (piece := os.read(0, 1)) not in (b"", b"\n"):
        line += piece
    return bytes(line)
