"""The values that travel through the flow, from a file on the disk to a verified record.

Values made once per local file or per datafile are named tuples: a run may see millions of
them, and they are made, compared and sent between processes several times faster than frozen
dataclasses. Sizes are bytes; names and paths of the disk are bytes as the system gave them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple, NewType, Self

from mydata_like.core.errors import Problem
from mydata_like.core.local_files import ArchiveMember as ArchiveMember
from mydata_like.core.local_files import LocalFile as LocalFile
from mydata_like.core.local_files import Reading as Reading
from mydata_like.core.local_files import signed

ExperimentId = NewType("ExperimentId", int)
DatasetId = NewType("DatasetId", int)
DatafileId = NewType("DatafileId", int)

NO_CHECKSUM = "0" * 32  # of a record that was made before its bytes came


class Layout(StrEnum):
    """How levels of folders map to owner, experiment and dataset; the texts are MyData's."""

    USERNAME_DATASET = "Username / Dataset"
    EMAIL_DATASET = "Email / Dataset"
    USERNAME_EXPERIMENT_DATASET = "Username / Experiment / Dataset"
    EMAIL_EXPERIMENT_DATASET = "Email / Experiment / Dataset"
    USERNAME_MYTARDIS_EXPERIMENT_DATASET = 'Username / "MyTardis" / Experiment / Dataset'
    GROUP_INSTRUMENT_FULL_NAME_DATASET = "User Group / Instrument / Full Name / Dataset"
    GROUP_DATASET = "User Group / Dataset"
    GROUP_EXPERIMENT_DATASET = "User Group / Experiment / Dataset"
    EXPERIMENT_DATASET = "Experiment / Dataset"
    DATASET = "Dataset"


class OwnerKind(StrEnum):
    """How the name of an owner's folder is looked up on the server."""

    ACCOUNT = "account"
    USERNAME = "username"
    EMAIL = "email"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFolder:
    """One folder of the disk that becomes one dataset of the server.

    `title` is the experiment's title, or None where the experiment is named after the
    instrument and its owner's full name, which only the server knows.
    """

    path: bytes
    name: str
    title: str | None
    owner_kind: OwnerKind = OwnerKind.ACCOUNT
    owner: str = ""  # name of the owner's folder; empty for the account's own
    group_folder: str = ""  # name of the group's folder, without the prefix; empty for none
    recursive: bool = True  # files of an experiment's own folder are taken without sub-folders
    above: int = 0  # bytes of `path` that patterns do not see: where it is outside of the root


class FileGroup(NamedTuple):
    """Files of one dataset folder that travel through the flow together (at most a thousand).

    `last` says that the folder has been read to its end; the last group may be empty. Groups
    of a folder have numbers from 0 on, and their files come in the order of the walk: all of a
    sub-folder before the walk leaves it. `known` is the dataset in which the ledger knows all of
    the files as verified just as they are; with `new` it knows none of them so.
    """

    folder: DatasetFolder
    files: tuple[LocalFile, ...]
    last: bool
    number: int = 0
    known: DatasetId | None = None
    new: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """A group of users on the server."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class User:
    """An account on the server.

    `full_name` is for people; `raw_name` are first name, space and last name as they stand.
    """

    id: int
    username: str
    full_name: str
    email: str = ""
    raw_name: str = ""


@dataclass(frozen=True, slots=True)
class Facility:
    """A place that runs instruments; its manager group owns what its uploaders make."""

    id: int
    name: str
    manager_group: Group


@dataclass(frozen=True, slots=True)
class InstrumentRecord:
    """A machine that makes data."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """The upper level of the server's hierarchy.

    `empty` says that it holds no dataset, `marks` are the texts that it was made with, its
    maker's uuid among them; both as far as the server tells. `left` is one of the same title that
    we have just made and that stays empty, since another uploader had made this one.
    """

    id: ExperimentId
    title: str
    empty: bool = False
    marks: frozenset[str] = frozenset()
    left: ExperimentId | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """The middle level: one dataset for one dataset folder. `name` is the server's description.

    `left` is as in `Experiment`.
    """

    id: DatasetId
    name: str
    files: int = 0  # datafiles it held when it was fetched, as the server counted them
    left: DatasetId | None = None


class DatasetStats(NamedTuple):
    """How many datafiles a dataset has, and how many of them the server has verified."""

    total: int
    verified: int


class NewestDatafile(NamedTuple):
    """How many records a dataset has, and the id of the newest; 0 where there is none."""

    total: int
    id: int


class DatasetListing(NamedTuple):
    """What the last full listing of a dataset showed: the records it had then."""

    newest: NewestDatafile
    at: datetime


class OpenFiles(NamedTuple):
    """Files that are not known as verified just as they are now, by their keys.

    `datasets` are those that have the others.
    """

    keys: frozenset[bytes]
    datasets: frozenset[DatasetId]


class Replica(NamedTuple):
    """One stored copy of a datafile on the server."""

    uri: str  # path below its box's location
    location: str  # name of the storage box
    verified: bool
    verified_at: str | None  # the server's text; None until the first verification


class Datafile(NamedTuple):
    """What the server has: one record. Times are the server's own texts, without a zone."""

    id: DatafileId
    dataset: DatasetId
    directory: str | None
    name: str
    size: int
    checksum: str
    modified: str
    replicas: tuple[Replica, ...]

    @property
    def verified(self) -> bool:
        return any(replica.verified for replica in self.replicas)

    def copies_at(self, uri: str) -> tuple[Replica, ...]:
        """Return its replicas with this path; several boxes may have one."""
        return tuple(replica for replica in self.replicas if replica.uri == uri)

    def is_verified_at(self, uri: str) -> bool:
        """Whether what was put at this path is verified; where it has moved, any replica counts.

        A replica of earlier bytes says "verified" until the server looks at it again.
        """
        copies = self.copies_at(uri)
        return all(replica.verified for replica in copies) if copies else self.verified

    @property
    def looks(self) -> tuple[str, ...]:
        """When the server looked at its replicas, the last time at each."""
        return tuple(replica.verified_at for replica in self.replicas if replica.verified_at)

    @property
    def unfinished(self) -> bool:
        """Whether its bytes are still to come, in chunks: then it describes none of any file."""
        return self.checksum == NO_CHECKSUM and not self.verified


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingArea:
    """Where the server lets us put bytes: the approved storage box and the hosts before it.

    `location` is the box's absolute path on the hosts; `host_keys` are fingerprints
    (`SHA256:...`) or public keys that the server's administrator set, possibly none.
    """

    box: str
    location: str
    username: str
    hosts: tuple[str, ...]
    port: int = 22
    host_keys: tuple[str, ...] = ()


