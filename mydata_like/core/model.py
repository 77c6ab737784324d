"""The values of the pipeline, from a local file to a verified record.

Values made once per local file or per datafile are named tuples. A run may have millions of them,
and named tuples are created, compared and sent between processes several times faster than frozen
dataclasses. Sizes are bytes; names and paths on the disk are bytes as the system returned them.
"""

import struct
import zlib
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Final, NamedTuple, NewType, Self

from mydata_like.core.errors import HELD, Problem
from mydata_like.core.frozen import frozen
from mydata_like.core.local_files import ArchiveMember, LocalFile, signed
from mydata_like.core.scanned_files import ScannedFiles

ExperimentId = NewType("ExperimentId", int)
DatasetId = NewType("DatasetId", int)
DatafileId = NewType("DatafileId", int)

NO_CHECKSUM = "0" * 32  # of a record created before its bytes arrived


class Layout(StrEnum):
    """How levels of folders map to owner, experiment and dataset; the texts are those of MyData."""

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
    """How the owner of a folder is found on the server by the folder's name."""

    ACCOUNT = "account"
    USERNAME = "username"
    EMAIL = "email"


@frozen(kw_only=True)
class DatasetFolder:
    """A local folder that becomes a dataset on the server.

    `title` is the experiment's title, or None if the experiment is named after the instrument and
    its owner's full name, which only the server knows.
    """

    path: bytes
    name: str
    title: str | None
    owner_kind: OwnerKind = OwnerKind.ACCOUNT
    owner: str = ""  # name of the owner's folder; empty for the account's own
    group_folder: str = ""  # name of the group's folder, without the prefix; empty for none
    recursive: bool = True  # only the files directly in an experiment's folder, without sub-folders
    above: int = 0  # bytes of `path` that patterns ignore, for a path outside the data directory


class FileGroup(NamedTuple):
    """Files of one dataset folder that pass through the pipeline together (at most a thousand).

    `last` is true when the folder has been read completely; the last group may be empty. Groups of
    a folder are numbered from 0, and their files are in the order of the walk: all of a sub-folder
    before the walk leaves it. `known` is the dataset in which the ledger has all of the files as
    verified and unchanged, except the `open` ones. With `new`, it has none of them so, and all are
    open. `remote` has the keys of files whose content is not on this computer.
    """

    folder: DatasetFolder
    files: Sequence[LocalFile]
    last: bool
    number: int = 0
    known: DatasetId | None = None
    open: Sequence[LocalFile] = ()
    new: bool = False
    remote: frozenset[bytes] = frozenset()

    @property
    def parts(self) -> Sequence[tuple[bytes, Sequence[LocalFile]]]:
        """The files in parts that may be known, each with its digest, which is empty for none."""
        files = self.files
        if isinstance(files, ScannedFiles):
            return [(part.digest, part) for part in files.divide()]
        return [(b"", files)]

    @property
    def size(self) -> int:
        """The bytes of all files."""
        files = self.files
        return files.size if isinstance(files, ScannedFiles) else sum(it.size for it in files)

    @property
    def devices(self) -> Set[int]:
        """The devices that the files are on."""
        files = self.files
        return files.devices if isinstance(files, ScannedFiles) else {it.device for it in files}


@frozen()
class Group:
    """A group of users on the server."""

    id: int
    name: str


@frozen()
class User:
    """An account on the server.

    `full_name` is for display; `raw_name` is the unchanged first name, space and last name.
    """

    id: int
    username: str
    full_name: str
    email: str = ""
    raw_name: str = ""


@frozen()
class Facility:
    """A place that operates instruments; its manager group owns the data of its uploaders."""

    id: int
    name: str
    manager_group: Group


@frozen()
class InstrumentRecord:
    """The server's record of an instrument."""

    id: int
    name: str


@frozen()
class Experiment:
    """The upper level of the server's hierarchy.

    `empty` means that it has no dataset. `marks` are the texts it was created with, its creator's
    uuid among them. Both are set only if the server reports them. `left` is an experiment of the
    same title that this uploader has just created and that stays empty, because another uploader
    had created this one.
    """

    id: ExperimentId
    title: str
    empty: bool = False
    marks: frozenset[str] = frozenset()
    left: ExperimentId | None = None


