"""The way into the staging area: channels over SSH where that is approved, else HTTP."""

import logging
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Final

from mydata_like.app.approval import ApprovalRequest, StoredIdentity, describe_applicant
from mydata_like.app.connection import Connection
from mydata_like.app.server_settings_cache import open_mirror
from mydata_like.app.settings_service import find_state, standing_file
from mydata_like.core.errors import (
    AccessDeniedError,
    NotApprovedError,
    Problem,
    StagingError,
    UploaderError,
)
from mydata_like.core.events import Notice
from mydata_like.core.formatting import format_size
from mydata_like.core.model import FileToSend, StagingArea
from mydata_like.core.ports import Clock, Emit, Transport
from mydata_like.core.staging_path import aside_path, staged_path
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.summaries import UnsentRow, find_unsent
from mydata_like.server.chunked_upload import ChunkedUpload
from mydata_like.server.http_upload import HttpTransport
from mydata_like.settings.schema import Settings
from mydata_like.ssh.session import Endpoint
from mydata_like.state.paths import StatePaths
from mydata_like.state.state_files import (
    CLEANUP,
    VISITED,
    TimestampStore,
    VisitedFolders,
    find_file,
)
from mydata_like.transfer.archive_writer import ArchiveSource, open_content
from mydata_like.transfer.channel import describe_member
from mydata_like.transfer.file_source import FileSource
from mydata_like.transfer.held_back_tail import owner_mark, part_name
from mydata_like.transfer.pool import SshTransport, build_endpoints
from mydata_like.transfer.probe_file import require_let_in, visit
from mydata_like.transfer.remote_cleanup import AGE, Leftover, Removed, clean_up, open_remover
from mydata_like.transfer.single_file import RESUMABLE
from mydata_like.transfer.worker_messages import Member

logger = logging.getLogger(__name__)

_PAUSE: Final = timedelta(days=1)
_CLEANED: Final = "cleaned"
_FOLDERS: Final = 1000  # that are looked at at once; the rest is for the next day


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupArea:
    """The staging area as this needs it: its hosts, its location, and whose files are ours."""

    endpoints: tuple[Endpoint, ...]
    location: bytes
    owner: str  # the uploader's uuid


def open_visited(settings: Settings, places: StatePaths, clock: Clock) -> VisitedFolders:
    """Return what remembers the folders of this server's staging area."""
    return VisitedFolders(_file(settings, places, VISITED), clock)


def clean_staging(
    settings: Settings,
    places: StatePaths,
    clock: Clock,
    find_area: Callable[[], CleanupArea],
    emit: Emit,
) -> None:
    """Remove what is old in folders into which nothing was sent for as long; once a day.

    Nothing is connected to while there are none. Whatever fails is logged, and is done later.
    """
    now, visited = clock.now(), open_visited(settings, places, clock)
    moments = TimestampStore(_file(settings, places, CLEANUP))
    last = moments.find(_CLEANED)
    due = sorted(visited.find(now - timedelta(seconds=AGE)))
    if not due or (last and timedelta() <= now - last < _PAUSE):
        return
    moments.keep(_CLEANED, now)
    try:
        area, unsent = find_area(), find_unsent(find_state(settings, places), RESUMABLE)
        wanted = _Wanted(unsent, area.owner)
        folders = [_encode(folder) for folder in islice(due, _FOLDERS)]
        removed = _clean(area, folders, wanted)
    except UploaderError as error:
        logger.info("The staging area was not cleaned up: %s", error)
        return
    visited.forget({folder.decode("utf-8", "surrogateescape") for folder in removed.clean})
    if removed.files:
        emit(Notice(problem=_tell(removed)))


def _clean(area: CleanupArea, folders: Sequence[bytes], wanted: "_Wanted") -> Removed:
    with visit(area.endpoints[0], area.location) as there:
        remover = open_remover(there.session, there.rung.rung, area.location, area.owner)
        if remover is None:  # over scp nothing has a temporary name
            return Removed(clean=frozenset(folders))
        return clean_up(remover, folders, wanted.has)


class _Wanted:
    """The temporary names of large files whose sending may go on, in whatever folder."""

    def __init__(self, unsent: Iterable[UnsentRow], owner: str) -> None:
        self._unsent = set(unsent)
        self._mark = owner_mark(owner)
        self._names: dict[bytes, set[bytes]] = defaultdict(set)  # by folder

    def has(self, folder: bytes, left: Leftover) -> bool:
        if folder not in self._names:
            text = folder.decode("utf-8", "surrogateescape")
            for one in self._unsent:
                name = staged_path("", 0, "", one.name.decode("utf-8", "replace"))
                remote = f"{text}/{name.rpartition('/')[2]}"
                for path in (remote, aside_path(remote, one.size, one.modified_ns)):
                    self._names[folder].add(self._part(path, one))
        return left.name in self._names[folder]

    def _part(self, remote: str, one: UnsentRow) -> bytes:
        member = Member(b"", one.size, one.modified_ns, 0, 0, _encode(remote), mark=self._mark)
        return part_name(member)


def _encode(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _file(settings: Settings, places: StatePaths, name: str) -> Path:
    return find_file(find_state(settings, places), name, settings.server.url)


def _tell(removed: Removed) -> Problem:
    files = "1 file" if removed.files == 1 else f"{removed.files:,} files"
    return Problem(
        "staging.cleaned",
        f"{files} ({format_size(removed.size)}) of broken transfers were removed from the staging "
        f"area: for {AGE // 86400} days nothing came to them.",
        "Nothing has to be done: their local files were changed, deleted or sent again since.",
    )


HTTP_CHANNELS = 4


@dataclass(frozen=True, slots=True, eq=False)
class OpenStaging:
    """The transport, and the name of the storage box in which its bytes arrive."""

    transport: Transport
    box: str


def open_staging(
    connection: Connection, settings: Settings, places: StatePaths, emit: Emit
) -> OpenStaging:
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
    return OpenStaging(open_transport(petition, area, settings, places), area.box)


def _find_area(
    petition: ApprovalRequest, area: StagingArea, settings: Settings, places: StatePaths
) -> CleanupArea:
    return CleanupArea(
        endpoints=tuple(list_endpoints(petition, area, settings, places)),
        location=os.fsencode(area.location),
        owner=petition.applicant.installation.uuid,
    )


def open_transport(
    petition: ApprovalRequest, area: StagingArea, settings: Settings, places: StatePaths
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
    petition: ApprovalRequest, area: StagingArea, settings: Settings, places: StatePaths
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
    petition: ApprovalRequest, area: StagingArea, settings: Settings, places: StatePaths
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
) -> OpenStaging:
    """Return the way in over HTTP; nothing is asked of the server's administrator."""
    try:
        approved = open_petition(connection, settings, places, emit).look()
    except (NotApprovedError, StagingError):
        approved = None
    return _over_http(connection, settings, approved and approved.area, emit)


def open_petition(
    connection: Connection, settings: Settings, places: StatePaths, emit: Emit
) -> ApprovalRequest:
    """Return this installation's request for approval, ready to be made."""
    applicant = describe_applicant(connection, settings, places)
    clock = SystemClock()
    kept = StoredIdentity(standing_file(settings, places), open_mirror(settings, places, clock))
    return ApprovalRequest(connection, applicant, kept, clock, emit)


def _over_http(
    connection: Connection, settings: Settings, area: StagingArea | None, emit: Emit
) -> OpenStaging:
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
    return OpenStaging(transport, area.box if area else "")


def _open(wanted: FileToSend) -> FileSource | ArchiveSource:
    return open_content(describe_member(wanted))
