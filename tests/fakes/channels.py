"""What channel workers do in tests: all that they do, but over local shells instead of SSH."""

import os
import signal
import threading
from pathlib import Path
from typing import NoReturn

from mydata_like.core.errors import AccessDeniedError, RejectedError, TransientError
from mydata_like.ssh.remote import Rung
from mydata_like.ssh.session import Session
from mydata_like.transfer.protocol import Plan
from mydata_like.transfer.worker import work
from tests.fakes.session import LocalSession

SHELL = Rung("shell", "a local shell", tar="gnu", checksum=b"md5sum", cpus=64)


class StuckSession(LocalSession):
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


def main() -> None:
    """Be a channel worker whose host's name says how it behaves."""
    work(connect)


def connect(plan: Plan) -> tuple[Session, Rung]:
    host = plan.endpoint.host
    if host == "denies":
        raise AccessDeniedError("The key is not accepted.", hint="Ask.", code="key.refused")
    if host == "away":
        raise TransientError("The host is away.", code="host.away")
    if host.startswith("once ") and not _first(Path(host[5:])):
        raise TransientError("There are too many of us.")
    if host.startswith("stuck "):
        return (StuckSession(dies=False) if _first(Path(host[6:])) else LocalSession()), SHELL
    if host.startswith("dies "):
        return (StuckSession(dies=True) if _first(Path(host[5:])) else LocalSession()), SHELL
    if host.startswith("one dies "):
        session = StuckSession(dies=True) if _first(Path(host[9:])) else LocalSession()
        return session, SHELL._replace(cpus=1)
    if host == "no tar":
        return LocalSession(), SHELL._replace(tar="", cpus=1)
    session = RefusingSession() if host == "refuses" else LocalSession()
    return session, SHELL._replace(why="known" if plan.rung else "probed")


def _first(marker: Path) -> bool:
    """Return whether nobody has asked this before."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
