"""The status of a local file or folder: on the disk, in the ledgers, on the server."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.core.errors import Problem
from mydata_like.core.formatting import format_day, format_earlier, format_path
from mydata_like.core.local_files import signed
from mydata_like.core.model import RECHECK, Entry, EntryState, KeptCopy
from mydata_like.core.parsing import moment_of, moment_of_ns


class LocalState(StrEnum):
    """How the local file compares with the one in the ledger."""

    SAME = "same"
    CHANGED = "changed"  # other size or time
    UNCERTAIN = "uncertain"  # same size and time, but the system noted a change, or another file
    GONE = "gone"
    UNREADABLE = "unreadable"  # not accessible now: a missing drive or permission
    NEW = "new"  # not in the ledger


class FileSafety(StrEnum):
    """The safety of a file by what is known locally; only VERIFIED means that it is safe."""

    VERIFIED = "verified"  # the server had verified exactly these bytes when it was last queried
    UNCERTAIN = "uncertain"  # verified, but the local file may have changed since
    CHANGED = "changed"  # other content was sent
    PENDING = "pending"  # sent or registered, and not verified yet
    DOUBTFUL = "doubtful"  # verified before, but a later answer of the server contradicts that
    UNSENT = "unsent"  # found, and not sent: it waits, failed or is skipped
    GONE_VERIFIED = "gone-verified"  # no longer here; verified when the server was last queried
    GONE = "gone"  # no longer here, and not verified
    UNREADABLE = "unreadable"  # the local file cannot be examined now
    UNKNOWN = "unknown"  # nothing is known of it


class UnknownReason(StrEnum):
    """Why nothing is known of a path."""

    OUTSIDE = "outside"  # outside the data directory and all added sources
    UNSEEN = "unseen"  # it exists, but no run has found it
    ABSENT = "absent"  # neither on the disk nor in the ledger


class StepTimes(NamedTuple):
    """When a file reached each step, in seconds since 1970; None if not known.

    It was `restored` when these bytes were last brought back to this computer.
    """

    staged: int | None = None
    registered: int | None = None
    verified: int | None = None
    restored: int | None = None


class KnownOutcome(NamedTuple):
    """The last run's outcome of an unhealthy file, or of a folder with all files below it."""

    kind: str
    problem: Problem
    at: int
    path: bytes = b""
    size: int = 0
    modified_ns: int = 0


class FileEvidence(NamedTuple):
    """The knowledge of one ledger about a file; `outcome` is that of the file's own path only."""

    entry: Entry | None = None
    times: StepTimes = StepTimes()
    changed_at: int = 0  # when the row of the entry was written, 0 if not known
    outcome: KnownOutcome | None = None
    listed_at: int | None = None  # when all records of its dataset were last compared

    @property
    def verified(self) -> bool:
        """Whether the server has verified the known file, and no later run found otherwise."""
        return _is_verified(self.entry) and not self._denied_at

    @property
    def compared_at(self) -> int | None:
        """When the server was last seen to have the file, in seconds since 1970."""
        newer = (self.times.registered or 0) > (self.listed_at or 0)
        return self.times.verified if newer else self.listed_at or self.times.verified

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
    """The attributes of the file on the disk; links are followed as in a scan."""

    size: int
    modified_ns: int
    ctime_ns: int
    inode: int


# Kinds of outcomes which mean that a file's bytes, as a run found them, are not on the server. A
# skipped file may have been verified before.
DENYING: Final = frozenset(("found", "waiting", "failed"))
NO_EVIDENCE: Final = FileEvidence()


