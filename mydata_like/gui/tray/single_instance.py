"""Allows one instance for each user and settings file; a second start shows the first.

The lock decides who is the first, since the system frees it when its holder dies; the socket
only carries the call. So a socket that a crash left behind never stands in the way.
"""

import ctypes
import hashlib
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout
from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from mydata_like.core.errors import UploaderError
from mydata_like.core.parsing import parse_json
from mydata_like.settings.atomic_write import PRIVATE_FILE, make_private_folder, require_plain

DEADLINE: Final = 2.0  # seconds in which the first instance has to answer
_PAUSE: Final = 0.05  # seconds between two tries while the first instance is still starting
_LONGEST: Final = 1_000_000  # bytes of a call
_ANSWER: Final = b"heard\n"
_TOKEN: Final = "XDG_ACTIVATION_TOKEN"  # noqa: S105 - the right to come to the front, no secret
_ANYBODY: Final = -1  # ASFW_ANY of Windows


class UnresponsiveError(UploaderError):
    """The first instance is there and does not answer."""

    code = "window.unresponsive"
    exit_code = 3


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What a second start wants of the first: to show itself, and to take these paths.

    `token` is the right to come to the front, which the desktop gives to who starts a program.
    """

    show: bool = True
    paths: tuple[str, ...] = ()
    token: str = ""


class SingleInstance:
    """The place of a settings file's one instance: who holds it is the first."""

    def __init__(self, config_file: Path, state: Path) -> None:
        """`state` is a folder of the person alone, used where the system has none for sockets."""
        key = hashlib.sha256(os.fsencode(os.path.realpath(config_file))).hexdigest()[:16]
        self._folder = Path(os.environ.get("XDG_RUNTIME_DIR") or state)
        self._lock = FileLock(
            self._folder / f"mydata-like-{key}.lock", timeout=0, mode=PRIVATE_FILE
        )
        # A pipe of Windows lies in no folder, and its name is one for all who use the computer.
        self.address = (
            f"mydata-like-{key}-{os.environ.get('USERNAME', '')}"
            if sys.platform == "win32"
            else str(self._folder / f"mydata-like-{key}")
        )

    def claim(self, call: LaunchRequest) -> bool:
        """Return whether this is the first instance; if not, the first one has taken the call.

        Raises UnresponsiveError where another one is there but does not answer in time.
        """
        end = time.monotonic() + DEADLINE
        while not self._take():
            if _ring(self.address, call, end):
                return False
            if time.monotonic() > end:
                raise UnresponsiveError(
                    "The program is open already, but it does not answer.",
                    hint="Wait a minute and try again; if that does not help, end it with the "
                    "system's own means and start it anew. Files that are sent are not lost.",
                )
            time.sleep(_PAUSE)
        return True

    def release(self) -> None:
        """Let another one be the first."""
        self._lock.release()

    def _take(self) -> bool:
        make_private_folder(self._folder)
        require_plain(Path(self._lock.lock_file))
        try:
            self._lock.acquire()
        except Timeout:
            return False
        return True


class InstanceServer(QObject):
    """Hears the calls of second starts; the one who holds the instance has one."""

    rung = Signal(object)

    def __init__(self, address: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        QLocalServer.removeServer(address)  # what a crash left behind: the lock is ours
        self.listens = self._server.listen(address)
        self._server.newConnection.connect(self._answer_door)

    def close(self) -> None:
        """Hear nothing any more."""
        self._server.close()

    def _answer_door(self) -> None:
        while caller := self._server.nextPendingConnection():
            _InstanceConnection(caller, self)


class _InstanceConnection(QObject):
    """One connection of a second start, until its call is read."""

    def __init__(self, socket: QLocalSocket, door: InstanceServer) -> None:
        super().__init__(socket)
        self._socket = socket
        self._door = door
        socket.setReadBufferSize(_LONGEST)
        socket.readyRead.connect(self._listen)
        socket.disconnected.connect(socket.deleteLater)
        self._listen()  # what came before anybody listened

    def _listen(self) -> None:
        if not self._socket.canReadLine():
            if self._socket.bytesAvailable() >= _LONGEST:
                self._socket.abort()
            return
        call = parse_call(bytes(self._socket.readLine().data()))
        if call is not None:
            self._socket.write(_ANSWER)
            self._socket.flush()
            self._door.rung.emit(call)
        self._socket.disconnectFromServer()


def find_token() -> str:
    """Return the right to come to the front that this start was given."""
    return os.environ.get(_TOKEN, "")


def use_token(token: str) -> None:
    """Let the next window that comes to the front use this right; Qt looks for it there."""
    if token:
        os.environ[_TOKEN] = token


def _ring(address: str, call: LaunchRequest, end: float) -> bool:
    """Return whether the first instance has taken the call before the end of its time."""
    if sys.platform == "win32":
        ctypes.windll.user32.AllowSetForegroundWindow(_ANYBODY)
    socket = QLocalSocket()
    socket.connectToServer(address)
    if not socket.waitForConnected(_left(end)):
        return False
    socket.write(json.dumps(asdict(call)).encode() + b"\n")
    while not socket.canReadLine():
        if not socket.waitForReadyRead(_left(end)):
            break
    return bytes(socket.readLine().data()) == _ANSWER


def _left(end: float) -> int:
    return max(1, round((end - time.monotonic()) * 1000))


def parse_call(line: bytes) -> LaunchRequest | None:
    """Return the call; None for what none of our programs says."""
    try:
        fields = parse_json(line)
        return LaunchRequest(
            show=bool(fields["show"]),
            paths=tuple(str(path) for path in fields["paths"]),
            token=str(fields["token"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
