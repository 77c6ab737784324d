"""A proxy on loopback that changes what an SSH client and its server send each other."""

import socket
import struct
from contextlib import suppress
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Final, Self

_CHUNK: Final = 64 * 1024
_NEWKEYS: Final = 21  # RFC 4253, section 12
_IGNORE: Final = b"\x02" + struct.pack(">I", 5) + b"added"  # SSH_MSG_IGNORE


class TamperingProxy:
    """A proxy to a port of this computer; a context manager.

    `flip` changes one bit of an encrypted packet. With `injects`, a packet is added in front of the
    one with which the server starts to encrypt. `changed` is set when either has happened.
    """

    def __init__(self, port: int) -> None:
        self.injects = False
        self.changed = Event()
        self._target = port
        self._lock = Lock()
        self._flip: tuple[bool, int, int] | None = None
        self._passed = {True: 0, False: 0}
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        Thread(target=self._accept, name="proxy", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one in (self._listener, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def flip(self, *, inward: bool, after: int, bit: int = 0) -> None:
        """Flip a bit of the byte that comes after so many further encrypted bytes, once.

        `inward` is whether it is one from the server to the client.
        """
        self.changed.clear()
        with self._lock:
            self._flip = inward, after, bit

    def count(self, *, inward: bool) -> int:
        """Return how many encrypted bytes have passed in this direction so far."""
        return self._passed[inward]

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += near, far
                for source, target, inward in ((near, far, False), (far, near, True)):
                    target.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    arguments = source, target, inward
                    Thread(target=self._relay, args=arguments, name="proxy", daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket, inward: bool) -> None:  # noqa: FBT001
        clear: bytes | None = b""  # unparsed bytes of the key exchange; None after it
        named = False
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if clear is not None:
                    clear += data
                    data = b""
                    if not named and b"\n" in clear:
                        line, clear = clear.split(b"\n", 1)
                        data, named = line + b"\n", line.startswith(b"SSH-")
                    while named and clear is not None and (packet := _take_packet(clear)):
                        clear = clear[len(packet) :]
                        if packet[5] == _NEWKEYS:
                            data += self._added(inward)
                            packet, clear = packet + self._changed(clear, inward), None
                        data += packet
                else:
                    data = self._changed(data, inward)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
