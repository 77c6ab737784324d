"""A process that inspects, confirms and cleans up a mounted folder for another one.

A process that waits for a lost folder cannot be ended, so the engine itself never touches it.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from mydata_like.core.errors import RejectedError, TransientError, UploaderError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.transfer.folder.folder_files import FolderFiles, first_writing, open_files
from mydata_like.transfer.folder.folder_session import leave_terminal, open_folder
from mydata_like.transfer.folder.staging_folder import MARKER, StagingFolder
from mydata_like.transfer.ssh.probe_file import ProbeResult
from mydata_like.transfer.temporary_files import Leftover, SftpRemover
from mydata_like.transfer.worker_messages import (
    STALLED,
    ChannelReply,
    Pipe,
    Reply,
    ServiceAnswer,
    ServiceCall,
    TaskFailed,
)
from mydata_like.transfer.worker_process import WorkerProcess, build_command

_CHANNEL: Final = 1
_STARTING: Final = 15.0  # seconds to start a process on a busy machine
_POLL: Final = 0.1  # seconds between two checks whether a reply is still wanted
_CHUNK: Final = 256 * 1024  # bytes that are read at once
_PIECE: Final = 2**20  # bytes that are written at once
_MODE: Final = 0o700

T = TypeVar("T")
Arguments = ParamSpec("Arguments")


class FolderTasks:
    """What the process does with a folder; each raises an `UploaderError`."""

    def __init__(self, folder: StagingFolder) -> None:
        self._folder = folder
        self._opened: FolderFiles | None = None
        self._removers: dict[bytes, SftpRemover] = {}

    def open(self) -> HostCapabilities:
        """Return what the folder can do; raises as `open_folder` does."""
        return open_folder(self._folder)[1]

    def inspect(self, name: bytes) -> ProbeResult:
        """Return the size and checksum of a file; the size of a missing file is None."""
        path = self._folder.below(name)
        size = self._files.find_size(path)
        if size is None:
            return ProbeResult(None, "")
        checksum = hashlib.md5(usedforsecurity=False)
        for chunk in self._files.read_chunks(path, _CHUNK):
            checksum.update(chunk)
        return ProbeResult(size, checksum.hexdigest())

    def remove(self, name: bytes) -> bool:
        """Remove a file; return whether it is gone."""
        try:
            self._files.remove(self._folder.below(name))
        except RejectedError:
            return False
        return True

    def find_left(self, mark: bytes, folder: bytes) -> list[Leftover]:
        """Return the leftovers of the uploader with this mark in a folder below."""
        return self._remover(mark).find_left(folder)

    def remove_left(self, mark: bytes, folder: bytes, name: bytes) -> bool:
        """Remove a leftover; return whether it is gone."""
        return self._remover(mark).remove(folder, name)

    def find_mount(self) -> str:
        """Return the path at which the file system of the folder is mounted."""
        path = Path(os.fsdecode(self._folder.path)).resolve()
        # `Path.is_mount` does not exist on Windows before Python 3.12.
        while not os.path.ismount(path) and path != path.parent:
            path = path.parent
        return str(path)

    def confirm(self) -> None:
        """Write the marker into the folder."""
        path = self._folder.below(MARKER)
        part = self._folder.below(b"%b-%d" % (MARKER, os.getpid()))
        files = FolderFiles(self._folder.path)
        try:
            with first_writing(self._folder):
                file = files.open_file(part)
            try:
                file.write(self._folder.marker)
            finally:
                file.close()
            files.replace(part, path)
        finally:
            files.close()

    def remove_directory(self, name: bytes) -> None:
        """Remove a directory below the folder and all that is in it, if it exists."""
        self._files.remove_directory(self._folder.below(name))

    def write_large(self, name: bytes, size: int) -> float:
        """Write a file of random bytes as a run does; return the seconds until it is durable."""
        content = memoryview(os.urandom(size))
        file = self._files.open_file(self._make_parent(name))
        began = time.perf_counter()
        try:
            for begin in range(0, size, _PIECE):
                file.write(content[begin : begin + _PIECE])
        finally:
            file.close()
        return time.perf_counter() - began

    def time_renames(self, name: bytes, count: int) -> tuple[float, ...]:
        """Write a file, and return the seconds of each of `count` renames after a first one."""
        path = self._make_parent(name)
        paths = (path, path + b"-renamed")
        seconds: list[float] = []
        self._files.open_file(path).close()
        for turn in range(count + 1):
            began = time.perf_counter()
            self._files.replace(paths[turn % 2], paths[1 - turn % 2])
            seconds.append(time.perf_counter() - began)
        return tuple(seconds[1:])

    def _make_parent(self, name: bytes) -> bytes:
        """Return the path of a file for which the directory exists."""
        path = self._folder.below(name)
        self._files.make_directories(path.rpartition(b"/")[0], _MODE)
        return path

    @property
    def _files(self) -> FolderFiles:
        self._opened = self._opened or open_files(self._folder)
        return self._opened

    def _remover(self, mark: bytes) -> SftpRemover:
        if mark not in self._removers:
            self._removers[mark] = SftpRemover(self._files, self._folder.path, mark)
        return self._removers[mark]


class FolderService(NamedTuple):
    """The work of such a process, which receives it from the engine."""

    folder: StagingFolder

    def serve(self, pipe: Pipe) -> None:
        """Process calls until the other process ends."""
        leave_terminal()
        tasks = FolderTasks(self.folder)
        try:
            while True:
                pipe.send(ChannelReply(_CHANNEL, _answer(tasks, pipe.receive().command)))
        except (EOFError, OSError):
            return


def _answer(tasks: FolderTasks, call: ServiceCall) -> ServiceAnswer | TaskFailed:
    try:
        return ServiceAnswer(getattr(tasks, call.name)(*call.arguments))
    except UploaderError as error:
        return TaskFailed(type(error).__name__, error.problem)


class FolderProcess:
    """The process that works on a folder, from the view of the engine.

    A call raises `ServerUnavailableError` if the folder does not respond in time, and otherwise as
    the task does. While it waits, it calls `check`, which may raise an error.
    """

    def __init__(
        self, folder: StagingFolder, timeout: float, check: Callable[[], None] = lambda: None
    ) -> None:
        folder.require_ready()
        self._folder = folder
        self._check = check
        self._timeout = _STARTING + timeout
        self._process = WorkerProcess(build_command(), "folder")
        self._process.begin(FolderService(folder))

    def close(self) -> None:
        """End the process, or leave it behind if it waits for a lost folder."""
        self._process.kill()
        self._process.reap()

    def call(
        self,
        task: Callable[Concatenate[FolderTasks, Arguments], T],
        *arguments: Arguments.args,
        **_: Arguments.kwargs,
    ) -> T:
        """Do a task in the process; return its result."""
        self._process.send(_CHANNEL, ServiceCall(task.__name__, arguments))
        end = time.monotonic() + self._timeout
        with self._folder.answering():
            while not (answer := self._find_reply(end)):
                self._check()
        assert isinstance(answer, ServiceAnswer)
        value: T = answer.value
        return value

    def _find_reply(self, end: float) -> Reply | None:
        """Return a reply that comes within a moment; raises `TransientError` if it is too late."""
        try:
            return self._process.receive(_CHANNEL, _POLL)
        except TransientError as error:
            if error.problem_code != STALLED or time.monotonic() >= end:
                raise
            return None


@contextmanager
def open_folder_process(folder: StagingFolder, timeout: float) -> Iterator[FolderProcess]:
    """Yield a process that works on a folder, with this timeout in seconds for each call."""
    process = FolderProcess(folder, timeout)
    try:
        yield process
    finally:
        process.close()


class FolderRemover:
    """Removes the leftovers of one uploader through such a process; see `Remover`."""

    def __init__(self, process: FolderProcess, mark: bytes) -> None:
        self._process = process
        self._mark = mark

    def find_left(self, folder: bytes) -> list[Leftover]:
        return self._process.call(FolderTasks.find_left, self._mark, folder)

    def remove(self, folder: bytes, name: bytes) -> bool:
        return self._process.call(FolderTasks.remove_left, self._mark, folder, name)
