"""The connection test: sends one small file to the staging area and removes it again."""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from enum import StrEnum
from typing import Final, NamedTuple

from mydata_like.app.approval import ApprovalRequest
from mydata_like.app.connection import Connection, ensure_uuid, require_complete
from mydata_like.app.object_storage import ObjectStorage
from mydata_like.app.run_request import RunObserver, RunRequest, build_gate, connected
from mydata_like.app.settings_service import find_places, find_state, prepare_places
from mydata_like.app.staging_service import (
    list_destinations,
    list_endpoints,
    open_approval_request,
    open_transport,
)
from mydata_like.core.errors import AccessDeniedError, NotApprovedError, UploaderError
from mydata_like.core.formatting import format_path, format_size
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import Dataset, DatasetId, FileToSend, Payload, StagingArea
from mydata_like.core.ports import CancelSignal, SentFile, Transport
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.atomic_write import write_private
from mydata_like.settings.schema import Settings
from mydata_like.ssh.capabilities import allows_nothing
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.ssh.session import Endpoint
from mydata_like.state.paths import StatePaths
from mydata_like.transfer.folder.folder_process import FolderProcess, open_folder_process
from mydata_like.transfer.folder.staging_folder import StagingFolder
from mydata_like.transfer.pool import list_limits
from mydata_like.transfer.ssh.probe_file import ProbeConnection, open_probe

PERMISSIONS: Final = "mydata-default-permissions"  # the group that the MyData app creates
_SIZE: Final = 100_000
_LONG_AGO: Final = 1_000_000_000  # seconds since 1970
_SETTLED: Final = 0.1  # seconds after which a later change of a file is always noticed


class StepResult(StrEnum):
    """The result of a step of the connection test, from good to bad."""

    OK = "ok"
    UNPROVEN = "unproven"
    FAILED = "failed"


class TestStep(NamedTuple):
    """One step of the connection test: what was found, and what to do if it failed."""

    name: str
    result: StepResult
    message: str
    hint: str = ""
    code: str = ""
    exit_code: int = 0

    def as_record(self) -> dict[str, object]:
        """Return the step as plain values for JSON."""
        values = self._asdict()
        del values["exit_code"]
        return values


def run_connection_test(request: RunRequest, observer: RunObserver) -> Iterator[TestStep]:
    """Yield each step as it is tested; steps that depend on a failed one are left out.

    Nothing is created on the server, so registering and verifying are not tested.
    """
    settings, places = request.settings, find_places(request.config)
    name = "server"
    try:
        require_complete(settings, request.config)
        prepare_places(settings, places)
        gate = build_gate(request, observer, SystemClock())
        with connected(request, observer, gate) as connection:
            yield from _describe_connection(connection)
            if settings.transfer.method == "s3":
                name = "bucket"
                yield from BucketTest(request, observer).steps(connection)
                return
            name = "approval"
            approval_request = open_approval_request(connection, settings, places, observer.emit)
            insisted = settings.transfer.method in ("ssh", "folder")
            area = _find_area(approval_request, insisted=insisted)
            if area is None or settings.transfer.method == "http":
                yield _describe_http_only(approval_request, area)
                return
            yield _ok(name, f"The key is approved for the storage box {area.box}.")
            name = "staging"
            yield from StagingTest(request, observer.cancel).steps(approval_request, area)
    except UploaderError as error:
        yield _failed(name, error)


def _describe_connection(connection: Connection) -> Iterator[TestStep]:
    account, facility, instrument = connection.account, connection.facility, connection.instrument
    yield _ok("server", f"{connection.client.wire.host} is a MyTardis server.")
    yield _ok("account", f"{account.username} can log in and manages the facility {facility.name}.")
    if instrument.id:
        yield _ok("instrument", f"The facility has the instrument {instrument.name}.")
    else:
        why = f"The facility has no instrument {instrument.name} yet; registering creates it."
        yield TestStep("instrument", StepResult.UNPROVEN, why)
    if PERMISSIONS in connection.server.fetch_groups():
        yield _ok("rights", f"The account belongs to the group {PERMISSIONS}.")
    else:
        yield TestStep(
            "rights",
            StepResult.UNPROVEN,
            f"The account is not in the group {PERMISSIONS}, but may have the same permissions.",
            "If the first run is refused, ask the server's administrator to add the account.",
        )


def _find_area(approval_request: ApprovalRequest, *, insisted: bool) -> StagingArea | None:
    try:
        approved = approval_request.fetch_approval()
    except NotApprovedError:
        if insisted:
            raise
        return None
    if approved is None and insisted:
        raise NotApprovedError(
            "This uploader has not requested approval yet.",
            hint="Request it with: mydata-like register",
        )
    return approved and approved.area


