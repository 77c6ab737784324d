"""Sends files by SFTP, or to a mounted folder: to a temporary name, then renamed if possible.

Many tiny files are in flight at once. Large files use several streams if that is faster.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Final

from mydata_like.core.errors import (
    FileChangedError,
    RejectedError,
    TransientError,
    UploaderError,
    describe_full,
)
from mydata_like.core.formatting import format_path
from mydata_like.core.openat import FolderCache
from mydata_like.ssh.capabilities import SPARE, says_full
from mydata_like.ssh.session import SftpSession, SmallFile
from mydata_like.transfer.archive_writer import (
    TINY,
    IndexLine,
    PrefetchedFile,
    fetch_ahead,
    open_content,
    read_tiny,
)
from mydata_like.transfer.member_results import collect, held, missing, refuse
from mydata_like.transfer.sparse import SMALLEST_HOLE
from mydata_like.transfer.ssh.multi_stream import BLOCK, LARGE, StripedWriter
from mydata_like.transfer.ssh.remote_shell import SessionState, hold_back
from mydata_like.transfer.ssh.single_file import RESUMABLE
from mydata_like.transfer.temporary_files import part_name
from mydata_like.transfer.throttled_session import ThrottledSession
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

    def __init__(self, session: ThrottledSession, sftp: SftpSession, state: SessionState) -> None:
        self._session = session
        self._sftp = sftp
        self._limit = state.limit
        self._find_zeros = state.find_zeros
        self._able = True  # False after the server refused a block

    def suits(self, member: Member) -> bool:
        """Return whether a file is large enough, and no block was refused so far.

        Some servers accept the bytes of a file only in order.
        """
        return self._able and member.size >= LARGE

    def write(self, member: Member, part: bytes, moving: Moving) -> IndexLine:
        """Write a file under its temporary name, except for blocks that have arrived before.

        Those blocks are not compared: this uploader wrote them, and the server verifies the whole
        file. If that fails, the file is sent with `from_scratch`.
        """
        with open_content(member) as source:
            known = () if member.from_scratch else self._find_known(member, part)
            size = member.size if self._find_zeros else 0
            own = _SftpStripe(self._sftp, part, size, keep=bool(known))
            open_stream = partial(self._open_stream, own, part, size)
            writer = StripedWriter(open_stream, self._limit, self._sftp.round_trip, moving)
            try:
                with closing(self._session.pieces(source)) as pieces:
                    writer.write(pieces, known=known)
                line = IndexLine("" if source.remaining else source.finish(), source.inside)
            except UploaderError:
                writer.abort()
                raise
        try:
            writer.finish()
        except RejectedError:
            self._able = False
            raise
        return line

    def _find_known(self, member: Member, part: bytes) -> Collection[int]:
        """Return the offsets of the blocks that have arrived."""
        found = self._sftp.read_file(map_of(part))
        there = self._sftp.find_size(part) if found else None
        starts = range(0, min(member.size, len(found) * BLOCK), BLOCK)
        return {
            start
            for start in starts
            if found[start // BLOCK] == ord(_ARRIVED)
            and min(start + BLOCK, member.size) <= (there or 0)
        }

    def _open_stream(
        self,
        own: "_SftpStripe",
        part: bytes,
        size: int,
        optional: bool,  # noqa: FBT001
    ) -> "_SftpStripe":
        return _ExtraStripe(self._session.open_sftp(), part, size, keep=True) if optional else own


class _SftpStripe:
    """A file that is written in blocks; see `StripeStream`, and `SparseWriter` for its `size`."""

    def __init__(self, sftp: SftpSession, part: bytes, size: int, *, keep: bool) -> None:
        self._sftp = sftp
        self._file = SparseWriter(sftp.open_file(part, keep=keep), size)
        self._map = sftp.open_file(map_of(part), keep=keep)
        self._last: int | None = None

    def write(self, offset: int, block: memoryview, moving: Moving) -> None:
        """Write a block at its offset; after a whole block, mark the previous one as arrived."""
        passed = self._file.passed
        with self._closing_after_failure():
            self._file.move_to(offset)
            for start in range(0, len(block), _CHUNK):
                piece = block[start : start + _CHUNK]
                self._file.write(piece, moving)
            whole = len(block) == BLOCK and self._file.passed == passed
            if whole and self._last is not None:
                self._map.move_to(self._last // BLOCK)
                self._map.write(_ARRIVED)
            self._last = offset

    def finish(self) -> None:
        """Wait until everything is written."""
        with self._closing_after_failure():
            self._file.close()
            self._map.close()

    def _close(self) -> None:
        """Close the files, so that no write is pending when they are removed."""
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


class _ExtraStripe(_SftpStripe):
    """A stream with its own SFTP session, which it closes at the end."""

    def finish(self) -> None:
        super().finish()
        self._close()

    def _close(self) -> None:
        self._sftp.close()


def map_of(part: bytes) -> bytes:
    """Return the path of a file's map of arrived blocks."""
    return part + b".map"


