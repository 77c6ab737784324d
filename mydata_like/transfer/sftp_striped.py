"""Striped files on hosts that allow only SFTP: blocks that are written at their places.

Beside the file lies a map with one byte for each block that has arrived, for an attempt that has
to go on where this one broke off.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from mydata_like.core.errors import RejectedError, UploaderError
from mydata_like.ssh.session import SftpSession, SshSession
from mydata_like.transfer.archive import Told, open_content
from mydata_like.transfer.crew import BLOCK, LARGE, Crew, Room
from mydata_like.transfer.protocol import Member, Moving
from mydata_like.transfer.zeros import Hollow

_CHUNK: Final = 256 * 1024
_ARRIVED: Final = b"+"


class SftpStripes:
    """Writes large files over several SFTP sessions of one SSH session, where that is faster."""

    def __init__(
        self, session: SshSession, sftp: SftpSession, room: Room, *, find_zeros: bool = False
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

    def write(self, member: Member, part: bytes, moving: Moving) -> Told:
        """Write a file under its temporary name, but for the blocks that lie there already.

        Nobody has compared these: what lies under this name was written by us, and the server
        verifies the whole. If that fails, the file comes `anew`.
        """
        with open_content(member) as source:
            known = () if member.anew else self._find_known(member, part)
            size = member.size if self._find_zeros else 0
            own = _Lane(self._sftp, part, size, keep=bool(known))
            open_lane = partial(self._open_lane, own, part, size)
            crew = Crew(open_lane, self._room, self._sftp.round_trip, moving)
            try:
                crew.carry(source.chunks(bytearray(_CHUNK)), known=known)
                told = Told("" if source.remaining else source.finish(), source.inside)
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
        own: "_Lane",
        part: bytes,
        size: int,
        helps: bool,  # noqa: FBT001
    ) -> "_Lane":
        return _Helper(self._session.open_sftp(), part, size, keep=True) if helps else own


class _Lane:
    """A file that is written block by block; see `crew.Lane`, and `Hollow` for its `size`."""

    def __init__(self, sftp: SftpSession, part: bytes, size: int, *, keep: bool) -> None:
        self._sftp = sftp
        self._file = Hollow(sftp.open_file(part, keep=keep), size)
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


class _Helper(_Lane):
    """A lane with an SFTP session of its own, which ends with it."""

    def finish(self) -> None:
        super().finish()
        self._close()

    def _close(self) -> None:
        self._sftp.close()


def map_of(part: bytes) -> bytes:
    """Return where the map of a file lies."""
    return part + b".map"
