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
    """Regular files of one folder, with their status; `prefix` is that of their keys.

    `path` is that of the folder, with a separator at its end, or that of the only file, which may
    have another name. Other fields are those that the files have in common.
    """

    path: bytes
    prefix: bytes
    directory: bytes
    top: int
    names: Sequence[bytes]
    statuses: Sequence[os.stat_result]

    def files(self) -> Iterator[LocalFile]:
        """Yield the files."""
        is_folder = self.path.endswith(_SEPARATOR)
        for name, status in zip(self.names, self.statuses, strict=True):
            yield LocalFile(
                self.path + name if is_folder else self.path,
                self.prefix + name,
                self.directory,
                name,
                status.st_size,
                bounded_ns(status.st_mtime_ns),
                status.st_dev,
                status.st_ino,
                status.st_ctime_ns,
                self.top,
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
        self.size = sum(status.st_size for part in parts for status in part.statuses)

    @property
    def devices(self) -> set[int]:
        return {status.st_dev for part in self._parts for status in part.statuses}

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
        facts = [
            (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
            for status in part.statuses
        ]
        try:
            numbers = array("q", chain.from_iterable(facts))
        except OverflowError:  # a far date, or an inode longer than SQLite's integers
            return b""
        digest.update(names + b"\0\0")
        digest.update(numbers)
    return digest.digest()