class FileToSend(NamedTuple):
    """A local file that the server lacks, and where it will lie.

    `remote` is the path below the staging area's location. `datafile` is the record to be
    repaired when there is one already. `round` counts how often the whole file was sent in
    this run and did not verify. With `members` it is an archive of these: `file` says only
    what it will be on the server, and has no path.
    """

    file: LocalFile
    dataset: Dataset
    remote: str
    datafile: Datafile | None = None
    round: int = 0
    members: tuple[ArchiveMember, ...] = ()

    @property
    def replaces(self) -> bool:
        """Whether the server may vouch for earlier bytes, which must not be overwritten then.

        An archive is never sent in the place of a verified one.
        """
        return bool(self.datafile and self.datafile.replicas) and not self.members

    @property
    def files(self) -> tuple[LocalFile, ...]:
        """The local files that this is about: what is counted and told."""
        if not self.members:
            return (self.file,)
        return tuple(member.file for member in self.members)

    def checked_files(self, checksum: str) -> list[tuple[LocalFile, str]]:
        """Return the local files with their checksums; `checksum` is that of the whole."""
        if not self.members:
            return [(self.file, checksum)]
        return [(member.file, member.checksum) for member in self.members]


class Payload(NamedTuple):
    """The bytes of one transfer: one file, or a batch of tiny files when `batched`."""

    id: int
    members: tuple[FileToSend, ...]
    batched: bool

    @property
    def size(self) -> int:
        return sum(member.file.size for member in self.members)


class Staged(NamedTuple):
    """A file whose bytes lie in the staging area, proven; not known to the server yet.

    `registered` is true where the transport made the record itself (the HTTP fallback).
    """

    wanted: FileToSend
    checksum: str
    registered: bool = False


class Replacement(NamedTuple):
    """New bytes of a datafile that has others, from before its record changes until verified.

    They lie at `staged`, or nowhere yet where nothing can be renamed, and go to `remote`. `at` is
    in seconds since 1970.
    """

    key: bytes
    dataset: DatasetId
    datafile: DatafileId
    remote: str
    staged: str
    size: int
    checksum: str
    at: int


class Registered(NamedTuple):
    """A datafile that waits for the server's verification.

    `before` are the looks that the server had taken before this run changed the record: only
    another one is the answer to our bytes. The other replicas keep theirs, and say "verified" of
    bytes that are no longer the record's. `placed_by_server` is true where the server chose the
    path of the bytes (the HTTP fallback).
    """

    wanted: FileToSend
    checksum: str
    datafile: DatafileId | None = None
    before: tuple[str, ...] = ()
    placed_by_server: bool = False


class Match(NamedTuple):
    """A checksum of the server, and what a local file is that has it."""

    checksum: str
    known: "Entry | Registered"


