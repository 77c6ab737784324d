"""A complete demonstration in one folder: server, staging host, sample data and settings."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from mydata_like.core.errors import SettingsError
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.fixtures import FACILITY, make_samples
from mydata_like.demo.invariants import FileKey
from mydata_like.demo.ssh_servers import AsyncSshd, PrivateSshd
from mydata_like.demo.uploaders import ScpAddress
from mydata_like.ssh.keys import PublicKey, create_key


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSite:
    """A running demonstration: its folder, its servers and its sample data."""

    folder: Path
    server: EmbeddedServer
    sshd: PrivateSshd | AsyncSshd
    data: Path

    @property
    def key_file(self) -> Path:
        """The uploader's private key, which the staging host accepts."""
        return self.folder / "ssh" / "id_ed25519"

    def settings(self) -> dict[str, dict[str, object]]:
        """Return the settings for uploading the sample data, without the API key."""
        return {
            "server": {"url": self.server.url, "username": self.server.username},
            "instrument": {
                "name": "Demo microscope",
                "facility": FACILITY,
                "contact_name": "Demo Person",
                "contact_email": "demo@example.org",
                "uuid": str(uuid.uuid4()),
            },
            "data": {"directory": str(self.data)},
            "transfer": {
                "host_keys": [self.sshd.fingerprint],
                "key_file": str(self.key_file),
            },
            "advanced": {"state_directory": str(self.folder / "state"), "verify_interval": 0.5},
        }

    def write_settings(self, file: Path) -> None:
        """Write the settings, and the API key into a file next to them for `--config`."""
        file.write_text(tomlkit.dumps(self.settings()), encoding="utf-8")
        secrets = file.with_name("secrets.toml")
        secrets.unlink(missing_ok=True)
        secrets.touch(mode=0o600)
        secrets.write_text(
            tomlkit.dumps({self.server.url: {self.server.username: self.server.api_key}}),
            encoding="utf-8",
        )

    def expected_files(self) -> dict[FileKey, Path]:
        """Return every sample file by its dataset, directory and name on the server."""
        expected = {}
        for path in self.data.glob("*/*/**/*"):
            if path.is_file() and not path.is_symlink():
                _, dataset, *directory, name = path.relative_to(self.data).parts
                expected[dataset, "/".join(directory), name] = path
        return expected

    def find_losses(self) -> list[str]:
        """Compare all sample data with the server's disk, byte by byte; return the differences."""
        return self.server.check_invariants(self.expected_files())


@contextmanager
def open_demo() -> Iterator[DemoSite]:
    """Start a demonstration in a temporary folder, and remove the folder at the end."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="mydata-like-demo-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        make_samples(folder / "data")
        yield stack.enter_context(start_site(folder, admits=True))


@contextmanager
def start_site(
    folder: Path,
    *,
    auto_approve: bool = True,
    admits: bool = False,
    sshd: PrivateSshd | AsyncSshd | None = None,
) -> Iterator[DemoSite]:
    """Start server and staging host in a folder whose subfolder `data` is uploaded.

    Without `sshd`, the staging host is OpenSSH's server, or if that is missing an `AsyncSshd`,
    which offers only SFTP and scp. With `admits`, it accepts every key that the server approves at
    once, as if its administrator had added it.
    """
    with ExitStack() as stack:
        sshd = sshd or _find_sshd(folder / "sshd")
        stack.enter_context(sshd)
        accepting = sshd

        def admit(line: str) -> None:
            with suppress(ValueError):  # not a key: its logins are refused
                accepting.authorize(PublicKey.parse(line))

        server = stack.enter_context(
            EmbeddedServer(
                folder / "server", auto_approve=auto_approve, admit=admit if admits else None
            )
        )
        server.set_address(ScpAddress(sshd.username, sshd.host, sshd.port, (sshd.fingerprint,)))
        place = DemoSite(folder=folder, server=server, sshd=sshd, data=folder / "data")
        sshd.authorize(create_key(place.key_file).public)
        yield place


def _find_sshd(folder: Path) -> PrivateSshd | AsyncSshd:
    if os.name == "nt":  # OpenSSH of Windows needs an administrator
        return AsyncSshd(folder)
    try:
        return PrivateSshd(folder)
    except SettingsError:
        return AsyncSshd(folder)
