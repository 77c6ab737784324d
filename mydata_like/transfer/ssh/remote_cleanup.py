"""Removes temporary files of interrupted transfers from a host with a shell or SFTP."""

import re
from typing import Final

from mydata_like.ssh.capabilities import PREAMBLE, HostCapabilities, quote
from mydata_like.ssh.session import SshSession
from mydata_like.transfer.ssh.remote_shell import MARK
from mydata_like.transfer.temporary_files import (
    COMPANIONS,
    LOCATION,
    PROBE,
    REST,
    Leftover,
    Remover,
    SftpRemover,
    owner_mark,
)

# Lists files of that age by the host's clock: `-mtime +6` means seven days or more.
_LIST: Final = (
    b"cd -- %b 2>/dev/null || exit 0; for t in %b; do "
    b'[ -n "$(find "./$t" -prune %b -mtime +6 2>/dev/null)" ] || continue; '
    b'set -- $(ls -ldn "./$t"); echo "mydata:$t:$5"; done'
)
_FILES: Final = b"-type f"
_FILES_AND_FOLDERS: Final = rb"\( -type f -o -type d \)"
_REMOVE: Final = b"cd -- %b && rm %b -- %b && echo mydata:gone"


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
        self._name = re.compile(rb"\.mydata-" + mark + REST)

    def find_left(self, folder: bytes) -> list[Leftover]:
        found = self._list(folder, b".mydata-%b*" % self._mark, _FILES, self._name)
        if folder == LOCATION:
            found += self._list(folder, b".mydata-probe-*", _FILES_AND_FOLDERS, PROBE)
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
        files = b" ".join(quote(b"./" + name + end) for end in (*COMPANIONS, b""))
        option = b"-rf" if PROBE.fullmatch(name) else b"-f"
        return MARK + b"gone" in self._run(
            _REMOVE % (quote(self._folder_path(folder)), option, files)
        )

    def _run(self, script: bytes) -> bytes:
        return self._session.run(b"exec sh -c " + quote(PREAMBLE + script)).output

    def _folder_path(self, folder: bytes) -> bytes:
        return self._location.rstrip(b"/") + b"/" + folder
