"""The transports to the staging area, over SSH, to a folder or over HTTP, and its cleanup."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Final

from mydata_like.app.approval import ApprovalRequest, describe_applicant
from mydata_like.app.connection import Connection, open_server_settings
from mydata_like.app.settings_service import approval_file, find_state
from mydata_like.core.errors import (
    AccessDeniedError,
    Problem,
    SettingsError,
    UploaderError,
)
from mydata_like.core.events import Notice
from mydata_like.core.formatting import format_size
from mydata_like.core.model import FileToSend, StagingArea
from mydata_like.core.ports import Clock, Emit
from mydata_like.core.staging_path import aside_path, staged_path
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.summaries import UnsentRow, find_staged, find_unsent
from mydata_like.server.chunked_upload import ChunkedUpload
from mydata_like.server.http_upload import HttpTransport
from mydata_like.settings.schema import Settings
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import Endpoint
from mydata_like.state.paths import StatePaths
from mydata_like.state.state_files import (
    CLEANUP,
    HOSTS,
    VISITED,
    HostRecord,
    TimestampStore,
    VisitedFolders,
    find_file,
    load_record,
    save_record,
)
from mydata_like.transfer.archive_writer import ArchiveSource, open_content
from mydata_like.transfer.channel import describe_member
from mydata_like.transfer.file_source import FileSource
from mydata_like.transfer.folder.folder_process import FolderRemover, open_folder_process
from mydata_like.transfer.folder.staging_folder import StagingFolder
from mydata_like.transfer.pool import (
    Destination,
    StagingTransport,
    build_destinations,
    build_endpoints,
    locate,
)
from mydata_like.transfer.ssh.probe_file import open_probe, require_login
from mydata_like.transfer.ssh.remote_cleanup import (
    AGE,
    LOCATION,
    Leftover,
    Removed,
    clean_up,
    open_remover,
)
from mydata_like.transfer.ssh.remote_shell import owner_mark, part_name
from mydata_like.transfer.ssh.single_file import RESUMABLE
from mydata_like.transfer.worker_messages import Member
from mydata_like.transfer.worker_process import WorkerStarter

logger = logging.getLogger(__name__)

_PAUSE: Final = timedelta(days=1)
_CLEANED: Final = "cleaned"
_REMEMBERED: Final = timedelta(days=1)
_DOUBTED: Final = timedelta(minutes=15)
_FOLDERS: Final = 1000  # cleaned in one run; the rest is left for the next day


def open_visited(settings: Settings, places: StatePaths, clock: Clock) -> VisitedFolders:
    """Return the record of the folders that were used in this server's staging area."""
    return VisitedFolders(_file(settings, places, VISITED), clock)


def clean_staging(
    approval_request: ApprovalRequest,
    area: StagingArea,
    settings: Settings,
    places: StatePaths,
    emit: Emit,
) -> None:
    """Remove old partial files from folders that have not been used for as long; once a day.

    Samples of interrupted probes go from the location as well. Without such folders no connection
    is made. A failure is logged, and the cleanup is retried another day.
    """
    clock = SystemClock()
    now, visited = clock.now(), open_visited(settings, places, clock)
    moments = TimestampStore(_file(settings, places, CLEANUP))
    last = moments.find(_CLEANED)
    due = sorted(visited.find(now - timedelta(seconds=AGE)))
    if not due or (last and timedelta() <= now - last < _PAUSE):
        return
    moments.keep(_CLEANED, now)
    folders = [LOCATION, *(_encode(folder) for folder in islice(due, _FOLDERS))]
    state, owner = find_state(settings, places), approval_request.applicant.installation.uuid
    try:
        destinations = list_destinations(approval_request, area, settings, places)
        destination, location = destinations[0], locate(area, destinations)
        wanted = _Wanted(find_unsent(state, RESUMABLE), find_staged(state), owner)
        if isinstance(destination, StagingFolder):
            with open_folder_process(destination, settings.transfer.stall_timeout) as process:
                in_folder = FolderRemover(process, owner_mark(owner))
                removed = clean_up(in_folder, folders, wanted.has)
        else:
            with open_probe(destination, location) as there:
                remover = open_remover(there.session, there.capabilities, location, owner)
                # With scp there are no temporary names.
                removed = Removed(clean=frozenset(folders))
                if remover is not None:
                    removed = clean_up(remover, folders, wanted.has)
    except UploaderError as error:
        logger.info("The staging area was not cleaned up: %s", error)
        return
    visited.forget({folder.decode("utf-8", "surrogateescape") for folder in removed.clean})
    if removed.files:
        emit(Notice(problem=_describe_removed(removed)))


