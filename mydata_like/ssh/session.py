"""The interface of an SSH session and its streams, and the algorithms that are offered."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from mydata_like.core.errors import RejectedError
from mydata_like.settings.values import CIPHERS
from mydata_like.ssh.credentials import LoginCredentials

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
    "diffie-hellman-group18-sha512",
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
    """Return the signature algorithms for a host key of this type."""
    if key_type == "ssh-rsa":
        return _OF_RSA
    return (key_type,) if key_type in HOST_KEYS else ()


def prefer(key_types: tuple[str, ...]) -> tuple[str, ...]:
    """Return all host key algorithms, those of the given types first."""
    first = tuple(name for key_type in key_types for name in signatures(key_type))
    return tuple(dict.fromkeys(first + HOST_KEYS))


class UserKnownHosts(NamedTuple):
    """The user's own known_hosts file of OpenSSH, and the name of a host in it."""

    file: Path
    name: str


class Endpoint(NamedTuple):
    """The host, account and keys of a session; small enough to be pickled.

    `host_keys` are pinned fingerprints (`SHA256:...`). Without any, the host's key must be in
    `known_hosts` or `also_trusted`. `pinned_by_server` tells them from those of the settings.
    With `user_known_hosts`, they come from there, and the hints are those of `copy`. A `revoked`
    fingerprint is never trusted.
    A host that accepts no key asks instead; the `credentials` have what the user has typed.
    `inward` are the ciphers allowed for received data, if they are others than `ciphers`. With
    `receives_much`, paramiko is preferred, which takes less processor time for that. Timeouts are
    in seconds; `stall_timeout` limits every wait without progress.
    """

    host: str
    port: int
    username: str
    key_file: Path
    known_hosts: Path
    host_keys: tuple[str, ...] = ()
    pinned_by_server: bool = False
    also_trusted: tuple[str, ...] = ()
    ciphers: tuple[str, ...] = ()
    inward: tuple[str, ...] = ()
    connect_timeout: float = 10.0
    stall_timeout: float = 60.0
    stack: str = "auto"  # "auto", "libssh" or "paramiko"
    receives_much: bool = False
    agent: str = ""  # the socket of an agent that may have our key
    any_key: bool = False  # also try all other keys of the agent
    via: "Endpoint | None" = None  # the jump host before this one
    user_known_hosts: UserKnownHosts | None = None
    revoked: tuple[str, ...] = ()
    keyless: bool = False
    credentials: LoginCredentials | None = None

    @property
    def account(self) -> str:
        """The account, as it is named in questions."""
        return f"{self.username}@{self.host}" + (f":{self.port}" if self.port != 22 else "")

    @property
    def way(self) -> tuple["Endpoint", ...]:
        """The hosts of all logins in their order, this one last."""
        return (*(self.via.way if self.via else ()), self)

    @property
    def allowed_inward(self) -> tuple[str, ...]:
        """The ciphers that are allowed for received data."""
        return self.inward or self.ciphers or CIPHERS


class CommandResult(NamedTuple):
    """The result of a remote command; `status` is None if the server did not send one."""

    status: int | None
    output: bytes
    errors: bytes