@frozen()
class Dataset:
    """The middle level: one dataset for one dataset folder. `name` is the server's description.

    `left` is as in `Experiment`.
    """

    id: DatasetId
    name: str
    files: int = 0  # datafiles it had when it was fetched, as counted by the server
    left: DatasetId | None = None


class DatasetStats(NamedTuple):
    """The number of datafiles of a dataset, and of those that the server has verified."""

    total: int
    verified: int


class NewestDatafile(NamedTuple):
    """The number of records of a dataset, and the id of the newest; 0 if there is none."""

    total: int
    id: int


class DatasetListing(NamedTuple):
    """The records of a dataset that were compared with the ledger, none of them before `at`.

    `verified` is the number of verified replicas according to the server, None if it is not known.
    """

    newest: NewestDatafile
    at: datetime
    verified: int | None = None


class OpenFiles(NamedTuple):
    """The files that are not known as verified and unchanged, by their keys.

    `datasets` are those of the other files.
    """

    keys: frozenset[bytes]
    datasets: frozenset[DatasetId]


class KnownParts(NamedTuple):
    """Parts of earlier listings of a dataset, of which all files were the same as their rows.

    That was within the last days, and no verified row of them has changed since. `seq` is the
    number of changes of verified rows so far.
    """

    seq: int
    digests: frozenset[bytes]


def hash_keys(keys: Iterable[bytes]) -> bytes:
    """Return the hashes of keys, of four bytes each; different keys may have the same."""
    hashes = [hash_key(key) for key in keys]
    return struct.pack(f"<{len(hashes)}I", *hashes)


hash_key = zlib.crc32


def read_hashes(keys: bytes) -> Sequence[int]:
    """Return what `hash_keys` has packed."""
    return struct.unpack(f"<{len(keys) // 4}I", keys)


class Replica(NamedTuple):
    """One stored copy of a datafile on the server."""

    uri: str  # path below its box's location
    location: str  # name of the storage box
    verified: bool
    verified_at: str | None  # the server's text; None until the first verification


class Datafile(NamedTuple):
    """One record of the server. Times are the server's own texts, without a time zone.

    `fault` is why the record is invalid; it then has no replicas, and an empty name if that cannot
    be read. Whether the server has the file is unknown.
    """

    id: DatafileId
    dataset: DatasetId
    directory: str | None
    name: str
    size: int
    checksum: str
    modified: str
    replicas: tuple[Replica, ...]
    fault: str = ""

    @property
    def verified(self) -> bool:
        return any(replica.verified for replica in self.replicas)

    def find_replica(self, box: str) -> Replica | None:
        """Return its replica in this storage box, at any position of the list."""
        return next((it for it in self.replicas if it.location == box), None)

    def copies_at(self, uri: str) -> tuple[Replica, ...]:
        """Return its replicas with this path; several boxes may have one."""
        return tuple(replica for replica in self.replicas if replica.uri == uri)

    def is_verified_at(self, uri: str) -> bool:
        """Return whether the bytes at this path, or where they were moved, are verified.

        A replica of earlier bytes remains "verified" until the server verifies it again.
        """
        copies = self.copies_at(uri)
        return all(replica.verified for replica in copies) if copies else self.verified

    def verified_time(self, uri: str) -> str:
        """Return when the server verified the bytes at this path; empty if it has not."""
        copies = self.copies_at(uri) or self.replicas
        return next((it.verified_at for it in copies if it.verified and it.verified_at), "")

    @property
    def looks(self) -> tuple[str, ...]:
        """The time at which the server last verified each replica."""
        return tuple(replica.verified_at for replica in self.replicas if replica.verified_at)

    @property
    def unfinished(self) -> bool:
        """Whether its bytes are still incomplete (chunks), so that it describes no file."""
        return self.checksum == NO_CHECKSUM and not self.verified


@frozen(kw_only=True)
class StagingArea:
    """The approved storage box to which the server lets us write, and its hosts.

    `location` is the box's absolute path on the hosts. `host_keys` are fingerprints (`SHA256:...`)
    or public keys set by the server's administrator; they may be empty.
    """

    box: str
    location: str
    username: str
    hosts: tuple[str, ...]
    port: int = 22
    host_keys: tuple[str, ...] = ()