class _Wanted:
    """Temporary files that are needed: large ones may be resumed, and replacements completed.

    `staged` are the paths of the latter.
    """

    def __init__(self, unsent: Iterable[UnsentRow], staged: Iterable[bytes], owner: str) -> None:
        self._unsent = set(unsent)
        self._staged = frozenset(staged)
        self._mark = owner_mark(owner)
        self._names: dict[bytes, set[bytes]] = defaultdict(set)  # by folder

    def has(self, folder: bytes, left: Leftover) -> bool:
        if folder not in self._names:
            text = folder.decode("utf-8", "surrogateescape")
            for one in self._unsent:
                name = staged_path("", 0, "", one.name.decode("utf-8", "replace"))
                remote = f"{text}/{name.rpartition('/')[2]}"
                aside = aside_path(remote, one.size, one.modified_ns, self._mark)
                for path in (remote, aside):
                    self._names[folder].add(self._part(path, one))
        return left.name in self._names[folder] or folder + b"/" + left.name in self._staged

    def _part(self, remote: str, one: UnsentRow) -> bytes:
        member = Member(b"", one.size, one.modified_ns, 0, 0, _encode(remote), mark=self._mark)
        return part_name(member)


def _encode(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _file(settings: Settings, places: StatePaths, name: str) -> Path:
    return find_file(find_state(settings, places), name, settings.server.url)


def _describe_removed(removed: Removed) -> Problem:
    files = "1 file" if removed.files == 1 else f"{removed.files:,} files"
    return Problem(
        "staging.cleaned",
        f"{files} ({format_size(removed.size)}) of interrupted transfers were removed from the "
        f"staging area because they had not changed for {AGE // 86400} days.",
        "No action is needed: their local files have since been changed, deleted or sent again.",
    )


HTTP_CHANNELS = 4


def remember_hosts(settings: Settings, places: StatePaths, area: StagingArea) -> "RememberedHosts":
    """Return what is known of the hosts of an area."""
    return RememberedHosts(_file(settings, places, HOSTS), area, SystemClock())


class RememberedHosts:
    """The capabilities of an area's hosts that were found within the last day; see `HostMemory`.

    Doubtful ones are soon out of date: a better kind of access may have failed by chance.
    """

    def __init__(self, file: Path, area: StagingArea, clock: Clock) -> None:
        self._file = file
        self._area = area
        self._clock = clock
        self._lock = Lock()

    def find(self, host: str) -> HostCapabilities | None:
        """Return the capabilities of a host, unless they are unknown or out of date."""
        record = self._load().get(self._name(host))
        if record is None:
            return None
        lifetime = _DOUBTED if record.doubtful else _REMEMBERED
        if not timedelta() <= self._clock.now() - record.at < lifetime:
            return None
        values = record._asdict() | {"checksum": record.checksum.encode()}
        del values["at"]
        found = HostCapabilities(**values)
        return found if found.sound else None

    def keep(self, host: str, capabilities: HostCapabilities | None) -> None:
        """Store the capabilities of a host, or remove them."""
        with self._lock:
            records = self._load()
            records.pop(self._name(host), None)
            if capabilities is not None:
                values = capabilities._asdict() | {"checksum": capabilities.checksum.decode()}
                records[self._name(host)] = HostRecord(self._clock.now(), **values)
            save_record(self._file, records)

    def _load(self) -> dict[str, HostRecord]:
        return load_record(self._file, dict[str, HostRecord]) or {}

    def _name(self, host: str) -> str:
        area = self._area
        return f"{area.username}@{host}:{area.port} {area.location}"


def open_transport(
    approval_request: ApprovalRequest,
    area: StagingArea,
    settings: Settings,
    places: StatePaths,
    memory: RememberedHosts | None = None,
    starter: WorkerStarter | None = None,
) -> StagingTransport:
    """Return the SSH transport to an approved staging area; no channel is open yet."""
    return StagingTransport(
        area,
        settings.transfer,
        key_file=approval_request.applicant.pair.path,
        known_hosts=places.known_hosts,
        emit=approval_request.follow,
        explain=approval_request.explain,
        renew=approval_request.renew_host_keys,
        owner=approval_request.applicant.installation.uuid,
        visiting=open_visited(settings, places, SystemClock()).note,
        memory=memory,
        starter=starter,
    )


def require_admitted(
    approval_request: ApprovalRequest, area: StagingArea, settings: Settings, places: StatePaths
) -> None:
    """Raise `NotApprovedError` if no host accepts our key, which can happen after an approval.

    Other problems with the hosts are reported when channels are opened.
    """
    if approval_request.is_admitted(area):
        return
    try:
        require_login(list_endpoints(approval_request, area, settings, places))
    except AccessDeniedError as error:
        raise approval_request.explain(error) from error


def list_destinations(
    approval_request: ApprovalRequest, area: StagingArea, settings: Settings, places: StatePaths
) -> Sequence[Destination]:
    """Return the folder of the settings if files are sent to it, else each staging host.

    Raises `SettingsError` if the folder is part of the data directory, or the other way round.
    """
    destinations = build_destinations(
        area,
        settings.transfer,
        key_file=approval_request.applicant.pair.path,
        known_hosts=places.known_hosts,
    )
    if any(isinstance(it, StagingFolder) for it in destinations):
        require_apart(settings)
    return destinations


def require_apart(settings: Settings) -> None:
    """Raise `SettingsError` if what is written to the folder would be uploaded again."""
    folder, data = settings.transfer.folder, settings.data.directory
    if folder is None or data is None:
        return
    if folder.is_relative_to(data) or data.is_relative_to(folder):
        raise SettingsError(
            f"The staging folder {folder} and the data directory {data} contain each other.",
            hint="Correct transfer.folder or data.directory: what is written to the folder would "
            "be uploaded again.",
        )


def list_endpoints(
    approval_request: ApprovalRequest, area: StagingArea, settings: Settings, places: StatePaths
) -> list[Endpoint]:
    """Return the endpoint of each staging host, with this installation's key."""
    return build_endpoints(
        area,
        settings.transfer,
        key_file=approval_request.applicant.pair.path,
        known_hosts=places.known_hosts,
    )


def open_approval_request(
    connection: Connection, settings: Settings, places: StatePaths, emit: Emit
) -> ApprovalRequest:
    """Return this installation's request for approval, ready to be sent."""
    applicant = describe_applicant(connection, settings, places)
    clock = SystemClock()
    server_settings = open_server_settings(settings, places, clock)
    file = approval_file(settings, places)
    return ApprovalRequest(connection, applicant, file, server_settings, clock, emit)


def open_http(
    connection: Connection, settings: Settings, area: StagingArea | None, emit: Emit
) -> HttpTransport:
    """Return the transport over HTTP; large files go in chunks if an area is approved for them."""

    def open_file(wanted: FileToSend) -> FileSource | ArchiveSource:
        return open_content(describe_member(wanted))

    chunked = None
    if area is not None and "mydata_upload" in connection.resources:
        chunked = ChunkedUpload(connection.client, area.box)
    return HttpTransport(
        connection.client,
        open_file,
        channels=max(settings.transfer.channels, HTTP_CHANNELS),
        chunked=chunked,
        emit=emit,
    )
