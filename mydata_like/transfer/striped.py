"""Striped files on hosts with a shell and GNU dd, which writes each block at its place.

What has arrived is noted beside the file, for an attempt that has to go on where this one broke
off: there it is known from its start on, up to the first gap.
"""

import math
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Final

from mydata_like.core.errors import FileChangedError, RejectedError, UploaderError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import CommandResult, Stream
from mydata_like.transfer.archive import Told, open_content
from mydata_like.transfer.crew import FAR, LARGE, Crew, Room
from mydata_like.transfer.ground import DROP, Ground
from mydata_like.transfer.protocol import Member, Moving
from mydata_like.transfer.resume import compare, resume
from mydata_like.transfer.shell import Shells, finish_refused

_UNIT: Final = 256 * 1024  # bytes that go together
_UNABLE: Final = 97  # this dd knows too little
_UNWRITTEN: Final = 95  # bytes could not be written
_PROBE: Final = (
    b"dd of=/dev/null bs=1 count=0 seek=0 status=none oflag=seek_bytes iflag=fullblock "
    b"</dev/null 2>/dev/null || exit %d; "
) % _UNABLE
_BEGIN: Final = _PROBE + DROP
_GO_ON: Final = _PROBE + b'echo "0 %d" > "./$t.at"'
# A block is only noted when the line after it came: what a broken line ends is a part of one.
_TAKE: Final = (
    b'while IFS=" " read -r o b c; do '
    b'dd of="./$t" bs="$b" count="$c" seek="$o" status=none '
    b"oflag=seek_bytes iflag=fullblock conv=notrunc || exit 95; "
    b'IFS= read -r e && [ "$e" = . ] || exit 94; '
    b'echo "$o $((b * c))" >> "./$t.at"; done'
)
# Leaves of a file what is known to be there from its start on.
MEND: Final = (
    b'p=$(sort -n "./$t.at" | { p=0; while IFS=" " read -r o l; do [ "$o" -le "$p" ] || break; '
    b'[ $((o + l)) -le "$p" ] || p=$((o + l)); done; echo "$p"; }); '
    b'dd of="./$t" bs=1 count=0 seek="$p" </dev/null 2>/dev/null || rm -f -- "./$t"; '
    b'rm -f -- "./$t.at"; '
)


class StripedSender:
    """Sends large files by several streams where one would be slower."""

    def __init__(self, shells: Shells, ground: Ground, rung: HostCapabilities, room: Room) -> None:
        self._shells = shells
        self._ground = ground
        self._room = room
        self._checksum = rung.checksum
        self._able = rung.tar == "gnu"  # whose dd may know enough

    def suits(self, size: int) -> bool:
        """Return whether several streams may be faster than one: the host is far away."""
        if not self._able or size < LARGE:
            return False
        return FAR <= self._shells.find_round_trip(FAR) < math.inf

    def send(self, member: Member, there: int, moving: Moving) -> tuple[Told, CommandResult] | None:
        """Send what follows the bytes that are there; its name is given to the file by others.

        None where this does not work here, or what is there is not ours.
        """
        with open_content(member) as source:
            chunks = source.chunks(bytearray(_UNIT))
            rest = self._begin(member, there, chunks, moving)
            if rest is None:
                return None
            moving(there)
            open_lane = partial(self._open_lane, member)
            crew = Crew(open_lane, self._room, self._shells.round_trip, moving)
            try:
                crew.carry(chain((rest,), chunks), there)
                told = Told("" if source.remaining else source.finish(), source.inside)
            except UploaderError as error:
                crew.dismiss()
                if isinstance(error, FileChangedError):
                    self._ground.drop(member)
                raise
        try:
            crew.finish()
        except _EndedError as error:
            if error.finished.status == _UNWRITTEN:
                self._ground.drop(member)
            return told, error.finished
        return told, CommandResult(0, b"", b"")

    def _begin(
        self, member: Member, there: int, chunks: Iterator[memoryview], moving: Moving
    ) -> memoryview | None:
        """Have streams write beyond what is there; return what was read of that.

        None where they cannot, or what is there is not ours.
        """
        script = resume(there, self._checksum) + _GO_ON % there if there else _BEGIN
        stream = self._ground.start(member, script)
        rest = memoryview(b"")
        if there:
            same, rest = compare(stream, chunks, there, moving)
            if same:
                stream.write(b"append\n")
        begun = stream.finish()
        self._able = begun.status != _UNABLE
        return rest if begun.status == 0 else None

    def _open_lane(self, member: Member, helps: bool) -> "_Lane":  # noqa: FBT001 - as Crew asks
        return _Lane(self._ground.start(member, _TAKE, patient=not helps))


class _EndedError(RejectedError):
    """A script has ended that should have taken more."""

    def __init__(self, finished: CommandResult) -> None:
        super().__init__("The staging host's shell has ended.")
        self.finished = finished


class _Lane:
    """The script `_TAKE` at work; see `crew.Lane`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, offset: int, block: memoryview, moving: Moving) -> None:
        """Send a block to its place; dd takes as many whole units as there are, then the rest."""
        whole = len(block) - len(block) % _UNIT
        try:
            self._send(offset, _UNIT, block[:whole], moving)
            self._send(offset + whole, len(block) - whole, block[whole:], moving)
        except UploaderError as error:
            raise _EndedError(finish_refused(self._stream, error)) from error

    def finish(self) -> None:
        """Wait until everything has been written."""
        finished = self._stream.finish()
        if finished.status != 0:
            raise _EndedError(finished)

    def _send(self, offset: int, unit: int, block: memoryview, moving: Moving) -> None:
        if not block:
            return
        self._stream.write(b"%d %d %d\n" % (offset, unit, len(block) // unit))
        for start in range(0, len(block), unit):
            piece = block[start : start + unit]
            self._stream.write(piece)
            moving(len(piece))
        self._stream.write(b".\n")
