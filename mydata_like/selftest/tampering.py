"""A proxy on loopback that changes what an SSH client and its server send each other, and a trial.

An attacker who can do that on the way to a staging host must not be able to forge an answer.
"""

import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Final, Self

from mydata_like.core.errors import UploaderError
from mydata_like.ssh.connect import connect, fetch_host_key
from mydata_like.ssh.keys import create_key
from mydata_like.ssh.session import Endpoint, OpenSession

_CHUNK: Final = 64 * 1024
_NEWKEYS: Final = 21  # RFC 4253, section 12
_IGNORE: Final = b"\x02" + struct.pack(">I", 5) + b"added"  # SSH_MSG_IGNORE


class TamperingProxy:
    """A proxy to a port of this computer; a context manager.

    `flip` changes one bit of an encrypted packet, or of any byte if nothing `is_encrypted`. With
    `injects`, a packet is added in front of the one with which the server starts to encrypt.
    `changed` is set when either has happened.
    """

    def __init__(self, port: int, *, is_encrypted: bool = True) -> None:
        self.injects = False
        self._is_encrypted = is_encrypted
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
                    relay = partial(self._relay, source, target, inward=inward)
                    Thread(target=relay, name="proxy", daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket, *, inward: bool) -> None:
        exchange = _KeyExchange()
        exchange.done = not self._is_encrypted
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                out = b""
                if not exchange.done:
                    for part in exchange.split(data):
                        out += self._add(inward=inward) if exchange.done else b""
                        out += part
                    data = exchange.rest if exchange.done else b""
                target.sendall(out + self._change(data, inward=inward))
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _add(self, *, inward: bool) -> bytes:
        """Return the packet to add to the end of the key exchange."""
        if not (inward and self.injects):
            return b""
        self.changed.set()
        padding = 16 - (5 + len(_IGNORE)) % 8
        return struct.pack(">IB", 1 + len(_IGNORE) + padding, padding) + _IGNORE + bytes(padding)

    def _change(self, data: bytes, *, inward: bool) -> bytes:
        """Return encrypted bytes with the bit flipped, if it is one of them."""
        with self._lock:
            self._passed[inward] += len(data)
            if self._flip is None or self._flip[0] != inward:
                return data
            _, after, bit = self._flip
            self._flip = None if after < len(data) else (inward, after - len(data), bit)
        if after >= len(data):
            return data
        self.changed.set()
        changed = bytearray(data)
        changed[after] ^= 1 << bit
        return bytes(changed)


# The ciphers and MACs that a test host allows, if not all.
_HOSTS: Final[tuple[tuple[Sequence[str], Sequence[str]], ...]] = (
    ((), ()),
    (("aes128-gcm@openssh.com",), ()),
    (("aes128-gcm@openssh.com", "aes128-ctr"), ()),
    (("aes256-ctr",), ("hmac-sha2-256",)),  # without encrypt-then-MAC
)
_PLACES: Final = {True: (5, 40, 90), False: (20,)}  # bytes before the changed one, if inward or not
_TIMEOUT: Final = 2.0  # seconds; a changed length may stall a connection


def try_changes(folder: Path) -> str:
    """Change packets between local hosts and each SSH library; return a description.

    Raises `RuntimeError` if a change is accepted, or if nothing works without changes.
    """
    # Imported late: installations may lack its libraries.
    from mydata_like.demo.ssh_servers import AsyncSshd

    key, refused, used = create_key(folder / "tampering"), 0, set[str]()
    for number, (ciphers, macs) in enumerate(_HOSTS):
        with AsyncSshd(folder / f"host {number}", ciphers=ciphers, macs=macs) as host:
            host.authorize(key.public)
            endpoint = Endpoint(
                host=host.host,
                port=host.port,
                username=host.username,
                key_file=key.path,
                known_hosts=folder / "known_hosts",
                host_keys=(host.fingerprint,),
                stall_timeout=_TIMEOUT,
            )
            for stack in ("auto", "paramiko"):
                used.add(_try_host(endpoint._replace(stack=stack)))
                refused += 1 + sum(map(len, _PLACES.values()))
    return f"{refused} changed packets were refused by {' and '.join(sorted(used))}"


def _try_host(endpoint: Endpoint) -> str:
    """Try all changes with one library, and return its name."""
    with TamperingProxy(endpoint.port) as proxy:
        through = endpoint._replace(port=proxy.port)
        session = connect(through)
        session.open_sftp().close()
        session.close()
        for inward, places in _PLACES.items():
            for place in places:
                attacked = connect(through)
                proxy.flip(inward=inward, after=place, bit=place % 8)
                _require_refusal(partial(_use, attacked), proxy)
        proxy.changed.clear()
        proxy.injects = True
        _require_refusal(partial(fetch_host_key, through), proxy)
    return session.stack


def _use(session: OpenSession) -> None:
    """Use a session in a way that fails if any packet is refused."""
    with closing(session):
        session.open_sftp().find_size(b"/")
        session.open_sftp()


def _require_refusal(action: Callable[[], object], proxy: TamperingProxy) -> None:
    with suppress(UploaderError):
        action()
        raise RuntimeError("A packet that was changed on the way was accepted.")
    if not proxy.changed.is_set():
        raise RuntimeError("No packet was changed.")


class _KeyExchange:
    """The beginning of one direction, which is not encrypted: a line, then packets.

    It is `done` after the packet from which on the sender encrypts; `rest` are unused bytes.
    """

    def __init__(self) -> None:
        self.done = False
        self.rest = b""
        self._named = False  # whether the sender's version has passed

    def split(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines and packets that are complete with these bytes."""
        self.rest += data
        while not self.done and (part := self._find_part()):
            self.rest = self.rest[len(part) :]
            yield part

    def _find_part(self) -> bytes:
        if not self._named:
            line, end, _ = self.rest.partition(b"\n")
            self._named = bool(end) and line.startswith(b"SSH-")
            return line + end if end else b""
        size = 4 + int.from_bytes(self.rest[:4], "big")
        if len(self.rest) < max(size, 6):
            return b""
        self.done = self.rest[5] == _NEWKEYS
        return self.rest[:size]
