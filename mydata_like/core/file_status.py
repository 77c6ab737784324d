"""What is known of one local file or folder: on the disk, in the ledgers, on the server."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.core.errors import Problem
from mydata_like.core.formatting import format_path
from mydata_like.core.model import Entry, EntryState


class LocalState(StrEnum):
    """How the file on the disk, as a scan would see it, compares with what the ledger knows."""

    SAME = "same"
    CHANGED = "changed"  # other size or time
    UNCERTAIN = "uncertain"  # same size and time, but the system noted a change, or another file
    GONE = "gone"
    UNREADABLE = "unreadable"  # nobody can look now: its drive is away, or permissions are missing
    NEW = "new"  # the ledger has never heard of it


class FileSafety(StrEnum):
    """What may be said of a file by what is known here; only VERIFIED is good news."""

    VERIFIED = "verified"  # the server has verified these very bytes, when it was last asked
    UNCERTAIN = "uncertain"  # verified, but the local file may have changed since
    CHANGED = "changed"  # what was sent are other bytes
    PENDING = "pending"  # sent or registered, and not verified yet
    UNSENT = "unsent"  # found, and not sent: it waits, failed or is left out
    GONE_VERIFIED = "gone-verified"  # no longer here; verified when the server was last asked
    GONE = "gone"  # no longer here, and not verified
    UNREADABLE = "unreadable"  # nobody can look at the local file now
    UNKNOWN = "unknown"  # nothing is known of it


class UnknownReason(StrEnum):
    """Why nothing is known of a path."""

    OUTSIDE = "outside"  # of the data directory, and of all that was dropped
    UNSEEN = "unseen"  # it is there, and no run has come across it
    ABSENT = "absent"  # neither the disk nor the ledger has it


class StepTimes(NamedTuple):
    """When a file reached each step, in seconds since 1970; None where that is not known."""

    staged: int | None = None
    registered: int | None = None
    verified: int | None = None


class KnownOutcome(NamedTuple):
    """What is not well, as the last run found it; of a folder it concerns all below."""

    kind: str
    problem: Problem
    at: int
    path: bytes = b""
    size: int = 0
    modified_ns: int = 0


class FileEvidence(NamedTuple):
    """What one ledger knows of a file; `outcome` is that of the file's own path only."""

    entry: Entry | None = None
    times: StepTimes = StepTimes()
    changed_at: int = 0  # when the row of the entry was written, 0 where that is not known
    outcome: KnownOutcome | None = None

    @property
    def verified(self) -> bool:
        """Whether the server has verified what is known here, and no run has denied it since."""
        return _is_verified(self.entry) and not self._denied_at

    @property
    def at(self) -> int:
        """When a run learned this, in seconds since 1970."""
        return max(self.changed_at, self._denied_at)

    @property
    def _denied_at(self) -> int:
        """When a run found that these bytes are not on the server; 0 for never."""
        outcome = self.outcome
        return outcome.at if outcome is not None and outcome.kind in DENYING else 0


class LocalFacts(NamedTuple):
    """What the disk says of a file, links followed as a scan follows them."""

    size: int
    modified_ns: int
    ctime_ns: int
    inode: int


# Kinds of outcomes that say that a file's bytes, as a run saw them, are not on the server; what
# is merely left out may have been verified before.
DENYING: Final = frozenset(("found", "waiting", "failed"))
NO_EVIDENCE: Final = FileEvidence()