class FileStatus(NamedTuple):
    """One local file; `size` and `modified_ns` are those of the disk, else of the ledger."""

    path: Path
    key: bytes
    local: LocalState
    size: int
    modified_ns: int
    evidence: FileEvidence = NO_EVIDENCE
    above: KnownOutcome | None = None  # of a folder that contains it
    unknown: UnknownReason | None = None
    web: str = ""  # the page of its dataset on the server
    kept: tuple[KeptCopy, ...] = ()  # earlier content on the server, the newest first

    @property
    def entry(self) -> Entry | None:
        return self.evidence.entry

    @property
    def outcome(self) -> KnownOutcome | None:
        """The outcome of the file, or of a folder above it."""
        return self.evidence.outcome or self.above

    @property
    def safety(self) -> FileSafety:
        """The safety of the file by what is known locally."""
        if self.local is LocalState.GONE and self.unknown is None:
            return FileSafety.GONE_VERIFIED if self.evidence.verified else FileSafety.GONE
        if self.local is LocalState.UNREADABLE:
            return FileSafety.UNREADABLE
        if self.unknown is not None:
            return FileSafety.UNKNOWN
        return self._judge_present()

    @property
    def state(self) -> str:
        """The progress of this file in one word: a state of the ledger or the kind of an outcome.

        It is "verified" only if exactly these bytes are verified. "changed" and "uncertain" replace
        it if the local file is, or may be, different.
        """
        safety = self.safety
        if safety in (FileSafety.CHANGED, FileSafety.UNCERTAIN):
            return safety.value
        if safety is FileSafety.DOUBTFUL and self.evidence.outcome:
            return self.evidence.outcome.kind
        if self.evidence.outcome and (self.entry is None or _is_verified(self.entry)):
            return "verified" if self.evidence.verified else self.evidence.outcome.kind
        if self.entry is not None:
            return self.entry.state.value
        return self.above.kind if self.above else safety.value

    @property
    def compared(self) -> datetime | None:
        """When the server was last seen to have these bytes; None if it is not known to."""
        safe = self.safety in (FileSafety.VERIFIED, FileSafety.GONE_VERIFIED)
        at = self.evidence.compared_at if safe else None
        return moment_of(at) if at else None

    @property
    def restored(self) -> datetime | None:
        """When the known bytes were last brought back to this computer."""
        at = self.evidence.times.restored
        return moment_of(at) if at else None

    @property
    def modified(self) -> datetime | None:
        """The modification time of the file in the ledger, else of the one on the disk."""
        modified_ns = self.entry.modified_ns if self.entry else self.modified_ns
        if not modified_ns:
            return None
        return moment_of_ns(modified_ns)

    def as_record(self) -> dict[str, object]:
        """Return the status as plain values for JSON; unknown facts of the server are null."""
        entry, outcome = self.entry, self.outcome
        return {
            "path": format_path(self.key),
            "local": self.local.value,
            "state": self.state,
            "safe": self.safety in (FileSafety.VERIFIED, FileSafety.GONE_VERIFIED),
            "compared": self.compared and self.compared.isoformat(),
            "size": entry.size if entry else self.size,
            "modified": self.modified and self.modified.isoformat(),
            "checksum": (entry.checksum or None) if entry else None,
            "dataset": entry.dataset if entry else None,
            "web": self.web or None,
            "datafile": entry.datafile if entry else None,
            "remote": entry.remote if entry else None,
            "archive": (entry.archive or None) if entry else None,
            "restored": self.restored and self.restored.isoformat(),
            "problem": outcome.problem._asdict() if outcome else None,
            "kept": [
                {
                    "size": copy.size,
                    "checksum": copy.checksum,
                    "verified_at": copy.verified_at or None,
                    "kept_until": moment_of(copy.until).isoformat(),
                }
                for copy in self.kept
            ],
        }

    def describe_kept(self) -> Iterator[str]:
        """Yield what the server keeps of earlier content."""
        for copy in self.kept:
            earlier = format_earlier(copy.size, copy.verified_at)
            until = format_day(moment_of(copy.until))
            yield f"An earlier version ({earlier}) is kept until {until}."

    def _judge_present(self) -> FileSafety:
        if self.entry is None or self.entry.state is EntryState.FAILED:
            return FileSafety.UNSENT
        if self.local is LocalState.CHANGED or self.entry.state is EntryState.CHANGED:
            return FileSafety.CHANGED
        outcome = self.evidence.outcome
        if outcome is not None and outcome.problem.code == RECHECK.code:
            return FileSafety.DOUBTFUL
        if not self.evidence.verified:
            return FileSafety.UNSENT if _is_verified(self.entry) else FileSafety.PENDING
        return FileSafety.UNCERTAIN if self.local is LocalState.UNCERTAIN else FileSafety.VERIFIED


class Amount(NamedTuple):
    """A number of files and their bytes."""

    files: int = 0
    bytes: int = 0


class FolderStatus(NamedTuple):
    """A folder with all files below it; `states` are ledger states and kinds of outcomes."""

    path: Path
    key: bytes
    states: dict[str, Amount]
    outcome: KnownOutcome | None = None
    unknown: UnknownReason | None = None
    web: str = ""  # the page of its dataset, if all of it is in one

    @property
    def known(self) -> Amount:
        """All files in the ledger."""
        return Amount(*map(sum, zip(*self.states.values(), strict=True))) if self.states else NONE

    @property
    def verified(self) -> Amount:
        return self.states.get("verified", NONE)


NONE = Amount()
PathStatus = FileStatus | FolderStatus


class Suggestion(NamedTuple):
    """A file or folder whose name contains the text the user has typed so far."""

    key: bytes
    size: int
    state: str  # as `FileStatus.state`
    folder: bool = False
    modified_ns: int = 0  # 0 if it is unknown


def compare(entry: Entry | None, local: LocalFacts) -> LocalState:
    """Compare the file on the disk with the one in the ledger."""
    if entry is None:
        return LocalState.NEW
    if (local.size, local.modified_ns) != (entry.size, entry.modified_ns):
        return LocalState.CHANGED
    # Old rows have neither, and Windows reports no inode when it lists a folder.
    known = (entry.ctime_ns, local.ctime_ns), (entry.inode, signed(local.inode))
    if any(before and now and before != now for before, now in known):
        return LocalState.UNCERTAIN
    return LocalState.SAME


def choose_evidence(found: Sequence[FileEvidence], local: LocalFacts | None) -> FileEvidence:
    """Choose among the knowledge of several ledgers about a file.

    The newest applies; at equal times, the one that verifies the present file.
    """
    return max(found, key=lambda one: (one.at, _matches(one, local)), default=NO_EVIDENCE)


def _matches(evidence: FileEvidence, local: LocalFacts | None) -> bool:
    same = local is None or compare(evidence.entry, local) is LocalState.SAME
    return evidence.verified and same


def _is_verified(entry: Entry | None) -> bool:
    return entry is not None and entry.state is EntryState.VERIFIED
