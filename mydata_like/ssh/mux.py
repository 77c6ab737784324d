"""Requests to an `ssh` that shares its connection: OpenSSH's PROTOCOL.mux, version 4.

A request is a message over ssh's control socket, with the descriptors that the command's input
and output shall be; ssh moves the bytes between them and its connection by itself. The socket
then stands for what was requested: to close it is to drop that, its end is that one's end.
"""

import socket
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

_HELLO: Final = 0x00000001
_VERSION: Final = 4
_NEW_SESSION: Final = 0x10000002
_NEW_FORWARD: Final = 0x10000008
_OPENED: Final = 0x80000006
_EXITED: Final = 0x80000004

_REQUEST: Final = 1  # one a socket, so they need no telling apart
_NO_ESCAPE: Final = 0xFFFFFFFF
_GLANCE: Final = 0.1  # seconds of one wait
_LARGEST: Final = 64 * 1024  # of a message


class Shared:
    """The control socket of an ssh; its requests raise OSError where ssh is gone.

    While an answer is waited for, `pause` is called again and again; it may raise.
    """

    def __init__(self, path: Path, pause: Callable[[], None]) -> None:
        self._path = path
        self._pause = pause

    def start(
        self, command: bytes, descriptors: tuple[int, int, int], *, subsystem: bool
    ) -> int | None:
        """Start a command on these descriptors; return its own, None where it was refused."""
        no_terminal = (0, 0, 0)  # nor X11, nor the agent
        words = b"".join(map(_number, (*no_terminal, int(subsystem), _NO_ESCAPE)))
        body = _number(_REQUEST) + _text(b"") + words + _text(b"") + _text(command)
        return self._request(_NEW_SESSION, body, descriptors)

    def forward(self, host: str, port: int, descriptor: int) -> int | None:
        """Connect a descriptor with a port elsewhere; return its own, None where refused."""
        body = _number(_REQUEST) + _text(b"") + _text(host.encode()) + _number(port)
        return self._request(_NEW_FORWARD, body, (descriptor, descriptor))

    def _request(self, kind: int, body: bytes, descriptors: Sequence[int]) -> int | None:
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(_GLANCE)
            control.connect(str(self._path))
            _send(control, _HELLO, _number(_VERSION))
            self._receive(control)  # its version, the same one since 2010
            _send(control, kind, body)
            for descriptor in descriptors:
                socket.send_fds(control, [b"\0"], [descriptor])
            if self._receive(control) != _OPENED:
                return None
            return control.detach()

    def _receive(self, control: socket.socket) -> int:
        """Wait for the next message; return its kind."""
        length = int.from_bytes(self._take(control, 4), "big")
        if not 4 <= length <= _LARGEST:
            raise ConnectionError("no message of a sharing ssh")
        return int.from_bytes(self._take(control, length)[:4], "big")

    def _take(self, control: socket.socket, size: int) -> bytes:
        taken = b""
        while len(taken) < size:
            try:
                more = control.recv(size - len(taken))
            except TimeoutError:
                self._pause()
                continue
            if not more:
                raise ConnectionError("ssh has closed the request")
            taken += more
        return taken


def parse_exit(said: bytes) -> int | None:
    """Return a command's status from what its request has said until its end; None if killed."""
    length, kind, _, status = struct.unpack_from(">IIII", said.ljust(16, b"\0"))
    return int(status) if (length, kind) == (12, _EXITED) else None


def _send(control: socket.socket, kind: int, body: bytes) -> None:
    message = _number(kind) + body
    control.sendall(_number(len(message)) + message)


def _number(value: int) -> bytes:
    return struct.pack(">I", value)


def _text(value: bytes) -> bytes:
    return _number(len(value)) + value
