"""The port of transports: what the program does for one value of `transfer.method`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mydata_like.app.approval import ApprovalRequest, describe_applicant
from mydata_like.app.connection import Connection, open_server_settings
from mydata_like.app.identity import ensure_uuid
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.settings_service import approval_file, find_places, find_state
from mydata_like.app.transports.connection_steps import TestStep
from mydata_like.core.errors import NotApprovedError, RunError
from mydata_like.core.model import StagingArea
from mydata_like.core.ports import Emit, Transport
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Settings
from mydata_like.state.paths import StatePaths
from mydata_like.state.state_files import find_file
from mydata_like.transfer.worker_process import WorkerStarter

if TYPE_CHECKING:
    from mydata_like.app.transports.folder_kind import NewFolder
    from mydata_like.app.transports.ssh_kind import HostKey
    from mydata_like.speedtest.real_files import SpeedTestDestination
    from mydata_like.speedtest.results import SpeedTestBudget

    OpenDestination = Callable[[SpeedTestBudget], SpeedTestDestination]
    Unconfirmed = tuple[Iterator[HostKey], NewFolder | None]


@dataclass
class TransportAccess:
    """What every kind of transport is opened with.

    Workers of the `workers` are used, the first of which may have been started already.
    """

    request: RunRequest
    observer: RunObserver
    connection: Connection
    workers: WorkerStarter | None = None

    @property
    def settings(self) -> Settings:
        return self.request.settings

    @property
    def emit(self) -> Emit:
        return self.observer.emit

    @cached_property
    def places(self) -> StatePaths:
        return find_places(self.request.config)

    @cached_property
    def uuid(self) -> str:
        """The uuid of this uploader."""
        return ensure_uuid(self.settings, self.places)

    @cached_property
    def approval(self) -> ApprovalRequest:
        """This installation's request for approval, ready to be sent."""
        clock = SystemClock()
        return ApprovalRequest(
            self.connection,
            describe_applicant(self.connection, self.settings, self.places),
            approval_file(self.settings, self.places),
            open_server_settings(self.settings, self.places, clock),
            clock,
            self.emit,
        )

    def find_area(self) -> StagingArea | None:
        """Return the staging area if it is approved."""
        try:
            approved = self.approval.fetch_approval()
        except NotApprovedError:
            return None
        return approved and approved.area

    def find_file(self, name: str) -> Path:
        """Return the path of a state file for this server."""
        return find_file(find_state(self.settings, self.places), name, self.settings.server.url)


class TransportKind(ABC):
    """What the program does for one value of `transfer.method`.

    Unless it is `for_previews`, a dry run is over HTTP, which needs no approval. `can_replace`
    tells whether it can replace the content of a file on the server.
    """

    for_previews = False
    can_replace = True

    @abstractmethod
    def open(self, access: TransportAccess) -> tuple[Transport, str]:
        """Return the transport and its storage box."""

    @abstractmethod
    def test(self, access: TransportAccess) -> Iterator[TestStep]:
        """Yield the steps of the connection test after those of the server."""

    @abstractmethod
    def find_measured(self, access: TransportAccess) -> "tuple[OpenDestination | None, str]":
        """Return what a speed test measures; without it, a sentence that says why."""

    def request_area(self, access: TransportAccess) -> StagingArea:
        """Request approval; return what is approved."""
        return access.approval.request()

    def list_hosts(self, access: TransportAccess, area: StagingArea) -> tuple[str, ...]:
        """Return the names of what files are sent to."""
        return area.hosts

    def find_unconfirmed(
        self, access: TransportAccess, area: StagingArea, accepted: tuple[str, ...]
    ) -> "Unconfirmed":
        """Return what the user has to confirm: host keys that are not trusted, and a new folder.

        Of a host with several keys, one whose fingerprint is `accepted` is preferred.
        """
        return iter(()), None

    def find_box(self, access: TransportAccess) -> str:
        """Return the storage box that proves what was sent; raises `RunError` without one."""
        area = access.find_area()
        if area is None:
            raise no_box()
        return area.box


def no_box() -> RunError:
    """Return the error if no storage box proves what was sent."""
    return RunError(
        "Files are sent over HTTP only, because no storage box has been approved.",
        hint="Nothing is deleted until then: set transfer.method to auto, and ask for "
        "approval with: mydata-like register",
        code="free.http-only",
    )
