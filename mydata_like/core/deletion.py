"""What freeing space is about: local files, what becomes of them, and what it needs of the disk."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, Self

from mydata_like.core.errors import Problem
from mydata_like.core.model import NO_RISK, AtRisk, DatafileId, Entry
from mydata_like.core.ports import CancelSignal


class CleanupCandidate(NamedTuple):
    """A local file whose deletion is asked for; with a problem it is kept without a question."""

    key: bytes
    size: int
    problem: Problem | None = None


class DeletedFile(NamedTuple):
    """A local file that was deleted, or would have been, and where its bytes are."""

    key: bytes
    size: int
    entry: Entry
    datafile: DatafileId


class KeptFile(NamedTuple):
    """A local file that stays, and why."""

    key: bytes
    size: int
    problem: Problem


class OpenFile(Protocol):
    """One local file, open, whose name still leads to it."""

    def measure(self, cancel: CancelSignal) -> str:
        """Read it to its end and return the checksum; raises `ItemError` where it changed."""

    def delete(self) -> None:
        """Delete exactly this file, unless it has changed since `measure`; raises `ItemError`."""


class FileSystem(Protocol):
    """The local files."""

    def hold(self, entry: Entry) -> AbstractContextManager[OpenFile]:
        """Open the file that the ledger speaks of; raises `ItemError` where it is another one."""


class DeletionLog(Protocol):
    """What lasts of every deletion."""

    def note(self, freed: DeletedFile) -> None:
        """Keep that a file is about to be deleted."""

    def take_back(self, freed: DeletedFile, problem: Problem) -> None:
        """Keep that it was not."""


STOPPED = "run.interrupted"  # the code of a run that the user ended early
PARTIAL_REASONS = frozenset(("source", "folder"))  # of runs that do not look at everything


class Safety(StrEnum):
    """How the data is, as far as is known; only SAFE says that all of it is on the server."""

    SAFE = "safe"
    AT_RISK = "at risk"
    UNKNOWN = "unknown"
    PROBLEM = "problem"


class RunSums(NamedTuple):
    """What a run that has ended brought; `problem` is the code of what ended it early."""

    found: int = 0
    verified: int = 0
    waiting: int = 0
    skipped: int = 0
    left_behind: int = 0
    failed: int = 0
    problem: str = ""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Return the sums of a run as the event `run_finished` tells it."""
        counts = {name: record.get(name) or 0 for name in cls._fields if name != "problem"}
        problem = record.get("problem")
        return cls(**counts, problem=str(problem["code"]) if problem else "")

    @property
    def safe(self) -> bool:
        """Whether all that was found, but for what is left out on purpose, is verified."""
        whole = not self.problem and not self.left_behind
        return whole and self.found == self.verified + self.skipped

    @property
    def went_wrong(self) -> bool:
        """Whether files failed, or something other than the user ended the run early."""
        return bool(self.failed) or self.problem not in ("", STOPPED)


class SafetyEvidence(NamedTuple):
    """What is known: `last` is the newest run that ended, `whole` the newest over everything.

    `cut_off` says that a run was cut off since, `sources` how many added folders are unfinished.
    `data_problem` is why the data directory cannot be read.
    """

    at_risk: AtRisk = NO_RISK
    last: RunSums | None = None
    whole: RunSums | None = None
    cut_off: bool = False
    sources: int = 0
    data_problem: Problem | None = None


def judge_safety(evidence: SafetyEvidence) -> Safety:
    """Return how safe the data is; where anything is missing for SAFE, it is not SAFE."""
    last, whole = evidence.last, evidence.whole
    if evidence.data_problem is not None or (last is not None and last.went_wrong):
        return Safety.PROBLEM
    if evidence.at_risk.files or evidence.cut_off or evidence.sources:
        return Safety.AT_RISK
    if any(sums is not None and (sums.waiting or sums.left_behind) for sums in (last, whole)):
        return Safety.AT_RISK
    return Safety.SAFE if whole is not None and whole.safe and whole.verified else Safety.UNKNOWN
