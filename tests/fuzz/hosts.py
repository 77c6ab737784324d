"""Fuzz targets for staging hosts and SSH agents: SFTP, and the output of shells and agents."""

import io
import shlex
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from mydata_like.catalogues.mytardis.http import HttpClient, HttpRequest
from mydata_like.core.errors import RejectedError, SettingsError, UploaderError
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Server
from mydata_like.ssh import dialing, sftp_protocol
from mydata_like.ssh.agent import Agent
from mydata_like.ssh.capabilities import probe
from mydata_like.ssh.session import CommandResult, Endpoint
from mydata_like.ssh.sftp import Sftp
from mydata_like.transfer.ssh.batch_sender import judge
from mydata_like.transfer.ssh.file_replacement import replace_by_shell
from mydata_like.transfer.ssh.remote_shell import RemoteDirs, Shells, read_answer
from mydata_like.transfer.ssh.single_file import PartialFiles
from mydata_like.transfer.worker_messages import Member, RenameTask
from tests.fuzz.target import Parse, Target, plain

MEMBER_NAMES: Final = [b"a", b"b c", b"d"]
ENDLESS: Final = 1 << 30  # zeros that a host sends after the input


class _Answering:
    """A stream on which a host sends the input, and then up to `filling` zeros."""

    blocked_seconds = 0.0

    def __init__(self, said: bytes, filling: int = 0) -> None:
        self._said = io.BytesIO(said)
        self._filling = filling

    def write(self, data: bytes | memoryview) -> None:
        """Ignore the data."""

    def read(self, size: int, least: int = 1) -> bytes:
        return self._said.read(size) or self._fill(size)

    def read_ready(self) -> bytes:
        return self._said.read(1000)

    def finish(self) -> CommandResult:
        output = bytearray()
        while more := self.read(1 << 20):
            dialing.keep_output(ENDPOINT, output, more)
        return CommandResult(0, bytes(output), b"")

    def close(self) -> None:
        """Do nothing."""

    def _fill(self, size: int) -> bytes:
        count = min(size, self._filling)
        self._filling -= count
        return bytes(count)


ENDPOINT: Final = Endpoint("host", 22, "user", Path("key"), Path("known_hosts"))


class _Session:
    """A session in which every command outputs the input."""

    stack = "libssh"
    gcm_only = False
    cipher = ""

    def __init__(self, said: bytes) -> None:
        self._said = said

    def start(self, command: bytes) -> _Answering:
        return _Answering(self._said)

    def run(self, command: bytes, stdin: bytes = b"") -> CommandResult:
        return CommandResult(0, self._said, b"")

    def open_sftp(self) -> Any:
        raise RejectedError("There is no SFTP.")

    def limit_waits(self, seconds: float) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        """Do nothing."""


def _use_sftp(data: bytes) -> bytes:
    sftp = Sftp(_Answering(data, ENDLESS))
    sftp.find_size(b"/a")
    content = sftp.read_file(b"/a")
    sftp_protocol.read_size(sftp.receive())
    return content


def _packet(kind: int, body: bytes) -> bytes:
    return (len(body) + 1).to_bytes(4, "big") + bytes([kind]) + body


GREETING = _packet(
    2, b"\0\0\0\3" + sftp_protocol.pack(b"posix-rename@openssh.com") + sftp_protocol.pack(b"1")
)
ATTRIBUTES = b"\0\0\0\1" + (12).to_bytes(8, "big")
SFTP = GREETING + b"".join(
    _packet(kind, number.to_bytes(4, "big") + body)
    for number, (kind, body) in enumerate(
        (
            (sftp_protocol.ATTRIBUTES, ATTRIBUTES),
            (sftp_protocol.ATTRIBUTES, ATTRIBUTES),
            (sftp_protocol.HANDLE, sftp_protocol.pack(b"h")),
            (sftp_protocol.DATA, sftp_protocol.pack(b"content")),
            (
                sftp_protocol.STATUS,
                b"\0\0\0\1" + sftp_protocol.pack(b"end") + sftp_protocol.pack(b""),
            ),
            (sftp_protocol.STATUS, b"\0\0\0\0" + sftp_protocol.pack(b"") + sftp_protocol.pack(b"")),
            (sftp_protocol.ATTRIBUTES, ATTRIBUTES),
        ),
        1,
    )
)


def _probe(data: bytes) -> object:
    """Probe a host whose shell answers with the input after our own nonce."""
    session = _Session(data)

    def start(command: bytes) -> _Answering:
        return _Echoing(data)

    session.start = start  # type: ignore[method-assign]
    return probe(lambda: session, b"/data")


