"""The port to what a run sends to."""

import os
from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import NamedTuple

from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.core.checksums import Algorithm
from mydata_like.core.events import RunFinished
from mydata_like.core.ports import Clock, Emit, Transport
from mydata_like.engine.catalogue import Catalogue
from mydata_like.engine.gate import Gate
from mydata_like.engine.layout_walk import ScanScope
from mydata_like.hostos.lock import Lease
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.transfer.worker_process import WorkerStarter


class RunBasis(NamedTuple):
    """What a destination is opened with; `lease` is None for a dry run.

    Workers of the `workers` are used, the first of which may have been started already. What has to
    be closed after the run goes on the `stack`.
    """

    ledger: SqliteLedger
    observer: RunObserver
    gate: Gate
    clock: Clock
    workers: WorkerStarter
    lease: Lease | None
    stack: ExitStack


class OpenedDestination(NamedTuple):
    """What a run sends with. `box` is the storage box of its bytes.

    `can_replace` is whether a run can replace the content of files there; a dry run may have
    another transport than the run itself. All checksums are of the `algorithm`. `can_rename` is
    whether copies of renamed files are renamed there.
    """

    catalogue: Catalogue
    transport: Transport
    box: str
    can_replace: bool
    algorithm: Algorithm = Algorithm.MD5
    can_rename: bool = False


class RunDestination(ABC):
    """What one run sends to. Its methods are called once, in the order of their definition.

    Files that other programs have open wait if it `awaits_writers`. A few files are sent
    `in_process`, by a thread of the engine if that cannot be blocked by a lost folder.
    """

    awaits_writers = True
    in_process = False

    def find_root(self, request: RunRequest) -> bytes:
        """Return the data directory of the run's ledger and lock."""
        return os.fsencode(request.settings.data.directory or "")

    @abstractmethod
    def check(self, request: RunRequest) -> None:
        """Raise an error if this destination cannot take what is requested."""

    def narrow(self, part: ScanScope) -> ScanScope:
        """Return the part of the data directory to scan, with the rules for its files."""
        return part

    @abstractmethod
    def connect(
        self, request: RunRequest, observer: RunObserver, gate: Gate, stack: ExitStack
    ) -> RunRequest:
        """Connect, and return the request with the settings that apply."""

    def mark_filters(self, emit: Emit) -> Emit:
        """Return an `emit` that marks files left out by filters that the user did not set."""
        return emit

    @abstractmethod
    def open(self, basis: RunBasis) -> OpenedDestination:
        """Open transport and catalogue, waiting at the gate while that is needed."""

    @abstractmethod
    def report(self, finished: RunFinished) -> None:
        """Store the end of the run at the destination, if anybody reads it there."""
