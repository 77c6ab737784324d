"""Sends files to hosts that allow only SFTP: to a temporary name, then renamed.

Tiny ones are many under way at once, large ones over several streams where that is faster.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from mydata_like.core.errors import FileChangedError, RejectedError, TransientError, UploaderError
from mydata_like.core.openat import FolderCache
from mydata_like.ssh.capabilities import check_space
from mydata_like.ssh.session import SftpSession, SmallFile, SshSession
from mydata_like.transfer.archive_writer import TINY, IndexLine, open_content, read_tiny
from mydata_like.transfer.batch_sender import describe
from mydata_like.transfer.file_replacement import missing
from mydata_like.transfer.multi_stream import BLOCK, LARGE, StreamLimit, StripedWriter
from mydata_like.transfer.remote_shell import hold_back, part_name
from mydata_like.transfer.worker_messages import (
    Member,
    MemberResult,
    Moving,
    RenameTask,
    SendTask,
    TaskResult,
)
from mydata_like.transfer.zero_runs import SparseWriter

_ARRIVED: Final = b"+"


class SftpStripes:
    """Writes large files over several SFTP sessions of one SSH session, where that is faster."""

    def __init__(
        self, session: SshSession, sftp: SftpSession, room: StreamLimit, *, find_zeros: bool = False
    ) -> None:
        self._session = session
        self._sftp = sftp
        self._room = room
        self._find_zeros = find_zeros
        self._able = True  # until the server has refused something

    def suits(self, member: Member) -> bool:
        """Return whether a file is large enough, and no block was refused so far.

        Some servers take the bytes of a file in their order only.
        """
        return self._able and member.size >= LARGE

    def write(self, member: Member, part: bytes, moving: Moving) -> IndexLine:
        """Write a file under its temporary name, but for the blocks that lie there already.

        Nobody has compared these: what lies under this name was written by us, and the server
        verifies the whole. If that fails, the file is sent `anew`.
        """
        with open_content(member) as source:
            known = () if member.anew else self._find_known(member, part)
            size = member.size if self._find_zeros else 0
            own = _SftpStripe(self._sftp, part, size, keep=bool(known))
            open_lane = partial(self._open_lane, own, part, size)
            crew = StripedWriter(open_lane, self._room, self._sftp.round_trip, moving)
            try:
                crew.carry(source.chunks(bytearray(_CHUNK)), known=known)
                told = IndexLine("" if source.remaining else source.finish(), source.inside)
            except UploaderError:
                crew.dismiss()
                raise
        try:
            crew.finish()
        except RejectedError:
            self._able = False
            raise
        return told

    def _find_known(self, member: Member, part: bytes) -> Collection[int]:
        """Return where the blocks begin that have arrived."""
        found = self._sftp.read_file(map_of(part))
        there = self._sftp.find_size(part) if found else None
        starts = range(0, min(member.size, len(found) * BLOCK), BLOCK)
        return {
            start
            for start in starts
            if found[start // BLOCK] == ord(_ARRIVED)
            and min(start + BLOCK, member.size) <= (there or 0)
        }

    def _open_lane(
        self,
        own: "_SftpStripe",
        part: bytes,
        size: int,
        helps: bool,  # noqa: FBT001
    ) -> "_SftpStripe":
        return _Helper(self._session.open_sftp(), part, size, keep=True) if helps else own


class _SftpStripe:
    """A file that is written block by block; see `crew.Lane`, and `SparseWriter` for its `size`."""

    def __init__(self, sftp: SftpSession, part: bytes, size: int, *, keep: bool) -> None:
        self._sftp = sftp
        self._file = SparseWriter(sftp.open_file(part, keep=keep), size)
        self._map = sftp.open_file(map_of(part), keep=keep)
        self._last: int | None = None

    def write(self, offset: int, block: memoryview, moving: Moving) -> None:
        """Write a block to its place; at the end of a whole one, the one before is answered."""
        passed = self._file.passed
        with self._closing_after_failure():
            self._file.move_to(offset)
            for start in range(0, len(block), _CHUNK):
                piece = block[start : start + _CHUNK]
                self._file.write(piece)
                moving(len(piece))
            whole = len(block) == BLOCK and self._file.passed == passed
            if whole and self._last is not None:
                self._map.move_to(self._last // BLOCK)
                self._map.write(_ARRIVED)
            self._last = offset

    def finish(self) -> None:
        """Wait until everything has been written."""
        with self._closing_after_failure():
            self._file.close()
            self._map.close()

    def _close(self) -> None:
        """Give the files back, so that nothing is under way when they are removed."""
        for file in (self._file, self._map):
            with suppress(UploaderError):
                file.close()

    @contextmanager
    def _closing_after_failure(self) -> Iterator[None]:
        try:
            yield
        except UploaderError:
            self._close()
            raise


class _Helper(_SftpStripe):
    """A lane with an SFTP session of its own, which ends with it."""

    def finish(self) -> None:
        super().finish()
        self._close()

    def _close(self) -> None:
        self._sftp.close()


def map_of(part: bytes) -> bytes:
    """Return where the map of a file lies."""
    return part + b".map"


_CHUNK: Final = 256 * 1024
_MODE: Final = 0o660


class SftpSender:
    """Carries payloads over one SFTP session; knows which directories it has seen made."""

    def __init__(
        self, session: SshSession, location: bytes, room: StreamLimit, *, find_zeros: bool = False
    ) -> None:
        self._sftp = session.open_sftp()
        self._location = location
        self._room = room
        self._find_zeros = find_zeros
        self._stripes = SftpStripes(session, self._sftp, room, find_zeros=find_zeros)
        self._known: set[bytes] = set()
        self._buffer = bytearray(_CHUNK)

    def send(self, task: SendTask, moving: Moving) -> TaskResult:
        """Carry a payload; raises `TransientError` when the line broke and none is proven."""
        with self._room.used():
            return self._send(task, moving)

    def replace(self, moves: Sequence[RenameTask], moving: Moving) -> TaskResult:
        """Put what was laid aside into its place; raises `TransientError` when the line broke."""
        fates = []
        for index, move in enumerate(moves):
            moving(0)
            fates.append(self._replace(index, move))
        return TaskResult(tuple(fates))

    def _replace(self, index: int, move: RenameTask) -> MemberResult:
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
            return MemberResult(index, "", error.problem, again=again)
        return MemberResult(index, "")

    @property
    def round_trip(self) -> float:
        return self._sftp.round_trip

    def close(self) -> None:
        self._sftp.close()

    def _send(self, task: SendTask, moving: Moving) -> TaskResult:
        fates: dict[int, MemberResult] = {}
        try:
            self._send_tiny(task.members, fates, moving)
            for index, member in enumerate(task.members):
                if index not in fates:
                    fates[index] = self._send_member(index, member, moving)
        except TransientError as error:
            if not any(fate.checksum for fate in fates.values()):
                raise
            lost = {
                index: MemberResult(index, "", error.problem, again=True)
                for index in range(len(task.members))
            }
            return TaskResult(tuple((lost | fates).values()), broken=True)
        return TaskResult(tuple(fates[index] for index in range(len(task.members))))

    def _send_tiny(
        self, members: Sequence[Member], fates: dict[int, MemberResult], moving: Moving
    ) -> None:
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
                    fates[index] = MemberResult(index, "", error.problem)
                    continue
                sent.append((index, checksum))
                target = self._target(member)
                yield SmallFile(_part(target, member), target, content, _MODE, member.modified)
                moving(member.size)

        with FolderCache() as folders:
            for place, refusal in self._sftp.put_all(read(folders)):
                index, checksum = sent[place]
                refused = refusal and self._judge(index, members[index], refusal)
                fates[index] = refused or MemberResult(index, checksum)

    def _send_member(self, index: int, member: Member, moving: Moving) -> MemberResult:
        target = self._target(member)
        part = _part(target, member)
        striped = self._stripes.suits(member)
        try:
            self._make_parent(member)
            told = (self._stripes.write if striped else self._write)(member, part, moving)
            self._sftp.set_attributes(part, mode=_MODE, modified=member.modified)
            if self._sftp.find_size(part) != member.size:
                self._remove(part)
                return MemberResult(index, "", describe(member.remote, b""), again=True)
            if striped:
                self._sftp.remove(map_of(part))
            self._sftp.replace(part, target)
        except FileChangedError as error:
            self._remove(part)
            return MemberResult(index, "", error.problem)
        except RejectedError as error:
            self._find_zeros = False  # some servers take the bytes of a file in their order only
            self._remove(part)
            return self._judge(index, member, error)
        return MemberResult(index, told.checksum, inside=told.inside)

    def _target(self, member: Member) -> bytes:
        return self._location + b"/" + member.remote

    def _make_parent(self, member: Member) -> None:
        parent = self._target(member).rpartition(b"/")[0]
        if parent not in self._known:
            self._sftp.make_directories(parent, 0o2770)
            self._known.add(parent)

    def _judge(self, index: int, member: Member, error: RejectedError) -> MemberResult:
        """Return the result of a member that was refused; a full disk is reported as such.

        Where the server does not say so, that is just a failure, and may be over later.
        """
        self._known.discard(self._target(member).rpartition(b"/")[0])
        check_space(error.message.rstrip(".").encode())
        return MemberResult(index, "", error.problem, again=error.problem_code != "staging.denied")

    def _write(self, member: Member, part: bytes, moving: Moving) -> IndexLine:
        """Write a file under its temporary name; the last chunk only if it stayed the same."""
        with open_content(member) as source:
            remote = SparseWriter(
                self._sftp.open_file(part), member.size if self._find_zeros else 0
            )
            try:
                for chunk in hold_back(source, source.chunks(self._buffer)):
                    remote.write(chunk)
                    moving(len(chunk))
            finally:
                remote.close()
            return IndexLine.of(source)

    def _remove(self, part: bytes) -> None:
        """Remove what there is of a file under its temporary name."""
        for path in (part, map_of(part)):
            with suppress(RejectedError):
                self._sftp.remove(path)


def _part(target: bytes, member: Member) -> bytes:
    return target.rpartition(b"/")[0] + b"/" + part_name(member)
