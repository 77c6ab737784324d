"""Checks that database and storage boxes are consistent: no duplicates and no losses."""

import hashlib
import json
import os
import re
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mydata_like.demo.database import Database
from mydata_like.demo.verifier import replica_path

_NAME = re.compile(r".+-[0-9a-f]{8}-[0-9]{4,}\.tar", re.DOTALL)


class ArchivedFile(NamedTuple):
    """A file within an archive; `sound` says whether its bytes match its checksum."""

    directory: str  # below its dataset
    filename: str
    size: int
    md5sum: str
    modified_ns: int
    sound: bool


def is_archive(filename: str) -> bool:
    """Return whether a datafile's name is that of an archive."""
    return _NAME.fullmatch(filename) is not None


def list_archived(path: Path) -> Iterator[ArchivedFile]:
    """Yield the files of an archive, except those that its index marks as changed."""
    with tarfile.open(path) as archive:
        *members, last = archive.getmembers()
        index = json.loads(_read(archive, last))
        for member, entry in zip(members, index["members"], strict=True):
            _, _, below = member.name.partition("/")
            directory, _, filename = below.rpartition("/")
            if "md5" in entry:
                md5sum = hashlib.md5(_read(archive, member), usedforsecurity=False).hexdigest()
                sound = (entry["name"], entry["offset"]) == (member.name, member.offset_data)
                yield ArchivedFile(
                    directory,
                    filename,
                    member.size,
                    entry["md5"],
                    entry["modified_ns"],
                    sound and md5sum == entry["md5"],
                )


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file else b""


FileKey = tuple[str, str, str]  # the dataset's description, directory, file name

_FILES = """
    SELECT d.id, e.description AS dataset_name, d.dataset, d.directory, d.filename, d.size,
        d.md5sum, d.modified, r.uri, r.verified, b.name AS box, b.location
    FROM datafile d JOIN dataset e ON e.id = d.dataset
    LEFT JOIN replica r ON r.datafile = d.id LEFT JOIN box b ON b.id = r.box ORDER BY d.id
"""


class FileThere(NamedTuple):
    """A datafile with one of its replicas; `path` is None if no replica is inside its box."""

    id: int
    dataset: int
    dataset_name: str
    directory: str | None
    filename: str
    size: int
    md5sum: str
    modified: str | None
    verified: bool
    box: str | None
    path: Path | None

    @property
    def key(self) -> FileKey:
        return self.dataset_name, self.directory or "", self.filename


def list_files(store: Database) -> list[FileThere]:
    """Return all datafiles, ordered by id."""
    files = []
    for row in store.rows(_FILES):
        path = None
        with suppress(ValueError):
            if row["location"] is not None and row["uri"] is not None:
                path = replica_path(row["location"], row["uri"])
        files.append(
            FileThere(
                **{name: row[name] for name in FileThere._fields[:8]},
                verified=bool(row["verified"]),
                box=row["box"],
                path=path,
            )
        )
    return files


def find_violations(store: Database, expected: Mapping[FileKey, Path]) -> list[str]:
    """Return a sentence for each duplicate, wrong datafile or loss."""
    files = list_files(store)
    return [
        *_find_duplicates(store, files),
        *_find_false_bytes(files),
        *_find_losses(files, expected),
    ]


def _find_duplicates(store: Database, files: list[FileThere]) -> Iterator[str]:
    names = Counter((file.dataset, file.directory or "", file.filename) for file in files)
    for name, count in names.items():
        if count > 1:
            yield f"{count} records of {name}"
    paths = Counter(str(file.path) for file in files if file.path is not None)
    for path, count in paths.items():
        if count > 1:
            yield f"{count} records share {path}"
    for row in store.rows(
        "SELECT description, experiment, count(*) AS number FROM dataset JOIN dataset_experiment"
        " ON dataset = id GROUP BY description, experiment, instrument HAVING count(*) > 1"
    ):
        yield f"{row['number']} datasets {row['description']!r} in experiment {row['experiment']}"


def _find_false_bytes(files: list[FileThere]) -> Iterator[str]:
    """Yield datafiles whose bytes differ from their record, or are missing though verified."""
    for file in files:
        if file.path is None:
            yield f"datafile {file.id} ({file.filename!r}) has no replica inside its box"
            continue
        try:
            size, md5sum = measure(file.path)
        except OSError:
            if file.verified:
                yield f"datafile {file.id} ({file.filename!r}) is verified and has no bytes"
            continue
        if (size, md5sum) != (file.size, file.md5sum):
            state = "verified" if file.verified else "registered"
            yield f"datafile {file.id} ({file.filename!r}) is {state} with other bytes"
        elif is_archive(file.filename):
            for inside in list_archived(file.path):
                if not inside.sound:
                    yield f"datafile {file.id} ({file.filename!r}) holds false bytes: {inside}"


class _Copy(NamedTuple):
    """The server's copy of a local file; only an archive has a modification time."""

    size: int
    md5sum: str
    verified: bool
    modified_ns: int | None = None


def _find_losses(files: list[FileThere], expected: Mapping[FileKey, Path]) -> Iterator[str]:
    if not expected:
        return
    found: defaultdict[FileKey, list[_Copy]] = defaultdict(list)
    for key, copy in _find_copies(files):
        found[key].append(copy)
    for key, path in expected.items():
        size, md5sum = measure(path)
        times = None, path.stat().st_mtime_ns
        same = [
            copy
            for copy in found.pop(key, [])
            if (copy.size, copy.md5sum) == (size, md5sum) and copy.modified_ns in times
        ]
        if len(same) != 1:
            yield f"{key} has {len(same)} true records instead of one"
        elif not same[0].verified:
            yield f"{key} is not verified"
    for key in found:
        yield f"{key} was registered and is no local file"


def _find_copies(files: list[FileThere]) -> Iterator[tuple[FileKey, _Copy]]:
    """Yield files with a record of their own, and files in archives."""
    for file in files:
        if not is_archive(file.filename):
            yield file.key, _Copy(file.size, file.md5sum, file.verified)
        elif file.path is not None and file.path.exists():
            for inside in list_archived(file.path):
                key = file.dataset_name, inside.directory, inside.filename
                yield key, _Copy(inside.size, inside.md5sum, file.verified, inside.modified_ns)


def measure(path: Path) -> tuple[int, str]:
    """Return a file's size and MD5."""
    with path.open("rb") as file:
        checksum = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
        return os.fstat(file.fileno()).st_size, checksum.hexdigest()
