"""Uploads to a mounted folder that is the location of the storage box."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mydata_like.app.transports.connection_steps import (
    SIZE,
    StepResult,
    TestStep,
    failed,
    succeeded,
)
from mydata_like.app.transports.ssh_kind import list_endpoints
from mydata_like.app.transports.staging_kind import StagingKind, check_arrived, check_removed
from mydata_like.app.transports.transport_access import TransportAccess
from mydata_like.core.errors import (
    ServerUnavailableError,
    SettingsError,
    StagingError,
    UploaderError,
)
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
from mydata_like.core.model import StagingArea
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.transfer.folder.folder_process import (
    FolderRemover,
    FolderTasks,
    open_folder_process,
)
from mydata_like.transfer.folder.folder_session import FolderDestination
from mydata_like.transfer.folder.staging_folder import StagingFolder
from mydata_like.transfer.ssh.probe_file import open_probe
from mydata_like.transfer.temporary_files import Remover, owner_mark

if TYPE_CHECKING:
    from mydata_like.app.transports.transport_access import Unconfirmed
    from mydata_like.speedtest.real_files import SpeedTestDestination

_LATER: Final = "The first file that the server verifies proves that the folder is the right one."


class FolderKind(StagingKind):
    """Files are written to a folder in the place of staging hosts; it needs no key.

    The folder may be another one at any time, so it is always tried.
    """

    def find_destinations(
        self, access: TransportAccess, area: StagingArea, transfer: Transfer
    ) -> Sequence[FolderDestination]:
        return [_find_folder(access, area)]

    @contextmanager
    def open_remover(self, access: TransportAccess, area: StagingArea) -> Iterator[Remover]:
        timeout = access.settings.transfer.stall_timeout
        with open_folder_process(_find_folder(access, area), timeout) as process:
            yield FolderRemover(process, owner_mark(access.uuid))

    def list_hosts(self, access: TransportAccess, area: StagingArea) -> tuple[str, ...]:
        return (_find_folder(access, area).host,)

    def find_unconfirmed(
        self, access: TransportAccess, area: StagingArea, accepted: tuple[str, ...]
    ) -> "Unconfirmed":
        """Return a folder that is not confirmed yet; raises if it cannot be used."""
        folder, timeout = _find_folder(access, area), access.settings.transfer.stall_timeout
        new = None
        with open_folder_process(folder, timeout) as process:
            try:
                process.call(FolderTasks.open)
            except ServerUnavailableError as error:
                if error.problem_code != "staging.unconfirmed":
                    raise
                new = NewFolder(folder, process.call(FolderTasks.find_mount), timeout)
        return iter(()), new

    def test_area(self, access: TransportAccess, area: StagingArea) -> Iterator[TestStep]:
        """Yield whether the folder takes a file, and whether a staging host sees it."""
        folder = _find_folder(access, area)
        step = f"folder {folder.host}"
        with open_folder_process(folder, access.settings.transfer.stall_timeout) as there:
            try:
                yield succeeded(step, f"Writing to it works: {there.call(FolderTasks.open).why}.")
            except UploaderError as error:
                yield failed(step, error)
                return
            name, checksum = self.send_test_file(access, area)
            yield check_arrived(
                there.call(FolderTasks.inspect, name.encode()), checksum, is_blind=False
            )
            yield _compare_host(access, area, name, checksum)
            yield check_removed(name, is_gone=there.call(FolderTasks.remove, name.encode()))

    def build_measured(
        self, access: TransportAccess, area: StagingArea
    ) -> "Callable[..., SpeedTestDestination]":
        # Only a speed test needs it.
        from mydata_like.speedtest.mounted_folder import MountedFolder

        stall_timeout = access.settings.transfer.stall_timeout
        return partial(MountedFolder, _find_folder(access, area), stall_timeout)


def _find_folder(access: TransportAccess, area: StagingArea) -> FolderDestination:
    """Return the folder; raises `SettingsError` if what is written there would be uploaded."""
    folder, data = access.settings.transfer.folder, access.settings.data.directory
    assert folder is not None  # the settings require it
    if data and (folder.is_relative_to(data) or data.is_relative_to(folder)):
        raise SettingsError(
            f"The staging folder {folder} and the data directory {data} contain each other.",
            hint="Correct transfer.folder or data.directory: what is written to the folder would "
            "be uploaded again.",
        )
    return FolderDestination(os.fsencode(folder), area.box, area.location)


def _compare_host(access: TransportAccess, area: StagingArea, name: str, checksum: str) -> TestStep:
    """Look for the file in the folder on a staging host, which proves that it is the right one."""
    location = os.fsencode(area.location)
    for endpoint in list_endpoints(access, area)[:1]:
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
                _LATER,
            )
        if found.size == SIZE and found.checksum in ("", checksum):
            return succeeded(step, f"It sees the file in {format_path(location)}.")
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
    unasked = "No staging host can be asked whether it sees the file."
    return TestStep("host", StepResult.UNPROVEN, unasked, _LATER)


@frozen()
class NewFolder:
    """A mounted folder that is not known yet as that of the storage box.

    `mount` is the path at which its file system is mounted. `timeout` is in seconds.
    """

    folder: StagingFolder
    mount: str
    timeout: float

    @property
    def question(self) -> str:
        """What the user has to know to confirm the folder."""
        return (
            f"{self.folder.host} is to be the folder of the storage box {self.folder.box}, whose "
            f"location on the server is {self.folder.location}. {self._describe_mount()}"
        )

    @property
    def refusal(self) -> StagingError:
        """The error for a user who has not confirmed the folder."""
        return StagingError(
            f"The folder is not confirmed yet: {self.question}",
            hint="If that is right, run again with --accept-folder",
            code="staging.unconfirmed",
        )

    def _describe_mount(self) -> str:
        is_share = self.mount.startswith("\\\\")
        if Path(self.mount) == Path(Path(self.mount).anchor) and not is_share:
            return (
                f"It is on the same file system as {self.mount}, so it is probably not mounted now."
            )
        return f"It is on the file system that is mounted at {self.mount}."

    def confirm(self) -> None:
        """Write the marker that lets every uploader use it, and try whether it takes files."""
        with open_folder_process(self.folder, self.timeout) as process:
            process.call(FolderTasks.confirm)
            process.call(FolderTasks.open)