_CHUNK: Final = 256 * 1024
_MODE: Final = 0o660


class SftpSender:
    """Sends payloads over one SFTP session; remembers which directories exist.

    In a mounted folder, an opened file compares the bytes that an earlier attempt has left, and
    files with holes get holes; large files are not striped.
    """

    def __init__(self, session: ThrottledSession, state: SessionState) -> None:
        self._session = session
        self._sftp = session.open_sftp()
        self._location = state.location
        self._limit = state.limit
        self._find_zeros = state.find_zeros
        self._renames = state.capabilities.renames
        self._compares = state.capabilities.access == "folder"
        self._stripes = SftpStripes(session, self._sftp, state)
        self._known: set[bytes] = set()
        self._buffer = bytearray(SMALLEST_HOLE)

    def send(self, task: SendTask, moving: Moving) -> TaskResult:
        """Send a payload; raises `TransientError` if the connection broke and none is proven."""
        results: dict[int, MemberResult] = {}
        with self._limit.used():
            try:
                self._send_tiny(task.members, results, moving)
                for index, member in enumerate(task.members):
                    if index not in results:
                        results[index] = self._send_member(index, member, moving)
            except TransientError as error:
                return collect(results, len(task.members), error)
            return collect(results, len(task.members))

    def replace(self, moves: Sequence[RenameTask], moving: Moving) -> TaskResult:
        """Move replacements into place; raises `TransientError` if the connection broke."""
        results = []
        for index, move in enumerate(moves):
            moving(0)
            results.append(self._replace(index, move))
        return TaskResult(tuple(results))

    def _replace(self, index: int, move: RenameTask) -> MemberResult:
        source = self._location + b"/" + move.source
        try:
            if not move.target:
                self._sftp.remove(source)
                return MemberResult(index, "")
            target, kept = self._location + b"/" + move.target, self._location + b"/" + move.kept
            size = self._sftp.find_size(source)
            is_kept = not move.kept or self._sftp.find_size(kept) == move.kept_size
            if size is None and is_kept and self._sftp.find_size(target) == move.size:
                return MemberResult(index, "")  # an interrupted call has moved it
            if size != move.size:
                return missing(index, move)
            renamed = False
            if not is_kept:
                try:
                    renamed = self._keep(target, kept, move.kept_size)
                except RejectedError as error:
                    return held(index, error.message)
            try:
                self._sftp.replace(source, target)
            except RejectedError:
                if renamed:
                    self._sftp.replace(kept, target)
                raise
        except RejectedError as error:
            again = error.problem_code != "staging.denied"
            return MemberResult(index, "", error.problem, again=again)
        return MemberResult(index, "")

    def _keep(self, target: bytes, kept: bytes, size: int) -> bool:
        """Give what is at `target` a second name, or rename it; return whether it was renamed."""
        if self._sftp.find_size(kept) is not None:
            raise RejectedError(f"{format_path(kept)} exists already.", code="staging.refused")
        found = self._sftp.find_size(target)
        if found is None or self._sftp.link(target, kept) or found != size:
            return False  # of another size, it is not what was verified, and perhaps a folder
        self._sftp.replace(target, kept)
        return True

    @property
    def round_trip(self) -> float:
        return self._sftp.round_trip

    def close(self) -> None:
        self._sftp.close()

    def _send_tiny(
        self, members: Sequence[Member], results: dict[int, MemberResult], moving: Moving
    ) -> None:
        """Send the tiny files of a payload, many at once; larger files are skipped."""
        tiny = [index for index, it in enumerate(members) if it.size <= TINY and not it.inside]
        refusals: dict[int, RejectedError] = {}
        for index in tiny:
            try:
                self._make_parent(members[index])
            except RejectedError as error:
                refusals[index] = error
        wanted = [index for index in tiny if index not in refusals]
        sent: list[tuple[int, str]] = []  # in the order of sending

        def read(
            folders: FolderCache, ahead: Iterator[PrefetchedFile | None]
        ) -> Iterator[SmallFile]:
            for index, fetched in zip(wanted, ahead, strict=True):
                member = members[index]
                try:
                    content, checksum = read_tiny(
                        member, folders, fetched, algorithm=member.algorithm
                    )
                except FileChangedError as error:
                    results[index] = MemberResult(index, "", error.problem)
                    continue
                sent.append((index, checksum))
                target = self._target(member)
                yield SmallFile(self._part(member), target, content, _MODE, member.modified)
                moving(member.size)

        with (
            FolderCache() as folders,
            closing(fetch_ahead([members[index] for index in wanted], folders)) as ahead,
        ):
            for place, refusal in self._sftp.put_all(read(folders, ahead)):
                index, checksum = sent[place]
                if refusal:
                    refusals[index] = refusal
                else:
                    results[index] = MemberResult(index, checksum)
        free = self._sftp.find_free(self._location) if refusals else None
        for index, refusal in refusals.items():
            results[index] = self._judge(index, members[index], refusal, free)

    def _send_member(self, index: int, member: Member, moving: Moving) -> MemberResult:
        target = self._target(member)
        part = self._part(member)
        striped = self._renames and not self._compares and self._stripes.suits(member)
        try:
            self._make_parent(member)
            line = (self._stripes.write if striped else self._write)(member, part, moving)
            self._sftp.set_attributes(part, mode=_MODE, modified=member.modified)
            if self._sftp.find_size(part) != member.size:
                self._remove(part)
                return refuse(index, member.remote, b"")
            if striped:
                self._sftp.remove(map_of(part))
            if part != target:
                self._sftp.replace(part, target)
        except FileChangedError as error:
            self._remove(part)
            return MemberResult(index, "", error.problem)
        except RejectedError as error:
            self._find_zeros = False  # some servers accept the bytes of a file only in order
            self._remove(part)
            return self._judge(index, member, error, self._sftp.find_free(self._location))
        return MemberResult(index, line.checksum, inside=line.inside)

    def _target(self, member: Member) -> bytes:
        return self._location + b"/" + member.remote

    def _part(self, member: Member) -> bytes:
        """Return the path that is written to: a temporary name, if the host renames files."""
        target = self._target(member)
        if not self._renames:
            return target
        return target.rpartition(b"/")[0] + b"/" + part_name(member)

    def _make_parent(self, member: Member) -> None:
        parent = self._target(member).rpartition(b"/")[0]
        if parent not in self._known:
            self._sftp.make_directories(parent, 0o2770)
            self._known.add(parent)

    def _judge(
        self, index: int, member: Member, error: RejectedError, free: int | None
    ) -> MemberResult:
        """Return the result of a member that was refused, given the free bytes if they are known.

        If neither they nor the server name the cause, it is a failure that may be temporary.
        """
        self._known.discard(self._target(member).rpartition(b"/")[0])
        if error.problem_code == "staging.denied":
            return MemberResult(index, "", error.problem)
        short = free is not None and free < member.size + SPARE
        if short or says_full(error.message.rstrip(".").encode()):
            return MemberResult(index, "", describe_full(member.remote), again=True)
        return MemberResult(index, "", error.problem, again=True)

    def _write(self, member: Member, part: bytes, moving: Moving) -> IndexLine:
        """Write a file under its temporary name; the last chunk only if the file is unchanged."""
        with open_content(member) as source:
            sparse = self._find_zeros or (self._compares and source.may_have_holes)
            keep = self._compares and member.size >= RESUMABLE and not member.from_scratch
            remote = SparseWriter(
                self._sftp.open_file(part, keep=keep), member.size if sparse else 0
            )
            if sparse:  # in pieces as small as a hole may be
                read = hold_back(source, source.chunks(self._buffer))
            else:
                read = self._session.pieces(source)
            try:
                with closing(read) as pieces:
                    for piece in pieces:
                        remote.write(piece, moving)
            finally:
                remote.close()
            return IndexLine.of(source)

    def _remove(self, part: bytes) -> None:
        """Remove the temporary file and its map."""
        for path in (part, map_of(part)):
            with suppress(RejectedError):
                self._sftp.remove(path)
