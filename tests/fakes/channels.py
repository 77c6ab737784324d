"""Channel workers for tests: the real ones, with local shells instead of SSH.

On Windows, which has no POSIX shell, they send with SFTP to local files.
"""

import os
import threading
from functools import partial
from pathlib import Path
from typing import NoReturn

import psutil

from mydata_like.core.errors import AccessDeniedError, RejectedError, TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import SftpSession, SshSession, Stream
from mydata_like.transfer.ssh.remote_shell import WAITING
from mydata_like.transfer.worker import work
from mydata_like.transfer.worker_messages import WorkerConfig
from tests.fakes.session import LocalSession

REFUSALS = {
    "denies": AccessDeniedError("The key is not accepted.", hint="Ask.", code="key.refused"),
    "away": TransientError("The host is away.", code="host.away"),
}
SHELL = HostCapabilities("shell", "a local shell", tar="gnu", checksum=b"md5sum", cpus=64)
HOST = SHELL if os.name == "posix" else HostCapabilities("sftp", "no local shell", cpus=64)


class NearSession(LocalSession):
    """A session of a near host, whose first shell is started in advance."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: Stream | None = super().start(WAITING) if os.name == "posix" else None

    def start(self, command: bytes) -> Stream:
        if command == WAITING and self._waiting:
            waiting, self._waiting = self._waiting, None
            return waiting
        return super().start(command)


class StuckSession(NearSession):
    """A session that hangs after it has written a megabyte, or kills its process."""

    def __init__(self, *, dies: bool) -> None:
        super().__init__()
        self._dies = dies

    def _allow(self, count: int) -> int:
        if self.written > 1 << 20:
            if self._dies:
                psutil.Process().kill()
            threading.Event().wait(60)
        return super()._allow(count)


class RefusingSession(LocalSession):
    """A session of a host that has reached its limit of processes."""

    def start(self, command: bytes) -> NoReturn:
        raise RejectedError("The host runs no commands for us.", code="ssh.exec-refused")

    def open_sftp(self) -> NoReturn:
        self.start(b"")


class FaultySession(NearSession):
    """A session that raises an unexpected error when a channel opens or is written to."""

    def __init__(self, *, opens: bool) -> None:
        super().__init__()
        self._opens = opens

    def start(self, command: bytes) -> Stream:
        if not self._opens:
            raise BufferError("a mistake")
        return super().start(command)

    def open_sftp(self) -> SftpSession:
        if not self._opens:
            raise BufferError("a mistake")
        return super().open_sftp()

    def _allow(self, count: int) -> int:
        raise BufferError("a mistake")


class HangingSession(NearSession):
    """A session in which every channel but the first waits for ever."""

    def __init__(self) -> None:
        super().__init__()
        self._first: int | None = None  # the thread of the channel

    def start(self, command: bytes) -> Stream:
        self._wait_unless_first()
        return super().start(command)

    def open_sftp(self) -> SftpSession:
        self._wait_unless_first()
        return super().open_sftp()

    def _wait_unless_first(self) -> None:
        self._first = self._first or threading.get_ident()
        if threading.get_ident() != self._first:
            threading.Event().wait()


class FullSession(NearSession):
    """A session of a host that grants each session one channel."""

    def __init__(self) -> None:
        super().__init__()
        self._granted: int | None = None  # the thread of the channel

    def start(self, command: bytes) -> Stream:
        self._granted = self._granted or threading.get_ident()
        if threading.get_ident() != self._granted:
            raise RejectedError("There are too many channels.", code="ssh.exec-refused")
        return super().start(command)


SESSIONS = {
    "faulty": partial(FaultySession, opens=False),
    "faulty later": partial(FaultySession, opens=True),
    "full": FullSession,
    "refuses": RefusingSession,
}

# The sessions of which only the first with a marker behaves like that, and their hosts.
FIRST_SESSIONS = {
    "stuck": (partial(StuckSession, dies=False), HOST),
    "dies": (partial(StuckSession, dies=True), HOST),
    "one dies": (partial(StuckSession, dies=True), HOST._replace(cpus=1)),
    "hangs": (HangingSession, HOST._replace(cpus=1)),
}


class FarSession(LocalSession):
    """A session of a distant host."""

    def start(self, command: bytes) -> Stream:
        threading.Event().wait(0.05)
        return super().start(command)


def main() -> None:
    """Run a channel worker whose behaviour is selected by the name of its host."""
    work(connect)


def connect(plan: WorkerConfig) -> tuple[SshSession, HostCapabilities]:
    host = plan.destination.host
    if host in REFUSALS:
        raise REFUSALS[host]
    if host.startswith("once ") and not _first(Path(host[5:])):
        raise _too_many()
    if host == "silent":
        threading.Event().wait(60)
    if host.startswith("hesitates "):
        threading.Event().wait(0.2)
        Path(f"{host[10:]}-{os.getpid()}").touch()
        raise _too_many()
    if host.startswith("far "):
        return _connect_far(*host.split()[1:])
    behaviour, _, marker = host.rpartition(" ")
    if behaviour in FIRST_SESSIONS:
        build, rung = FIRST_SESSIONS[behaviour]
        return (build() if _first(Path(marker)) else NearSession()), rung
    if host == "no tar":
        return NearSession(), HOST._replace(tar="", cpus=1)
    session = SESSIONS.get(host, NearSession)()
    return session, (plan.capabilities or HOST)._replace(
        why="known" if plan.capabilities else "probed"
    )


def _connect_far(most: str, markers: str) -> tuple[SshSession, HostCapabilities]:
    """Connect to a distant host that allows at most `most` sessions."""
    if not any(_first(Path(f"{markers}-{number}")) for number in range(int(most))):
        raise _too_many()
    return FarSession(), HOST._replace(cpus=1)


def _too_many() -> TransientError:
    return TransientError("There are too many of us.")


def _first(marker: Path) -> bool:
    """Return whether this is the first call with this marker, from any process."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
