"""Values and ports for deleting local files that the server has."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, Self

from mydata_like.core.errors import Problem
from mydata_like.core.model import NO_RISK, AtRisk, DatafileId, Entry
from mydata_like.core.ports import CancelSignal


class CleanupCandidate(NamedTuple):
    """A local file to delete; one with a problem is kept without further checks."""

    key: bytes
    size: int
    problem: Problem | None = None


class DeletedFile(NamedTuple):
    """A local file that was deleted, or would have been, and where its bytes are on the server.

    `aside` is the name that it gets just before it is deleted; empty if it is not renamed.
    """

    key: bytes
    size: int
    entry: Entry
    datafile: DatafileId
    aside: str = ""


class KeptFile(NamedTuple):
    """A local file that is kept, and why."""

    key: bytes
    size: int
    problem: Problem


class OpenFile(Protocol):
    """A local file that is open and still has its name; `aside` is as in `DeletedFile`."""

    aside: str

    def measure(self, cancel: CancelSignal) -> str:
        """Read the whole file and return its checksum; raises `ItemError` if it changed."""

    def check_unused(self) -> None:
        """Raise `ItemError` if another program may write to this file."""

    def delete(self, confirm: Callable[[], None]) -> None:
        """Delete this file unless it has changed since `measure`, or `confirm` raises an error.

        That is called as late as possible, where the system allows it while the file has another
        name. Raises `ItemError`, or the error of `confirm`.
        """


class FileSystem(Protocol):
    """Access to local files."""

    def hold(self, entry: Entry) -> AbstractContextManager[OpenFile]:
        """Open the file of a ledger entry; raises `ItemError` if it is another file now."""


class DeletionLog(Protocol):
    """The permanent log of deletions."""

    def note(self, freed: DeletedFile) -> None:
        """Record that a file is about to be deleted."""

    def take_back(self, freed: DeletedFile, problem: Problem) -> None:
        """Record that the file was not deleted."""


STOPPED = "run.interrupted"  # the code of a run that the user stopped
PARTIAL_REASONS = frozenset(("source", "folder"))  # of runs that do not scan everything


class Safety(StrEnum):
    """The safety of the data, as far as known; only SAFE means that all of it is on the server."""

    SAFE = "safe"
    AT_RISK = "at risk"
    UNKNOWN = "unknown"
    PROBLEM = "problem"


class RunSums(NamedTuple):
    """The totals of a finished run; `problem` is the code of what ended it early."""

    found: int = 0
    verified: int = 0
    waiting: int = 0
    skipped: int = 0
    left_behind: int = 0
    failed: int = 0
    problem: str = ""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Return the totals in a `run_finished` event."""
        counts = {name: record.get(name) or 0 for name in cls._fields if name != "problem"}
        problem = record.get("problem")
        return cls(**counts, problem=str(problem["code"]) if problem else "")

    @property
    def safe(self) -> bool:
        """Whether everything found is verified, apart from what is skipped on purpose."""
        whole = not self.problem and not self.left_behind
        return whole and self.found == self.verified + self.skipped

    @property
    def went_wrong(self) -> bool:
        """Whether files failed, or something other than the user ended the run early."""
        return bool(self.failed) or self.problem not in ("", STOPPED)


class SafetyEvidence(NamedTuple):
    """The evidence: `last` is the newest finished run, `whole` the newest that scanned everything.

    `cut_off` states whether a run was interrupted since, `sources` how many added folders are
    unfinished. `data_problem` is why the data directory cannot be read.
    """

    at_risk: AtRisk = NO_RISK
    last: RunSums | None = None
    whole: RunSums | None = None
    cut_off: bool = False
    sources: int = 0
    data_problem: Problem | None = None


def judge_safety(evidence: SafetyEvidence) -> Safety:
    """Return the safety of the data; it is not SAFE if any evidence for that is missing."""
    last, whole = evidence.last, evidence.whole
    if evidence.data_problem is not None or (last is not None and last.went_wrong):
        return Safety.PROBLEM
    if evidence.at_risk.files or evidence.cut_off or evidence.sources:
        return Safety.AT_RISK
    if any(sums is not None and (sums.waiting or sums.left_behind) for sums in (last, whole)):
        return Safety.AT_RISK
    return Safety.SAFE if whole is not None and whole.safe and whole.verified else Safety.UNKNOWN
