"""Local files, datasets and records for tests of the stages."""

from dataclasses import replace

from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import (
    Datafile,
    DatafileId,
    Dataset,
    DatasetFolder,
    DatasetId,
    Entry,
    EntryState,
    FileGroup,
    FileRecord,
    OwnerKind,
    Replica,
)

MODIFIED_NS = 1_700_000_000_123_456_000
MODIFIED = "2023-11-14T22:13:20.123456"
CHECKSUM = "900150983cd24fb0d6963f7d28e17f72"  # of the three bytes "abc"
DATASET = Dataset(DatasetId(7), "Set 1")


def a_file(name: str = "a.txt", *, size: int = 3, directory: str = "") -> LocalFile:
    key = f"alice/Set 1/{directory}/{name}".replace("//", "/").encode()
    path = b"/data/" + key
    places = path, key, directory.encode(), name.encode()
    return LocalFile(*places, size, MODIFIED_NS, 1, 2, MODIFIED_NS)


def a_folder(name: str = "Set 1", owner: str = "alice") -> DatasetFolder:
    path = f"{owner}/{name}".encode()
    return DatasetFolder(
        path=path, name=name, title=None, owner_kind=OwnerKind.USERNAME, owner=owner
    )


def a_group(*files: LocalFile, folder: DatasetFolder | None = None) -> FileGroup:
    return FileGroup(folder or a_folder(), files, last=True)


def a_wanted(name: str = "a.txt", *, size: int = 3, earlier: Datafile | None = None) -> FileRecord:
    return FileRecord(a_file(name, size=size), DATASET, f"Set%201-7/{name}", earlier)


def as_staged(record: FileRecord, checksum: str) -> FileRecord:
    return replace(record).arrive(checksum)


def as_registered(
    record: FileRecord,
    checksum: str,
    datafile: DatafileId | None = None,
    looks: tuple[str, ...] = (),
    **changes: bool,
) -> FileRecord:
    found = replace(record, checksum=checksum, datafile=datafile, looks=looks, **changes)
    return replace(found, state=EntryState.REGISTERED)


def as_verified(record: FileRecord, datafile: DatafileId | None = None) -> FileRecord:
    return replace(record, state=EntryState.VERIFIED, datafile=datafile or record.datafile)


def entry_of(
    record: FileRecord, state: EntryState, checksum: str, datafile: DatafileId | None = None
) -> Entry:
    """Return the row of a file in this state."""
    row = Entry.of(replace(record, checksum=checksum))
    return row._replace(state=state, datafile=datafile)


def a_staged(name: str = "a.txt", checksum: str = CHECKSUM) -> FileRecord:
    return as_staged(a_wanted(name), checksum)


def with_copy(record: Datafile, uri: str = "cached/a.txt") -> Datafile:
    """Return a record with a further replica, verified at another time, in a box of the server."""
    cached = Replica(uri, "cache", verified=True, verified_at="look at the cache")
    return record._replace(replicas=(cached, *record.replicas))


def a_record(
    name: str = "a.txt",
    *,
    size: int = 3,
    checksum: str = CHECKSUM,
    verified: bool = True,
    box: str = "staging",
) -> Datafile:
    replica = Replica(f"Set%201-7/{name}", box, verified, "look 0" if verified else None)
    return Datafile(DatafileId(0), DATASET.id, "", name, size, checksum, MODIFIED, (replica,))
