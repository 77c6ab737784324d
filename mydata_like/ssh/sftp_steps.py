"""The steps of SFTP operations on files and folders, of which `Sftp.run_all` runs many at once.

The server follows symbolic links above what a path names. Refusals raise `StatusError`.
"""

import stat
import struct
from typing import Final, NamedTuple

from mydata_like.core.errors import RejectedError
from mydata_like.ssh import sftp_protocol as wire
from mydata_like.ssh.sftp import Steps

_NEW: Final = wire.TO_WRITE | wire.TO_CREATE | wire.TO_EXCLUDE


class OpenedFile(NamedTuple):
    """A regular file that is open for reading; `handle` is as in the wire format.

    `flushed` is whether the server says that its bytes are on stable storage.
    """

    handle: bytes
    attributes: wire.Attributes
    flushed: bool


def find(path: bytes, *, follow: bool = False) -> Steps[wire.Attributes | None]:
    """Return the attributes of what a path names, None if it is missing.

    They are those of a link itself unless it is to be followed.
    """
    (reply,) = yield [(wire.STAT if follow else wire.LSTAT, wire.pack(path))]
    return _read_attributes(reply, path)


def list_folder(path: bytes) -> Steps[list[tuple[bytes, wire.Attributes]]]:
    """Return the entries of a folder; links are not followed."""
    (opened,) = yield [(wire.OPENDIR, wire.pack(path))]
    if opened.kind != wire.HANDLE:
        raise wire.rejected(opened, path)
    found: list[tuple[bytes, wire.Attributes]] = []
    while True:
        (reply,) = yield [(wire.READDIR, opened.body)]
        if reply.kind != wire.NAME:
            break
        found += wire.read_names(reply)
    yield [(wire.CLOSE, opened.body)]
    if wire.read_code(reply) != wire.END:
        raise wire.rejected(reply, path)
    entries = [(name, attributes) for name, attributes in found if name not in (b".", b"..")]
    if any(not name or b"/" in name or b"\0" in name for name, _ in entries):
        raise wire.protocol_error()
    return entries


def open_to_read(path: bytes, *, flush: bool) -> Steps[OpenedFile | None]:
    """Open a regular file, and `flush` it; return None for what is missing or something else.

    A FIFO is not opened, since that would wait for a writer.
    """
    (found,) = yield [(wire.LSTAT, wire.pack(path))]
    before = _read_attributes(found, path)
    if before is None or not stat.S_ISREG(before.mode):
        return None
    flags = struct.pack(">II", wire.TO_READ, 0)
    (opened,) = yield [(wire.OPEN, wire.pack(path) + flags)]
    if opened.kind != wire.HANDLE:
        raise wire.rejected(opened, path)
    handle = opened.body
    replies = yield [*([_flush(handle)] if flush else []), (wire.FSTAT, handle)]
    failed = flush and wire.read_code(replies[0]) == wire.FAILURE
    if failed or _read_attributes(replies[-1], path) != before:
        yield [(wire.CLOSE, handle)]
        if failed:
            raise wire.rejected(replies[0], path)
        return None
    return OpenedFile(handle, before, flush and wire.read_code(replies[0]) == wire.OK)


def read_block(handle: bytes, start: int, size: int, unit: int) -> Steps[bytes]:
    """Return a part of a file, shorter at its end; each request is for at most `unit` bytes."""
    end, pieces = start + size, dict[int, bytes]()
    wanted = [(place, min(unit, end - place)) for place in range(start, end, unit)]
    while wanted:
        replies = yield [(wire.READ, handle + struct.pack(">QI", *it)) for it in wanted]
        left = []
        for (place, length), reply in zip(wanted, replies, strict=True):
            if reply.kind != wire.DATA:
                if wire.read_code(reply) != wire.END:
                    raise wire.rejected(reply, b"the file")
                end = min(end, place)
                continue
            data = wire.split(reply.body)[0]
            if not 0 < len(data) <= length:
                raise wire.protocol_error()
            pieces[place] = data
            if len(data) < length:
                left.append((place + len(data), length - len(data)))
        wanted = [it for it in left if it[0] < end]
    return b"".join(pieces[place] for place in sorted(pieces) if place < end)


def read_whole(path: bytes, most: int, unit: int) -> Steps[tuple[bytes, wire.Attributes] | None]:
    """Return the content and attributes of a regular file of at most `most` bytes, or None."""
    file = yield from open_to_read(path, flush=False)
    if file is None:
        return None
    content = b""
    if file.attributes.size <= most:
        content = yield from read_block(file.handle, 0, file.attributes.size, unit)
    yield [(wire.CLOSE, file.handle)]
    return (content, file.attributes) if file.attributes.size <= most else None


def read_link(path: bytes) -> Steps[bytes | None]:
    """Return what a symbolic link contains."""
    (read,) = yield [(wire.READLINK, wire.pack(path))]
    if read.kind != wire.NAME:
        raise wire.rejected(read, path)
    return next((name for name, _ in wire.read_names(read)), None)


def close_after(handle: bytes, path: bytes) -> Steps[wire.Attributes | None]:
    """Close a file; return the attributes of what its path names then."""
    _, found = yield [(wire.CLOSE, handle), (wire.LSTAT, wire.pack(path))]
    return _read_attributes(found, path)


