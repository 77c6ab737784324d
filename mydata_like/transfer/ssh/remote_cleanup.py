"""Removes temporary files of interrupted transfers from the staging area.

A temporary name identifies its uploader (`remote_shell.part_name`, `core.staging_path.aside_path`).
If the local file changed or was deleted before it was sent again, no transfer uses the temporary
file any more. The location itself also keeps the sample of a probe that was interrupted
(`ssh.capabilities`), which is of no use to any uploader.
"""

import re
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from mydata_like.core.errors import RejectedError, TransientError
from mydata_like.ssh.capabilities import PREAMBLE, HostCapabilities, quote
from mydata_like.ssh.session import SftpSession, SshSession
from mydata_like.transfer.ssh.remote_shell import MARK, owner_mark

LOCATION: Final = b""  # as a folder: the location itself
AGE: Final = 7 * 24 * 3600  # seconds without a write after which a temporary file is removed
_COMPANIONS: Final = (b".at", b".map")  # of a striped file: which blocks arrived
_REST: Final = b"[0-9a-f]{24}\\.(part|new)"  # of a temporary name, after the uploader's mark
_PROBE: Final = re.compile(rb"\.mydata-probe-[0-9a-f]{16}(\.part)?")  # by shell it is a folder
# Lists files of that age by the host's clock: `-mtime +6` means seven days or more.
_LIST: Final = (
    b"cd -- %b 2>/dev/null || exit 0; for t in %b; do "
    b'[ -n "$(find "./$t" -prune %b -mtime +6 2>/dev/null)" ] || continue; '
    b'set -- $(ls -ldn "./$t"); echo "mydata:$t:$5"; done'
)
_FILES: Final = b"-type f"
_FILES_AND_FOLDERS: Final = rb"\( -type f -o -type d \)"
_REMOVE: Final = b"cd -- %b && rm %b -- %b && echo mydata:gone"


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


def open_remover(
    session: SshSession, capabilities: HostCapabilities, location: bytes, owner: str
) -> Remover | None:
    """Return the remover for a host; None if files there have no temporary names."""
    if capabilities.in_place:
        return None
    if capabilities.access == "shell":
        return _ShellRemover(session, location, owner_mark(owner))
    return SftpRemover(session.open_sftp(), location, owner_mark(owner))


class _ShellRemover:
    def __init__(self, session: SshSession, location: bytes, mark: bytes) -> None:
        self._session = session
        self._location = location
        self._mark = mark
        self._name = re.compile(rb"\.mydata-" + mark + _REST)

    def find_left(self, folder: bytes) -> list[Leftover]:
        found = self._list(folder, b".mydata-%b*" % self._mark, _FILES, self._name)
        if folder == LOCATION:
            found += self._list(folder, b".mydata-probe-*", _FILES_AND_FOLDERS, _PROBE)
        return found

    def _list(
        self, folder: bytes, pattern: bytes, kinds: bytes, name: re.Pattern[bytes]
    ) -> list[Leftover]:
        output = self._run(_LIST % (quote(self._folder_path(folder)), pattern, kinds))
        words = (line.removeprefix(MARK).split(b":") for line in output.splitlines())
        return [
            Leftover(word[0], int(word[1]))
            for word in words
            if len(word) == 2 and word[1].isdigit() and name.fullmatch(word[0])
        ]

    def remove(self, folder: bytes, name: bytes) -> bool:
        files = b" ".join(quote(b"./" + name + end) for end in (*_COMPANIONS, b""))
        option = b"-rf" if _PROBE.fullmatch(name) else b"-f"
        return MARK + b"gone" in self._run(
            _REMOVE % (quote(self._folder_path(folder)), option, files)
        )

    def _run(self, script: bytes) -> bytes:
        return self._session.run(b"exec sh -c " + quote(PREAMBLE + script)).output

    def _folder_path(self, folder: bytes) -> bytes:
        return self._location.rstrip(b"/") + b"/" + folder


class SftpRemover:
    """Removes leftovers by SFTP, or below a mounted folder."""

    def __init__(self, sftp: SftpSession, location: bytes, mark: bytes) -> None:
        self._sftp = sftp
        self._location = location.rstrip(b"/")
        self._name = re.compile(rb"\.mydata-" + mark + _REST)
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
        is_probe = folder == LOCATION and _PROBE.fullmatch(name)
        return bool(is_probe or self._name.fullmatch(name))

    def remove(self, folder: bytes, name: bytes) -> bool:
        path = self._folder_path(folder) + b"/" + name
        try:
            for end in (*_COMPANIONS, b""):
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