class EntryState(StrEnum):
    """The state of a local file, as far as the ledger knows.

    FOUND is that of a file that has not arrived yet, and has no row.
    REPAIRED is a registered file whose record had other bytes before: the record's verified flag is
    invalid until the server verifies it again. CHANGED is a file of which the server has verified
    an earlier version, which has this size, time and checksum.
    """

    FOUND = "found"
    STAGED = "staged"
    REGISTERED = "registered"
    REPAIRED = "repaired"
    VERIFIED = "verified"
    CHANGED = "changed"
    FAILED = "failed"


@dataclass(slots=True)
class FileRecord:
    """A file, or an archive of files, on its way from the local disk to a verified record.

    The stages change it in place: `state` is FOUND until its bytes have arrived, then STAGED,
    REGISTERED and VERIFIED. One stage at a time has it.

    `remote` is the path below the staging area's location. `earlier` is the record to repair, if
    there is one. `round` counts how often the whole file was sent in this run and did not verify.
    If it was `interrupted`, an earlier attempt may have left bytes of it. With `members` it is
    an archive of these: `file` only describes its datafile on the server, and has no path. If it is
    `appended`, the server's verified bytes are the beginning of its own. `release` means that these
    may be replaced even where the host cannot keep them.

    `checksum` is that of the bytes that arrived, and `datafile` the id of their record. `looks` are
    the times of verification before this run changed the record: only a later one applies to our
    bytes. The other replicas keep theirs and remain "verified" although their bytes are no longer
    those of the record. If it was `placed_by_server` (uploads over HTTP), the transport has created
    the record, and the server chose the path of the bytes. If it was `renamed`, the bytes that have
    arrived are those of this row, of its former name, and are not at `remote` yet.
    """

    file: LocalFile
    dataset: Dataset
    remote: str
    earlier: Datafile | None = None
    round: int = 0
    members: tuple[ArchiveMember, ...] = ()
    interrupted: bool = False
    appended: bool = False
    release: bool = False
    state: EntryState = EntryState.FOUND
    checksum: str = ""
    datafile: DatafileId | None = None
    looks: tuple[str, ...] = ()
    placed_by_server: bool = False
    renamed: "Entry | None" = None

    @property
    def repairs(self) -> bool:
        """Whether the server has a copy of other bytes under its record."""
        return self.earlier is not None and bool(self.earlier.replicas)

    @property
    def replaces(self) -> bool:
        """Whether the server may have earlier bytes as verified, which must not be overwritten.

        An archive never replaces a verified one.
        """
        earlier = self.earlier
        return earlier is not None and bool(earlier.replicas) and not self.members

    @property
    def files(self) -> tuple[LocalFile, ...]:
        """The local files it consists of; these are counted and reported."""
        if not self.members:
            return (self.file,)
        return tuple(member.file for member in self.members)

    @property
    def keys(self) -> tuple[bytes, ...]:
        """Its own key, and those of the files of an archive: each stands for all of it."""
        return (self.file.key, *(member.file.key for member in self.members))

    @property
    def checked_files(self) -> list[tuple[LocalFile, str]]:
        """The local files with their checksums."""
        if not self.members:
            return [(self.file, self.checksum)]
        return [(member.file, member.checksum) for member in self.members]

    def arrive(self, checksum: str) -> Self:
        """Note that its bytes, of this checksum, are proven to be in the staging area."""
        self.state, self.checksum = EntryState.STAGED, checksum
        return self

    def become(self, record: Datafile) -> Self:
        """Note that a record describes its bytes, which the server is to verify."""
        self.state, self.checksum = EntryState.REGISTERED, record.checksum
        self.datafile, self.looks = record.id, record.looks
        return self

    def send_again(self) -> Self:
        """Note that its bytes are to be sent again, and that nothing is known of them."""
        self.state, self.checksum, self.renamed = EntryState.FOUND, "", None
        self.datafile, self.looks, self.placed_by_server = None, (), False
        return self


Batch = list[FileRecord]  # what one stage passes to the next
_MEMBERS: Final = attrgetter("members")


def count_members(records: Sequence[FileRecord]) -> int:
    """Return the number of local files; an archive counts its members."""
    return len(records) + sum(len(it) - 1 for it in filter(None, map(_MEMBERS, records)))