def write_new(path: bytes, content: bytes, *, flush: bool) -> Steps[None]:
    """Write a new file, and `flush` it where that is possible; a refused one is removed."""
    (opened,) = yield [(wire.OPEN, wire.pack(path) + struct.pack(">II", _NEW, 0))]
    if opened.kind != wire.HANDLE:
        raise wire.rejected(opened, path)
    handle, writes = opened.body, wire.build_writes(opened.body, content)
    try:
        *written, flushed, closed, found = yield [
            *writes,
            _flush(handle) if flush else (wire.FSTAT, handle),
            (wire.CLOSE, handle),
            (wire.LSTAT, wire.pack(path)),
        ]
        for reply in (*written, closed):
            _check(reply, path)
        if flush and wire.read_code(flushed) == wire.FAILURE:
            raise wire.rejected(flushed, path)
        wire.check_size(found, path, len(content))
    except RejectedError:
        yield [(wire.REMOVE, wire.pack(path))]
        raise


def flush_folder(path: bytes) -> Steps[None]:
    """Make the names in a folder durable, where the server opens folders like files."""
    flags = struct.pack(">II", wire.TO_READ, 0)
    (opened,) = yield [(wire.OPEN, wire.pack(path) + flags)]
    if opened.kind == wire.HANDLE:
        yield [_flush(opened.body), (wire.CLOSE, opened.body)]


def rename(source: bytes, target: bytes, mode: int | None) -> Steps[wire.Attributes | None]:
    """Set the `mode` of a file and rename it; return its attributes, None if the name is taken.

    OpenSSH never replaces a file by this request. Other servers may, so the name is looked up
    first; what appears there in between could be replaced by them.
    """
    (there,) = yield [(wire.LSTAT, wire.pack(target))]
    if there.kind == wire.ATTRIBUTES:
        return None
    *_, renamed, found = yield [
        *([_set_mode(source, mode)] if mode is not None else []),
        (wire.RENAME, wire.pack(source) + wire.pack(target)),
        (wire.LSTAT, wire.pack(target)),
    ]
    if wire.read_code(renamed) == wire.OK:
        return _read_attributes(found, target)
    if found.kind == wire.ATTRIBUTES:
        return None
    raise wire.rejected(renamed, target)


def set_mode(path: bytes, mode: int) -> Steps[None]:
    """Set the permissions of a file."""
    (reply,) = yield [_set_mode(path, mode)]
    _check(reply, path)


def describe(path: bytes, mode: int, modified: float) -> Steps[None]:
    """Set the permissions and the modification time of a file or folder."""
    (reply,) = yield [wire.build_description(path, mode, modified)]
    _check(reply, path)


def make_folder(path: bytes) -> Steps[wire.Attributes | None]:
    """Make a folder, unless there is something; return the attributes of what is there then."""
    made, found = yield [
        (wire.MKDIR, wire.pack(path) + struct.pack(">I", 0)),
        (wire.LSTAT, wire.pack(path)),
    ]
    if wire.read_code(made) != wire.OK and found.kind != wire.ATTRIBUTES:
        raise wire.rejected(made, path)
    return _read_attributes(found, path)


def make_link(path: bytes, target: bytes, *, target_first: bool) -> Steps[bool]:
    """Make a symbolic link; return False if there is something else than an identical one."""
    (there,) = yield [(wire.LSTAT, wire.pack(path))]
    attributes = _read_attributes(there, path)
    if attributes is None:
        (made,) = yield [_symlink(path, target, target_first=target_first)]
        _check(made, path)
        return True
    if not stat.S_ISLNK(attributes.mode):
        return False
    return (yield from read_link(path)) == target


def find_link_order(one: bytes, other: bytes) -> Steps[bool]:
    """Return whether the server takes the target of a link before its path; both must be free.

    OpenSSH does, unlike the specification (its file PROTOCOL, 4.1), and others follow either. With
    the wrong order, a link would be made somewhere else.
    """
    made, first, second = yield [
        _symlink(other, one, target_first=True),
        (wire.LSTAT, wire.pack(one)),
        (wire.LSTAT, wire.pack(other)),
    ]
    for path, found in ((one, first), (other, second)):
        if found.kind == wire.ATTRIBUTES:
            yield [(wire.REMOVE, wire.pack(path))]
    _check(made, other)
    return second.kind == wire.ATTRIBUTES


def remove(path: bytes) -> Steps[None]:
    """Remove a file or link; a missing one is not an error."""
    (reply,) = yield [(wire.REMOVE, wire.pack(path))]
    if wire.read_code(reply) != wire.NO_SUCH_FILE:
        _check(reply, path)


def remove_folder(path: bytes) -> Steps[None]:
    """Remove an empty folder."""
    (reply,) = yield [(wire.RMDIR, wire.pack(path))]
    _check(reply, path)


def _read_attributes(reply: wire.SftpReply, path: bytes) -> wire.Attributes | None:
    if reply.kind == wire.ATTRIBUTES:
        return wire.split_attributes(reply.body)[0]
    if wire.read_code(reply) == wire.NO_SUCH_FILE:
        return None
    raise wire.rejected(reply, path)


def _check(reply: wire.SftpReply, path: bytes) -> None:
    if wire.read_code(reply) != wire.OK:
        raise wire.rejected(reply, path)


def _flush(handle: bytes) -> wire.Request:
    return wire.EXTENDED, wire.pack(wire.FSYNC) + handle


def _set_mode(path: bytes, mode: int) -> wire.Request:
    return wire.SETSTAT, wire.pack(path) + struct.pack(">II", wire.HAS_MODE, mode)


def _symlink(path: bytes, target: bytes, *, target_first: bool) -> wire.Request:
    names = (target, path) if target_first else (path, target)
    return wire.SYMLINK, b"".join(map(wire.pack, names))
