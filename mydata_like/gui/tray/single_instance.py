"""Allows one instance for each user and settings file; a second start shows the first.

The lock determines the first instance, since the system releases it when the process ends; the
socket only transports the request. So a socket that is left after a crash does no harm.
"""

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

DEADLINE: Final = 2.0  # seconds for the response of the first instance
_PAUSE: Final = 0.05  # seconds between two tries while the first instance is still starting
_MAX_REQUEST: Final = 1_000_000  # bytes
_RESPONSE: Final = b"heard\n"
_TOKEN: Final = "XDG_ACTIVATION_TOKEN"  # noqa: S105 - not a secret
_ANY_PROCESS: Final = -1  # ASFW_ANY of Windows


class UnresponsiveError(UploaderError):
    """The first instance is running but does not respond."""

    code = "window.unresponsive"
    exit_code = 3


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """The request of a second instance to the first: show the window, and add these paths.

    `token` is the desktop's activation token, which lets the window come to the front.
    """

    show: bool = True
    paths: tuple[str, ...] = ()
    token: str = ""


class SingleInstance:
    """The lock of the only instance for a settings file."""

    def __init__(self, config_file: Path, state: Path) -> None:
        """`state` is a private folder of the user, used if the system has none for sockets."""
        key = hashlib.sha256(os.fsencode(os.path.realpath(config_file))).hexdigest()[:16]
        self._folder = Path(os.environ.get("XDG_RUNTIME_DIR") or state)
        self._lock = FileLock(
            self._folder / f"mydata-like-{key}.lock", timeout=0, mode=PRIVATE_FILE
        )
        # A named pipe of Windows is in no folder, and all users of the computer share the names.
        self.address = (
            f"mydata-like-{key}-{os.environ.get('USERNAME', '')}"
            if sys.platform == "win32"
            else str(self._folder / f"mydata-like-{key}")
        )

    def claim(self, request: LaunchRequest) -> bool:
        """Return whether this is the first instance; otherwise the first one has the request.

        Raises UnresponsiveError if the first instance does not respond in time.
        """
        deadline = time.monotonic() + DEADLINE
        while not self._try_lock():
            if _send_request(self.address, request, deadline):
                return False
            if time.monotonic() > deadline:
                raise UnresponsiveError(
                    "The program is already open, but does not respond.",
                    hint="Wait a minute and try again. If that does not help, end it in the task "
                    "manager and start it again. Files that were sent are not lost.",
                )
            time.sleep(_PAUSE)
        return True

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()

    def _try_lock(self) -> bool:
        make_private_folder(self._folder)
        require_plain(Path(self._lock.lock_file))
        try:
            self._lock.acquire()
        except Timeout:
            return False
        return True


class InstanceServer(QObject):
    """Receives the requests of second instances; only the first instance has one."""

    request_received = Signal(object)

    def __init__(self, address: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        QLocalServer.removeServer(address)  # left after a crash, since we have the lock
        self.is_listening = self._server.listen(address)
        self._server.newConnection.connect(self._accept)

    def close(self) -> None:
        """Stop listening."""
        self._server.close()

    def _accept(self) -> None:
        while socket := self._server.nextPendingConnection():
            _InstanceConnection(socket, self)


class _InstanceConnection(QObject):
    """One connection of a second instance, until its request has been read."""

    def __init__(self, socket: QLocalSocket, server: InstanceServer) -> None:
        super().__init__(socket)
        self._socket = socket
        self._server = server
        socket.setReadBufferSize(_MAX_REQUEST)
        socket.readyRead.connect(self._read)
        socket.disconnected.connect(socket.deleteLater)
        self._read()  # bytes may have arrived before the signal was connected

    def _read(self) -> None:
        if not self._socket.canReadLine():
            if self._socket.bytesAvailable() >= _MAX_REQUEST:
                self._socket.abort()
            return
        request = parse_request(bytes(self._socket.readLine().data()))
        if request is not None:
            self._socket.write(_RESPONSE)
            self._socket.flush()
            self._server.request_received.emit(request)
        self._socket.disconnectFromServer()


def find_token() -> str:
    """Return the activation token that the desktop gave to this start; empty for none."""
    return os.environ.get(_TOKEN, "")


def use_token(token: str) -> None:
    """Use this activation token for the next window; Qt reads it from the environment."""
    if token:
        os.environ[_TOKEN] = token


def _send_request(address: str, request: LaunchRequest, deadline: float) -> bool:
    """Return whether the first instance has accepted the request before the deadline."""
    if sys.platform == "win32":
        import ctypes

        ctypes.windll.user32.AllowSetForegroundWindow(_ANY_PROCESS)
    socket = QLocalSocket()
    socket.connectToServer(address)
    if not socket.waitForConnected(_remaining_ms(deadline)):
        return False
    socket.write(json.dumps(asdict(request)).encode() + b"\n")
    while not socket.canReadLine():
        if not socket.waitForReadyRead(_remaining_ms(deadline)):
            break
    return bytes(socket.readLine().data()) == _RESPONSE


def _remaining_ms(deadline: float) -> int:
    return max(1, round((deadline - time.monotonic()) * 1000))


def parse_request(line: bytes) -> LaunchRequest | None:
    """Return the request; None if it is invalid."""
    try:
        fields = parse_json(line)
        return LaunchRequest(
            show=bool(fields["show"]),
            paths=tuple(str(path) for path in fields["paths"]),
            token=str(fields["token"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
