"""The way into the staging area: channels over SSH where that is approved, else HTTP."""

import os
from dataclasses import dataclass

from mydata_like.app.admission import Kept, Petition, describe_applicant
from mydata_like.app.connection import Connection
from mydata_like.app.server_settings import open_mirror
from mydata_like.app.settings import standing_file
from mydata_like.app.staging_cleanup import Area, clean_staging, open_visited
from mydata_like.core.errors import AccessDeniedError, NotApprovedError, Problem, StagingError
from mydata_like.core.events import Notice
from mydata_like.core.model import FileToSend, StagingArea
from mydata_like.core.ports import Emit, Transport
from mydata_like.hostos.clock import SystemClock
from mydata_like.server.chunked_upload import ChunkedUpload
from mydata_like.server.http_upload import HttpTransport
from mydata_like.settings.schema import Settings
from mydata_like.ssh.session import Endpoint
from mydata_like.state.paths import StatePaths
from mydata_like.transfer.archive_writer import ArchiveSource, open_content
from mydata_like.transfer.channel import describe_member
from mydata_like.transfer.file_source import FileSource
from mydata_like.transfer.pool import SshTransport, build_endpoints
from mydata_like.transfer.probe_file import require_let_in

HTTP_CHANNELS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Staging:
    """The transport, and the name of the storage box in which its bytes arrive."""

    transport: Transport
    box: str


def open_staging(
    connection: Connection, settings: Settings, places: StatePaths, emit: Emit
) -> Staging:
    """Register this installation and return the best way in that the server allows.

    Raises `NotApprovedError` where SSH is insisted on and not approved yet.
    """
    if settings.transfer.method == "http":
        return find_staging(connection, settings, places, emit)
    petition = open_petition(connection, settings, places, emit)
    try:
        area = petition.request()
        if settings.transfer.method == "auto":
            _require_let_in(petition, area, settings, places)
    except NotApprovedError as error:
        if settings.transfer.method == "ssh":
            raise
        message = f"{error.message} Meanwhile files are sent over HTTP, which is slower."
        emit(Notice(problem=Problem(error.problem_code, message, error.hint)))
        return _over_http(connection, settings, None, emit)
    clock = SystemClock()
    clean_staging(
        settings, places, clock, lambda: _find_area(petition, area, settings, places), emit
    )
    return Staging(open_transport(petition, area, settings, places), area.box)


def _find_area(
    petition: Petition, area: StagingArea, settings: Settings, places: StatePaths
) -> Area:
    return Area(
        endpoints=tuple(list_endpoints(petition, area, settings, places)),
        location=os.fsencode(area.location),
        owner=petition.applicant.installation.uuid,
    )


def open_transport(
    petition: Petition, area: StagingArea, settings: Settings, places: StatePaths
) -> SshTransport:
    """Return the channels to an approved staging area; none is open yet."""
    return SshTransport(
        area,
        settings.transfer,
        key_file=petition.applicant.pair.path,
        known_hosts=places.known_hosts,
        emit=petition.follow,
        explain=petition.explain,
        owner=petition.applicant.installation.uuid,
        visiting=open_visited(settings, places, SystemClock()).note,
    )


def _require_let_in(
    petition: Petition, area: StagingArea, settings: Settings, places: StatePaths
) -> None:
    """Raise `NotApprovedError` where no host knows our key, as it may be after an approval.

    Whatever else is wrong with the hosts, the channels will tell.
    """
    if petition.is_let_in(area):
        return
    try:
        require_let_in(list_endpoints(petition, area, settings, places))
    except AccessDeniedError as error:
        raise petition.explain(error) from error


def list_endpoints(
    petition: Petition, area: StagingArea, settings: Settings, places: StatePaths
) -> list[Endpoint]:
    """Return how each host before the staging area is reached with this installation's key."""
    return build_endpoints(
        area,
        settings.transfer,
        key_file=petition.applicant.pair.path,
        known_hosts=places.known_hosts,
    )


def find_staging(
    connection: Connection, settings: Settings, places: StatePaths, emit: Emit
) -> Staging:
    """Return the way in over HTTP; nothing is asked of the server's administrator."""
    try:
        approved = open_petition(connection, settings, places, emit).look()
    except (NotApprovedError, StagingError):
        approved = None
    return _over_http(connection, settings, approved and approved.area, emit)


def open_petition(
    connection: Connection, settings: Settings, places: StatePaths, emit: Emit
) -> Petition:
    """Return this installation's request for approval, ready to be made."""
    applicant = describe_applicant(connection, settings, places)
    clock = SystemClock()
    kept = Kept(standing_file(settings, places), open_mirror(settings, places, clock))
    return Petition(connection, applicant, kept, clock, emit)


def _over_http(
    connection: Connection, settings: Settings, area: StagingArea | None, emit: Emit
) -> Staging:
    chunked = None
    if area is not None and "mydata_upload" in connection.resources:
        chunked = ChunkedUpload(connection.client, area.box)
    transport = HttpTransport(
        connection.client,
        _open,
        channels=max(settings.transfer.channels, HTTP_CHANNELS),
        chunked=chunked,
        emit=emit,
    )
    return Staging(transport, area.box if area else "")


def _open(wanted: FileToSend) -> FileSource | ArchiveSource:
    return open_content(describe_member(wanted))
