"""The truth about local files on the server, from its disk and database instead of a ledger."""

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from mydata_like.core.formatting import format_path
from mydata_like.demo.invariants import FileKey, FileThere, is_archive, list_archived, measure
from tests.site import Site


class Local(NamedTuple):
    """One local file and its place on the server; `path` is None after it was deleted here."""

    key: str  # as in events: relative to the data directory, or absolute
    place: FileKey  # dataset, directory, name
    path: Path | None
    size: int
    md5sum: str


@dataclass
class Inventory:
    """The local files to send: those of the data directory and of dropped folders.

    `left_out` has the keys of files that are skipped intentionally, `gone` the deleted files.
    """

    data: Path  # the current location of the data directory, which may have been renamed
    sources: dict[Path, str] = field(default_factory=dict)  # dropped folders and their datasets
    left_out: frozenset[str] = frozenset()
    gone: dict[str, Local] = field(default_factory=dict)

    def list_files(self) -> Iterator[Local]:
        """Yield all files to send, as they are now."""
        for path in sorted(self.data.glob("*/*/**/*")):
            if path.is_file() and not path.is_symlink():
                _, dataset, *directory, name = path.relative_to(self.data).parts
                key = os.fsencode(path.relative_to(self.data).as_posix())
                yield _local(key, (dataset, "/".join(directory), name), path)
        for folder, dataset in self.sources.items():
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    *directory, name = path.relative_to(folder).parts
                    yield _local(os.fsencode(path), (dataset, "/".join(directory), name), path)

    def delete(self, path: Path) -> None:
        """Delete a file, and add it to `gone`."""
        (lost,) = [file for file in self.list_files() if file.path == path]
        path.unlink()
        self.gone[lost.key] = lost._replace(path=None)


def _local(key: bytes, place: FileKey, path: Path) -> Local:
    size, md5sum = measure(path)
    return Local(format_path(key), place, path, size, md5sum)


@dataclass(frozen=True)
class Truth:
    """The local files that the server has, from its disk and its database.

    `excused` are the keys of files that the server lost after the last check: views that do not
    query the server may still show them as safe.
    """

    files: tuple[Local, ...]
    left_out: frozenset[str]
    safe: frozenset[str]
    registered: frozenset[str]
    sent: frozenset[str]
    stored: int  # intact and verified files on the server, of any uploader
    gone: frozenset[str] = frozenset()
    excused: frozenset[str] = frozenset()

    @classmethod
    def take(
        cls, site: Site, inventory: Inventory, excused: Collection[str] = frozenset()
    ) -> "Truth":
        """Read all local files and all stored files."""
        files = tuple(inventory.list_files())
        copies = _list_copies(site.server.datafiles())
        there = _list_sums(site.server.directory)
        known = [*files, *inventory.gone.values()]
        return cls(
            files=files,
            left_out=inventory.left_out,
            safe=frozenset(file.key for file in known if _is_safe(file, copies)),
            registered=frozenset(file.key for file in known if _is_registered(file, copies)),
            sent=frozenset(file.key for file in known if (file.size, file.md5sum) in there),
            stored=sum(copy.sound for found in copies.values() for copy in found),
            gone=frozenset(inventory.gone),
            excused=frozenset(excused),
        )

    @cached_property
    def wanted(self) -> tuple[Local, ...]:
        """The files that are not skipped intentionally."""
        return tuple(file for file in self.files if file.key not in self.left_out)

    @cached_property
    def at_risk(self) -> tuple[Local, ...]:
        """The files that the server does not have safely."""
        return tuple(file for file in self.wanted if file.key not in self.safe)

    @property
    def bytes_at_risk(self) -> int:
        return sum(file.size for file in self.at_risk)

    def below(self, folder: str) -> list[Local]:
        """Return the files to send in a folder (with a slash), or all."""
        return [file for file in self.wanted if file.key.startswith(folder)]


class _Copy(NamedTuple):
    """A copy on the server; `sound` says that it is verified and its bytes match its record."""

    size: int
    md5sum: str
    sound: bool
    archived: bool = False  # an earlier version of a file stays in the archive of that time


def _list_copies(files: Iterable[FileThere]) -> dict[FileKey, list[_Copy]]:
    """Return the server's records and archived files by dataset, directory and name."""
    found: dict[FileKey, list[_Copy]] = {}
    for _, rows in groupby(files, lambda file: file.id):
        replicas = list(rows)
        record = replicas[0]
        sound = any(file.verified and _is_whole(file) for file in replicas)
        whole = any(map(_is_whole, replicas))
        if is_archive(record.filename) and whole and record.path is not None:
            for inside in list_archived(record.path):
                key = record.dataset_name, inside.directory, inside.filename
                good = inside.sound and sound
                copy = _Copy(inside.size, inside.md5sum, good, archived=True)
                found.setdefault(key, []).append(copy)
        else:
            copy = _Copy(record.size, record.md5sum, sound)
            found.setdefault(record.key, []).append(copy)
    return found


def _is_whole(file: FileThere) -> bool:
    """Return whether the bytes on the server's disk match the record."""
    try:
        return file.path is not None and measure(file.path) == (file.size, file.md5sum)
    except OSError:
        return False


def _is_safe(file: Local, copies: dict[FileKey, list[_Copy]]) -> bool:
    there = copies.get(file.place, [])
    records = [copy for copy in there if not copy.archived]
    same = [copy for copy in there if copy[:3] == (file.size, file.md5sum, True)]
    return bool(same) and len(records) <= 1 and all(copy in same for copy in records)


def _is_registered(file: Local, copies: dict[FileKey, list[_Copy]]) -> bool:
    return any(copy[:2] == (file.size, file.md5sum) for copy in copies.get(file.place, []))


def _list_sums(directory: Path) -> set[tuple[int, str]]:
    """Return size and checksum of all files on the server's disk and in its archives."""
    sums = set()
    for path in directory.rglob("*"):
        try:
            if path.is_file() and path.suffix not in (".sqlite", ".sqlite-wal", ".sqlite-shm"):
                sums.add(measure(path))
                if is_archive(path.name):
                    sums.update((inside.size, inside.md5sum) for inside in list_archived(path))
        except OSError:  # it was moved in the meantime
            continue
    return sums