class FileStatus(NamedTuple):
    """One local file; `size` and `modified_ns` are the disk's, else the ledger's."""

    path: Path
    key: bytes
    local: LocalState
    size: int
    modified_ns: int
    evidence: FileEvidence = NO_EVIDENCE
    above: KnownOutcome | None = None  # of a folder that it is in
    unknown: UnknownReason | None = None
    web: str = ""  # the page of its dataset on the server

    @property
    def entry(self) -> Entry | None:
        return self.evidence.entry

    @property
    def outcome(self) -> KnownOutcome | None:
        """What is not well with it, or with a folder above."""
        return self.evidence.outcome or self.above

    @property
    def safety(self) -> FileSafety:
        """What may be said of it by what is known here."""
        if self.local is LocalState.GONE and self.unknown is None:
            return FileSafety.GONE_VERIFIED if self.evidence.verified else FileSafety.GONE
        if self.local is LocalState.UNREADABLE:
            return FileSafety.UNREADABLE
        if self.unknown is not None:
            return FileSafety.UNKNOWN
        return self._judge_present()

    @property
    def state(self) -> str:
        """How far this very file has come: a state of the ledger or of an outcome, in one word.

        It is "verified" only of bytes that are verified; "changed" and "uncertain" stand in for
        it where the local file is, or may be, another one.
        """
        safety = self.safety
        if safety in (FileSafety.CHANGED, FileSafety.UNCERTAIN):
            return safety.value
        if self.evidence.outcome and (self.entry is None or _is_verified(self.entry)):
            return "verified" if self.evidence.verified else self.evidence.outcome.kind
        if self.entry is not None:
            return self.entry.state.value
        return self.above.kind if self.above else safety.value

    @property
    def modified(self) -> datetime | None:
        """When the file was modified that the ledger knows, else that of the disk."""
        modified_ns = self.entry.modified_ns if self.entry else self.modified_ns
        if not modified_ns:
            return None
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=modified_ns // 1000)

    def as_record(self) -> dict[str, object]:
        """Return all of it as plain values for JSON; facts of the server are null until known."""
        entry, outcome = self.entry, self.outcome
        return {
            "path": format_path(self.key),
            "local": self.local.value,
            "state": self.state,
            "safe": self.safety in (FileSafety.VERIFIED, FileSafety.GONE_VERIFIED),
            "size": entry.size if entry else self.size,
            "modified": self.modified and self.modified.isoformat(),
            "checksum": (entry.checksum or None) if entry else None,
            "dataset": entry.dataset if entry else None,
            "web": self.web or None,
            "datafile": entry.datafile if entry else None,
            "remote": entry.remote if entry else None,
            "archive": (entry.archive or None) if entry else None,
            "problem": outcome.problem._asdict() if outcome else None,
        }

    def _judge_present(self) -> FileSafety:
        if self.entry is None or self.entry.state is EntryState.FAILED:
            return FileSafety.UNSENT
        if self.local is LocalState.CHANGED or self.entry.state is EntryState.CHANGED:
            return FileSafety.CHANGED
        if not self.evidence.verified:
            return FileSafety.UNSENT if _is_verified(self.entry) else FileSafety.PENDING
        return FileSafety.UNCERTAIN if self.local is LocalState.UNCERTAIN else FileSafety.VERIFIED


class Amount(NamedTuple):
    """So many files, of so many bytes."""

    files: int = 0
    bytes: int = 0


class FolderStatus(NamedTuple):
    """A folder with all below it; `states` are those of the ledgers, and kinds of outcomes."""

    path: Path
    key: bytes
    states: dict[str, Amount]
    outcome: KnownOutcome | None = None
    unknown: UnknownReason | None = None
    web: str = ""  # where all of it is in one dataset: that one's page

    @property
    def known(self) -> Amount:
        """All files of which something is known."""
        return Amount(*map(sum, zip(*self.states.values(), strict=True))) if self.states else NONE

    @property
    def verified(self) -> Amount:
        return self.states.get("verified", NONE)


NONE = Amount()
PathStatus = FileStatus | FolderStatus


class Suggestion(NamedTuple):
    """A file or folder whose name has what the user has typed so far."""

    key: bytes
    size: int
    state: str  # as `FileStatus.state`
    folder: bool = False


def compare(entry: Entry | None, local: LocalFacts) -> LocalState:
    """Return how the disk's file compares with the one that the ledger knows."""
    if entry is None:
        return LocalState.NEW
    if (local.size, local.modified_ns) != (entry.size, entry.modified_ns):
        return LocalState.CHANGED
    # Old rows have neither, and Windows tells no inode while it lists a folder.
    known = (entry.ctime_ns, local.ctime_ns), (entry.inode, local.inode)
    if any(before and now and before != now for before, now in known):
        return LocalState.UNCERTAIN
    return LocalState.SAME


def choose_evidence(found: Sequence[FileEvidence], local: LocalFacts | None) -> FileEvidence:
    """Return what counts of what several ledgers know of a file.

    That is the latest, and of what is equally late what is verified of the file as it is now.
    """
    return max(found, key=lambda one: (one.at, _matches(one, local)), default=NO_EVIDENCE)


def _matches(evidence: FileEvidence, local: LocalFacts | None) -> bool:
    same = local is None or compare(evidence.entry, local) is LocalState.SAME
    return evidence.verified and same


def _is_verified(entry: Entry | None) -> bool:
    return entry is not None and entry.state is EntryState.VERIFIED