@dataclass(slots=True, eq=False)
class Payload:
    """The bytes of one transfer: one file, or a batch of tiny files if `batched`.

    `size` is that of its members, and `files` counts the files of an archive.
    """

    id: int
    members: tuple[FileRecord, ...]
    batched: bool
    size: int = field(init=False)
    files: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = sum([it.file.size for it in self.members])
        self.files = count_members(self.members)

    def keep(self, members: Iterable[FileRecord]) -> "Payload":
        """Return the transfer of these members only."""
        return Payload(self.id, tuple(members), self.batched)


class Replacement(NamedTuple):
    """New bytes for a datafile that has other bytes; noted until they are verified.

    The bytes are at `staged`, or nowhere yet if the host cannot rename files, and will be moved to
    `remote`; the earlier ones, of `kept_size`, are first renamed to `kept`, which is empty if they
    are not kept.
    `at` is in seconds since 1970. `modified_ns` is -1 in rows of older versions, which changed the
    record first.
    """

    key: bytes
    dataset: DatasetId
    datafile: DatafileId
    remote: str
    staged: str
    size: int
    checksum: str
    at: int
    modified_ns: int = -1
    kept: str = ""
    kept_size: int = 0


class KeptCopy(NamedTuple):
    """Earlier bytes of a datafile that stay on the server at `path` after they were replaced.

    `modified` and `verified_at` are the server's texts, empty if unknown. `at` and `until` are in
    seconds since 1970, 0 while the bytes are not replaced yet.
    """

    key: bytes
    dataset: DatasetId
    datafile: DatafileId
    remote: str
    path: str
    size: int
    checksum: str
    modified: str
    verified_at: str
    at: int = 0
    until: int = 0


class Match(NamedTuple):
    """A checksum on the server, and the state of a local file that has it."""

    checksum: str
    known: "Entry | FileRecord"


class VerifiedCopy(NamedTuple):
    """What the server has as verified under the name of a local file that may differ.

    `verified_at` is the server's text, empty if unknown. `freely` means that the settings allow
    replacing it without a question.
    """

    size: int
    checksum: str
    verified_at: str = ""
    freely: bool = False


class Comparison(NamedTuple):
    """A local file that must be read, because only its content shows what is to be done.

    If its checksum is that of one of the `matches`, that match applies. Otherwise the file differs,
    and is sent or rejected. `copy` is the verified copy that it would replace.
    """

    file: LocalFile
    matches: tuple[Match, ...]
    differs: FileRecord | Problem
    copy: VerifiedCopy | None = None


HELD_FILES: Final = Problem(
    HELD,
    "Changed files wait for a decision: their verified copies on the server were not replaced.",
    "Choose for each whether to replace its copy or to keep it. To list them, run: mydata-like "
    "changed list",
)


class HoldReason(StrEnum):
    """Why a changed file is held; NONE for one that was sent and only counts for the brake."""

    NONE = ""
    SHRUNK = "shrunk"
    BRAKE = "brake"
    SETTING = "setting"
    HOST = "host"  # it cannot keep the copy
    HTTP = "http"


class ChangeChoice(StrEnum):
    """The user's choice for a held file in its present state."""

    NONE = ""
    REPLACE = "replace"
    KEEP = "keep"


class ChangedFile(NamedTuple):
    """A local file that was rewritten or shrunk since the server verified it, in one state.

    `copy_size` and `copy_checksum` are those of the verified copy. `counted_at`, in seconds since
    1970, is when it began to count for the brake; None if it does not.
    """

    key: bytes
    size: int
    modified_ns: int
    ctime_ns: int
    inode: int
    dataset: DatasetId
    copy_size: int
    copy_checksum: str
    copy_verified_at: str = ""
    hold: HoldReason = HoldReason.NONE
    choice: ChangeChoice = ChangeChoice.NONE
    counted_at: int | None = None

    def is_of(self, file: LocalFile) -> bool:
        """Return whether the row describes the file as it is now."""
        now = file.size, file.modified_ns, file.ctime_ns, signed(file.inode)
        return now == (self.size, self.modified_ns, self.ctime_ns, self.inode)


class Undo(NamedTuple):
    """Kept bytes that take their place again; `local` has the user's choice for the local file.

    If they are `in_place`, only the record describes other bytes, which are nowhere.
    """

    copy: KeptCopy
    local: ChangedFile | None
    in_place: bool = False


