"""One pass of the whole flow: scan, check, pack, send, register, verify, record."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mydata_like.core.errors import Cancelled, Problem, RunError, UploaderError
from mydata_like.core.events import RunFinished, RunStarted
from mydata_like.core.model import Registered, Staged, Wanted
from mydata_like.core.ports import Clock, Emit, Transport
from mydata_like.engine.check import Check
from mydata_like.engine.pack import Pack
from mydata_like.engine.register import Register
from mydata_like.engine.scan import Scan
from mydata_like.engine.send import Send
from mydata_like.engine.tally import Tally
from mydata_like.engine.verify import Verify
from mydata_like.engine.workers import Stoppable, WorkerGroup, WorkQueue, stage

logger = logging.getLogger(__name__)

Checked = list[Wanted | Staged | Registered]

INTERRUPTED = Problem(
    "run.interrupted",
    "The run was stopped before its end.",
    "Nothing is lost: the next run carries on.",
)
CHECKS = 2  # datasets whose listings are fetched at once
REQUESTS = 3  # registrations in flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The stages, ready to work; only `Run` knows their order."""

    scan: Scan
    check: Check
    pack: Pack
    send: Send
    register: Register
    verify: Verify


class Run:
    """A run over one data directory; `execute` may be called once."""

    def __init__(
        self, stages: Stages, transport: Transport, tally: Tally, emit: Emit, cancel: Stoppable
    ) -> None:
        self._stages = stages
        self._transport = transport
        self._tally = tally
        self._emit = emit
        self._cancel = cancel

    def execute(self, root: bytes, run: str, *, dry_run: bool = False) -> RunFinished:
        """Bring every local file below `root` to its outcome, and return the sums.

        What ends the run early is told in the sums' `problem`; nothing is raised for it.
        """
        self._emit(RunStarted(run=run, at=self._clock.now(), data_directory=root, dry_run=dry_run))
        ...
