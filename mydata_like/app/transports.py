"""The kinds of transport, by the value of `transfer.method`: how each is opened and approved."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from mydata_like.app.approval import ApprovalRequest
from mydata_like.app.connection import Connection
from mydata_like.app.object_storage import ObjectStorage
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.settings_service import find_places
from mydata_like.app.staging_service import (
    clean_staging,
    open_approval_request,
    open_http,
    open_transport,
    remember_hosts,
    require_admitted,
    require_apart,
)
from mydata_like.core.errors import NotApprovedError, Problem, RunError, StagingError
from mydata_like.core.events import Notice
from mydata_like.core.model import StagingArea
from mydata_like.core.ports import Transport
from mydata_like.transfer.worker_process import WorkerStarter


class TransportAccess(NamedTuple):
    """What every kind of transport is opened with.

    Transfers over SSH use `workers`, the first of which may have been started already.
    """

    request: RunRequest
    observer: RunObserver
    connection: Connection
    workers: WorkerStarter | None = None

    def ask_approval(self) -> ApprovalRequest:
        """Return this installation's request for approval, ready to be sent."""
        places = find_places(self.request.config)
        return open_approval_request(
            self.connection, self.request.settings, places, self.observer.emit
        )

    def open_area(
        self, approval_request: ApprovalRequest, area: StagingArea, *, remembers: bool = True
    ) -> tuple[Transport, str]:
        """Return the transport to an approved staging area, and its storage box.

        The area is cleaned up if that is due. If it `remembers`, a host whose capabilities were
        found within the last day is not tried again.
        """
        settings, places = self.request.settings, find_places(self.request.config)
        clean_staging(approval_request, area, settings, places, self.observer.emit)
        known = remember_hosts(settings, places, area) if remembers else None
        transport = open_transport(approval_request, area, settings, places, known, self.workers)
        return transport, area.box


def _open_ssh(access: TransportAccess) -> tuple[Transport, str]:
    approval_request = access.ask_approval()
    return access.open_area(approval_request, approval_request.request())


def _open_folder(access: TransportAccess) -> tuple[Transport, str]:
    approval_request = access.ask_approval()
    area = approval_request.request()
    require_apart(access.request.settings)
    # The folder may be another one at any time, so it is always tried.
    return access.open_area(approval_request, area, remembers=False)


def _open_best(access: TransportAccess) -> tuple[Transport, str]:
    """Request approval for SSH; until it is given, use HTTP."""
    settings, approval_request = access.request.settings, access.ask_approval()
    try:
        area = approval_request.request()
        require_admitted(approval_request, area, settings, find_places(access.request.config))
    except NotApprovedError as error:
        message = f"{error.message} Until then, files are sent over HTTP, which is slower."
        access.observer.emit(Notice(problem=Problem(error.problem_code, message, error.hint)))
        return open_http(access.connection, settings, None, access.observer.emit), ""
    return access.open_area(approval_request, area)


def _open_http(access: TransportAccess) -> tuple[Transport, str]:
    """Use HTTP without requesting approval; with one, the server can take large files in chunks."""
    try:
        approved = access.ask_approval().fetch_approval()
    except (NotApprovedError, StagingError):
        approved = None
    area = approved and approved.area
    transport = open_http(access.connection, access.request.settings, area, access.observer.emit)
    return transport, area.box if area else ""


def _open_bucket(access: TransportAccess) -> tuple[Transport, str]:
    storage = ObjectStorage(access.request, access.observer, access.connection)
    return storage.open(dry_run=access.request.dry_run)


def _request_area(access: TransportAccess, approval_request: ApprovalRequest) -> StagingArea:
    return approval_request.request()


def _request_bucket(access: TransportAccess, approval_request: ApprovalRequest) -> StagingArea:
    storage = ObjectStorage(access.request, access.observer, access.connection)
    bucket, box = storage.find_bucket()
    return StagingArea(
        box=box, location=bucket.prefix, username=bucket.access_key, hosts=(bucket.host,)
    )


def _find_approved_box(access: TransportAccess) -> str:
    try:
        approved = access.ask_approval().fetch_approval()
    except NotApprovedError:
        approved = None
    return approved.area.box if approved else _find_no_box(access)


def _find_no_box(access: TransportAccess) -> str:
    raise RunError(
        "Files are sent over HTTP only, because no storage box has been approved.",
        hint="Nothing is deleted until then: set transfer.method to auto, and ask for "
        "approval with: mydata-like register",
        code="free.http-only",
    )


def _find_bucket_box(access: TransportAccess) -> str:
    storage = ObjectStorage(access.request, access.observer, access.connection)
    return storage.find_bucket(dry_run=True)[1]


class TransportKind(NamedTuple):
    """What the program does for one value of `transfer.method`.

    `open` and `preview` return the transport and its storage box; a preview, for a dry run,
    requests no approval. `find_box` returns the box that proves what was sent, and raises a
    `RunError` without one.
    """

    open: Callable[[TransportAccess], tuple[Transport, str]]
    preview: Callable[[TransportAccess], tuple[Transport, str]] = _open_http
    request_area: Callable[[TransportAccess, ApprovalRequest], StagingArea] = _request_area
    find_box: Callable[[TransportAccess], str] = _find_approved_box
    is_confirmed: bool = True  # by the user: the keys of its hosts, or its folder
    can_replace: bool = True  # a copy on the server


KINDS: Final[Mapping[str, TransportKind]] = {
    "auto": TransportKind(_open_best),
    "ssh": TransportKind(_open_ssh),
    "folder": TransportKind(_open_folder),
    "http": TransportKind(_open_http, find_box=_find_no_box, can_replace=False),
    "s3": TransportKind(
        _open_bucket,
        preview=_open_bucket,
        request_area=_request_bucket,
        find_box=_find_bucket_box,
        is_confirmed=False,
    ),
}
