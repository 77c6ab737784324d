"""Archives: many small files that are one datafile on the server."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, Self

from mydata_like.core.local_files import ArchiveMember, LocalFile, signed
from mydata_like.core.model import Datafile, DatafileId, DatasetId, Entry, EntryState, FileRecord


class Indexed(NamedTuple):
    """One member of an archive, as its index describes it.

    `offset` is where its bytes begin. Without a checksum the bytes are invalid, because the file
    changed while it was read.
    """

    name: bytes
    size: int
    modified_ns: int
    offset: int
    checksum: str


class ArchiveRecord(NamedTuple):
    """A row of the ledger: one archive and its state.

    A FAILED archive is on the server and cannot be read: no local file counts as being in it.
    """

    dataset: DatasetId
    path: str  # directory and name on the server
    size: int
    modified_ns: int
    state: EntryState
    checksum: str
    remote: str
    datafile: DatafileId | None = None

    @classmethod
    def of(cls, record: FileRecord) -> Self:
        """Return the row for an archive's present state."""
        entry = Entry.of(record)
        return cls(
            entry.dataset,
            archive_path(record.file.directory.decode(), record.file.name.decode()),
            entry.size,
            entry.modified_ns,
            entry.state,
            entry.checksum,
            entry.remote,
            entry.datafile,
        )

    @property
    def place(self) -> tuple[str, str]:
        """The directory and the name on the server."""
        directory, _, name = self.path.rpartition("/")
        return directory, name

    def as_file(self, folder: bytes) -> LocalFile:
        """Return the archive as a local file, which exists on no local disk."""
        directory, name = self.place
        key = folder + b"/" + self.path.encode()
        return LocalFile(
            b"", key, directory.encode(), name.encode(), self.size, self.modified_ns, 0, 0
        )

    def entry(self, file: LocalFile, checksum: str) -> Entry:
        """Return the row of a local file that the archive contains."""
        return Entry(
            file.key,
            file.size,
            file.modified_ns,
            self.state,
            self.dataset,
            checksum,
            self.remote,
            self.datafile,
            archive=self.path,
            ctime_ns=file.ctime_ns,
            inode=signed(file.inode),
        )


_NAME = re.compile(r".+-[0-9a-f]{8}-[0-9]{4,}\.tar", re.DOTALL)
_STEM = 50  # characters of a folder's name that begin the names of its archives


def archive_name(folder: str, members: Sequence[ArchiveMember], number: int) -> str:
    """Return an archive's name: the folder's name, a digest of the members, and a number."""
    digest = hashlib.blake2b(digest_size=4)
    for member in members:
        file = member.file
        digest.update(b"%d %d %d " % (len(member.name), file.size, file.modified_ns) + member.name)
    kept = "".join(char if char.isalnum() or char in "._- " else "_" for char in folder)
    return f"{kept.strip(' .-')[:_STEM] or 'archive'}-{digest.hexdigest()}-{number:04d}.tar"


def is_archive_name(name: str) -> bool:
    """Return whether this program could have made an archive with this name."""
    return _NAME.fullmatch(name) is not None


def member_name(folder: bytes, file: LocalFile) -> bytes:
    """Return a file's name within an archive, beginning with the name of its dataset folder."""
    top = folder.rpartition(b"/")[2] or b"data"
    return b"/".join(part for part in (top, file.directory, file.name) if part)


def archive_path(directory: str, name: str) -> str:
    """Return an archive's path in its dataset."""
    return f"{directory}/{name}" if directory else name


class ArchiveFormat(Protocol):
    """How archives are written and read, as far as the engine needs it."""

    def measure(self, name: bytes, members: Sequence[ArchiveMember]) -> int:
        """Return the size in bytes of an archive of these members."""

    def read_index(self, chunks: Iterable[bytes]) -> list[Indexed]:
        """Return an archive's members; raises `ArchiveError` for other files."""


class ArchiveState(Enum):
    """The state of an archive; `STAGED`: its bytes have arrived, but it is not registered yet."""

    STAGED = "staged"
    REGISTERED = "registered"
    VERIFIED = "verified"
    GONE = "gone"


def judge_archive(archive: ArchiveRecord, record: Datafile | None) -> ArchiveState:
    """Return the state of an archive in the ledger, by the server's record of its name."""
    if archive.state is EntryState.FAILED:
        return ArchiveState.GONE
    if record and record.fault:
        return ArchiveState.REGISTERED
    if record is None or not record.replicas:
        return ArchiveState.STAGED if archive.state is EntryState.STAGED else ArchiveState.GONE
    repaired = archive.state is EntryState.REPAIRED
    if (record.size, record.checksum) != (archive.size, archive.checksum):
        return ArchiveState.STAGED if repaired else ArchiveState.GONE
    verified = record.is_verified_at(archive.remote) and not repaired
    return ArchiveState.VERIFIED if verified else ArchiveState.REGISTERED
