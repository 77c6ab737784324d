"""Temporary files in the staging area: their names, and the removal of those left behind.

A temporary name identifies its uploader (`part_name`, `core.staging_path.aside_path`). If the local
file changed or was deleted before it was sent again, no transfer uses the temporary file any more.
The location itself also keeps the sample of a probe that was interrupted (`ssh.capabilities`),
which is of no use to any uploader.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from mydata_like.core.errors import RejectedError, TransientError
from mydata_like.ssh.session import SftpSession
from mydata_like.transfer.worker_messages import Member

LOCATION: Final = b""  # as a folder: the location itself
AGE: Final = 7 * 24 * 3600  # seconds without a write after which a temporary file is removed
COMPANIONS: Final = (b".at", b".map")  # of a striped file: which blocks arrived
REST: Final = b"[0-9a-f]{24}\\.(part|new)"  # of a temporary name, after the uploader's mark
PROBE: Final = re.compile(rb"\.mydata-probe-[0-9a-f]{16}(\.part)?")  # by shell it is a folder


def part_name(member: Member) -> bytes:
    """Return the temporary name of a file: the same for every attempt to send the same bytes.

    It begins with the mark of the uploader.
    """
    return _name(member, b"%b\0%d\0%d" % (member.remote, member.size, member.modified_ns))


def beginning_name(member: Member) -> bytes:
    """Return the temporary name of what was sent of a file that has grown meanwhile."""
    return _name(member, member.remote)


def _name(member: Member, text: bytes) -> bytes:
    digest = hashlib.sha256(text).hexdigest().encode()
    return b".mydata-%b.part" % (member.mark + digest)[:32]


def owner_mark(owner: str) -> bytes:
    """Return the mark of an uploader from its uuid: eight hexadecimal digits."""
    return hashlib.sha256(owner.encode()).hexdigest()[:8].encode() if owner else b""


class Leftover(NamedTuple):
    """A leftover temporary file: its name and its size."""

    name: bytes
    size: int


class Removed(NamedTuple):
    """The number and size of removed files, and the folders without any of our leftovers."""

    files: int = 0
    size: int = 0
    clean: frozenset[bytes] = frozenset()


class Remover(Protocol):
    """Lists and removes leftovers; raises `TransientError` if the connection breaks."""

    def find_left(self, folder: bytes) -> list[Leftover]: ...

    def remove(self, folder: bytes, name: bytes) -> bool:
        """Remove a file with its companions; return whether it is gone."""


def clean_up(
    remover: Remover, folders: Iterable[bytes], is_wanted: Callable[[bytes, Leftover], bool]
) -> Removed:
    """Remove old leftovers in these folders, except those that are still wanted.

    A broken connection ends it early; folders that were not reached are not in `clean`.
    """
    files = size = 0
    clean = set()
    with suppress(TransientError):
        for folder in folders:
            found = remover.find_left(folder)
            going = [left for left in found if not is_wanted(folder, left)]
            gone = [left for left in going if remover.remove(folder, left.name)]
            files += len(gone)
            size += sum(left.size for left in gone)
            if len(gone) == len(found):
                clean.add(folder)
    return Removed(files, size, frozenset(clean))


class SftpRemover:
    """Removes leftovers by SFTP, or below a mounted folder."""

    def __init__(self, sftp: SftpSession, location: bytes, mark: bytes) -> None:
        self._sftp = sftp
        self._location = location.rstrip(b"/")
        self._name = re.compile(rb"\.mydata-" + mark + REST)
        self._now = self._read_time(mark)

    def find_left(self, folder: bytes) -> list[Leftover]:
        try:
            found = self._sftp.list_files(self._folder_path(folder))
        except RejectedError:  # the folder no longer exists
            return []
        return [
            Leftover(file.name, file.size)
            for file in found
            if self._is_ours(folder, file.name) and self._now - file.modified >= AGE
        ]

    def _is_ours(self, folder: bytes, name: bytes) -> bool:
        is_probe = folder == LOCATION and PROBE.fullmatch(name)
        return bool(is_probe or self._name.fullmatch(name))

    def remove(self, folder: bytes, name: bytes) -> bool:
        path = self._folder_path(folder) + b"/" + name
        try:
            for end in (*COMPANIONS, b""):
                self._sftp.remove(path + end)
        except RejectedError:
            return False
        return True

    def _folder_path(self, folder: bytes) -> bytes:
        return (self._location + b"/" + folder).rstrip(b"/")

    def _read_time(self, mark: bytes) -> float:
        """Return the time of the host's clock, from a file created there temporarily."""
        name = b".mydata-%b%b.part" % (mark, secrets.token_hex(12).encode())
        path = self._location + b"/" + name
        self._sftp.open_file(path).close()
        try:
            return self._sftp.find_modified(path)
        finally:
            self._sftp.remove(path)
