"""Tiny files as members of a tar stream, up to 32 in one call of the library `core/tiny_files.c`.

The library opens, checks, reads and hashes them without the interpreter. It leaves out what is
unusual, changed or unreadable: `archive_writer.read_tiny` is for these, and names the error. Those
that arrive are hashed and written by it, too, if they are as wanted.
"""

import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from struct import pack
from typing import Any, Final

from mydata_like.core import hashing
from mydata_like.core.checksums import Algorithm
from mydata_like.core.openat import BY_DESCRIPTOR, FolderCache
from mydata_like.transfer import file_source
from mydata_like.transfer.tar import BLOCK, is_plain
from mydata_like.transfer.worker_messages import Member

MOST_FILES: Final = 32  # in one call; `MOST_FILES` of the library
COMPLETE: Final = 1  # what became of a file that has arrived, as the library has it
_MOST_BYTES: Final = 256 * 1024  # of files in one call
_CAPACITY: Final = _MOST_BYTES + MOST_FILES * 2 * BLOCK + 1  # with headers and padding
_DIGITS: Final = 32  # of a checksum

Packed = list[tuple[int, str]]  # index and checksum of members, in the order of the stream


class TinyFilePacker:
    """Packs the tiny files of one batch after the other, in one thread."""

    def __init__(
        self,
        library: ctypes.CDLL | None = hashing.LOADED,
        *,
        count_fetched: Callable[[], int] = file_source.count_fetched,
    ) -> None:
        self._count_fetched = count_fetched
        # Any: a function of C
        self._call: Any = getattr(library, "pack_tiny_files", None) if BY_DESCRIPTOR else None
        if self._call is not None:
            self._call.restype = ctypes.c_size_t
            self._output = ctypes.create_string_buffer(_CAPACITY)
            self._view = memoryview(self._output).cast("B")
            self._checksums = ctypes.create_string_buffer(MOST_FILES * _DIGITS // 2)
            self._done = ctypes.create_string_buffer(MOST_FILES)
        self._waited = False  # for a disk, the last time

    def pack(
        self, members: Sequence[Member], indexes: Iterable[int], folders: FolderCache
    ) -> Iterator[tuple[memoryview, Packed]]:
        """Yield parts of a tar stream, each valid until the next, with the members in them.

        `indexes` are those of members of at most `TINY` bytes. What is left out is in no part, and
        so are all members if their checksums are not MD5.
        """
        if self._call is None or not members or members[0].algorithm is not Algorithm.MD5:
            return
        for group in _group(members, indexes):
            chosen = [members[index] for index in group]
            size = self._pack_group(chosen, folders)
            if not size:
                continue
            digits = self._checksums.raw.hex()
            yield (
                self._view[:size],
                [
                    (index, digits[place * _DIGITS : place * _DIGITS + _DIGITS])
                    for place, (index, done) in enumerate(zip(group, self._done.raw, strict=False))
                    if done
                ],
            )

    def _pack_group(self, members: Sequence[Member], folders: FolderCache) -> int:
        """Fill the output with members of one folder; return the number of bytes."""
        folder, _, _ = members[0].path.rpartition(b"/")
        names = [member.path[len(folder) + 1 :] for member in members]
        remotes = [member.remote for member in members]
        if not is_plain(b"/".join(names + remotes)):  # so no zero byte is in them either
            return 0
        try:
            descriptor = folders.enter(folder, members[0].top)
        except OSError:
            return 0
        seen = chain.from_iterable([member[1:5] for member in members])  # size to inode
        before = self._count_fetched()
        size: int = self._call(
            descriptor,
            b"\0".join(names),
            b"\0".join(remotes),
            pack("QqQQ" * len(members), *seen),
            ctypes.c_size_t(len(members)),
            self._waited,
            self._output,
            self._checksums,
            self._done,
        )
        self._waited = self._count_fetched() > before
        return size


class TinyFileWriter:
    """Writes tiny files that arrive as members of a tar stream, in one thread."""

    def __init__(self, library: ctypes.CDLL | None = hashing.LOADED) -> None:
        # Any: functions of C
        self._unpack: Any = getattr(library, "unpack_tiny_files", None) if BY_DESCRIPTOR else None
        self._rename: Any = getattr(library, "rename_tiny_files", None)
        if self._unpack is not None:
            self._unpack.restype = ctypes.c_size_t
        self._done = ctypes.create_string_buffer(MOST_FILES)

    def __bool__(self) -> bool:
        """Return whether there is such a library here."""
        return self._unpack is not None

    def unpack(
        self,
        folder: int,
        members: Sequence[bytes],
        names: Sequence[bytes],
        wanted: Iterable[tuple[int, int, str]],
        stream: tuple[bytes, int],
    ) -> tuple[int, bytes]:
        """Write new files to an open folder, at most `MOST_FILES`; see `unpack_tiny_files`.

        Of each file that is wanted, there are the name of its member and its own, and size,
        modification time and MD5. The stream begins somewhere in its bytes. Return the number of
        bytes that were used, and what became of each file.
        """
        content, start = stream
        table = [
            pack("Qq16s", size, modified_ns, bytes.fromhex(checksum))
            for size, modified_ns, checksum in wanted
        ]
        used: int = self._unpack(
            folder,
            b"\0".join(members),
            b"\0".join(names),
            b"".join(table),
            ctypes.c_size_t(len(members)),
            content,
            ctypes.c_size_t(start),
            ctypes.c_size_t(len(content)),
            self._done,
        )
        return used, self._done.raw[: len(members)]

    def rename(self, folder: int, names: Sequence[bytes], others: Sequence[bytes]) -> bytes:
        """Rename files of an open folder, at most `MOST_FILES`; return which of them were.

        Nothing is replaced.
        """
        count = ctypes.c_size_t(len(names))
        self._rename(folder, b"\0".join(names), b"\0".join(others), count, self._done)
        return self._done.raw[: len(names)]


def _group(members: Sequence[Member], indexes: Iterable[int]) -> Iterator[list[int]]:
    """Yield the indexes of members in groups, each of one folder and with room in the output."""
    group: list[int] = []
    place, held = (b"", 0), 0
    for index in indexes:
        member = members[index]
        path, size = member[:2]
        here = path[: path.rfind(b"/")], member.top
        held += size
        if here != place or held > _MOST_BYTES or len(group) == MOST_FILES:
            if group:
                yield group
            group, place, held = [], here, size
        if len(path) > member.top:  # else the user named it, who may have named a link
            group.append(index)
    if group:
        yield group
