"""Sends files to hosts that allow only scp: one `scp -r -t` for each payload.

The protocol is OpenSSH's (scp.c, `sink`): the control lines `D` and `E` enter and leave a
directory, `T` sets a file's times, `C` its mode, size and name. Each is answered by one byte, for
which the next line waits: some servers drop what they receive together with a line. The data of a
file must not be sent before its `C` was accepted, since it would be read as control lines.

scp cannot rename, so files are written directly to their final path; see `InPlaceSender`.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from mydata_like.core.errors import FileChangedError, StagingError, TransientError
from mydata_like.ssh.capabilities import build_scp, check_space, says_full
from mydata_like.ssh.session import SshSession, Stream
from mydata_like.transfer.archive_writer import ArchiveSource, open_content
from mydata_like.transfer.file_source import FileSource
from mydata_like.transfer.member_results import collect, missing, refuse
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
_TEXT: Final = 1024  # bytes of an error text that are read


class ScpSender:
    """Sends payloads over one session with the scp protocol."""

    round_trip = 0.0

    def __init__(self, session: SshSession, location: bytes) -> None:
        self._session = session
        self._command = build_scp(location)
        self._buffer = bytearray(_CHUNK)

    def send(self, task: SendTask, moving: Moving) -> TaskResult:
        """Send a payload; raises `TransientError` if the connection broke and none is proven."""
        results: dict[int, MemberResult] = {}
        members = enumerate(task.members)
        sink = _Sink(self._session.start(self._command), moving)
        try:
            sink.begin()
            for index, member in sorted(members, key=lambda pair: pair[1].remote.split(b"/")):
                results[index] = self._send_member(sink, index, member)
            sink.end()
        except TransientError as error:
            sink.close()
            return collect(results, len(task.members), error)
        return collect(results, len(task.members))

    def replace(self, moves: Sequence[RenameTask], moving: Moving) -> TaskResult:
        """Report replacements as missing, since nothing can be renamed."""
        return TaskResult(tuple(missing(index, move) for index, move in enumerate(moves)))

    def close(self) -> None:
        """Do nothing: no channel stays open between payloads."""

    def _send_member(self, sink: "_Sink", index: int, member: Member) -> MemberResult:
        if b"\n" in member.remote:
            return refuse(index, member.remote, b"scp supports no newlines: Not a directory")
        parent, _, name = member.remote.rpartition(b"/")
        try:
            refusal = sink.enter(parent)
            if refusal:
                return refuse(index, member.remote, refusal)
            with open_content(member) as source:
                checksum, refusal = self._write(sink, source, member, name)
        except FileChangedError as error:
            return MemberResult(index, "", error.problem)
        if refusal:
            if says_full(refusal):
                sink.empty_file(member.modified, name)
            return refuse(index, member.remote, refusal)
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
            sink.finish_file()
            raise
        return checksum, sink.finish_file()


class _Sink:
    """The remote side of the protocol, and its current directory."""

    def __init__(self, stream: Stream, moving: Moving) -> None:
        self._stream = stream
        self._moving = moving
        self._received = b""
        self._stack: list[bytes] = []
        self._left = 0  # bytes of the current file that were announced and not yet sent

    def begin(self) -> None:
        """Wait until the host is ready."""
        refusal = self._answer()
        if refusal:
            check_space(refusal)
            raise StagingError(
                f"The staging host refused scp: {refusal.decode('ascii', 'backslashreplace')}.",
                hint="The server's administrator can fix its permissions.",
            )

    def enter(self, directory: bytes) -> bytes:
        """Change to a directory and create missing ones; return the text of a refusal."""
        wanted = directory.split(b"/") if directory else []
        while self._stack != wanted[: len(self._stack)]:
            self._stack.pop()
            self._ask(b"E\n")
        for name in wanted[len(self._stack) :]:
            line = b"D2770 0 " + name + b"\n"
            # scp fails if another channel makes the directory at the same time (10.0, scp.c, sink).
            refusal = self._ask(line) and self._ask(line)
            if refusal:
                return refusal
            self._stack.append(name)
        return b""

    def announce(self, size: int, modified: int, name: bytes) -> bytes:
        """Announce a file; return the text of a refusal, after which no data may follow."""
        refusal = self._ask(b"T%d 0 %d 0\n" % (modified, modified))
        if not refusal:
            refusal = self._ask(b"C0660 %d %b\n" % (size, name))
            self._left = size
        return refusal

    def empty_file(self, modified: int, name: bytes) -> None:
        """Free the space of a file that did not fit, which cannot be removed."""
        if not self.announce(0, modified, name):
            self.finish_file()

    def write_all(self, chunks: Iterator[memoryview]) -> None:
        """Write a file's bytes, at most as many as announced."""
        for chunk in chunks:
            self._write(chunk[: self._left])

    def _write(self, chunk: memoryview) -> None:
        self._stream.write(chunk)
        self._left -= len(chunk)
        self._moving(len(chunk))

    def finish_file(self) -> bytes:
        """Fill up missing bytes with zeros; return the text of a refusal."""
        for chunk in zeros(self._left):
            self._write(chunk)
        return self._ask(b"\0")

    def end(self) -> None:
        """Leave all directories and wait for the end of scp."""
        self.enter(b"")
        self._stream.finish()

    def close(self) -> None:
        """Close the stream without completing the protocol."""
        with suppress(TransientError):
            self._stream.close()

    def _ask(self, line: bytes) -> bytes:
        self._stream.write(line)
        return self._answer()

    def _answer(self) -> bytes:
        """Return the text of a refusal; empty on success."""
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
