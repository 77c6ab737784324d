"""Sends files to hosts that allow only scp: one `scp -r -t` for each payload.

The protocol is OpenSSH's (scp.c, `sink`): control lines `D` and `E` enter and leave a
directory, `T` says a file's times, `C` its mode, size and name; each is answered by a byte.
The data of a file must not be sent before its `C` was accepted, else it would be read as
control lines; everything up to the next file's `C` goes with it in one flight.

There is no renaming here, so files grow in their final place. New ones are not registered yet.
What is to replace the bytes of a record is only read at first, and sent when the server no longer
vouches for those.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from mydata_like.core.errors import FileChangedError, StagingError, TransientError
from mydata_like.ssh.capabilities import build_scp, check_space
from mydata_like.ssh.session import SshSession, Stream
from mydata_like.transfer.archive_writer import ArchiveSource, open_content
from mydata_like.transfer.batch_sender import describe
from mydata_like.transfer.file_replacement import missing
from mydata_like.transfer.file_source import FileSource
from mydata_like.transfer.sparse import zeros
from mydata_like.transfer.worker_messages import (
    LOST,
    Member,
    MemberResult,
    Moving,
    RenameTask,
    SendTask,
    TaskResult,
)

_CHUNK: Final = 256 * 1024
_TEXT: Final = 1024  # bytes of a refusal's text that are read


class ScpSender:
    """Carries payloads over one session by the scp protocol."""

    round_trip = 0.0

    def __init__(self, session: SshSession, location: bytes) -> None:
        self._session = session
        self._command = build_scp(location)
        self._buffer = bytearray(_CHUNK)

    def send(self, task: SendTask, moving: Moving) -> TaskResult:
        """Carry a payload; raises `TransientError` when the line broke and none is proven."""
        if any(member.aside for member in task.members):
            read = (self._measure(*member, moving) for member in enumerate(task.members))
            return TaskResult(tuple(read))
        sink = _Sink(self._session.start(self._command), moving)
        fates: dict[int, MemberResult] = {}
        broken = False
        try:
            sink.begin()
            for index, member in _by_directory(task.members):
                fates[index] = self._send_member(sink, index, member)
            sink.end()
        except TransientError:
            sink.close()
            if not any(fate.checksum for fate in fates.values()):
                raise
            broken = True
        for index, member in enumerate(task.members):
            if index not in fates:
                fates[index] = MemberResult(index, "", describe(member.remote, b""), again=True)
        return TaskResult(tuple(fates[index] for index in range(len(task.members))), broken)

    def replace(self, moves: Sequence[RenameTask], moving: Moving) -> TaskResult:
        """Send into their places what was only read before; the rest cannot get there."""
        fates = {index: missing(index, move) for index, move in enumerate(moves) if move.target}
        going = [(index, move.member) for index, move in enumerate(moves) if move.member]
        sent = TaskResult(())
        if going:
            sent = self.send(SendTask(tuple(member for _, member in going), batched=False), moving)
        fates |= {going[it.place][0]: it._replace(place=going[it.place][0]) for it in sent.fates}
        rest = {
            index: MemberResult(index, "") for index, move in enumerate(moves) if not move.target
        }
        return TaskResult(tuple(fate for _, fate in sorted((fates | rest).items())), sent.broken)

    def close(self) -> None:
        """Nothing stays open between payloads."""

    def _measure(self, index: int, member: Member, moving: Moving) -> MemberResult:
        """Read a file whose place is taken by bytes that the server vouches for."""
        try:
            with open_content(member) as source:
                for _ in source.chunks(self._buffer):
                    moving(0)
                return MemberResult(index, source.finish(), inside=source.inside)
        except FileChangedError as error:
            return MemberResult(index, "", error.problem)

    def _send_member(self, sink: "_Sink", index: int, member: Member) -> MemberResult:
        if b"\n" in member.remote:
            return self._refused(index, member, b"scp knows no newlines: Not a directory")
        parent, _, name = member.remote.rpartition(b"/")
        try:
            refusal = sink.enter(parent)
            if refusal:
                return self._refused(index, member, refusal)
            with open_content(member) as source:
                checksum, refusal = self._write(sink, source, member, name)
        except FileChangedError as error:
            return MemberResult(index, "", error.problem)
        if refusal:
            return self._refused(index, member, refusal)
        return MemberResult(index, checksum, inside=source.inside)

    def _write(
        self, sink: "_Sink", source: FileSource | ArchiveSource, member: Member, name: bytes
    ) -> tuple[str, bytes]:
        """Write one file; return its checksum, or the text of a refusal."""
        refusal = sink.announce(member.size, member.modified, name)
        if refusal:
            return "", refusal
        try:
            sink.write_all(source.chunks(self._buffer))
            checksum = source.finish()
        except FileChangedError:
            sink.conclude()
            raise
        return checksum, sink.conclude()

    def _refused(self, index: int, member: Member, text: bytes) -> MemberResult:
        check_space(text)
        problem = describe(member.remote, text)
        return MemberResult(index, "", problem, again=problem.code != "staging.denied")


def _by_directory(members: Sequence[Member]) -> Iterator[tuple[int, Member]]:
    """Yield the members so that no directory is entered twice."""
    order = sorted(range(len(members)), key=lambda index: members[index].remote.split(b"/"))
    for index in order:
        yield index, members[index]


class _Sink:
    """The other side of the protocol, and the directory it is in."""

    def __init__(self, stream: Stream, moving: Moving) -> None:
        self._stream = stream
        self._moving = moving
        self._received = b""
        self._stack: list[bytes] = []
        self._left = 0  # bytes of the current file that were promised and have not gone

    def begin(self) -> None:
        """Wait until the other side is ready."""
        refusal = self._answer()
        if refusal:
            check_space(refusal)
            raise StagingError(
                f"The staging host refused scp: {refusal.decode('ascii', 'backslashreplace')}.",
                hint="The server's administrator can fix its permissions.",
            )

    def enter(self, directory: bytes) -> bytes:
        """Go to a directory, making what is missing; return the text of a refusal."""
        wanted = directory.split(b"/") if directory else []
        while self._stack != wanted[: len(self._stack)]:
            self._stack.pop()
            self._ask(b"E\n")
        for name in wanted[len(self._stack) :]:
            refusal = self._ask(b"D2770 0 " + name + b"\n")
            if refusal:
                return refusal
            self._stack.append(name)
        return b""

    def announce(self, size: int, modified: int, name: bytes) -> bytes:
        """Promise a file; return the text of a refusal, after which no data may follow."""
        self._stream.write(b"T%d 0 %d 0\nC0660 %d %b\n" % (modified, modified, size, name))
        refusal = self._answer() or b""
        self._left = size
        return self._answer() or refusal

    def write_all(self, chunks: Iterator[memoryview]) -> None:
        """Write a file's bytes, never more than promised."""
        for chunk in chunks:
            self._write(chunk[: self._left])

    def _write(self, chunk: memoryview) -> None:
        self._stream.write(chunk)
        self._left -= len(chunk)
        self._moving(len(chunk))

    def conclude(self) -> bytes:
        """Keep the promise with zeros where need be; return the text of a refusal."""
        for chunk in zeros(self._left):
            self._write(chunk)
        return self._ask(b"\0")

    def end(self) -> None:
        """Leave all directories and wait for the end."""
        self.enter(b"")
        self._stream.finish()

    def close(self) -> None:
        """Leave it in the middle."""
        with suppress(TransientError):
            self._stream.close()

    def _ask(self, line: bytes) -> bytes:
        self._stream.write(line)
        return self._answer()

    def _answer(self) -> bytes:
        """Return the text of a refusal; empty when all is well."""
        kind = self._take(1)
        if kind == b"\0":
            return b""
        text = b""
        while not text.endswith(b"\n") and len(text) < _TEXT:
            text += self._take(1)
        if kind not in (b"\1", b"\2"):
            raise TransientError(
                "The staging host does not follow the scp protocol.", code="staging.protocol"
            )
        return text.strip() or b"refused"

    def _take(self, count: int) -> bytes:
        if not self._received:
            self._received = self._stream.read(4096)
            if not self._received:
                raise TransientError("The staging host ended scp.", code=LOST)
        taken, self._received = self._received[:count], self._received[count:]
        return taken
