"""The packets of SFTP: requests, replies and status codes.

The protocol is version 3, draft-ietf-secsh-filexfer-02, as implemented by OpenSSH, with its
extensions posix-rename@openssh.com, hardlink@openssh.com, statvfs@openssh.com, fsync@openssh.com
and limits@openssh.com (its file PROTOCOL).
"""

import struct
from typing import Final, NamedTuple

from mydata_like.core.errors import RejectedError, TransientError
from mydata_like.core.formatting import format_path

INIT, VERSION = 1, 2
OPEN, CLOSE, READ, WRITE, LSTAT, FSTAT = 3, 4, 5, 6, 7, 8
REALPATH, READLINK, SYMLINK = 16, 19, 20
SETSTAT, OPENDIR, READDIR, REMOVE, MKDIR, RMDIR, STAT, RENAME = 9, 11, 12, 13, 14, 15, 17, 18
STATUS, HANDLE, DATA, NAME, ATTRIBUTES = 101, 102, 103, 104, 105
EXTENDED, EXTENDED_REPLY = 200, 201

OK, END, NO_SUCH_FILE, DENIED, FAILURE, BAD_MESSAGE, UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8
TO_READ, TO_WRITE, TO_CREATE, TO_TRUNCATE, TO_EXCLUDE = 1, 2, 8, 16, 32
HAS_SIZE, HAS_OWNER, HAS_MODE, HAS_TIMES, HAS_MORE = 1, 2, 4, 8, 0x8000_0000

PIECE: Final = 32_640  # bytes of one write request; with its header it fits into one SSH packet
UNANSWERED: Final = 64  # write requests in flight, 2 MiB: the size of the SSH window
MOST_REQUESTS: Final = 256  # requests in flight for small files; each file needs three to five
READ_SIZE: Final = 32 * 1024  # bytes that every server supports
SMALLEST: Final = 5  # bytes of a reply: type and id
LARGEST: Final = 256 * 1024  # bytes of a reply; OpenSSH's own limit (sftp-common.h)
SMALL_FILE: Final = 16 * 1024 * 1024  # bytes; the map of a 64 TB file has one byte per 4 MiB
REFUSED: Final = "ssh.sftp-refused"
POSIX_RENAME: Final = b"posix-rename@openssh.com"
HARDLINK: Final = b"hardlink@openssh.com"
STATVFS: Final = b"statvfs@openssh.com"
FSYNC: Final = b"fsync@openssh.com"
LIMITS: Final = b"limits@openssh.com"


_NO_REASONS: Final = ("", "failure", "error")  # texts of a status that explain nothing


class EndedError(TransientError):
    """The server ended SFTP; the SSH session may still be usable."""

    def __init__(self) -> None:
        super().__init__("The server ended SFTP.", code="link.lost")


class StatusError(RejectedError):
    """The server refused a request with this status code, and perhaps a reason."""

    def __init__(self, message: str, status: int, reason: str, *, hint: str = "") -> None:
        code = "staging.denied" if status == DENIED else "staging.refused"
        super().__init__(message, hint=hint, code=code)
        self.status = status
        self.reason = reason


class SftpReply(NamedTuple):
    """The server's reply to the request with this id."""

    kind: int
    id: int
    body: bytes


Request = tuple[int, bytes] | tuple[int, bytes, bytes]


def build_writes(handle: bytes, content: bytes) -> list[Request]:
    """Return the requests that write a file's content from its start."""
    return [
        (WRITE, handle + struct.pack(">QI", start, len(piece)), piece)
        for start in range(0, len(content), PIECE)
        for piece in [content[start : start + PIECE]]
    ]


def build_description(path: bytes, mode: int, modified: float) -> tuple[int, bytes]:
    """Return the request that sets a file's mode and modification time."""
    moment = max(0, min(int(modified), 0xFFFFFFFF))
    fields = struct.pack(">IIII", HAS_MODE | HAS_TIMES, mode, moment, moment)
    return SETSTAT, pack(path) + fields


def read_size(reply: SftpReply) -> int:
    """Return the size in attributes; 0 if missing, -1 if the reply has no attributes."""
    if reply.kind != ATTRIBUTES:
        return -1
    flags, size = struct.unpack_from(">IQ", reply.body.ljust(12, b"\0"))
    return int(size) if flags & HAS_SIZE else 0


class Attributes(NamedTuple):
    """The attributes of a remote file, 0 if missing; the time is seconds since 1970."""

    size: int = 0
    mode: int = 0
    modified: int = 0