class Stream(Protocol):
    """A running remote command: input is written to it while its output is read.

    Every method raises `TransientError` if the connection breaks or there is no progress for the
    endpoint's stall timeout. The session is unusable after that.
    """

    @property
    def blocked_seconds(self) -> float:
        """Total seconds that writing has waited for the command to read its input."""

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`; output that arrives in the meantime is kept and never blocks."""

    def read(self, size: int, least: int = 1) -> bytes:
        """Wait for output and return at most `size` bytes of it; empty at its end.

        If `least` bytes will come, to wait for as many can take less processor time.
        """

    def read_ready(self) -> bytes:
        """Return the output that has arrived, without waiting; possibly nothing."""

    def finish(self) -> CommandResult:
        """Close the standard input and wait for the end; the result has the unread output."""

    def close(self) -> None:
        """Close the stream without waiting."""


class RemoteFile(Protocol):
    """A file opened by SFTP for writing; writes are pipelined."""

    def move_to(self, offset: int) -> None:
        """Set the offset of the next write."""

    def write(self, data: bytes | memoryview) -> None: ...

    def close(self) -> None:
        """Wait until the server has acknowledged every write; raises as `Stream` does."""


class SmallFile(NamedTuple):
    """A small file that is written to a temporary name and renamed when it is complete.

    If `part` is `target`, it is not renamed.
    """

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
    """File operations over SFTP; paths are bytes.

    Refusals raise `RejectedError`. `TransientError` means that the server ended SFTP or the
    connection broke.
    """

    @property
    def round_trip(self) -> float:
        """The shortest response time so far in seconds."""

    def put_all(self, puts: Iterable[SmallFile]) -> Iterator[tuple[int, RejectedError | None]]:
        """Write small files, many in flight at once; yield the index and error of each.

        Files are taken from `puts` as earlier ones finish. A refused file leaves nothing behind.
        """

    def open_file(self, path: bytes, *, keep: bool = False) -> RemoteFile:
        """Open a file for writing at its start; it is truncated unless `keep` is set."""

    def read_file(self, path: bytes) -> bytes:
        """Return the content of a small file; empty if it does not exist."""

    def make_directories(self, path: bytes, mode: int) -> None: ...

    def find_size(self, path: bytes) -> int | None: ...

    def find_modified(self, path: bytes) -> int:
        """Return the modification time of a file, in seconds since 1970 by the server's clock."""

    def find_free(self, path: bytes) -> int | None:
        """Return the bytes that are free for new files below a path; None if not known."""

    def list_files(self, path: bytes) -> list[RemoteEntry]:
        """Return the regular files of a directory."""

    def replace(self, source: bytes, target: bytes) -> None:
        """Rename and replace `target` (posix-rename if the server supports it)."""

    def link(self, source: bytes, target: bytes) -> bool:
        """Give a file a second name that does not exist yet; return whether the server did."""

    def set_attributes(self, path: bytes, *, mode: int, modified: float) -> bool:
        """Set a file's mode and modification time; return whether the server does that."""

    def remove(self, path: bytes) -> None:
        """Remove a file; a missing file is not an error."""

    def remove_directory(self, path: bytes) -> None:
        """Remove a directory, which may have to be empty; a missing one is not an error."""

    def close(self) -> None:
        """Close the SFTP session without waiting; the SSH session stays open."""


class SshSession(Protocol):
    """An authenticated SSH connection to a host whose key was checked."""

    @property
    def stack(self) -> str:
        """`libssh` or `paramiko`."""

    @property
    def cipher(self) -> str:
        """The negotiated cipher for sent data."""

    @property
    def network_round_trip(self) -> float | None:
        """The shortest round trip to the host's kernel, or to a proxy, in seconds, if known."""

    def start(self, command: bytes) -> Stream:
        """Start a remote command; raises `TransientError` if no channel is granted."""

    def run(self, command: bytes, stdin: bytes = b"") -> CommandResult:
        """Run a remote command until it ends."""

    def open_sftp(self) -> SftpSession:
        """Open the SFTP subsystem; raises `RejectedError` if it is refused."""

    def close(self) -> None:
        """Close the connection; can be called repeatedly, at any time, from any thread."""


class SessionWriter(Protocol):
    """Writes to several streams of a session at once."""

    @property
    def blocked_seconds(self) -> float:
        """Total seconds that `write_some` has waited for commands to read their input."""

    def write_some(
        self, pieces: Sequence[tuple[Stream, bytes]], moved: float | None = None
    ) -> list[int | None]:
        """Write as much of each piece as its command can be sent now, to streams of this session.

        Return the sizes, None for an ended command. If nothing can be written, this waits briefly,
        given the monotonic time at which bytes have last `moved`. Raises `TransientError` if the
        connection breaks, or if that was longer ago than the stall timeout.
        """


class OpenSession(SshSession, SessionWriter, Protocol):
    """A session as it was opened, whose channels are not limited in bandwidth yet."""

    @property
    def gcm_only(self) -> bool:
        """Whether paramiko is used because libssh would not check what the host sends."""

    def run_ahead(self) -> None:
        """Wait neither for the channel nor for the start of a command at a far host, if possible.

        The time of a start then says nothing about the host's distance.
        """

    def limit_waits(self, seconds: float) -> AbstractContextManager[None]:
        """Reduce the stall timeout to `seconds` in this context."""
