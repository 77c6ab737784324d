"""Checks which members of a batch were extracted completely.

`tar -x` ends well when its input stops between two members, so its status alone proves
nothing. Where all goes well, the proof is a marker, the last member of the stream: it has a name
that nothing else has, and the script ends well only where tar did and the marker was there to be
removed. That costs nothing for a member, and tells nothing of one where something went wrong.

Then the members are named. What proves one is that the *next* one was named: names and complaints
come through one pipe, in order, and a member is named before its bytes are written.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from mydata_like.core.errors import Problem, StagingError
from mydata_like.core.formatting import format_path
from mydata_like.ssh.capabilities import quote

# What somebody has set for all tars of the host might leave members out and end well.
_TAR: Final = {
    "gnu": b"unset TAR_OPTIONS; %b tar -x -o --no-same-permissions %b -f - 2>&1",
    "bsd": b"%b tar -x -o --no-same-permissions %b -f - 2>&1",
    "busybox": b"%b tar -x -o %b -f - 2>&1",
}
# As much as a pipe holds, read at once: the server's sshd has to fill it a quarter as often.
_IN_ONE_GO: Final = {"gnu": b"-b 128"}
# Ends well only where the marker was there to be removed; removes it whatever comes of tar.
_TAKE_MARKER: Final = b" && exec rm -- %b 2>/dev/null; s=$?; rm -f -- %b; exit $s"

_FULL: Final = (b"No space left on device", b"Disk quota exceeded")
_DENIED: Final = (
    b"Permission denied",
    b"Operation not permitted",
    b"Read-only file system",
    b"File too large",
    b"File name too long",
    b"Not a directory",
    b"Is a directory",
)
_ENDING: Final = rb"(?:%b)[ \t\v\f]*(?:[\r\n]|\Z)"  # of a line
_SAYS_FULL: Final = re.compile(_ENDING % b"|".join(_FULL)).search
_SAYS_DENIED: Final = re.compile(_ENDING % b"|".join(_DENIED)).search
# Beyond the names; a member that is named later is not proven, and sent again.
_MOST_LINES: Final = 100_000
_MOST_SAID: Final = 50  # lines of complaint about one member that are kept
_ESCAPES: Final = {
    7: rb"\a", 8: rb"\b", 9: rb"\t", 10: rb"\n", 11: rb"\v", 12: rb"\f", 13: rb"\r", 92: rb"\\",
}  # fmt: skip
_PLAIN: Final = re.compile(rb"[ -\[\]-~]*").fullmatch  # printed as it is
_PRINTED: Final = tuple(
    _ESCAPES.get(byte) or (bytes([byte]) if 32 <= byte < 127 else b"\\%03o" % byte)
    for byte in range(256)
)


def make_marker(beside: bytes) -> bytes:
    """Return the name of a marker that no other has, where a member may be written as well."""
    folder, slash, _ = beside.rpartition(b"/")
    return b"%b%b.mydata-marker-%b" % (folder, slash, os.urandom(8).hex().encode())


def extract(tar: str, marker: bytes) -> bytes:
    """Return the script that extracts its input, and succeeds where all of it came."""
    there = quote(marker)
    return _TAR[tar] % (b"", _IN_ONE_GO.get(tar, b"")) + _TAKE_MARKER % (there, there)


def extract_named(tar: str) -> bytes:
    """Return the script that extracts its input and names each member, to be judged."""
    return _TAR[tar] % (b"exec", b"-v")


class BatchResult(NamedTuple):
    """Which members are proven, by place, and what was said about those that are not."""

    proven: frozenset[int]
    complaints: dict[int, bytes]


def all_proven(names: Sequence[bytes]) -> BatchResult:
    """Return the results if everything succeeded."""
    return BatchResult(frozenset(range(len(names))), {})


def judge(names: Sequence[bytes], output: bytes, status: int | None, tar: str) -> BatchResult:
    """Tell what an extraction's output proves about the members it was sent, in order.

    `status` is None where the line broke. Raises `StagingError` when the staging area is full.
    """
    if status == 0 and output == b"".join([name + b"\n" for name in names]):
        return all_proven(names)  # told at once
    named: list[int] = []
    said: dict[int, list[bytes]] = {}
    may_be_full = _SAYS_FULL(output) is not None  # or a member has such a name
    for place, line in _sort(names, islice(_lines(output), len(names) + _MOST_LINES)):
        if line:
            if may_be_full:
                check_space(line)
            its = said.setdefault(place, [])
            its[_MOST_SAID:] = [line + b"\n"]  # of more, only the last one
        else:
            named.append(place)
    complaints = {place: b"".join(its) for place, its in said.items()}
    if status == 0 and output.count(b"\n") >= len(names):
        return all_proven(names)
    # busybox names its members late: what it complains of may stand before the name.
    if tar == "busybox" and status is not None:
        named = []
    return BatchResult(frozenset(named[:-1]) - complaints.keys(), complaints)


def _lines(output: bytes) -> Iterator[bytes]:
    """Yield the lines; what follows the last newline may be cut."""
    start = 0
    while (end := output.find(b"\n", start)) >= 0:
        yield output[start:end]
        start = end + 1


def _sort(names: Sequence[bytes], lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the place of each member named, and each other line with the place it follows."""
    places: dict[bytes, int] = {}
    for place, name in enumerate(names):
        shown = name if _PLAIN(name) else printed(name)
        places[name] = places[shown] = places[b"x " + shown] = place
    latest = -1
    for line in lines:
        place = places.get(line, -1)
        if place > latest:
            latest = place
            yield place, b""
        elif line:
            yield latest, line


def printed(name: bytes) -> bytes:
    """Return a name as GNU tar and bsdtar print it in the C locale."""
    return b"".join(map(_PRINTED.__getitem__, name))


def check_space(text: bytes) -> None:
    """Raise `StagingError` when the remote text says that there is no room left."""
    if _SAYS_FULL(text):
        raise StagingError(
            "The staging area is full.",
            hint="Sending resumes automatically when the server has space again.",
            code="staging.full",
        )


def is_denied(text: bytes) -> bool:
    """Return whether the remote text says that this path will not be accepted."""
    return _SAYS_DENIED(text) is not None


def describe(remote: bytes, text: bytes) -> Problem:
    """Return the problem of one member that the staging area did not take."""
    said = format_path(text.strip().splitlines()[-1][:300]) if text.strip() else ""
    if is_denied(text):
        return Problem(
            "staging.denied",
            f"The staging area refused {format_path(remote)}: {said}.",
            "The server's administrator can fix its permissions.",
        )
    because = f": {said}" if said else ""
    return Problem(
        "staging.unproven", f"The server did not confirm {format_path(remote)}{because}."
    )
