"""Private SSH servers on loopback: OpenSSH, or asyncssh if OpenSSH is missing."""

import asyncio
import getpass
import logging
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, Self

import asyncssh
import psutil

from mydata_like.core.errors import ServerUnavailableError, SettingsError
from mydata_like.ssh.keys import PublicKey, create_key, load_key

_HOST: Final = "127.0.0.1"
_ELSEWHERE: Final = "/usr/sbin:/usr/local/sbin:/sbin"  # not on every user's PATH
_ATTEMPTS: Final = 200  # to reach a server that starts
_PAUSE: Final = 0.05  # seconds between two attempts
_PRIVILEGE_SEPARATION: Final = Path("/run/sshd")

# HOME: keeps the user's login scripts from changing what the server does.
_CONFIG: Final = """\
ListenAddress [{host}]:{port}
HostKey "{host_key}"
AuthorizedKeysFile "{authorized_keys}"
PidFile none
UsePAM no
StrictModes no
UseDNS no
PrintMotd no
PrintLastLog no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
MaxSessions 100
Subsystem sftp internal-sftp
SetEnv "HOME={home}"
"""


class PrivateSshd:
    """OpenSSH's sshd, run as the current user in a separate directory.

    `options` are configuration lines that replace the default lines of the same keyword. `port` 0
    uses any free port. The server runs within its context, or from `start` to `stop`.
    """

    def __init__(
        self, directory: Path, *, options: Sequence[str] = (), host: str = _HOST, port: int = 0
    ) -> None:
        self._directory = directory
        self._options = tuple(options)
        program = shutil.which("sshd") or shutil.which("sshd", path=_ELSEWHERE)
        if program is None:
            raise SettingsError(
                "OpenSSH's server is not installed.",
                hint="Install the package openssh-server.",
                code="demo.no-sshd",
            )
        try:
            self.username = getpass.getuser()
        except (KeyError, OSError) as error:
            raise SettingsError(
                "OpenSSH's server lets nobody in without an account that has a name.",
                hint="Start it as a user of this computer.",
                code="demo.no-sshd",
            ) from error
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._authorized_keys = directory / "authorized_keys"
        self._log = directory / "sshd.log"
        self._host_keys = 0
        directory.mkdir(parents=True, exist_ok=True)
        self._authorized_keys.touch(mode=0o600)
        self._host_key = self._create_host_key()
        self.host = host
        with closing(socket.socket()) as free:
            free.bind((_HOST, 0))
            self.port: int = port or free.getsockname()[1]

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the host key, `SHA256:...`."""
        return self.host_key.fingerprint

    @property
    def host_key(self) -> PublicKey:
        return load_key(self._host_key).public

    @property
    def session_pids(self) -> list[int]:
        """The processes of the current connections; some have one with the user's rights, too."""
        if self._process is None:
            return []
        family = psutil.Process(self._process.pid).children(recursive=True)
        return [child.pid for child in family if _is_session(child)]

    @property
    def log(self) -> str:
        """The server's log."""
        return self._log.read_text(errors="backslashreplace")

    def authorize(self, key: PublicKey) -> None:
        """Allow logins with this key."""
        with self._authorized_keys.open("a") as file:
            file.write(key.line() + "\n")

    def forbid_all(self) -> None:
        """Remove all authorized keys; new logins are refused."""
        self._authorized_keys.write_text("")

    def start(self) -> None:
        """Start listening. Raises `ServerUnavailableError` with the last line of sshd's log."""
        if os.geteuid() == 0:
            _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        config = self._directory / "sshd_config"
        standard = _CONFIG.format(
            host=self.host,
            port=self.port,
            host_key=self._host_key,
            authorized_keys=self._authorized_keys,
            home=self._directory,
        )
        given = {line.split()[0].lower() for line in self._options}
        others = [line for line in standard.splitlines() if line.split()[0].lower() not in given]
        config.write_text("\n".join([*self._options, *others]) + "\n")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - a fixed program with our own file
                [self._program, "-D", "-e", "-f", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
            )
        self._wait(self._process)

    def stop(self) -> None:
        """Kill the server and all its connections."""
        process, self._process = self._process, None
        if process is None:
            return
        listener = psutil.Process(process.pid)
        family = [*listener.children(recursive=True), listener]
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        process.wait()

    def restart(self, *, new_host_key: bool = False, announce: Callable[[], object] = bool) -> None:
        """Stop and start again on the same port, optionally with a new host key.

        `announce` is called when the key is known, before anybody meets it.
        """
        self.stop()
        if new_host_key:
            self._host_key = self._create_host_key()
        announce()
        self.start()

    def kill_sessions(self) -> None:
        """Kill the processes of all connections; the listener continues."""
        for pid in self.session_pids:
            with suppress(ProcessLookupError):  # some end with others
                os.kill(pid, signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _create_host_key(self) -> Path:
        self._host_keys += 1
        return create_key(self._directory / f"host_key_{os.getpid()}_{self._host_keys}").path

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait until the server sends its SSH banner."""
        for _ in range(_ATTEMPTS):
            if _greets(self.host, self.port):
                return
            try:
                process.wait(_PAUSE)
            except subprocess.TimeoutExpired:
                continue
            break
        self.stop()
        reason = self.log.strip().rpartition("\n")[2]
        raise ServerUnavailableError(
            f"The private SSH server did not start: {reason}", code="demo.sshd"
        )


def _is_session(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.name().startswith("sshd") and "internal-sftp" not in " ".join(
            process.cmdline()
        )
    return False


def _greets(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=5) as caller:
            return caller.recv(4) == b"SSH-"
    except OSError:
        return False


# Errors of a connection are reported by the client.
logging.getLogger("asyncssh").setLevel(logging.CRITICAL)
_ASYNCSSH_TIMEOUT: Final = 20.0  # seconds for the server to start or to stop


class AsyncSshd:
    """An SSH server within this process, with the interface of `PrivateSshd`.

    It allows the given ciphers and MACs, or those that asyncssh allows.
    """

    def __init__(
        self, directory: Path, *, ciphers: Sequence[str] = (), macs: Sequence[str] = ()
    ) -> None:
        self._algorithms = {"encryption_algs": tuple(ciphers), "mac_algs": tuple(macs)}
        directory.mkdir(parents=True, exist_ok=True)
        key = create_key(directory / f"host_key_{os.getpid()}_{os.urandom(4).hex()}")
        self._key_file = key.path
        self._authorized: set[bytes] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self.host_key = key.public
        self.host = _HOST
        self.port = 0  # chosen when it starts
        self.username = "demo"

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the host key, `SHA256:...`."""
        return self.host_key.fingerprint

    def authorize(self, key: PublicKey) -> None:
        """Allow logins with this key."""
        self._authorized.add(key.blob)

    def forbid_all(self) -> None:
        """Remove all authorized keys; new logins are refused."""
        self._authorized.clear()

    def start(self) -> None:
        """Start listening; a restart uses the same port."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="demo-ssh", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_ASYNCSSH_TIMEOUT)

    def stop(self) -> None:
        """Stop the server and abort all its connections."""
        loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._end(), loop).result(_ASYNCSSH_TIMEOUT)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(_ASYNCSSH_TIMEOUT)
        loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def _listen(self) -> None:
        self._acceptor = await asyncssh.create_server(
            lambda: _Gate(self.username, self._authorized, self._connections),
            self.host,
            self.port,
            server_host_keys=[str(self._key_file)],
            sftp_factory=True,
            allow_scp=True,
            reuse_address=True,
            **{name: names for name, names in self._algorithms.items() if names},
        )
        self.port = self._acceptor.get_port()

    async def _end(self) -> None:
        assert self._acceptor is not None
        self._acceptor.close()
        for connection in tuple(self._connections):
            connection.abort()
        await self._acceptor.wait_closed()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class _Gate(asyncssh.SSHServer):
    """An authentication that accepts one user, by public key only."""

    def __init__(
        self, username: str, keys: set[bytes], connections: set[asyncssh.SSHServerConnection]
    ) -> None:
        self._username = username
        self._keys = keys
        self._connections = connections
        self._own: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._own = conn
        self._connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._own is not None:
            self._connections.discard(self._own)

    def begin_auth(self, username: str) -> bool:
        return True  # authentication is always required

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == self._username and key.public_data in self._keys
