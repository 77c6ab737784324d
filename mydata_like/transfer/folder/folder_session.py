"""A mounted folder as a session: what it can do is found as on a host with SFTP."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

from mydata_like.core.errors import RejectedError, StagingError
from mydata_like.ssh.capabilities import HostCapabilities, check_space, try_sample
from mydata_like.ssh.session import CommandResult, OpenSession, Stream
from mydata_like.transfer.destination import StagingDestination
from mydata_like.transfer.folder.folder_files import FolderFiles, first_writing, open_files, opening
from mydata_like.transfer.folder.staging_folder import StagingFolder


class FolderSession:
    """The folder in the place of an SSH session, with nothing but file operations."""

    stack = ""
    gcm_only = False
    cipher = ""
    network_round_trip = None
    blocked_seconds = 0.0

    def __init__(self, folder: StagingFolder) -> None:
        self._folder = folder

    def open_sftp(self) -> FolderFiles:
        """Open the folder and find its marker; raises as `open_files` does."""
        return open_files(self._folder)

    def start(self, command: bytes) -> Stream:
        _refuse(command)

    def run(self, command: bytes, stdin: bytes = b"") -> CommandResult:
        _refuse(command + stdin)

    def write_some(
        self, pieces: Sequence[tuple[Stream, bytes]], moved: float | None = None
    ) -> list[int | None]:
        _refuse((pieces, moved))

    def run_ahead(self) -> None:
        """Do nothing: it runs no commands."""

    @contextmanager
    def limit_waits(self, seconds: float) -> Iterator[None]:
        """Do nothing: who started this process limits its waits."""
        yield

    def close(self) -> None:
        """Do nothing: each of its files is closed where it was opened."""


def _refuse(what: object) -> NoReturn:
    raise RejectedError(f"A folder runs no commands: {what!r}", code="staging.refused")


def leave_terminal() -> None:
    """Let go of the streams of the parent process.

    A process that waits for a lost folder cannot be ended, and must keep nobody waiting who reads
    these streams to their end.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


class FolderDestination(StagingFolder, StagingDestination):
    """A mounted folder as what a session leads to."""

    __slots__ = ()

    @property
    def area(self) -> bytes:
        return self.path

    def connect(
        self, known: HostCapabilities | None, *, confirms: bool
    ) -> tuple[OpenSession, HostCapabilities]:
        return open_folder(self, known)

    def limit_opening(self, timeout: float) -> float:
        return timeout


def open_folder(
    folder: StagingFolder, known: HostCapabilities | None = None
) -> tuple[FolderSession, HostCapabilities]:
    """Return a session with a folder, and what it can do.

    A file is written, renamed and removed. If that is refused although it is `known` that it was
    allowed before, the folder may be full, which may concern large files only. Raises
    `ServerUnavailableError` or `StagingError`.
    """
    leave_terminal()
    session = FolderSession(folder)
    files = session.open_sftp()
    try:
        if known:
            with opening(folder), suppress(RejectedError):
                try_sample(files, folder.path)
            return session, known
        with opening(folder), first_writing(folder):
            times = try_sample(files, folder.path)
    except RejectedError as error:
        check_space(error.message.encode())
        raise StagingError(
            f"The folder {folder.host} does not accept files: {error.message}",
            hint="Check how it is mounted, and that the account that runs this program may write "
            "to it.",
            code="staging.denied",
        ) from error
    finally:
        files.close()
    return session, HostCapabilities("folder", "the folder takes files", times=times)
