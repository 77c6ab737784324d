"""File operations by SFTP over a stream of either SSH stack, writes pipelined.

The protocol is version 3, draft-ietf-secsh-filexfer-02, the one that OpenSSH speaks; with its
extension posix-rename@openssh.com.
"""

import struct
from typing import Final, NamedTuple

from mydata_like.core.errors import RejectedError, TransientError
from mydata_like.core.format import format_path
from mydata_like.ssh.session import Stream

_INIT, _VERSION = 1, 2
_OPEN, _CLOSE, _WRITE = 3, 4, 6
_SETSTAT, _REMOVE, _MKDIR, _STAT, _RENAME = 9, 13, 14, 17, 18
_STATUS, _HANDLE, _ATTRIBUTES = 101, 102, 105
_EXTENDED: Final = 200

_OK, _NO_SUCH_FILE, _DENIED, _UNSUPPORTED = 0, 2, 3, 8
_TO_WRITE, _TO_APPEND, _TO_CREATE, _TO_TRUNCATE = 2, 4, 8, 16
_HAS_SIZE, _HAS_MODE, _HAS_TIMES = 1, 4, 8

_PIECE: Final = 32_640  # bytes of one write request; with its head it fits one SSH packet
_UNANSWERED: Final = 64  # write requests under way, 2 MiB: what the SSH window holds
_LARGEST: Final = 256 * 1024  # of an answer
_REFUSED: Final = "ssh.sftp-refused"
_POSIX_RENAME: Final = b"posix-rename@openssh.com"


class _Answer(NamedTuple):
    kind: int
    id: int
    body: bytes


class Sftp:
    """One SFTP session; see `SftpSession`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._received = bytearray()
        self._id = 0
        self._extensions = self._greet()

    def open_file(self, path: bytes, *, append: bool = False) -> "SftpFile":
        """Open a file for writing: from its start, emptied, or at its end."""
        size = (self.find_size(path) or 0) if append else 0
        flags = _TO_WRITE | _TO_CREATE | (0 if append else _TO_TRUNCATE)
        answer = self.ask(_OPEN, _text(path) + struct.pack(">II", flags, 0))
        if answer.kind != _HANDLE:
            raise _rejected(answer, path)
        return SftpFile(self, path, answer.body, size)

    def make_directories(self, path: bytes, mode: int) -> None:
        """Make a directory and those above it, where missing."""
        if self.find_size(path) is not None:
            return
        parent = path.rstrip(b"/").rpartition(b"/")[0]
        if parent:
            self.make_directories(parent, mode)
        attributes = struct.pack(">II", _HAS_MODE, mode)
        answer = self.ask(_MKDIR, _text(path) + attributes)
        if _code(answer) == _OK:
            # The server's umask was applied, and it never sets the group bit by itself.
            self.ask(_SETSTAT, _text(path) + attributes)
        elif self.find_size(path) is None:  # another channel may have been faster
            raise _rejected(answer, path)

    def find_size(self, path: bytes) -> int | None:
        answer = self.ask(_STAT, _text(path))
        if answer.kind != _ATTRIBUTES:
            if _code(answer) == _NO_SUCH_FILE:
                return None
            raise _rejected(answer, path)
        flags, size = struct.unpack_from(">IQ", answer.body.ljust(12, b"\0"))
        return int(size) if flags & _HAS_SIZE else 0

    def replace(self, source: bytes, target: bytes) -> None:
        """Rename over whatever `target` was."""
        if _POSIX_RENAME in self._extensions:
            answer = self.ask(_EXTENDED, _text(_POSIX_RENAME) + _text(source) + _text(target))
        else:
            # Without the extension a rename does not replace; there is a moment without the file.
            self.remove(target)
            answer = self.ask(_RENAME, _text(source) + _text(target))
        self._check(answer, target)

    def set_attributes(self, path: bytes, *, mode: int, modified: float) -> None:
        moment = max(0, min(int(modified), 0xFFFFFFFF))
        fields = struct.pack(">IIII", _HAS_MODE | _HAS_TIMES, mode, moment, moment)
        self._check(self.ask(_SETSTAT, _text(path) + fields), path)

    def remove(self, path: bytes) -> None:
        """Remove a file; its absence is not an error."""
        answer = self.ask(_REMOVE, _text(path))
        if _code(answer) != _NO_SUCH_FILE:
            self._check(answer, path)

    def close(self) -> None:
        """Drop the SFTP session; the SSH session stays."""
        self._stream.close()

    def ask(self, kind: int, body: bytes) -> _Answer:
        """Send a request and wait for its answer; nothing else may be under way."""
        number = self.send(kind, body)
        answer = self.receive()
        if answer.id != number:
            raise _confused()
        return answer

    def send(self, kind: int, head: bytes, data: bytes | memoryview = b"") -> int:
        """Send a request without waiting; return its number."""
        self._id = (self._id + 1) & 0xFFFFFFFF
        length = 5 + len(head) + len(data)
        self._stream.write(b"".join((struct.pack(">IBI", length, kind, self._id), head, data)))
        return self._id

    def receive(self) -> _Answer:
        """Wait for the next answer."""
        packet = self._receive_packet()
        kind, number = struct.unpack_from(">BI", packet.ljust(5, b"\0"))
        return _Answer(kind, number, packet[5:])

    def _greet(self) -> frozenset[bytes]:
        """Agree on the version; return the names of the server's extensions."""
        self._stream.write(struct.pack(">IBI", 5, _INIT, 3))
        first = self._take(5)
        if first[4:] != bytes([_VERSION]):  # a login script's words, rather
            said = format_path(first + self._stream.read_ready())[:200]
            raise RejectedError(f"The server answered SFTP with: {said}.", code=_REFUSED)
        packet = first[4:] + self._take(int.from_bytes(first[:4], "big") - 1)
        names, rest = set(), packet[5:]
        while rest:
            name, rest = _split(rest)
            _, rest = _split(rest)
            names.add(name)
        return frozenset(names)

    def _receive_packet(self) -> bytes:
        (length,) = struct.unpack(">I", self._take(4))
        if length > _LARGEST:
            raise _confused()
        return self._take(length)

    def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            more = self._stream.read(64 * 1024)
            if not more:
                raise RejectedError("The server ended SFTP.", code=_REFUSED)
            self._received += more
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def _check(self, answer: _Answer, path: bytes) -> None:
        if _code(answer) != _OK:
            raise _rejected(answer, path)