def _describe_http_only(approval_request: ApprovalRequest, area: StagingArea | None) -> TestStep:
    key = approval_request.applicant.pair.public.fingerprint
    why = "as set in transfer.method" if area else f"until its key {key} is approved"
    return TestStep(
        "staging",
        StepResult.UNPROVEN,
        f"Files are sent over HTTP, {why}; SSH was not tested.",
        "" if area else "Request approval with: mydata-like register",
    )


class StagingTest:
    """Sends a small file over the real channels, checks it on the staging host, and removes it."""

    def __init__(self, request: RunRequest, cancel: CancelSignal) -> None:
        self._settings = request.settings
        self._places = find_places(request.config)
        self._cancel = cancel

    def steps(self, approval_request: ApprovalRequest, area: StagingArea) -> Iterator[TestStep]:
        """Yield whether each host or the folder accepts us, then the results for the file."""
        for destination in list_destinations(approval_request, area, self._settings, self._places):
            if isinstance(destination, StagingFolder):
                yield from self._try_folder(destination, approval_request, area)
                return
        endpoints = list_endpoints(approval_request, area, self._settings, self._places)
        location = os.fsencode(area.location)
        usable = []
        for endpoint in endpoints:
            steps = _try_host(endpoint, location, approval_request)
            yield from steps
            if steps[0].result is StepResult.OK:
                usable.append(endpoint)
        if not usable:
            return
        name = _name_file(approval_request)
        checksum = self._send(approval_request, area, name)
        with open_probe(usable[0], location) as there:
            yield _check_file(there, name, checksum)
            yield _clean_up(there, name)

    def _try_folder(
        self, folder: StagingFolder, approval_request: ApprovalRequest, area: StagingArea
    ) -> Iterator[TestStep]:
        """Yield whether the folder takes a file, and whether a staging host sees it."""
        step = f"folder {folder.host}"
        with open_folder_process(folder, self._settings.transfer.stall_timeout) as there:
            try:
                yield _ok(step, f"Writing to it works: {there.open().why}.")
            except UploaderError as error:
                yield _failed(step, error)
                return
            name = _name_file(approval_request)
            checksum = self._send(approval_request, area, name)
            yield _check_file(there, name, checksum)
            endpoints = list_endpoints(approval_request, area, self._settings, self._places)
            yield _compare_host(endpoints[:1], os.fsencode(area.location), name, checksum)
            yield _clean_up(there, name)

    def _send(self, approval_request: ApprovalRequest, area: StagingArea, name: str) -> str:
        """Send a small file as a run does; return its checksum."""
        transport = open_transport(approval_request, area, self._settings, self._places)
        with closing(transport), small_file(self._settings, self._places, self._cancel) as file:
            return _send(transport, file, name)


class BucketTest:
    """Sends a small file to the bucket, reads it back, and removes it."""

    def __init__(self, request: RunRequest, observer: RunObserver) -> None:
        self._request = request
        self._observer = observer

    def steps(self, connection: Connection) -> Iterator[TestStep]:
        """Yield which bucket is used, then the results for the file."""
        settings, places = self._request.settings, find_places(self._request.config)
        storage = ObjectStorage(self._request, self._observer, connection)
        bucket, box = storage.find_bucket(dry_run=True)
        yield _ok(
            "bucket",
            f"Files go to the bucket {bucket.name} at {bucket.host}, the storage box {box}.",
        )
        name = f".mydata-like-check-{ensure_uuid(settings, places)}"
        transport = storage.open_transport(bucket)
        with closing(transport), small_file(settings, places, self._observer.cancel) as file:
            checksum = _send(transport, file, name)
            yield _check_object(transport.fetch_checksum(name), checksum)
            transport.remove(name)
            yield _ok("cleaning", "The file was removed again.")


@contextmanager
def small_file(settings: Settings, places: StatePaths, cancel: CancelSignal) -> Iterator[LocalFile]:
    """Yield a file that has not changed for a moment."""
    path = find_state(settings, places) / f"check-{secrets.token_hex(4)}"
    try:
        write_private(path, secrets.token_bytes(_SIZE))
        os.utime(path, (_LONG_AGO, _LONG_AGO))
        cancel.wait(_SETTLED)
        there = path.stat()
        text = os.fsencode(path)
        yield LocalFile(text, b"", b"", b"", _SIZE, there.st_mtime_ns, there.st_dev, there.st_ino)
    finally:
        path.unlink(missing_ok=True)


