"""What is known of archives: many small files that are one datafile on the server."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, Self

from mydata_like.core.model import (
    ArchiveMember,
    Datafile,
    DatafileId,
    DatasetId,
    Entry,
    EntryState,
    LocalFile,
    Wanted,
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


class Archive(NamedTuple):
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
        wanted: Wanted,
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
        )


def archive_path(directory: str, name: str) -> str:
    """Return where in its dataset an archive is."""
    return f"{directory}/{name}" if directory else name


class ArchiveFormat(Protocol):
    """What the engine has to know of how archives are written."""

    def measure(self, name: bytes, members: Sequence[ArchiveMember]) -> int:
        """Return how many bytes an archive of these will have."""

    def read_index(self, chunks: Iterable[bytes]) -> list[Indexed]:
        """Return what an archive holds; raises `ArchiveError` for what is none of ours."""


ReadDatafile = Callable[[Datafile], Iterable[bytes]]
