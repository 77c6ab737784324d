"""A staging area behind a real SSH server, and payloads for it."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath

import pytest
import tomlkit

from mydata_like.core.events import Event
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import Dataset, DatasetId, FileRecord, Payload, StagingArea
from mydata_like.settings.schema import Transfer
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.keys import create_key
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.destination import StagingDestination
from mydata_like.transfer.folder.folder_session import FolderDestination
from mydata_like.transfer.folder.staging_folder import MARKER, StagingFolder
from mydata_like.transfer.pool import StagingTransport
from mydata_like.transfer.ssh.endpoints import build_hosts
from mydata_like.transfer.ssh.staging_host import StagingHost
from tests.openssh import from_host, on_host, open_ssh, run_on_host
from tests.site import Site
from tests.sshd_fixture import script

DATASET = Dataset(DatasetId(1), "set")

# Keeps start-up files of a login shell from running, which would affect measurements and tests.
_QUIET = "SetEnv SHLVL=3"
_ONLY_SCP = """\
case "$SSH_ORIGINAL_COMMAND" in
  scp\\ *) exec $SSH_ORIGINAL_COMMAND ;;
esac
echo "only scp is allowed here" >&2
exit 1
"""


class Staging:
    """An sshd that allows a shell, only scp, or only SFTP, and a key that it accepts.

    Of the kind `folder`, the location is used as a mounted folder, and the sshd only stands by.
    """

    def __init__(self, directory: Path, kind: str = "shell", options: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.events: list[Event] = []
        directory.mkdir(exist_ok=True)
        only_scp = script(directory / "only-scp", _ONLY_SCP)
        limits: dict[str, tuple[str, ...]] = {
            "shell": (),
            "folder": (),
            "sftp": ("ForceCommand internal-sftp",),
            "scp": (f"ForceCommand {only_scp}", "Subsystem sftp /bin/false"),
        }
        self.sshd = open_ssh(directory / "sshd", options=(_QUIET, *limits[kind], *options))
        self._key = create_key(directory / "key")
        self._known_hosts = directory / "known_hosts"
        self.sshd.authorize(self._key.public)

    def __enter__(self) -> "Staging":
        self.sshd.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.sshd.stop()

    def build(
        self, location: PurePath, *, port: int | None = None, memory=None, **settings
    ) -> StagingTransport:
        """Return a transport to `location`, optionally over the port of a proxy."""
        area = StagingArea(
            box="box",
            location=str(location),
            username=self.sshd.username,
            hosts=(self.sshd.host,),
            port=port or self.sshd.port,
            host_keys=(self.sshd.fingerprint,),
        )
        folder = mark_folder(area, from_host(location)) if self.kind == "folder" else None
        transfer = Transfer(**settings)

        def build(area: StagingArea) -> Sequence[StagingDestination]:
            files = {"key_file": self._key.path, "known_hosts": self._known_hosts}
            return [FolderDestination(*folder)] if folder else build_hosts(area, transfer, **files)

        return StagingTransport(
            area,
            transfer,
            build=build,
            emit=self.events.append,
            memory=memory,
        )


def mark_folder(area: StagingArea, folder: Path | None = None) -> StagingFolder:
    """Put the marker into the location of an area, which is mounted as `folder`."""
    here = os.fsencode(folder or area.location)
    marked = StagingFolder(here, area.box, area.location)
    Path(os.fsdecode(marked.below(MARKER))).write_bytes(marked.marker)
    return marked


def use_folder(site: Site, mounted: Path | None = None) -> Path:
    """Let a site write to the location of its storage box as to a mounted folder.

    It may be `mounted` elsewhere.
    """
    location = site.server.box_location
    box = site.server.box_name
    named = "/" + location.as_posix().removeprefix("/")  # as the server names it
    mark_folder(StagingArea(box=box, location=named, username="", hosts=()), location)
    settings = tomlkit.parse(site.config.read_text(encoding="utf-8"))
    settings["transfer"] |= {"method": "folder", "folder": str(mounted or location)}
    site.config.write_text(tomlkit.dumps(settings), encoding="utf-8")
    return location


def build_unreached(area: StagingArea) -> list[StagingHost]:
    """Return the hosts of an area, to which nothing connects."""
    nowhere = Path("none")
    return [
        StagingHost(
            Endpoint(host, area.port, area.username, nowhere, nowhere), os.fsencode(area.location)
        )
        for host in area.hosts
    ]


class Memory:
    """The capabilities of hosts that an earlier run has found; implements `HostMemory`."""

    def __init__(self, **known: HostCapabilities) -> None:
        self.known = known

    def find(self, host: str) -> HostCapabilities | None:
        return self.known.get(host)

    def keep(self, host: str, capabilities: HostCapabilities | None) -> None:
        self.known.pop(host, None)
        if capabilities is not None:
            self.known[host] = capabilities


def wanted(member) -> FileRecord:
    file = LocalFile(member.path, b"", b"", b"", *member[1:5], top=member.top)
    return FileRecord(file, DATASET, os.fsdecode(member.remote))


def single(member) -> Payload:
    return Payload(1, (wanted(member),), batched=False)


@contextmanager
def small_disk(site: Site, size: str = "1m") -> Iterator[None]:
    """Put a small disk over the staging area."""
    there = on_host(site.server.box_location)
    if run_on_host("mount", "-t", "tmpfs", "-o", f"size={size}", "small", there).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        run_on_host("umount", "-l", there).check_returncode()


def fill(site: Site, leave: int = 0) -> None:
    """Fill the disk of the staging area except for some bytes."""
    filler = on_host(site.server.box_location) / "filler"
    words = f"cat /dev/zero > {filler}; truncate -s -{leave} {filler}"
    run_on_host("sh", "-c", words).check_returncode()


def enlarge(site: Site) -> None:
    there = on_host(site.server.box_location)
    run_on_host("mount", "-o", "remount,size=100m", there).check_returncode()
