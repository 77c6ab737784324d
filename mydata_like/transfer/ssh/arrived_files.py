"""Finds files that an interrupted batch has left whole on the host, by checksums of both sides."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from mydata_like.core.errors import FileChangedError
from mydata_like.ssh.capabilities import quote
from mydata_like.transfer.file_source import read_checksum
from mydata_like.transfer.ssh.remote_shell import SessionState, Shells, enter
from mydata_like.transfer.worker_messages import Member, MemberResult, Moving

_SCRIPT: Final = 64 * 1024  # approximate bytes of one script: hosts limit the length of a line
_PIECE: Final = 64 * 1024 * 1024  # bytes that one script reads, so that it answers soon
# Only regular files are read: a pipe would wait for ever.
_READ: Final = (
    b'set --; for f in%b; do [ ! -f "$f" ] || [ -L "$f" ] || set -- "$@" "$f"; done; '
    b'[ $# = 0 ] || exec %b "$@" 2>/dev/null'
)
_WITHOUT_NAMES: Final = {b"md5 -q": b"md5 -r", b"sha256 -q": b"sha256 -r"}  # print names too
_LINE: Final = re.compile(rb"((?:[0-9a-f]{32}){1,2}) [ *]?\./(.+)").fullmatch


def find_arrived(
    shells: Shells, state: SessionState, members: Sequence[Member], moving: Moving
) -> dict[int, MemberResult]:
    """Return the results of interrupted members that the host has with the bytes of the local file.

    Their sizes prove nothing. The host may have no program for checksums.
    """
    begun = [member for member in members if member.interrupted and not member.from_scratch]
    command = begun and state.capabilities.find_checksum(begun[0].algorithm)
    if not command:
        return {}
    theirs = dict(_read_checksums(shells, state, command, begun, moving))
    arrived = {}
    for index, member in enumerate(members):
        # Sending it reports why a file cannot be read.
        with suppress(FileChangedError):
            found = theirs.get(member.remote)
            if found and _hash(member, moving) == found:
                moving(0, member.size)
                arrived[index] = MemberResult(index, found)
    return arrived


def _read_checksums(
    shells: Shells,
    state: SessionState,
    command: bytes,
    members: Sequence[Member],
    moving: Moving,
) -> Iterator[tuple[bytes, str]]:
    """Yield the paths that are regular files on the host, with their checksums."""
    for words in _join(members):
        script = _READ % (words, _WITHOUT_NAMES.get(command, command))
        output = shells.start(enter(state.location) + script).finish().output
        moving(0)
        for line in output.split(b"\n")[:-1]:  # text after the last newline may be truncated
            if match := _LINE(line):
                yield match[2], match[1].decode()


def _hash(member: Member, moving: Moving) -> str:
    return read_checksum(member, lambda: moving(0), algorithm=member.algorithm)


def _join(members: Sequence[Member]) -> Iterator[bytes]:
    """Yield the paths as words of scripts, each of limited length."""
    words, size = b"", 0
    for member in members:
        words += b" " + quote(b"./" + member.remote)
        size += member.size
        if len(words) > _SCRIPT or size > _PIECE:
            yield words
            words, size = b"", 0
    if words:
        yield words