class SftpFile:
    """A file opened for writing; many writes are under way at once."""

    def __init__(self, sftp: Sftp, path: bytes, handle: bytes, offset: int) -> None:
        self._sftp = sftp
        self._path = path
        self._handle = handle  # with its length before it, as it goes over the wire
        self._offset = offset
        self._unanswered = 0
        self._failure: _Answer | None = None

    def write(self, data: bytes | memoryview) -> None:
        """Write at the end; raises `RejectedError` as soon as a write is known to have failed."""
        view = memoryview(data).cast("B")
        while view:
            piece, view = view[:_PIECE], view[_PIECE:]
            head = self._handle + struct.pack(">QI", self._offset, len(piece))
            self._sftp.send(_WRITE, head, piece)
            self._offset += len(piece)
            self._unanswered += 1
            self._await(_UNANSWERED)
            self._raise_failure()

    def close(self) -> None:
        """Wait until the server has answered every write."""
        self._await(0)
        answer = self._sftp.ask(_CLOSE, self._handle)
        self._raise_failure()
        if _code(answer) != _OK:
            raise _rejected(answer, self._path)

    def _await(self, limit: int) -> None:
        while self._unanswered > limit:
            answer = self._sftp.receive()
            self._unanswered -= 1
            if _code(answer) != _OK:
                self._failure = self._failure or answer

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise _rejected(self._failure, self._path)


def _text(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def _split(packet: bytes) -> tuple[bytes, bytes]:
    (length,) = struct.unpack_from(">I", packet.ljust(4, b"\0"))
    return packet[4 : 4 + length], packet[4 + length :]


def _code(answer: _Answer) -> int:
    if answer.kind != _STATUS:
        raise _confused()
    return int.from_bytes(answer.body[:4], "big")


def _rejected(answer: _Answer, path: bytes) -> RejectedError:
    """Return the error of a refused request, in the server's words."""
    said = format_path(_split(answer.body[4:])[0])[:200].rstrip(".") or "refused"
    code = "staging.denied" if _code(answer) == _DENIED else "staging.refused"
    return RejectedError(f"{format_path(path)} was refused by the server: {said}.", code=code)


def _confused() -> TransientError:
    return TransientError("The staging host does not speak SFTP as expected.", code="link.lost")
