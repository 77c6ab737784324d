"""Files as a scan has found them, in groups that are compared as a whole."""

import hashlib
import os
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, overload

from mydata_like.core.local_files import LocalFile, bounded_ns

_SEPARATOR: Final = os.fsencode(os.sep)


class FolderPart(NamedTuple):
    """Regular files of one folder; `prefix` is that of their keys, and `size` that of all bytes.

    `path` is that of the folder, with a separator at its end, or that of the only file, which may
    have another name. Further fields are as in `core.folder_entries`; a file alone may have facts
    of more than 64 bits. The others are those that the files have in common.
    """

    path: bytes
    prefix: bytes
    directory: bytes
    top: int
    names: Sequence[bytes]
    facts: Sequence[int]
    devices: Sequence[int]
    modes: Sequence[int]
    size: int

    def files(self) -> Iterator[LocalFile]:
        """Yield the files."""
        is_folder = self.path.endswith(_SEPARATOR)
        facts = iter(self.facts)
        # A file's four facts are next to one another.
        described = zip(
            self.names, facts, facts, facts, facts, self.devices, self.modes, strict=False
        )
        for name, size, modified_ns, ctime_ns, inode, device, mode in described:
            yield LocalFile(
                self.path + name if is_folder else self.path,
                self.prefix + name,
                self.directory,
                name,
                size,
                bounded_ns(modified_ns),
                device,
                inode,
                ctime_ns,
                self.top,
                mode,
            )


class ScannedFiles(Sequence[LocalFile]):
    """Files as they were scanned, each of which is described when it is needed.

    Two groups of files have the same `digest` only if the ledger could not tell them apart: they
    have the same keys, sizes, times, inodes and order. It is empty if it was not computed, as for
    files with names of archives.
    """

    def __init__(self, parts: Sequence[FolderPart]) -> None:
        self._parts = parts
        self._files: tuple[LocalFile, ...] | None = None
        self.digest = _digest(parts)
        self.size = sum(part.size for part in parts)

    @property
    def devices(self) -> set[int]:
        return set(chain.from_iterable(part.devices for part in self._parts))

    def _list(self) -> tuple[LocalFile, ...]:
        if self._files is None:
            self._files = tuple(file for part in self._parts for file in part.files())
        return self._files

    def __len__(self) -> int:
        return sum(len(part.names) for part in self._parts)

    def __iter__(self) -> Iterator[LocalFile]:
        return iter(self._list())

    @overload
    def __getitem__(self, index: int) -> LocalFile: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[LocalFile, ...]: ...
    def __getitem__(self, index: int | slice) -> LocalFile | tuple[LocalFile, ...]:
        return self._list()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._list() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._list())


def _digest(parts: Sequence[FolderPart]) -> bytes:
    """Return the digest of `ScannedFiles`."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        names = b"\0".join((part.prefix, *part.names))
        if b".tar\0" in names + b"\0":
            return b""
        try:
            numbers = array("q", part.facts)
        except OverflowError:  # a far date, or an inode longer than SQLite's integers
            return b""
        digest.update(names + b"\0\0")
        digest.update(numbers)
    return digest.digest()