def split_attributes(packet: bytes) -> tuple[Attributes, bytes]:
    """Return the attributes at the start of a packet, and the rest; raises `struct.error`."""
    (flags,) = struct.unpack_from(">I", packet)
    size = mode = modified = 0
    at = 4
    if flags & HAS_SIZE:
        (size,) = struct.unpack_from(">Q", packet, at)
        at += 8
    at += 8 if flags & HAS_OWNER else 0
    if flags & HAS_MODE:
        (mode,) = struct.unpack_from(">I", packet, at)
        at += 4
    if flags & HAS_TIMES:
        _, modified = struct.unpack_from(">II", packet, at)
        at += 8
    rest = packet[at:]
    if flags & HAS_MORE:
        (count,) = struct.unpack_from(">I", rest)
        rest = rest[4:]
        for _ in range(2 * count):
            _, rest = split(rest)
    return Attributes(size, mode, modified), rest


def read_free(reply: SftpReply) -> int | None:
    """Return the free bytes in a reply to `STATVFS`, 0 without a free inode; None if refused."""
    if reply.kind != EXTENDED_REPLY:
        return None
    fields = struct.unpack_from(">11Q", reply.body.ljust(88, b"\0"))
    unit, available, inodes, free_inodes = fields[1], fields[4], fields[5], fields[7]
    return 0 if inodes and not free_inodes else int(unit * available)


def is_read_only(reply: SftpReply) -> bool:
    """Return whether a reply to `STATVFS` is about a read-only file system."""
    return reply.kind == EXTENDED_REPLY and bool(reply.body.ljust(88, b"\0")[79] & 1)


def read_limit(reply: SftpReply) -> int:
    """Return the bytes of one read in a reply to `LIMITS`, so that the answer may be received."""
    if reply.kind != EXTENDED_REPLY:
        return READ_SIZE
    most = int.from_bytes(reply.body[8:16], "big")
    return min(most, LARGEST - 1024) if most > READ_SIZE else READ_SIZE


def read_names(reply: SftpReply) -> list[tuple[bytes, Attributes]]:
    """Return the directory entries in a reply."""
    (count,) = struct.unpack_from(">I", reply.body)
    rest, entries = reply.body[4:], []
    for _ in range(count):
        name, rest = split(rest)
        _, rest = split(rest)  # a line in the format of `ls -l`
        attributes, rest = split_attributes(rest)
        entries.append((name, attributes))
    return entries


def check_size(reply: SftpReply, path: bytes, size: int) -> None:
    """Check that a file has this size; raises `RejectedError`."""
    if reply.kind == ATTRIBUTES and read_size(reply) != size:
        message = f"{format_path(path)} was not written completely by the server."
        raise RejectedError(message, code="staging.refused")
    if reply.kind != ATTRIBUTES:
        raise rejected(reply, path)


def pack(value: bytes) -> bytes:
    """Return a string in the wire format."""
    return struct.pack(">I", len(value)) + value


def split(packet: bytes) -> tuple[bytes, bytes]:
    """Return the string at the start of a packet, and the rest."""
    (length,) = struct.unpack_from(">I", packet.ljust(4, b"\0"))
    return packet[4 : 4 + length], packet[4 + length :]


def read_extensions(greeting: bytes) -> frozenset[bytes]:
    """Return the extension names in a server's greeting, after its version."""
    texts, rest = [], greeting[4:]
    while rest:
        text, rest = split(rest)
        texts.append(text)
    return frozenset(texts[::2])  # every second one is a version


def read_code(reply: SftpReply) -> int:
    """Return the code of a status reply."""
    if reply.kind != STATUS:
        raise protocol_error()
    return int.from_bytes(reply.body[:4], "big")


def rejected(reply: SftpReply, path: bytes) -> StatusError:
    """Return the error for a refused request, with the server's message."""
    status, text = read_code(reply), format_path(split(reply.body[4:])[0])[:200].rstrip(".")
    if status == FAILURE and text.lower() in _NO_REASONS:
        return StatusError(
            f"{format_path(path)} was refused by the server, which gives no reason.",
            status,
            "",
            hint="A quota that is used up is a common one. The server's administrator can find it.",
        )
    message = f"{format_path(path)} was refused by the server: {text or 'refused'}."
    return StatusError(message, status, text)


def protocol_error() -> TransientError:
    """Return the error for a host that violates the protocol."""
    return TransientError("The staging host does not follow the SFTP protocol.", code="link.lost")
