"""Files to hosts that allow only SFTP: to a temporary name, then renamed."""

from contextlib import suppress
from typing import Final

from mydata_like.core.errors import FileChangedError, RejectedError
from mydata_like.ssh.session import SftpSession
from mydata_like.transfer.archive import Told, open_content
from mydata_like.transfer.proof import check_space, describe
from mydata_like.transfer.protocol import Done, Fate, Member, Moving, Task
from mydata_like.transfer.single import Sealed, part_name

_CHUNK: Final = 256 * 1024


class SftpSender:
    """Carries payloads over one SFTP session; knows which directories it has seen made."""

    def __init__(self, sftp: SftpSession, location: bytes) -> None:
        self._sftp = sftp
        self._location = location
        self._known: set[bytes] = set()
        self._buffer = bytearray(_CHUNK)

    def send(self, task: Task, moving: Moving) -> Done:
        """Carry a payload, file by file; raises `TransientError` when the line broke."""
        return Done(
            tuple(
                self._send_member(index, member, moving)
                for index, member in enumerate(task.members)
            )
        )

    def close(self) -> None:
        """The SFTP session ends with its SSH session."""

    def _send_member(self, index: int, member: Member, moving: Moving) -> Fate:
        target = self._location + b"/" + member.remote
        parent = target.rpartition(b"/")[0]
        part = parent + b"/" + part_name(member)
        try:
            if parent not in self._known:
                self._sftp.make_directories(parent, 0o2770)
                self._known.add(parent)
            told = self._write(member, part, moving)
            self._sftp.set_attributes(part, mode=0o660, modified=member.modified)
            if self._sftp.find_size(part) != member.size:
                return Fate(index, "", describe(member.remote, b""), again=True)
            self._sftp.replace(part, target)
        except FileChangedError as error:
            self._remove(part)
            return Fate(index, "", error.problem)
        except RejectedError as error:
            self._known.discard(parent)
            self._remove(part)
            check_space(error.message.rstrip(".").encode())
            # A full disk is just a failure in this protocol, and may be over later.
            again = error.problem_code != "staging.denied"
            return Fate(index, "", error.problem, again)
        return Fate(index, told.checksum, inside=told.inside)

    def _write(self, member: Member, part: bytes, moving: Moving) -> Told:
        """Write a file under its temporary name; the last chunk only if it stayed the same."""
        with open_content(member) as source:
            remote = self._sftp.open_file(part)
            try:
                sealed = Sealed(source, source.chunks(self._buffer))
                for chunk in sealed:
                    remote.write(chunk)
                    moving(len(chunk))
            finally:
                remote.close()
            return sealed.told

    def _remove(self, part: bytes) -> None:
        with suppress(RejectedError):
            self._sftp.remove(part)