class CheckedGroup(NamedTuple):
    """The files of a group that are not verified after the check.

    Files in `unread` may be verified, too.
    """

    group: FileGroup
    open: Batch
    unread: Sequence[Comparison] = ()


class Registration(NamedTuple):
    """One record to create (`datafile` is None) or repair.

    Times are ISO texts with a time zone; `uri` is None if a record keeps its replica.
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


LOST: Final = "server.lost"  # of verified bytes that are now missing or different


class EarlierWrite(NamedTuple):
    """A request of an earlier run that writes to a dataset, and whose response was lost.

    The server may be processing it until the time `until`. `staged` are path and checksum of the
    files sent and not registered when that run ended: if the server has one of them, the request
    has ended.
    """

    until: datetime
    staged: frozenset[tuple[str, str]]


class Entry(NamedTuple):
    """A row of the ledger: the state of one local file with one size and time.

    `ctime_ns` and `inode` are those of the file when it was scanned. They are None in rows of older
    versions, and 0 if the file is only known from an archive on the server.
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
    archive: str = ""  # the path in its dataset of the archive that contains it; empty for none
    ctime_ns: int | None = None
    inode: int | None = None

    def is_of(self, file: LocalFile) -> bool:
        """Return whether the row describes the file as it is now, as far as the system reports."""
        if (self.size, self.modified_ns) != (file.size, file.modified_ns):
            return False
        if self.ctime_ns is None or self.inode is None:
            return True
        return (self.ctime_ns, self.inode) == (file.ctime_ns, signed(file.inode))

    def adopt(self, file: LocalFile) -> Self:
        """Return the row for the same bytes with the file's present attributes."""
        return self._replace(
            size=file.size,
            modified_ns=file.modified_ns,
            ctime_ns=file.ctime_ns,
            inode=signed(file.inode),
        )

    @classmethod
    def of(cls, record: FileRecord) -> Self:
        """Return the row for a file's present state; it has the record's id once that is proven.

        If a record had other bytes, its verified flag says nothing about these. This holds even if
        the run is interrupted after the server has received the new checksum and before its answer
        arrives.
        """
        file, state, datafile = record.file, record.state, record.datafile
        if state is not EntryState.VERIFIED:
            datafile = None
            if record.repairs and state in (EntryState.STAGED, EntryState.REGISTERED):
                state = EntryState.REPAIRED
        return cls(
            file.key,
            file.size,
            file.modified_ns,
            state,
            record.dataset.id,
            record.checksum,
            record.remote,
            datafile,
            "",
            "",
            file.ctime_ns,
            signed(file.inode),
        )


class Outcome(NamedTuple):
    """The outcome of a file, or of a folder with all files in it, that is not verified, and why.

    `kind` is "found" (and not sent yet), "waiting", "skipped" or "failed"; for folders it is
    "folder-skipped" or "folder-failed". `modified_ns` is 0 if it is not known.
    """

    path: bytes
    size: int
    modified_ns: int
    kind: str
    problem: Problem


# The problem of a file that was found and is not known to be verified: it exists only here.
UNSENT: Final = Problem(
    "waiting.unsent",
    "Not sent yet.",
    "The next run sends it.",
)


# The problem of a file that is known as verified, and of which an answer says otherwise.
RECHECK: Final = Problem(
    "waiting.recheck",
    "The file was known as verified, but an answer of the server contradicts that.",
    "Keep the local file. The next run compares it with the server, and sends it again if needed.",
)


class Recheck(NamedTuple):
    """What must be checked again: a file, an archive with all files in it, or a whole dataset.

    A file in an archive has its own path if the archive does not contain it.
    """

    dataset: DatasetId
    key: bytes = b""
    archive: str = ""


class FolderSums(NamedTuple):
    """The totals of the files of a dataset folder; `title` is None as in `DatasetFolder`."""

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
    """Files that exist only here, at the last scan; `oldest` is by modification time."""

    files: int = 0
    bytes: int = 0
    oldest: datetime | None = None

    def as_record(self) -> dict[str, object]:
        """Return this as plain values for JSON."""
        return self._asdict() | {"oldest": self.oldest and self.oldest.isoformat()}


NO_RISK = AtRisk()
