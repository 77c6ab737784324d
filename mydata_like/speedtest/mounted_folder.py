"""The speed of a mounted folder, measured by processes that can be left behind if it hangs.

All test files are in one directory, whose name only this uploader uses, in the folder to which runs
write. It is removed at the end, and at the start in case an earlier test was killed.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, NamedTuple

from mydata_like.core.errors import RejectedError, ServerUnavailableError, UploaderError
from mydata_like.core.ports import Transport
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.end_to_end import OpenTransport
from mydata_like.speedtest.prediction import TINY
from mydata_like.speedtest.results import (
    LARGE_FILES,
    RENAME,
    TINY_FILES,
    Measurement,
    SpeedTestBudget,
    StageResult,
    Unit,
    flooded,
)
from mydata_like.ssh.capabilities import HostCapabilities, check_space
from mydata_like.transfer.folder_process import FolderProcess
from mydata_like.transfer.staging_folder import StagingFolder

_RENAMES: Final = 10
_FIRST: Final = 1_000_000  # bytes of a first write, which decides the size of the others
_FEW: Final = 40  # tiny files of a first write
_SMALLEST: Final = 100_000  # bytes of each of several files that are written at once
_GRACE: Final = 3.0  # seconds to end what was begun within the time of the test
_CLEANING: Final = 10.0  # seconds to remove the test files, also after the time of the test
_SILENCE: Final = 10.0  # seconds without progress, although a sample takes less than one


class ProbeFolder(NamedTuple):
    """The mounted folder, and the test's directory below it.

    `stall_timeout` is the number of seconds after which the folder does not respond.
    """

    folder: StagingFolder
    directory: str
    stall_timeout: float
    open_transport: OpenTransport


class MountedFolder:
    """A mounted folder that is measured by up to `sessions` processes at once, as in a run.

    Every method raises `ServerUnavailableError` if the folder does not respond before the time of
    the test is over, and `StagingError` if it is full or does not accept files.
    """

    def __init__(self, probe: ProbeFolder, budget: SpeedTestBudget, sessions: int) -> None:
        self._probe = probe
        self._directory = probe.directory.encode()
        self._budget = budget
        self._sessions = sessions
        self._processes: list[FolderProcess] = []
        self._end = time.monotonic() + budget.seconds_left + _GRACE
        self._cleaning = False
        self._size = _FIRST  # bytes that are written in one sample
        self._written = 0  # sets of tiny files
        self._responds = True

    def open(self) -> HostCapabilities:
        """Return what the folder can do, after the files of a killed test were removed."""
        with self._in_processes(1) as (process,):
            capabilities = process.open()
            process.remove_directory(self._directory)
        return capabilities

    def measure_rename(self) -> Iterator[Measurement]:
        """Yield the time of one small operation: a file is renamed, and its name is durable."""
        with self._in_processes(1) as (process,):
            seconds = process.time_renames(self._below("renamed"), _RENAMES)
        yield Measurement(StageResult.FOLDER, RENAME, Unit.SECONDS, seconds)

    def measure_large(self) -> Iterator[Measurement]:
        """Yield the speed of writing large files one after another."""
        budget = self._budget
        self._size = budget.fit(_FIRST, self._write_large(1, _FIRST), budget.effort.disk)
        rates = self._sample(self._size, partial(self._write_large, 1, self._size))
        yield Measurement(StageResult.FOLDER, LARGE_FILES, Unit.BYTES, rates)

    def measure_channels(self, channels: int) -> Iterator[Measurement]:
        """Yield the speed of writing as many files at once, together as large as one before."""
        each = max(_SMALLEST, self._size // channels)
        rates = self._sample(each * channels, partial(self._write_large, channels, each))
        yield Measurement(StageResult.CHANNELS, flooded(channels), Unit.BYTES, rates)

    def measure_tiny(self, channels: int) -> Iterator[Measurement]:
        """Yield the speed of writing tiny files over as many channels at once as a run uses."""
        budget, each = self._budget, max(1, _FEW // channels)
        seconds = self._write_tiny(channels, each)
        each = budget.fit(each, seconds, max(each, budget.effort.files // channels))
        rates = self._sample(each * channels, partial(self._write_tiny, channels, each))
        yield Measurement(
            StageResult.FOLDER, TINY_FILES, Unit.FILES, rates, note=f"over {flooded(channels)}"
        )

    def open_transport(self, settings: Transfer) -> Transport:
        """Return the transport of a run, which soon gives up a folder that does not respond.

        Nobody can cancel what waits for it, so the folder has to respond first.
        """
        with self._in_processes(1) as (process,):
            process.time_renames(self._below("renamed"), 1)
        limit = min(settings.stall_timeout, _SILENCE)
        return self._probe.open_transport(settings.with_values(stall_timeout=limit))

    def remove(self) -> bool:
        """Remove the test files, even if the time is over; return whether they are gone.

        A folder that has not responded is left alone.
        """
        self._cleaning, self._end = True, time.monotonic() + _CLEANING
        if not self._responds:
            return False
        with suppress(UploaderError), self._in_processes(1) as (process,):
            process.remove_directory(self._directory)
            return True
        return False

    def close(self) -> None:
        """End the processes; those that wait for the folder are left behind."""
        processes, self._processes = self._processes, []
        with ThreadPoolExecutor(max(1, len(processes))) as threads:
            for _ in threads.map(FolderProcess.close, processes):
                pass

    @contextmanager
    def noting_silence(self) -> Iterator[None]:
        """Note whether the folder does not respond; raise `StagingError` if it is full."""
        try:
            yield
        except ServerUnavailableError:
            self._responds = False
            raise
        except RejectedError as error:
            check_space(error.message.encode())
            raise

    @contextmanager
    def _in_processes(self, count: int) -> Iterator[list[FolderProcess]]:
        """Yield so many processes; after an error they are not used again."""
        with self.noting_silence():
            try:
                while len(self._processes) < count:
                    self._processes.append(
                        FolderProcess(self._probe.folder, self._probe.stall_timeout, self._check)
                    )
                yield self._processes[:count]
            except BaseException:
                self.close()
                raise

    def _check(self) -> None:
        if not self._cleaning:
            self._budget.check()
        if time.monotonic() >= self._end:
            raise ServerUnavailableError(
                f"The folder {self._probe.folder.host} did not respond within the time of the "
                "test.",
                code="staging.absent",
            )

    def _sample(self, units: int, write: Callable[[], float]) -> tuple[float, ...]:
        """Return the rates of several samples, one if the time of the test has run out."""
        rates = [units / write()]
        while len(rates) < self._budget.effort.samples and not self._budget.spent():
            rates.append(units / write())
        return tuple(rates)

    def _write_large(self, channels: int, size: int) -> float:
        """Write a file of `size` bytes over each channel; return the seconds."""
        self._budget.take(channels * size)

        def prepare(process: FolderProcess, numbers: range) -> None:
            process.prepare_large(tuple(self._below(f"large-{one}") for one in numbers), size)

        return self._write(channels, prepare)

    def _write_tiny(self, channels: int, files: int) -> float:
        """Write `files` new tiny files over each channel; return the seconds."""
        self._budget.take(channels * files * TINY)
        self._written += 1

        def prepare(process: FolderProcess, numbers: range) -> None:
            names = tuple(self._below(f"tiny-{self._written}-{one}") for one in numbers)
            process.prepare_tiny(names, files, TINY)

        return self._write(channels, prepare)

    def _write(self, channels: int, prepare: Callable[[FolderProcess, range], None]) -> float:
        """Let each process prepare and write the files of its channels; return the seconds."""
        count = min(channels, self._sessions)
        with self._in_processes(count) as processes:
            for number, process in enumerate(processes):
                prepare(process, range(number, channels, count))
            for process in processes:
                process.start_writing()
            return max([process.finish_writing() for process in processes])

    def _below(self, name: str) -> bytes:
        return self._directory + b"/" + name.encode()
