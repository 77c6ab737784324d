"""Whether all data is safe: one answer from all that is known, for every view."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Self

from mydata_like.core.errors import Problem
from mydata_like.core.model import NO_RISK, AtRisk

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


class Evidence(NamedTuple):
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


def judge_safety(evidence: Evidence) -> Safety:
    """Return how safe the data is; where anything is missing for SAFE, it is not SAFE."""
    last, whole = evidence.last, evidence.whole
    if evidence.data_problem is not None or (last is not None and last.went_wrong):
        return Safety.PROBLEM
    if evidence.at_risk.files or evidence.cut_off or evidence.sources:
        return Safety.AT_RISK
    if any(sums is not None and (sums.waiting or sums.left_behind) for sums in (last, whole)):
        return Safety.AT_RISK
    return Safety.SAFE if whole is not None and whole.safe and whole.verified else Safety.UNKNOWN