class _Echoing(_Answering):
    """A stream that answers a probe with the nonce it received, and the input."""

    def write(self, data: bytes | memoryview) -> None:
        words = shlex.split(bytes(data).partition(b"\n")[0].decode("latin-1"))
        nonce = words[words.index("printf") + 2].removesuffix(";").encode()
        self._said = io.BytesIO(b"\n" + nonce + b"\n" + self._said.getvalue())


MEMBER: Final = Member(b"/a", 20_000_000, 1, 1, 1, b"a/b")


def _find_parts(data: bytes) -> object:
    parts = PartialFiles(RemoteDirs(Shells(_Session(data)), b"/data"))
    return parts.find(MEMBER, lambda *_: None) or True


def _replace(data: bytes) -> object:
    moves = [RenameTask(b"a", b"b", 1), RenameTask(b"c", b"", 1)]
    return replace_by_shell(Shells(_Session(data)), b"/data", moves)


def _read_answer(data: bytes) -> object:
    return read_answer(_Answering(data)) or True


def _open_agent(folder: Path) -> Parse:
    """Request keys and a signature from an SSH agent that answers with the input."""
    path = folder / "s"

    def parse(data: bytes) -> object:
        with suppress(FileNotFoundError):
            path.unlink()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            thread = threading.Thread(target=_answer, args=(listener, data))
            thread.start()
            try:
                with closing(Agent(str(path), 2.0)) as agent:
                    return agent.sign(agent.keys[0], b"data", "") if agent.keys else True
            finally:
                thread.join()

    return parse


def _answer(listener: socket.socket, data: bytes) -> None:
    """Send the input to the first client after its first request."""
    connection, _ = listener.accept()
    with connection, suppress(OSError):
        connection.settimeout(2)
        connection.recv(1 << 16)
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass


def _open_http(folder: Path) -> Parse:
    """Send a request to a loopback server that answers with the bytes of the input."""

    def parse(data: bytes) -> object:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=_answer, args=(listener, data))
            thread.start()
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            wire = HttpClient(
                Server(url=url, read_timeout=2.0), "key", SystemClock(), threading.Event()
            )
            try:
                return wire.exchange(HttpRequest("GET", "dataset/"))
            finally:
                wire.close()
                thread.join()

    return parse


REPLY: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
KEY: Final = sftp_protocol.pack(sftp_protocol.pack(b"ssh-ed25519") + sftp_protocol.pack(bytes(32)))
AGENT: Final = sftp_protocol.pack(b"\x0c\0\0\0\1" + KEY + sftp_protocol.pack(b"a comment")) + (
    sftp_protocol.pack(b"\x0e" + sftp_protocol.pack(sftp_protocol.pack(b"ssh-ed25519") + bytes(68)))
)
FACTS: Final = b"""extracted 4096
tar tar (GNU tar) 1.34
md5 md5sum
sha256 sha256sum
zstd mydata
cpus 8
"""


def _list_all() -> list[Target]:
    def target(name: str, open_it: Callable[[Path], Parse], *samples: bytes) -> Target:
        return Target(name=name, samples=samples, open=open_it, declared=(UploaderError,))

    return [
        Target(
            name="SFTP",
            samples=(SFTP,),
            others=(GREETING, b"\xff\xff\xff\xff\2\0\0\0\3", b"Welcome to this host!\n"),
            open=plain(_use_sftp),
            declared=(UploaderError,),
        ),
        Target(
            name="tar on the host",
            samples=(b"a\nb c\nd\n",),
            others=(b"x a\nx b c\ntar: d: Cannot open: No space left on device\n",),
            open=plain(lambda data: judge(MEMBER_NAMES, data, 2, "GNU")),
            declared=(UploaderError,),
        ),
        target("probe of a host", plain(_probe), FACTS),
        target("parts on a host", plain(_find_parts), b"mydata:.mydata-0.part:12345\n"),
        target("renaming on a host", plain(_replace), b"mydata:0:moved\nmydata:1:gone\n"),
        target("answers of a shell", plain(_read_answer), b"Welcome\nmydata:ready\n"),
        Target(
            name="SSH agent",
            samples=(AGENT,),
            others=(sftp_protocol.pack(b"\5"), sftp_protocol.pack(b"\x0c\xff\xff\xff\xff")),
            open=_open_agent,
            declared=(OSError, SettingsError),
            slow=True,
        ),
        Target(
            name="HTTP replies",
            samples=(
                REPLY + b"Content-Length: 2\r\n\r\n{}",
                REPLY + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            ),
            others=(
                REPLY + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00",
                b"HTTP/1.1 100 Continue\r\n\r\n",
                REPLY + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
                REPLY + b"Transfer-Encoding: chunked\r\n\r\n-" + b"f" * 40 + b"\r\n{}\r\n",
            ),
            open=_open_http,
            declared=(UploaderError,),
            slow=True,
        ),
    ]


TARGETS: Final = tuple(_list_all())
