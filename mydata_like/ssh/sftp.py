"""SFTP file operations over a stream of either SSH library, with pipelined writes.

The protocol is version 3, draft-ietf-secsh-filexfer-02, as implemented by OpenSSH, with its
extensions posix-rename@openssh.com, hardlink@openssh.com, statvfs@openssh.com, fsync@openssh.com
and limits@openssh.com.
"""

import stat
import struct
import time
from collections.abc import Generator, Iterable, Iterator
from typing import Generic, TypeVar

from mydata_like.core.errors import RejectedError
from mydata_like.core.formatting import format_path
from mydata_like.ssh import sftp_protocol as wire
from mydata_like.ssh.session import RemoteEntry, SmallFile, SshSession, Stream

T = TypeVar("T")

# An operation that takes several round trips: it yields its next requests, receives the replies to
# them, and returns its result.
Steps = Generator[list[wire.Request], list[wire.SftpReply], T]


class _Operation(Generic[T]):
    """An operation in flight: its steps, and the replies to the current requests."""

    def __init__(self, place: int, steps: Steps[T]) -> None:
        self.place = place
        self.steps = steps
        self.replies: dict[int, wire.SftpReply | None] = {}


class Sftp:
    """One SFTP session; see `SftpSession`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._received = bytearray()
        self._unsent = bytearray()
        self._id = 0
        self._writing: dict[int, SftpFile] = {}  # by the ids of unanswered requests
        self.round_trip = 0.0  # seconds, the shortest response time so far
        self._extensions = self._negotiate_version()

    def open_file(self, path: bytes, *, keep: bool = False) -> "SftpFile":
        """Open a file for writing at its start; it is truncated unless `keep` is set."""
        flags = wire.TO_WRITE | wire.TO_CREATE | (0 if keep else wire.TO_TRUNCATE)
        return SftpFile(self, path, self._open(path, flags))

    def read_file(self, path: bytes) -> bytes:
        """Return the content of a small file; empty if it does not exist."""
        if self.find_size(path) is None:
            return b""
        handle = self._open(path, wire.TO_READ)
        content = bytearray()
        while True:
            place = struct.pack(">QI", len(content), wire.READ_SIZE)
            reply = self.request(wire.READ, handle + place)
            data = wire.split(reply.body)[0] if reply.kind == wire.DATA else b""
            if not data:
                break
            content += data
            if len(content) > wire.SMALL_FILE:
                raise wire.protocol_error()
        self.request(wire.CLOSE, handle)
        if reply.kind == wire.DATA:  # empty data, which is not the end of a file
            raise wire.protocol_error()
        if wire.read_code(reply) != wire.END:
            raise wire.rejected(reply, path)
        return bytes(content)

    def _open(self, path: bytes, flags: int) -> bytes:
        reply = self.request(wire.OPEN, wire.pack(path) + struct.pack(">II", flags, 0))
        if reply.kind != wire.HANDLE:
            raise wire.rejected(reply, path)
        return reply.body

    def make_directories(self, path: bytes, mode: int) -> None:
        """Create a directory and its missing parents."""
        if self.find_size(path) is not None:
            return
        parent = path.rstrip(b"/").rpartition(b"/")[0]
        if parent:
            self.make_directories(parent, mode)
        attributes = struct.pack(">II", wire.HAS_MODE, mode)
        reply = self.request(wire.MKDIR, wire.pack(path) + attributes)
        if wire.read_code(reply) == wire.OK:
            # The server applied its umask, and mkdir never sets the setgid bit.
            self.request(wire.SETSTAT, wire.pack(path) + attributes)
        elif self.find_size(path) is None:  # another channel may have created it
            raise wire.rejected(reply, path)

    def find_size(self, path: bytes) -> int | None:
        reply = self.request(wire.STAT, wire.pack(path))
        if reply.kind != wire.ATTRIBUTES:
            if wire.read_code(reply) == wire.NO_SUCH_FILE:
                return None
            raise wire.rejected(reply, path)
        return wire.read_size(reply)

    def find_modified(self, path: bytes) -> int:
        """Return the modification time of a file, in seconds since 1970 by the server's clock."""
        reply = self.request(wire.STAT, wire.pack(path))
        if reply.kind != wire.ATTRIBUTES:
            raise wire.rejected(reply, path)
        return wire.split_attributes(reply.body)[0].modified

    def find_free(self, path: bytes) -> int | None:
        """Return the bytes that are free for new files below a path; None if not known."""
        if wire.STATVFS not in self._extensions:
            return None
        return wire.read_free(self._describe_system(path))

    def is_read_only(self, path: bytes) -> bool:
        """Return whether a path is known to be in a read-only file system."""
        return wire.STATVFS in self._extensions and wire.is_read_only(self._describe_system(path))

    def _describe_system(self, path: bytes) -> wire.SftpReply:
        return self.request(wire.EXTENDED, wire.pack(wire.STATVFS) + wire.pack(path))

    def find_home(self) -> bytes:
        """Return the absolute path of the folder to which others are relative."""
        reply = self.request(wire.REALPATH, wire.pack(b"."))
        if reply.kind != wire.NAME:
            raise wire.rejected(reply, b".")
        try:
            return wire.read_names(reply)[0][0]
        except (struct.error, IndexError) as error:
            raise wire.protocol_error() from error

    @property
    def flushes(self) -> bool:
        """Whether the server can write a file to stable storage."""
        return wire.FSYNC in self._extensions

    def find_read_size(self) -> int:
        """Return the bytes that one request may read."""
        if wire.LIMITS not in self._extensions:
            return wire.READ_SIZE
        return wire.read_limit(self.request(wire.EXTENDED, wire.pack(wire.LIMITS)))

    def list_files(self, path: bytes) -> list[RemoteEntry]:
        """Return the regular files of a directory."""
        reply = self.request(wire.OPENDIR, wire.pack(path))
        if reply.kind != wire.HANDLE:
            raise wire.rejected(reply, path)
        handle, found = reply.body, list[RemoteEntry]()
        try:
            while (reply := self.request(wire.READDIR, handle)).kind == wire.NAME:
                for name, attributes in wire.read_names(reply):
                    if stat.S_ISREG(attributes.mode):
                        found.append(RemoteEntry(name, attributes.size, attributes.modified))
        except struct.error as error:
            raise wire.protocol_error() from error
        self.request(wire.CLOSE, handle)
        if wire.read_code(reply) != wire.END:
            raise wire.rejected(reply, path)
        return found

    def replace(self, source: bytes, target: bytes) -> None:
        """Rename and replace `target`."""
        *first, rename = self._renaming(source, target)
        for request in first:
            self.request(*request)
        self._check(self.request(*rename), target)

    def link(self, source: bytes, target: bytes) -> bool:
        """Give a file a second name that does not exist yet; return whether the server did."""
        if wire.HARDLINK not in self._extensions:
            return False
        names = wire.pack(source) + wire.pack(target)
        reply = self.request(wire.EXTENDED, wire.pack(wire.HARDLINK) + names)
        return wire.read_code(reply) == wire.OK

    def set_attributes(self, path: bytes, *, mode: int, modified: float) -> bool:
        """Set a file's mode and modification time; return whether the server does that."""
        reply = self.request(*wire.build_description(path, mode, modified))
        return wire.read_code(reply) == wire.OK

    def put_all(self, puts: Iterable[SmallFile]) -> Iterator[tuple[int, RejectedError | None]]:
        """Write small files, many in flight at once; yield the index and error of each."""
        return self.run_all(map(self._put, puts))

    def run_all(
        self, operations: Iterable[Steps[T]], most: int = wire.MOST_REQUESTS
    ) -> Iterator[tuple[int, T | RejectedError]]:
        """Run operations with about `most` requests in flight; yield index and result of each.

        They end in any order. Unless all results are taken, the session cannot be used any more.
        """
        running: dict[int, _Operation[T]] = {}  # by the ids of their requests
        try:
            for place, steps in enumerate(operations):
                while len(running) >= most:
                    yield from self._process_reply(running)
                yield from self._continue(_Operation(place, steps), running)
            while running:
                yield from self._process_reply(running)
        except struct.error as error:
            raise wire.protocol_error() from error

    def _put(self, put: SmallFile) -> Steps[None]:
        """Yield the next requests; receive the replies to the previous ones."""
        flags = struct.pack(">II", wire.TO_WRITE | wire.TO_CREATE | wire.TO_TRUNCATE, 0)
        (opened,) = yield [(wire.OPEN, wire.pack(put.part) + flags)]
        if opened.kind != wire.HANDLE:
            raise wire.rejected(opened, put.part)
        try:
            *written, _, found = yield [
                *wire.build_writes(opened.body, put.content),
                (wire.CLOSE, opened.body),
                wire.build_description(put.part, put.mode, put.modified),  # may be refused
                (wire.STAT, wire.pack(put.part)),
            ]
            for reply in written:
                self._check(reply, put.part)
            wire.check_size(found, put.part, len(put.content))
            if put.part != put.target:
                *_, renamed = yield self._renaming(put.part, put.target)
                self._check(renamed, put.target)
        except RejectedError:
            yield [(wire.REMOVE, wire.pack(put.part))]
            raise

    def _process_reply(
        self, running: dict[int, _Operation[T]]
    ) -> Iterator[tuple[int, T | RejectedError]]:
        """Process the next reply; yield the result of an operation when it is complete."""
        reply = self.receive()
        operation = running.pop(reply.id, None)
        if operation is None:
            raise wire.protocol_error()
        operation.replies[reply.id] = reply
        if None not in operation.replies.values():
            yield from self._continue(operation, running)

    def _continue(
        self, operation: _Operation[T], running: dict[int, _Operation[T]]
    ) -> Iterator[tuple[int, T | RejectedError]]:
        """Send the next requests of an operation, or yield its result."""
        replies = [reply for reply in operation.replies.values() if reply]
        try:
            requests = operation.steps.send(replies) if replies else next(operation.steps)
        except StopIteration as end:
            yield operation.place, end.value
            return
        except RejectedError as error:
            yield operation.place, error
            return
        operation.replies = dict.fromkeys(self.send(*request) for request in requests)
        running.update(dict.fromkeys(operation.replies, operation))

    def _renaming(self, source: bytes, target: bytes) -> "list[wire.Request]":
        names = wire.pack(source) + wire.pack(target)
        if wire.POSIX_RENAME in self._extensions:
            return [(wire.EXTENDED, wire.pack(wire.POSIX_RENAME) + names)]
        # Without the extension, a rename does not replace a file; the file is missing for a moment.
        return [(wire.REMOVE, wire.pack(target)), (wire.RENAME, names)]

    def remove(self, path: bytes) -> None:
        """Remove a file; a missing file is not an error."""
        reply = self.request(wire.REMOVE, wire.pack(path))
        if wire.read_code(reply) != wire.NO_SUCH_FILE:
            self._check(reply, path)

    def remove_directory(self, path: bytes) -> None:
        """Remove an empty directory; a missing one is not an error."""
        reply = self.request(wire.RMDIR, wire.pack(path))
        if wire.read_code(reply) != wire.NO_SUCH_FILE:
            self._check(reply, path)

    def close(self) -> None:
        """Close the SFTP session; the SSH session stays open."""
        self._stream.close()

    def request(self, kind: int, body: bytes) -> wire.SftpReply:
        """Send a request and wait for its reply, after the replies to all earlier writes."""
        self.await_writes()
        started = time.perf_counter()
        number = self.send(kind, body)
        reply = self.receive()
        if reply.id != number:
            raise wire.protocol_error()
        self.round_trip = min(self.round_trip, time.perf_counter() - started)
        return reply

    def write(self, file: "SftpFile", head: bytes, piece: memoryview) -> None:
        """Send a file's next write, and wait if too many are in flight."""
        self._writing[self.send(wire.WRITE, head, piece)] = file
        self.await_writes(wire.UNANSWERED)

    def await_writes(self, most: int = 0) -> None:
        """Wait until at most `most` writes are unanswered."""
        while len(self._writing) > most:
            reply = self.receive()
            file = self._writing.pop(reply.id, None)
            if file is None:
                raise wire.protocol_error()
            file.record_reply(reply)

    def send(self, kind: int, head: bytes, data: bytes | memoryview = b"") -> int:
        """Send a request without waiting, small ones together; return its id."""
        self._id = (self._id + 1) & 0xFFFFFFFF
        length = 5 + len(head) + len(data)
        self._unsent += struct.pack(">IBI", length, kind, self._id)
        self._unsent += head
        self._unsent += data
        if len(self._unsent) >= wire.PIECE:
            self._flush()
        return self._id

    def receive(self) -> wire.SftpReply:
        """Wait for the next reply."""
        (length,) = struct.unpack(">I", self._take(4))
        if not wire.SMALLEST <= length <= wire.LARGEST:
            raise wire.protocol_error()
        packet = self._take(length)
        kind, number = struct.unpack_from(">BI", packet)
        return wire.SftpReply(kind, number, packet[5:])

    def _negotiate_version(self) -> frozenset[bytes]:
        """Negotiate the version; return the names of the server's extensions."""
        started = time.perf_counter()
        self._stream.write(struct.pack(">IBI", 5, wire.INIT, 3))
        try:
            first = self._take(5)
            self.round_trip = time.perf_counter() - started
            length = int.from_bytes(first[:4], "big")
            # Output of a login script would be a length of up to two gigabytes.
            if first[4:] != bytes([wire.VERSION]) or not 5 <= length <= wire.LARGEST:
                text = format_path(first + self._stream.read_ready())[:200]
                raise RejectedError(f"The server answered SFTP with: {text}.", code=wire.REFUSED)
            return wire.read_extensions(self._take(length - 1))
        except wire.EndedError as error:
            raise RejectedError(error.message, code=wire.REFUSED) from error

    def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            self._flush()
            more = self._stream.read(64 * 1024)
            if not more:
                raise wire.EndedError()
            self._received += more
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def _flush(self) -> None:
        if self._unsent:
            self._stream.write(memoryview(self._unsent))
            self._unsent = bytearray()

    def _check(self, reply: wire.SftpReply, path: bytes) -> None:
        if wire.read_code(reply) != wire.OK:
            raise wire.rejected(reply, path)


