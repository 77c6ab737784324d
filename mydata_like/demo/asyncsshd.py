"""The demo's SSH endpoint where OpenSSH's server is not installed: SFTP and scp, no shell."""

import asyncio
import getpass
import logging
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import asyncssh

from mydata_like.ssh.keys import PublicKey, create_key

# What happens on a connection is the client's to tell.
logging.getLogger("asyncssh").setLevel(logging.CRITICAL)

_HOST: Final = "127.0.0.1"
_PATIENCE: Final = 20.0  # seconds for the server to start or to stop


class AsyncSshd:
    """An SSH server within this process, used as `PrivateSshd` is."""

    def __init__(self, directory: Path) -> None:
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
        self.username = getpass.getuser()

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the host key, `SHA256:...`."""
        return self.host_key.fingerprint

    def authorize(self, key: PublicKey) -> None:
        """Let whoever has this key in."""
        self._authorized.add(key.blob)

    def forbid_all(self) -> None:
        """Let nobody in from now on."""
        self._authorized.clear()

    def start(self) -> None:
        """Start listening, always on the same port."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="demo-ssh", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_PATIENCE)

    def stop(self) -> None:
        """End the server and all its connections."""
        loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._end(), loop).result(_PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(_PATIENCE)
        loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
    """Lets one user in, by public key only."""

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
        return True  # nobody comes in without

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == self._username and key.public_data in self._keys
