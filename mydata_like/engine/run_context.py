"""What all stages of a run share."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from mydata_like.core.events import RunFinished
from mydata_like.core.ports import Clock, Emit, Ledger, ServerAPI, Transport
from mydata_like.engine.bottleneck import BottleneckMonitor
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import Stoppable
from mydata_like.engine.progress import RunProgress
from mydata_like.engine.run_limits import RunLimits
from mydata_like.engine.source_store import ExtraSources
from mydata_like.engine.user_overrides import UserOverrides


class RunRecorder(Protocol):
    """Keeps how a run goes, for later runs and for other programs."""

    def keep(self) -> None:
        """Keep how far the run has come."""

    def conclude(self, finished: RunFinished) -> None:
        """Keep the sums at the run's end, and what follows from a complete run."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunContext:
    """One run: what it is about, what it works with, and how commands act on it."""

    run: str  # its uuid
    root: bytes  # the data directory
    reason: str  # why it starts, as of `RunStarted`
    dry_run: bool = False

    server: ServerAPI
    ledger: Ledger
    transport: Transport
    box: str  # the storage box
    emit: Emit
    progress: RunProgress  # the sums of all that was emitted
    recorder: RunRecorder | None = None  # a dry run has none

    clock: Clock
    cancel: Stoppable  # ends this run alone
    gate: Gate
    limits: RunLimits
    choices: UserOverrides
    sources: ExtraSources
    shares: BottleneckMonitor
    registrations: int = 3  # requests in flight
    take_commands: Callable[["RunContext"], AbstractContextManager[None]]
    in_background: Callable[[], AbstractContextManager[None]] = nullcontext  # while files are sent
