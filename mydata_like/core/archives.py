"""What is known of archives: many small files that are one datafile on the server."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, Self

from mydata_like.core.local_files import signed
from mydata_like.core.model import (
    ArchiveMember,
    DatafileId,
    DatasetId,
    Entry,
    EntryState,
    FileToSend,
    LocalFile,
)


class Indexed(NamedTuple):
    """What an archive's index says of one member.

    `offset` is where its bytes begin. Without a checksum the bytes are worthless: the file
    changed while it was read.
    """

    name: bytes
    size: int
    modified_ns: int
    offset: int
    checksum: str


class ArchiveRecord(NamedTuple):
    """A row of the ledger: one archive, and how far it has come.

    A FAILED one is on the server and cannot be read: no local file counts as being in it.
    """

    dataset: DatasetId
    path: str  # directory and name, as the server has them
    size: int
    modified_ns: int
    state: EntryState
    checksum: str
    remote: str
    datafile: DatafileId | None = None

    @classmethod
    def of(
        cls,
        wanted: FileToSend,
        state: EntryState,
        checksum: str,
        datafile: DatafileId | None = None,
    ) -> Self:
        """Return the row that says how far a wanted archive has come."""
        file = wanted.file
        return cls(
            wanted.dataset.id,
            archive_path(file.directory.decode(), file.name.decode()),
            file.size,
            file.modified_ns,
            state,
            checksum,
            wanted.remote,
            datafile,
        )

    @property
    def place(self) -> tuple[str, str]:
        """The directory and the name under which the server has it."""
        directory, _, name = self.path.rpartition("/")
        return directory, name

    def as_file(self, folder: bytes) -> LocalFile:
        """Return what stands for it where a local file would: it lies on no disk of ours."""
        directory, name = self.place
        key = folder + b"/" + self.path.encode()
        return LocalFile(
            b"", key, directory.encode(), name.encode(), self.size, self.modified_ns, 0, 0
        )

    def entry(self, file: LocalFile, checksum: str) -> Entry:
        """Return the row of a local file that it holds."""
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
_STEM = 50  # characters of a folder's name that its archives' names begin with


def archive_name(folder: str, members: Sequence[ArchiveMember], number: int) -> str:
    """Return an archive's name: its folder's, a digest of what it holds, and a number."""
    told = hashlib.blake2b(digest_size=4)
    for member in members:
        file = member.file
        told.update(b"%d %d %d " % (len(member.name), file.size, file.modified_ns) + member.name)
    kept = "".join(char if char.isalnum() or char in "._- " else "_" for char in folder)
    return f"{kept.strip(' .-')[:_STEM] or 'archive'}-{told.hexdigest()}-{number:04d}.tar"


def is_archive_name(name: str) -> bool:
    """Return whether an archive of ours may have this name."""
    return _NAME.fullmatch(name) is not None


def member_name(folder: bytes, file: LocalFile) -> bytes:
    """Return a file's name within an archive: from the name of its dataset folder on."""
    top = folder.rpartition(b"/")[2] or b"data"
    return b"/".join(part for part in (top, file.directory, file.name) if part)


def archive_path(directory: str, name: str) -> str:
    """Return where in its dataset an archive is."""
    return f"{directory}/{name}" if directory else name


class ArchiveFormat(Protocol):
    """What the engine has to know of how archives are written."""

    def measure(self, name: bytes, members: Sequence[ArchiveMember]) -> int:
        """Return how many bytes an archive of these will have."""

    def read_index(self, chunks: Iterable[bytes]) -> list[Indexed]:
        """Return what an archive holds; raises `ArchiveError` for what is none of ours."""