def open_on(session: SshSession) -> Sftp:
    """Open the SFTP subsystem of a host; raises `RejectedError` if it is refused."""
    sftp = session.open_sftp()
    assert isinstance(sftp, Sftp)  # not that of a folder
    return sftp


class SftpFile:
    """A file opened for writing, with many writes in flight at once."""

    def __init__(self, sftp: Sftp, path: bytes, handle: bytes) -> None:
        self._sftp = sftp
        self._path = path
        self._handle = handle  # with its length prefix, as in the wire format
        self._offset = 0
        self._failure: wire.SftpReply | None = None

    def move_to(self, offset: int) -> None:
        """Set the offset of the next write."""
        self._offset = offset

    def write(self, data: bytes | memoryview) -> None:
        """Write data; raises `RejectedError` as soon as a write is known to have failed."""
        view = memoryview(data).cast("B")
        while view:
            piece, view = view[: wire.PIECE], view[wire.PIECE :]
            head = self._handle + struct.pack(">QI", self._offset, len(piece))
            self._sftp.write(self, head, piece)
            self._offset += len(piece)
            self._raise_failure()

    def close(self) -> None:
        """Wait until the server has acknowledged every write."""
        reply = self._sftp.request(wire.CLOSE, self._handle)
        self._raise_failure()
        if wire.read_code(reply) != wire.OK:
            raise wire.rejected(reply, self._path)

    def record_reply(self, reply: wire.SftpReply) -> None:
        """Process the reply to a write."""
        if wire.read_code(reply) != wire.OK:
            self._failure = self._failure or reply

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise wire.rejected(self._failure, self._path)
