"""How things stand, as one value, from which the window and the tray are drawn."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from mydata_like.core.errors import Problem
from mydata_like.core.events import RunProgressed
from mydata_like.core.model import NO_RISK, AtRisk
from mydata_like.core.sources import KnownSource
from mydata_like.gui.live import NO_LIMIT, NOTHING, Limit


class Phase(StrEnum):
    """What goes on."""

    LOADING = "loading"  # the settings are being read
    UNSET = "unset"  # the set-up is not complete
    IDLE = "idle"
    STARTING = "starting"  # a run was asked for
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    ELSEWHERE = "elsewhere"  # a run that another program started
    TESTING = "testing"  # a speed test of this window, beside which no run begins
    BROKEN = "broken"  # the engine ended unexpectedly, or could not begin


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """How a run ended; `problem` says why it ended early."""

    started: datetime
    finished: datetime | None
    found: int = 0
    verified: int = 0
    waiting: int = 0
    skipped: int = 0
    left_behind: int = 0
    failed: int = 0
    sent: int = 0
    bytes: int = 0
    seconds: float = 0.0
    reason: str = "person"
    problem: Problem | None = None

    @property
    def safe(self) -> bool:
        """Whether all that was found, but for what is left out on purpose, is safe."""
        whole = self.problem is None and not self.left_behind
        return whole and self.found == self.verified + self.skipped

    @property
    def partial(self) -> bool:
        """Whether it looked at added sources or at one folder only: of the rest it says nothing."""
        return self.reason in ("source", "folder")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """How things stand.

    `sums` and `limit` are those of the run at work; `problem` says why it is paused, or why the
    engine is broken. `awaited` is why the server does not let us in yet. `missing` are keys of
    settings, `sources` the added folders that are not finished.
    """

    phase: Phase = Phase.LOADING
    sums: RunProgressed = NOTHING
    limit: Limit = NO_LIMIT
    last: PastRun | None = None
    problem: Problem | None = None
    awaited: Problem | None = None
    next_start: datetime | None = None
    schedule: str = "manual"
    at_risk: AtRisk = NO_RISK
    missing: tuple[str, ...] = ()
    sources: tuple[KnownSource, ...] = ()

    @property
    def at_work(self) -> bool:
        """Whether a run goes on, here or elsewhere."""
        return self.phase in (
            Phase.STARTING,
            Phase.RUNNING,
            Phase.PAUSED,
            Phase.STOPPING,
            Phase.ELSEWHERE,
        )

    @property
    def can_start(self) -> bool:
        """Whether a run may be asked for now."""
        return not (self.at_work or self.missing or self.phase is Phase.TESTING)

    @property
    def ours(self) -> bool:
        """Whether the run at work obeys this window."""
        return self.at_work and self.phase is not Phase.ELSEWHERE
