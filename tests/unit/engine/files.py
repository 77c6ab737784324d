"""Local files, datasets and records for tests of the stages."""

from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import (
    Datafile,
    DatafileId,
    Dataset,
    DatasetFolder,
    DatasetId,
    FileGroup,
    FileToSend,
    OwnerKind,
    Replica,
    Staged,
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


def a_wanted(name: str = "a.txt", *, size: int = 3, datafile: Datafile | None = None) -> FileToSend:
    return FileToSend(a_file(name, size=size), DATASET, f"Set%201-7/{name}", datafile)


def a_staged(name: str = "a.txt", checksum: str = CHECKSUM) -> Staged:
    return Staged(a_wanted(name), checksum)


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
