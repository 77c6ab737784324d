"""Files as a scan has found them, in groups that are compared as a whole."""

import hashlib
import os
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, overload

from mydata_like.core.local_files import LocalFile, bounded_ns

_SEPARATOR: Final = os.fsencode(os.sep)
_ARCHIVE: Final = b".tar"  # the end of their names
FACTS: Final = 4  # numbers of each file
DIVISOR: Final = 100  # a part begins where an inode is a multiple of it
FEWEST, MOST = 20, 500  # files of a part, unless it is the last


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

    def cut(self, start: int, end: int) -> "FolderPart":
        """Return some of the files."""
        facts = self.facts[FACTS * start : FACTS * end]
        return self._replace(
            names=self.names[start:end],
            facts=facts,
            devices=self.devices[start:end],
            modes=self.modes[start:end],
            size=sum(facts[::FACTS]),
        )

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
    """Files as they were scanned, each of which is described when it is needed."""

    def __init__(self, parts: Sequence[FolderPart]) -> None:
        self._parts = parts
        self._files: tuple[LocalFile, ...] | None = None
        self.size = sum(part.size for part in parts)

    @property
    def digest(self) -> bytes:
        """The same as of other files only if the ledger could not tell these from them.

        They have the same keys, sizes, times, inodes and order. It is empty for files with the
        names of archives, and with numbers that the ledger does not store.
        """
        return _digest(self._parts)

    def divide(self) -> Iterator["ScannedFiles"]:
        """Yield the files in parts; a file more or less changes one or two of them."""
        taken: list[FolderPart] = []
        count = 0
        for part in self._parts:
            start = 0
            for at, inode in enumerate(part.facts[FACTS - 1 :: FACTS]):
                ends = count >= FEWEST and inode % DIVISOR == 0
                if ends or count >= MOST:
                    if at > start:
                        taken.append(part.cut(start, at))
                    yield ScannedFiles(taken)
                    taken, start, count = [], at, 0
                count += 1
            taken.append(part.cut(start, len(part.names)) if start else part)
        if count:
            yield ScannedFiles(taken)

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


def is_named_like_archive(file: LocalFile) -> bool:
    """Return whether an archive of other files could have the name of a file."""
    return file.name.endswith(_ARCHIVE)


def _digest(parts: Sequence[FolderPart]) -> bytes:
    """Return the digest of `ScannedFiles`."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        names = b"\0".join((part.prefix, *part.names))
        if _ARCHIVE + b"\0" in names + b"\0":
            return b""
        try:
            numbers = array("q", part.facts)
        except OverflowError:  # a far date, or an inode longer than SQLite's integers
            return b""
        digest.update(names + b"\0\0")
        digest.update(numbers)
    return digest.digest()
