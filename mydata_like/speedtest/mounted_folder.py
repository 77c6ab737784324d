"""A mounted folder, measured by a process that can be left behind if it hangs.

All test files are in one directory, whose name only this uploader uses, in the folder to which runs
write. It is removed at the end, and at the start in case an earlier test was killed.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from mydata_like.core.errors import RejectedError, ServerUnavailableError, UploaderError
from mydata_like.core.ports import Transport
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.real_files import OpenTransport
from mydata_like.speedtest.results import (
    LARGE_FILES,
    NOT_TOLD,
    RENAME,
    LocalMachine,
    Measurement,
    SpeedTestBudget,
    StageResult,
    Unit,
)
from mydata_like.ssh.capabilities import HostCapabilities, check_space
from mydata_like.transfer.folder.folder_process import FolderProcess, FolderTasks
from mydata_like.transfer.folder.staging_folder import StagingFolder

_RENAMES: Final = 10
_FIRST: Final = 1_000_000  # bytes of a first write, which decides the size of the others
_GRACE: Final = 3.0  # seconds to end what was begun within the time of the test
_CLEANING: Final = 10.0  # seconds to remove the test files, also after the time of the test
_SILENCE: Final = 10.0  # seconds without progress, although a sample takes less than one


class MountedFolder:
    """A mounted folder to which test files are written; `open` it first.

    Every method raises `ServerUnavailableError` if the folder does not respond before the time of
    the test is over, and `StagingError` if it is full or does not accept files.
    """

    name = "The mounted folder"
    is_encrypted = False
    cipher = ""

    def __init__(
        self,
        mounted: StagingFolder,
        stall_timeout: float,
        folder: str,
        open_transport: OpenTransport,
        budget: SpeedTestBudget,
    ) -> None:
        self.folder = folder
        self.capabilities = HostCapabilities("folder")
        self._mounted = mounted
        self._stall_timeout = stall_timeout  # seconds after which the folder does not respond
        self._open_transport = open_transport
        self._budget = budget
        self._process: FolderProcess | None = None
        self._end = time.monotonic() + budget.seconds_left + _GRACE
        self._cleaning = False
        self._responds = True

    def open(self) -> HostCapabilities:
        """Return what the folder can do, after the files of a killed test were removed."""
        with self._in_process() as process:
            self.capabilities = process.call(FolderTasks.open)
            process.call(FolderTasks.remove_directory, self.folder.encode())
        return self.capabilities

    def close(self) -> None:
        """End the process, or leave it behind if it waits for the folder."""
        if self._process:
            self._process.close()
        self._process = None

    def describe(self) -> LocalMachine:
        """Return nothing: a folder is on a machine that is not known."""
        return NOT_TOLD

    @property
    def parts(self) -> Mapping[str, Callable[[], Iterator[Measurement]]]:
        """The parts that can be measured alone, by name; each yields its measurements."""
        return {self.name: self._measure}

    def open_transport(self, settings: Transfer) -> Transport:
        """Return the transport of a run, which soon gives up a folder that does not respond.

        Nobody can cancel what waits for it, so the folder has to respond first.
        """
        with self._in_process() as process:
            process.call(FolderTasks.time_renames, self._below(b"renamed"), 1)
        limit = min(settings.stall_timeout, _SILENCE)
        return self._open_transport(settings.with_values(stall_timeout=limit))

    def remove(self) -> str:
        """Remove the test files, even if the time is over.

        Return what remains in the folder, as the subject of a sentence; empty if nothing does. A
        folder that has not responded is left alone.
        """
        self._cleaning, self._end = True, time.monotonic() + _CLEANING
        if self._responds:
            with suppress(UploaderError), self._in_process() as process:
                process.call(FolderTasks.remove_directory, self.folder.encode())
                return ""
        return f"{self.folder} in the folder"

    @contextmanager
    def noting_silence(self) -> Iterator[None]:
        """Note whether the folder does not respond; raise `StagingError` if it is full."""
        try:
            with self._mounted.answering():
                yield
        except ServerUnavailableError:
            self._responds = False
            raise
        except RejectedError as error:
            check_space(error.message.encode())
            raise

    @contextmanager
    def _in_process(self) -> Iterator[FolderProcess]:
        """Yield the process that touches the folder; after an error it is not used again."""
        with self.noting_silence():
            try:
                self._process = self._process or FolderProcess(
                    self._mounted, self._stall_timeout, self._check
                )
                yield self._process
            except BaseException:
                self.close()
                raise

    def _check(self) -> None:
        if not self._cleaning:
            self._budget.check()
        if time.monotonic() >= self._end:
            raise ServerUnavailableError(
                f"The folder {self._mounted.host} did not respond within the time of the test.",
                code="staging.absent",
            )

    def _measure(self) -> Iterator[Measurement]:
        """Yield the time of one small operation, and the speed of writing one large file.

        A file is renamed, and its name is durable.
        """
        budget = self._budget

        def write(size: int) -> float:
            budget.take(size)
            return process.call(FolderTasks.write_large, self._below(b"large"), size)

        with self._in_process() as process:
            seconds = process.call(FolderTasks.time_renames, self._below(b"renamed"), _RENAMES)
            yield Measurement(StageResult.FOLDER, RENAME, Unit.SECONDS, seconds)
            size = budget.fit(_FIRST, write(_FIRST), budget.effort.disk)
            rates = [size / write(size)]
            while len(rates) < budget.effort.samples and not budget.spent():
                rates.append(size / write(size))
            yield Measurement(StageResult.FOLDER, LARGE_FILES, Unit.BYTES, tuple(rates))

    def _below(self, name: bytes) -> bytes:
        return self.folder.encode() + b"/" + name
