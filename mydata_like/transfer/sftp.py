"""Files to hosts that allow only SFTP: to a temporary name, then renamed.

Tiny ones are many under way at once, large ones over several streams where that is faster.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from mydata_like.core.errors import FileChangedError, RejectedError, TransientError
from mydata_like.core.openat import FolderCache
from mydata_like.ssh.session import SmallFile, SshSession
from mydata_like.transfer.archive import Told, open_content
from mydata_like.transfer.crew import Room
from mydata_like.transfer.proof import check_space, describe
from mydata_like.transfer.protocol import Done, Fate, Member, Move, Moving, Task
from mydata_like.transfer.replacing import missing
from mydata_like.transfer.sealed import hold_back, part_name
from mydata_like.transfer.sftp_striped import SftpStripes, map_of
from mydata_like.transfer.tiny import TINY, read_tiny
from mydata_like.transfer.zeros import Hollow

_CHUNK: Final = 256 * 1024
_MODE: Final = 0o660


class SftpSender:
    """Carries payloads over one SFTP session; knows which directories it has seen made."""

    def __init__(
        self, session: SshSession, location: bytes, room: Room, *, find_zeros: bool = False
    ) -> None:
        self._sftp = session.open_sftp()
        self._location = location
        self._room = room
        self._find_zeros = find_zeros
        self._stripes = SftpStripes(session, self._sftp, room, find_zeros=find_zeros)
        self._known: set[bytes] = set()
        self._buffer = bytearray(_CHUNK)

    def send(self, task: Task, moving: Moving) -> Done:
        """Carry a payload; raises `TransientError` when the line broke and none is proven."""
        with self._room.used():
            return self._send(task, moving)

    def replace(self, moves: Sequence[Move], moving: Moving) -> Done:
        """Put what was laid aside into its place; raises `TransientError` when the line broke."""
        fates = []
        for index, move in enumerate(moves):
            moving(0)
            fates.append(self._replace(index, move))
        return Done(tuple(fates))

    def _replace(self, index: int, move: Move) -> Fate:
        source = self._location + b"/" + move.source
        try:
            if not move.target:
                self._sftp.remove(source)
            elif self._sftp.find_size(source) != move.size:
                return missing(index, move)
            else:
                self._sftp.replace(source, self._location + b"/" + move.target)
        except RejectedError as error:
            again = error.problem_code != "staging.denied"
            return Fate(index, "", error.problem, again=again)
        return Fate(index, "")

    @property
    def round_trip(self) -> float:
        return self._sftp.round_trip

    def close(self) -> None:
        self._sftp.close()

    def _send(self, task: Task, moving: Moving) -> Done:
        fates: dict[int, Fate] = {}
        try:
            self._send_tiny(task.members, fates, moving)
            for index, member in enumerate(task.members):
                if index not in fates:
                    fates[index] = self._send_member(index, member, moving)
        except TransientError as error:
            if not any(fate.checksum for fate in fates.values()):
                raise
            lost = {
                index: Fate(index, "", error.problem, again=True)
                for index in range(len(task.members))
            }
            return Done(tuple((lost | fates).values()), broken=True)
        return Done(tuple(fates[index] for index in range(len(task.members))))

    def _send_tiny(self, members: Sequence[Member], fates: dict[int, Fate], moving: Moving) -> None:
        """Send the tiny files of a payload, many at once; the larger ones are not for this."""
        tiny = [index for index, it in enumerate(members) if it.size <= TINY and not it.inside]
        for index in tiny:
            try:
                self._make_parent(members[index])
            except RejectedError as error:
                fates[index] = self._judge(index, members[index], error)
        sent: list[tuple[int, str]] = []  # in the order in which they go

        def read(folders: FolderCache) -> Iterator[SmallFile]:
            for index in tiny:
                if index in fates:
                    continue
                member = members[index]
                try:
                    content, checksum = read_tiny(member, folders)
                except FileChangedError as error:
                    fates[index] = Fate(index, "", error.problem)
                    continue
                sent.append((index, checksum))
                target = self._target(member)
                yield SmallFile(_part(target, member), target, content, _MODE, member.modified)
                moving(member.size)

        with FolderCache() as folders:
            for place, refusal in self._sftp.put_all(read(folders)):
                index, checksum = sent[place]
                refused = refusal and self._judge(index, members[index], refusal)
                fates[index] = refused or Fate(index, checksum)

    def _send_member(self, index: int, member: Member, moving: Moving) -> Fate:
        target = self._target(member)
        part = _part(target, member)
        striped = self._stripes.suits(member)
        try:
            self._make_parent(member)
            told = (self._stripes.write if striped else self._write)(member, part, moving)
            self._sftp.set_attributes(part, mode=_MODE, modified=member.modified)
            if self._sftp.find_size(part) != member.size:
                self._remove(part)
                return Fate(index, "", describe(member.remote, b""), again=True)
            if striped:
                self._sftp.remove(map_of(part))
            self._sftp.replace(part, target)
        except FileChangedError as error:
            self._remove(part)
            return Fate(index, "", error.problem)
        except RejectedError as error:
            self._find_zeros = False  # some servers take the bytes of a file in their order only
            self._remove(part)
            return self._judge(index, member, error)
        return Fate(index, told.checksum, inside=told.inside)

    def _target(self, member: Member) -> bytes:
        return self._location + b"/" + member.remote

    def _make_parent(self, member: Member) -> None:
        parent = self._target(member).rpartition(b"/")[0]
        if parent not in self._known:
            self._sftp.make_directories(parent, 0o2770)
            self._known.add(parent)

    def _judge(self, index: int, member: Member, error: RejectedError) -> Fate:
        """Return the fate of a member that was refused; a full disk is told of as such.

        Where the server does not say so, that is just a failure, and may be over later.
        """
        self._known.discard(self._target(member).rpartition(b"/")[0])
        check_space(error.message.rstrip(".").encode())
        return Fate(index, "", error.problem, again=error.problem_code != "staging.denied")

    def _write(self, member: Member, part: bytes, moving: Moving) -> Told:
        """Write a file under its temporary name; the last chunk only if it stayed the same."""
        with open_content(member) as source:
            remote = Hollow(self._sftp.open_file(part), member.size if self._find_zeros else 0)
            try:
                for chunk in hold_back(source, source.chunks(self._buffer)):
                    remote.write(chunk)
                    moving(len(chunk))
            finally:
                remote.close()
            return Told.of(source)

    def _remove(self, part: bytes) -> None:
        """Remove what there is of a file under its temporary name."""
        for path in (part, map_of(part)):
            with suppress(RejectedError):
                self._sftp.remove(path)


def _part(target: bytes, member: Member) -> bytes:
    return target.rpartition(b"/")[0] + b"/" + part_name(member)