def _check_object(found: str, checksum: str) -> TestStep:
    sent = f"A file of {format_size(_SIZE)} was sent"
    if found == checksum:
        return _ok("file", f"{sent} and read back: the checksum is correct.")
    return TestStep(
        "file",
        StepResult.FAILED,
        f"{sent}, but the object in the bucket differs.",
        "Ask the administrator of the object storage to check it.",
        "staging.unproven",
        1,
    )


def _try_host(
    endpoint: Endpoint, location: bytes, approval_request: ApprovalRequest
) -> list[TestStep]:
    """Return whether a host accepts us, and what it lacks."""
    name = f"host {endpoint.host}"
    try:
        with open_probe(endpoint, location) as there:
            found = there.capabilities
    except AccessDeniedError as error:
        return [_failed(name, approval_request.explain(error))]
    except UploaderError as error:
        refused = error.problem_code == NO_CHANNEL
        return [_failed(name, allows_nothing(error) if refused else error)]
    return [
        _ok(name, f"Login and upload work: {found.why}."),
        *(
            TestStep(f"{name}, {limit.code}", StepResult.OK, limit.message, code=limit.code)
            for limit in list_limits(endpoint.host, found)
        ),
    ]


def _send(transport: Transport, file: LocalFile, name: str) -> str:
    """Send a file as a run does; return its checksum."""
    wanted = FileToSend(file, Dataset(DatasetId(0), ""), name)
    payload = Payload(0, (wanted,), batched=False)
    (fate,) = transport.open_channel().send(payload, lambda *_: None)
    if not isinstance(fate, SentFile):
        raise UploaderError(fate.problem.message, hint=fate.problem.hint, code=fate.problem.code)
    return fate.checksum


def _name_file(approval_request: ApprovalRequest) -> str:
    return f".mydata-like-check-{approval_request.applicant.installation.uuid}"


def _compare_host(
    endpoints: Sequence[Endpoint], location: bytes, name: str, checksum: str
) -> TestStep:
    """Look for the file in the folder on a staging host, which proves that it is the right one."""
    for endpoint in endpoints:
        step = f"host {endpoint.host}"
        try:
            with open_probe(endpoint, location) as there:
                found = there.inspect(name.encode())
        except UploaderError as error:
            return TestStep(
                step,
                StepResult.UNPROVEN,
                f"It cannot be asked whether it sees the file: {error.message} This is not needed "
                "to send files.",
                "The first file that the server verifies proves that the folder is the right one.",
            )
        if found.size == _SIZE and found.checksum in ("", checksum):
            return _ok(step, f"It sees the file in {format_path(location)}.")
        if found.size is not None or there.capabilities.access != "scp":
            return TestStep(
                step,
                StepResult.FAILED,
                f"It does not see the file in {format_path(location)}, the location of the storage "
                "box.",
                "Correct transfer.folder: it is another folder, or not the top of the location.",
                "staging.wrong",
                3,
            )
    return TestStep(
        "host",
        StepResult.UNPROVEN,
        "No staging host can be asked whether it sees the file.",
        "The first file that the server verifies proves that the folder is the right one.",
    )


def _check_file(there: ProbeConnection | FolderProcess, name: str, checksum: str) -> TestStep:
    found = there.inspect(name.encode())
    sent = f"A file of {format_size(_SIZE)} was sent"
    if found.size == _SIZE and found.checksum == checksum:
        return _ok("file", f"{sent} and read back: size and checksum are correct.")
    if found.size == _SIZE and not found.checksum:
        return _ok("file", f"{sent} and has the correct size; this host computes no checksums.")
    if found.size is None and _may_be_blind(there):
        return TestStep(
            "file", StepResult.UNPROVEN, f"{sent}; this host cannot report whether it arrived."
        )
    return TestStep(
        "file",
        StepResult.FAILED,
        f"{sent}, but the file on the staging host differs.",
        "Ask the server's administrator to check the storage of the staging area.",
        "staging.unproven",
        1,
    )


def _clean_up(there: ProbeConnection | FolderProcess, name: str) -> TestStep:
    if there.remove(name.encode()):
        return _ok("cleaning", "The file was removed again.")
    return TestStep(
        "cleaning",
        StepResult.UNPROVEN,
        f"The file {name} stays in the staging area: this host does not allow us to remove files.",
        "The next test replaces it; the server's administrator may remove it.",
    )


def _may_be_blind(there: ProbeConnection | FolderProcess) -> bool:
    """Return whether a file that is not seen may be there all the same."""
    return isinstance(there, ProbeConnection) and there.capabilities.access != "shell"


def _ok(name: str, message: str) -> TestStep:
    return TestStep(name, StepResult.OK, message)


def _failed(name: str, error: UploaderError) -> TestStep:
    code, message, hint = error.problem
    return TestStep(name, StepResult.FAILED, message, hint, code, error.exit_code)
