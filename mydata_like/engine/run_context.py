"""The objects that all stages of a run share."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from mydata_like.core.events import RunFinished
from mydata_like.core.frozen import frozen
from mydata_like.core.ports import Clock, Emit, EmitAll, Ledger, Transport
from mydata_like.engine.bottleneck import BottleneckMonitor
from mydata_like.engine.catalogue import Catalogue
from mydata_like.engine.channels import ChannelPool
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import Stoppable
from mydata_like.engine.progress import RunProgress
from mydata_like.engine.source_store import ExtraSources
from mydata_like.engine.user_overrides import UserOverrides


class RunRecorder(Protocol):
    """The recorder of a run's progress, for later runs and for other programs."""

    def keep(self) -> None:
        """Record the current progress of the run."""

    def conclude(self, finished: RunFinished) -> None:
        """Record the sums at the run's end, and the effects of a complete run."""


@frozen(kw_only=True, eq=False)
class RunContext:
    """One run: its parameters, its collaborators, and its interface for commands."""

    run: str  # its uuid
    root: bytes  # the data directory
    reason: str  # why it starts, as in `RunStarted`
    dry_run: bool = False

    catalogue: Catalogue
    ledger: Ledger
    transport: Transport
    box: str  # the storage box
    emit: Emit
    emit_all: EmitAll
    progress: RunProgress  # the sums of all emitted events
    recorder: RunRecorder | None = None  # None for a dry run

    clock: Clock
    cancel: Stoppable  # ends only this run
    gate: Gate
    channels: ChannelPool
    choices: UserOverrides
    sources: ExtraSources
    shares: BottleneckMonitor
    registrations: int = 3  # concurrent requests
    take_commands: Callable[["RunContext"], AbstractContextManager[None]]
    in_background: Callable[[], AbstractContextManager[None]] = nullcontext  # while files are sent
