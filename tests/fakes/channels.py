"""What channel workers do in tests: all that they do, but over local shells instead of SSH."""

import os
import signal
import threading
from functools import partial
from pathlib import Path
from typing import NoReturn

from mydata_like.core.errors import AccessDeniedError, RejectedError, TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import SshSession, Stream
from mydata_like.transfer.remote_shell import WAITING
from mydata_like.transfer.worker import work
from mydata_like.transfer.worker_messages import WorkerConfig
from tests.fakes.session import LocalSession

REFUSALS = {
    "denies": AccessDeniedError("The key is not accepted.", hint="Ask.", code="key.refused"),
    "away": TransientError("The host is away.", code="host.away"),
}
SHELL = HostCapabilities("shell", "a local shell", tar="gnu", checksum=b"md5sum", cpus=64)


class NearSession(LocalSession):
    """Of a host that is near: its first shell waits already, which takes a while to start."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: Stream | None = super().start(WAITING)

    def start(self, command: bytes) -> Stream:
        if command == WAITING and self._waiting:
            waiting, self._waiting = self._waiting, None
            return waiting
        return super().start(command)


class StuckSession(NearSession):
    """Says nothing any more once it has written a megabyte, or dies of it."""

    def __init__(self, *, dies: bool) -> None:
        super().__init__()
        self._dies = dies

    def _allow(self, count: int) -> int:
        if self.written > 1 << 20:
            if self._dies:
                os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait(60)
        return super()._allow(count)


class RefusingSession(LocalSession):
    """Of a host that is at its limit of processes."""

    def start(self, command: bytes) -> NoReturn:
        raise RejectedError("The host runs no commands for us.", code="ssh.exec-refused")


class FaultySession(NearSession):
    """Raises what only a mistake of ours would: as a channel opens, or as it is written to."""

    def __init__(self, *, opens: bool) -> None:
        super().__init__()
        self._opens = opens

    def start(self, command: bytes) -> Stream:
        if not self._opens:
            raise BufferError("a mistake")
        return super().start(command)

    def _allow(self, count: int) -> int:
        raise BufferError("a mistake")


SESSIONS = {
    "faulty": partial(FaultySession, opens=False),
    "faulty later": partial(FaultySession, opens=True),
    "refuses": RefusingSession,
}


class FarSession(LocalSession):
    """Of a host that is a long way off."""

    def start(self, command: bytes) -> Stream:
        threading.Event().wait(0.05)
        return super().start(command)


def main() -> None:
    """Be a channel worker whose host's name says how it behaves."""
    work(connect)


def connect(plan: WorkerConfig) -> tuple[SshSession, HostCapabilities]:
    host = plan.endpoint.host
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
    if host.startswith(("stuck ", "dies ", "one dies ")):
        behaviour, _, marker = host.rpartition(" ")
        rung = SHELL._replace(cpus=1) if behaviour == "one dies" else SHELL
        dies = behaviour != "stuck"
        return (StuckSession(dies=dies) if _first(Path(marker)) else NearSession()), rung
    if host == "no tar":
        return NearSession(), SHELL._replace(tar="", cpus=1)
    session = SESSIONS.get(host, NearSession)()
    return session, SHELL._replace(why="known" if plan.rung else "probed")


def _connect_far(most: str, markers: str) -> tuple[SshSession, HostCapabilities]:
    """Connect to a host that grants so many sessions."""
    if not any(_first(Path(f"{markers}-{number}")) for number in range(int(most))):
        raise _too_many()
    return FarSession(), SHELL._replace(cpus=1)


def _too_many() -> TransientError:
    return TransientError("There are too many of us.")


def _first(marker: Path) -> bool:
    """Return whether no one has asked this before."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
