"""What the programs of a host print about its files: GNU, busybox and BSD have different ones."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mydata_like.core.destination_files import StoredFile
from mydata_like.ssh.capabilities import quote
from mydata_like.transfer.ssh import host_python
from mydata_like.transfer.ssh.remote_shell import MARK

_GNU: Final = b"stat -c '%f %s %.9Y %.9Z %i'"
# busybox prints seconds and, with the date, nanoseconds.
_BUSYBOX: Final = b"stat -c '%f %s %Y %Z %i %y %z'"
_BSD: Final = b"stat -f '%Xp %z %Fm %Fc %i'"
_STATS: Final = (_GNU, _BUSYBOX, _BSD)
FIND_FORMAT: Final = rb"'%s %T@ %C@ %i %p\0'"

_DIGITS: Final = rb" (-?)(\d+)\.(\d{9})"
_PRECISE: Final = re.compile(rb"([0-9a-fA-F]+) (\d+)%b%b (\d+)" % (_DIGITS, _DIGITS))
_WITH_DATES: Final = re.compile(
    rb"([0-9a-fA-F]+) (\d+) (-?\d+) (-?\d+) (\d+) \S+ [\d:]+(?:\.(\d{9}))? \S+ "
    rb"\S+ [\d:]+(?:\.(\d{9}))? \S+"
)
# GNU find 4.9 prints ten digits of a fraction, and of times before 1970 the seconds rounded down.
_FOUND: Final = re.compile(
    rb"(?<![^\0])(\d+) (-?\d+)(?:\.(\d{1,9})\d*)? (-?\d+)(?:\.(\d{1,9})\d*)? (\d+)"
    rb" (?:\./)?([^\0]+)\0"
)
_TYPE: Final = 0o170000
_REGULAR: Final = 0o100000
_SECOND: Final = 10**9

PROBE: Final = (
    b"".join(b'echo "mydata:$(%b . 2>/dev/null)"; ' % stat for stat in _STATS)
    + b"""echo "mydata:$(find . -prune -printf %i 2>/dev/null)"; """
    + b"""echo "mydata:$(nice -n 10 echo 1 2>/dev/null)"; """
    + rb"""echo "mydata:$(printf 'a b\0\nc\0' | xargs -0 sh -c 'echo $#' sh 2>/dev/null)"; """
    + b'echo "mydata:$(%b)"' % host_python.PROBE
)
_OF_PROBE: Final = len(_STATS) + 4


class HostPrograms(NamedTuple):
    """The programs of a host that tell about files.

    `stat` prints the attributes of files. `prints` is whether its find does so as well. `nice` are
    the words that start a command with low priority, if any. `python` is whether it runs the
    program of `host_python`.
    """

    stat: bytes
    prints: bool
    nice: bytes
    python: bool

    @classmethod
    def parse(cls, output: bytes) -> "HostPrograms | None":
        """Return what `PROBE` has found; None if needed programs are missing."""
        answers = [line[len(MARK) :] for line in output.splitlines() if line.startswith(MARK)]
        if len(answers) != _OF_PROBE:
            return None
        *stats, find, nice, xargs, python = answers
        stat = next(
            (stat for stat, line in zip(_STATS, stats, strict=True) if _read_numbers(line)), b""
        )
        if not stat or xargs != b"2":
            return None
        words = b"nice -n 10 " if nice == b"1" else b""
        return cls(stat, find.isdigit(), words, python == b"end")


def parse_attributes(path: bytes, line: bytes) -> StoredFile | None:
    """Return a file from what `HostPrograms.stat` prints of it; None if it is not a regular one."""
    numbers = _read_numbers(line)
    if numbers is None or numbers[0] & _TYPE != _REGULAR:
        return None
    return StoredFile(path, *numbers[1:])


def _read_numbers(line: bytes) -> tuple[int, int, int, int, int] | None:
    """Return the mode, size, times and inode of a line."""
    if found := _PRECISE.fullmatch(line):
        mode, size, *times, inode = found.groups()
        modified, changed = _exact(*times[:3]), _exact(*times[3:])
        return int(mode, 16), int(size), modified, changed, int(inode)
    if found := _WITH_DATES.fullmatch(line):
        mode, size, *seconds, inode, modified_fraction, changed_fraction = found.groups()
        modified = int(seconds[0]) * _SECOND + int(modified_fraction or 0)
        changed = int(seconds[1]) * _SECOND + int(changed_fraction or 0)
        return int(mode, 16), int(size), modified, changed, int(inode)
    return None


def _exact(sign: bytes, seconds: bytes, fraction: bytes) -> int:
    """Return nanoseconds."""
    time = int(seconds) * _SECOND + int(fraction)
    return -time if sign else time


def parse_found(text: bytes, top: bytes) -> list[StoredFile]:
    """Return the files of what find prints with `FIND_FORMAT` in the folder `top`.

    `top` ends with a slash unless it is empty. Raises ValueError if a file is described otherwise.
    """
    found = _FOUND.findall(text)
    if len(found) != text.count(b"\0"):
        raise ValueError("find describes a file in another way")
    return [
        StoredFile(
            top + path,
            int(size),
            int(modified) * _SECOND + int(modified_fraction.ljust(9, b"0")),
            int(changed) * _SECOND + int(changed_fraction.ljust(9, b"0")),
            int(inode),
        )
        for size, modified, modified_fraction, changed, changed_fraction, inode, path in found
    ]


# Paths begin with `./`. `o` tells whether one is a regular file, no folder above it is a link, and
# it may be passed to a checksum program by its name: some print it with escapes, or as two lines.
# Someone who replaces a folder by a link after that is not noticed.
_CHECK: Final = (
    b"n=$(printf '\\nx'); n=${n%%x}; r=$(printf '\\r'); l=.; c=1; "
    b'o() { d=${1%%/*}; if [ "$d" != "$l" ]; then l=$d; c=1; '
    b'while [ "$d" != . ]; do [ -h "$d" ] && c=; d=${d%%/*}; done; fi; '
    b'[ -n "$c" ] && [ -f "$1" ] && [ ! -h "$1" ]; }; '
    b'q() { case $1 in *"$n"*|*"$r"*|*\\\\*) return 1;; esac; }; '
)
# Describes files: `mydata:` and their number, then what stat prints of them, their checksums, and
# what stat prints again, each ended by a line `mydata:`. If one of a group is not as it should be,
# each is described alone: the order of the lines is certain then.
_DESCRIBE: Final = (
    _CHECK + b'k=%b; for f do o "$f" && q "$f" || { k=; break; }; done; '
    b's() { %b "$@" 2>/dev/null; echo mydata:; }; '
    b'if [ -n "$k" ]; then echo "mydata:$#"; s "$@"; %b; exit 0; fi; '
    b'for f do echo mydata:1; if o "$f"; then s "$f"; %b; '
    b"else echo mydata:; echo mydata:; echo mydata:; fi; done; exit 0"
)
_HASH_GROUP: Final = b'%b "$@" 2>/dev/null; echo mydata:; s "$@"'
_HASH_ONE: Final = b'%b <"$f" 2>/dev/null; echo mydata:; s "$f"'
_NO_HASH: Final = b"echo mydata:; echo mydata:"
# Prints the number of files, their names, and what stat prints of them.
_NAME: Final = (
    b'[ $# -gt 0 ] || exit 0; echo "mydata:$#"; printf \'%%s\\0\' "$@"; '
    b'%b "$@" 2>/dev/null; echo mydata:; exit 0'
)


def describe_script(programs: HostPrograms, checksum: bytes, at_once: int, *, alone: bool) -> bytes:
    """Return the command that describes the files whose paths it reads, with NUL after each.

    With `alone`, each is described alone from the beginning.
    """
    group = _HASH_GROUP % checksum if checksum else _NO_HASH
    one = _HASH_ONE % checksum if checksum else _NO_HASH
    text = _DESCRIBE % (b"" if alone else b"1", programs.stat, group, one)
    return b"%bxargs -0 -n %d sh -c %b sh" % (
        programs.nice if checksum else b"",
        at_once,
        quote(text),
    )


def name_script(programs: HostPrograms, at_once: int) -> bytes:
    """Return the command that names the files whose paths it reads and prints their attributes."""
    return b"xargs -0 -n %d sh -c %b sh" % (at_once, quote(_NAME % programs.stat))


# Prints a reason if a file cannot be removed.
_REMOVE: Final = (
    _CHECK.replace(b"%%", b"%")
    + b'for f do o "$f"; [ -n "$c" ] || { printf "mydata:link"; exit 0; }; done; '
    b'v=$(rm -f "$@" 2>&1) || printf "mydata:%s" "$v"; exit 0'
)


def remove_script(at_once: int) -> bytes:
    """Return the command that removes the files whose paths it reads."""
    return b"xargs -0 -n %d sh -c %b sh" % (at_once, quote(_REMOVE))


class Description(NamedTuple):
    """What was printed for a group of files: the lines of all files, three times."""

    files: int
    before: list[bytes]
    checksums: list[bytes]
    after: list[bytes]


def parse_descriptions(output: bytes) -> Iterator[Description]:
    """Yield the groups in the output of `describe_script`; raises ValueError if it is cut off."""
    lines = iter(output.split(b"\n")[:-1])
    for line in lines:
        if not line.startswith(MARK):
            raise ValueError("a line is not expected")
        yield Description(int(line[len(MARK) :]), *(_read_frame(lines) for _ in range(3)))


def _read_frame(lines: Iterator[bytes]) -> list[bytes]:
    frame: list[bytes] = []
    for line in lines:
        if line == MARK:
            return frame
        frame.append(line)
    raise ValueError("the output is cut off")