class Comparison(NamedTuple):
    """A local file that has to be read: the server has a record of its name and size.

    With the checksum of one of the `matches` it is what that says. Otherwise it differs, and is
    sent, or cannot be.
    """

    file: LocalFile
    matches: tuple[Match, ...]
    differs: FileToSend | Problem


class CheckedGroup(NamedTuple):
    """What is open in a group of files after the check; what is verified is not.

    What is `unread` may be verified, too.
    """

    group: FileGroup
    open: list[FileToSend | Staged | Registered]
    unread: Sequence[Comparison] = ()


class Registration(NamedTuple):
    """One record to be made (`datafile` is None) or repaired, as the server is told.

    Times are ISO texts with a zone; `uri` is None where a record keeps its replica.
    """

    dataset: DatasetId
    directory: str
    name: str
    size: int
    checksum: str
    created: str
    modified: str
    uri: str | None
    box: str
    datafile: DatafileId | None = None


LOST: Final = "server.lost"  # of what the server had verified, and has no more or other bytes of


class EarlierWrite(NamedTuple):
    """A request of an earlier run that writes to a dataset and whose answer was not heard.

    It may be at work on the server `until` then. `staged` are path and checksum of what had been
    sent and not registered when that run ended: one of these on the server shows that it is over.
    """

    until: datetime
    staged: frozenset[tuple[str, str]]


class EntryState(StrEnum):
    """How far a local file has come, as far as the ledger knows.

    REPAIRED is a registered file whose record had other bytes before: the record's verified
    flag means nothing until the server has looked again. CHANGED is a file of which the server has
    verified an earlier state, whose size, time and checksum these are.
    """

    STAGED = "staged"
    REGISTERED = "registered"
    REPAIRED = "repaired"
    VERIFIED = "verified"
    CHANGED = "changed"
    FAILED = "failed"


class Entry(NamedTuple):
    """A row of the ledger: what became of one local file of one size and time.

    `ctime_ns` and `inode` are those of the file when it was seen, None in rows of older versions,
    and 0 where an archive of the server is all that tells of the file.
    """

    key: bytes
    size: int
    modified_ns: int
    state: EntryState
    dataset: DatasetId
    checksum: str = ""
    remote: str = ""
    datafile: DatafileId | None = None
    problem: str = ""  # the stable code of what went wrong, for FAILED
    archive: str = ""  # where in its dataset the archive is that holds it; empty for none
    ctime_ns: int | None = None
    inode: int | None = None

    def is_of(self, file: LocalFile) -> bool:
        """Whether this is about the file as it is now, as far as the system tells."""
        if (self.size, self.modified_ns) != (file.size, file.modified_ns):
            return False
        if self.ctime_ns is None or self.inode is None:
            return True
        return (self.ctime_ns, self.inode) == (file.ctime_ns, signed(file.inode))

    def adopt(self, file: LocalFile) -> Self:
        """Return the row for the same bytes in the file as it is now."""
        return self._replace(
            size=file.size,
            modified_ns=file.modified_ns,
            ctime_ns=file.ctime_ns,
            inode=signed(file.inode),
        )

    @classmethod
    def of(
        cls,
        wanted: FileToSend,
        state: EntryState,
        checksum: str,
        datafile: DatafileId | None = None,
    ) -> Self:
        """Return the row that says how far a wanted file has come."""
        file = wanted.file
        return cls(
            file.key,
            file.size,
            file.modified_ns,
            state,
            wanted.dataset.id,
            checksum,
            wanted.remote,
            datafile,
            ctime_ns=file.ctime_ns,
            inode=signed(file.inode),
        )


class Outcome(NamedTuple):
    """What became of a file, or of a folder with all in it, that is not well, and why.

    `kind` is "found" (and not sent yet), "waiting", "skipped" or "failed", of folders
    "folder-skipped" or "folder-failed"; `modified_ns` is 0 where it is not known.
    """

    path: bytes
    size: int
    modified_ns: int
    kind: str
    problem: Problem


# Why a file that was found, and is not known to be verified as it is, exists only here.
UNSENT: Final = Problem(
    "waiting.unsent",
    "The file was found and has not been sent yet.",
    "The next run sends it.",
)


class FolderSums(NamedTuple):
    """How the files of a dataset folder stand; `title` is None as in `DatasetFolder`."""

    path: bytes
    dataset: str
    title: str | None
    owner: str
    group: str
    found: int = 0
    found_bytes: int = 0
    verified: int = 0
    verified_bytes: int = 0
    waiting: int = 0
    skipped: int = 0
    failed: int = 0


class AtRisk(NamedTuple):
    """Files that exist only here, as the last look found them; `oldest` by modification."""

    files: int = 0
    bytes: int = 0
    oldest: datetime | None = None

    def as_record(self) -> dict[str, object]:
        """Return this as plain values for JSON."""
        return self._asdict() | {"oldest": self.oldest and self.oldest.isoformat()}


NO_RISK = AtRisk()
