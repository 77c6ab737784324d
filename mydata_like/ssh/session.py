"""The interface of an SSH session and its streams, and the algorithms that are offered."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from mydata_like.core.errors import RejectedError

CIPHERS: Final = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes256-ctr",
    "chacha20-poly1305@openssh.com",
)
KEY_EXCHANGES: Final = (
    "mlkem768x25519-sha256",
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group-exchange-sha256",
    "diffie-hellman-group14-sha256",
)
MACS: Final = (
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
    "hmac-sha2-256",
    "hmac-sha2-512",
)
HOST_KEYS: Final = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
_OF_RSA: Final = ("rsa-sha2-512", "rsa-sha2-256")


def signatures(key_type: str) -> tuple[str, ...]:
    """Return the algorithms by which a server proves to have a host key of this type."""
    if key_type == "ssh-rsa":
        return _OF_RSA
    return (key_type,) if key_type in HOST_KEYS else ()


def prefer(key_types: tuple[str, ...]) -> tuple[str, ...]:
    """Return all host key algorithms, those of the given types first."""
    first = tuple(name for key_type in key_types for name in signatures(key_type))
    return tuple(dict.fromkeys(first + HOST_KEYS))


class Endpoint(NamedTuple):
    """Where a session goes, as whom, and what is accepted there; small enough to be pickled.

    `host_keys` are pinned fingerprints (`SHA256:...`); when there are none, the key must stand
    in `known_hosts`, or be one of those `also_trusted`. Time limits are seconds; `stall_timeout`
    bounds every wait in which no byte moves.
    """

    host: str
    port: int
    username: str
    key_file: Path
    known_hosts: Path
    host_keys: tuple[str, ...] = ()
    also_trusted: tuple[str, ...] = ()
    ciphers: tuple[str, ...] = ()
    connect_timeout: float = 10.0
    stall_timeout: float = 60.0
    stack: str = "auto"  # "auto", "libssh" or "paramiko"
    agent: str = ""  # the socket of an agent that may hold our key
    any_key: bool = False  # let in also by any other key that the agent has
    via: "Endpoint | None" = None  # the host through which this one is reached

    @property
    def way(self) -> tuple["Endpoint", ...]:
        """The hosts that are logged in to one after the other, this one last."""
        return (*(self.via.way if self.via else ()), self)


class CommandResult(NamedTuple):
    """How a remote command ended; `status` is None where the server did not say."""

    status: int | None
    output: bytes
    errors: bytes


class Stream(Protocol):
    """A remote command at work: its standard input is written, its output drained meanwhile.

    Every method raises `TransientError` when the line breaks or no byte moves for the
    endpoint's stall timeout; the session is useless from then on.
    """

    @property
    def shut(self) -> float:
        """Seconds that writing has waited in all because the command had to take more first."""

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`; output that arrives meanwhile is kept, never left to block."""

    def read(self, size: int) -> bytes:
        """Wait for output and return at most `size` bytes of it; empty at its end."""

    def read_ready(self) -> bytes:
        """Return the output that has arrived, without waiting; possibly nothing."""

    def finish(self) -> CommandResult:
        """Close the standard input, wait for the end; `output` is what was not read before."""

    def close(self) -> None:
        """Drop the stream without waiting."""


class RemoteFile(Protocol):
    """A file opened by SFTP for writing; writes are pipelined."""

    def move_to(self, offset: int) -> None:
        """Write at this place from now on."""

    def write(self, data: bytes | memoryview) -> None: ...

    def close(self) -> None:
        """Wait until the server has answered every write; raises as `Stream` does."""


class SmallFile(NamedTuple):
    """A small file to be written under a name, and renamed once all of it is there."""

    part: bytes
    target: bytes
    content: bytes
    mode: int
    modified: float


class RemoteEntry(NamedTuple):
    """A file of a directory; `modified` is seconds since 1970 by the server's clock."""

    name: bytes
    size: int
    modified: int


class SftpSession(Protocol):
    """File operations by SFTP; paths are bytes.

    Refusals raise `RejectedError`; `TransientError` means that the server or the line has ended.
    """

    @property
    def round_trip(self) -> float:
        """Seconds, the shortest that an answer has needed."""

    def put_all(self, puts: Iterable[SmallFile]) -> Iterator[tuple[int, RejectedError | None]]:
        """Write small files, many under way at once; yield what became of each, by its place.

        The next ones are taken when there is room for them. One that is refused leaves nothing.
        """

    def open_file(self, path: bytes, *, keep: bool = False) -> RemoteFile:
        """Open a file for writing at its start, emptied unless what it holds is to be kept."""

    def read_file(self, path: bytes) -> bytes:
        """Return what a small file holds; nothing where there is none."""

    def make_directories(self, path: bytes, mode: int) -> None: ...

    def find_size(self, path: bytes) -> int | None: ...

    def find_modified(self, path: bytes) -> int:
        """Return when a file was last changed, in seconds since 1970 by the server's clock."""

    def list_files(self, path: bytes) -> list[RemoteEntry]:
        """Return the plain files of a directory."""

    def replace(self, source: bytes, target: bytes) -> None:
        """Rename over whatever `target` was (posix-rename where the server has it)."""

    def set_attributes(self, path: bytes, *, mode: int, modified: float) -> None: ...

    def remove(self, path: bytes) -> None:
        """Remove a file; its absence is not an error."""

    def close(self) -> None:
        """Drop the SFTP session without waiting; the SSH session stays."""


class SshSession(Protocol):
    """One authenticated SSH connection to a host whose key was checked."""

    @property
    def stack(self) -> str:
        """`libssh` or `paramiko`."""

    @property
    def cipher(self) -> str:
        """The cipher agreed on for what we send."""

    def start(self, command: bytes) -> Stream:
        """Start a remote command; raises `TransientError` where no channel is granted."""

    def run(self, command: bytes, stdin: bytes = b"") -> CommandResult:
        """Run a remote command to its end."""

    def open_sftp(self) -> SftpSession:
        """Open the SFTP subsystem; raises `RejectedError` where refused."""

    def close(self) -> None:
        """Close the connection; can be called repeatedly, at any time, from any thread."""
