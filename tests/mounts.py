"""Mounts, in a private namespace of one command or by sshfs, if the system allows them."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from mydata_like.demo.ssh_servers import PrivateSshd

# The words before a command that run it in a private mount namespace.
MOUNTS = ("unshare", "--user", "--map-root-user", "--mount")


def _may_mount() -> bool:
    words = [*MOUNTS, "mount", "-t", "tmpfs", "none", "/mnt"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(words, check=False, capture_output=True).returncode == 0
    )


needs_mounts = pytest.mark.skipif(not _may_mount(), reason="mounting is not permitted")


def _may_use_sshfs() -> bool:
    return shutil.which("sshfs") is not None and os.access("/dev/fuse", os.R_OK | os.W_OK)


needs_sshfs = pytest.mark.skipif(
    not _may_use_sshfs(), reason="sshfs is not installed, or this account may not use /dev/fuse"
)


class SshfsMount:
    """A folder of a host, mounted by sshfs, whose process can be killed and paused."""

    def __init__(self, sshd: PrivateSshd, key_file: Path, source: Path, target: Path) -> None:
        options = {
            "port": str(sshd.port),
            "IdentityFile": str(key_file),
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        self._command = [
            "sshfs",
            "-f",
            *words,
            f"{sshd.username}@{sshd.host}:{source}",
            str(target),
        ]
        self.target = target
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "SshfsMount":
        self.mount()
        return self

    def __exit__(self, *_: object) -> None:
        self.unmount()

    def mount(self) -> None:
        """Mount the folder, and wait until that is done."""
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        while not os.path.ismount(self.target):
            assert self._process.poll() is None
            os.sched_yield()

    def kill(self) -> None:
        """Kill the process; the folder stays mounted, and every access to it fails."""
        assert self._process
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Pause the process: who accesses the folder now waits, and cannot be killed."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue a paused process."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def unmount(self) -> None:
        """Unmount the folder, also if it is in use."""
        subprocess.run(["umount", "--lazy", str(self.target)], check=False, capture_output=True)
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


class SmallDisk:
    """A file system of this size (as `mount` reads it) over a folder, which can be enlarged."""

    def __init__(self, folder: Path, size: str) -> None:
        self._folder = folder
        self._size = size

    def __enter__(self) -> "SmallDisk":
        self._mount(f"size={self._size}")
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", self._folder], check=True)

    def enlarge(self) -> None:
        self._mount("remount,size=500m")

    def _mount(self, options: str) -> None:
        words = ["mount", "-t", "tmpfs", "-o", options, "small", str(self._folder)]
        subprocess.run(words, check=True, capture_output=True)


class CableDisk:
    """A disk with ext4 over a folder, which can be pulled and plugged in again. Needs root.

    Its bytes are in a file that is reached by sshfs: the cable. Without it, every access fails.
    """

    def __init__(self, folder: Path, cable: SshfsMount) -> None:
        self._folder = folder
        self._cable = cable
        self._image = cable.target / "disk"
        self._device = ""

    def __enter__(self) -> "CableDisk":
        self._cable.mount()
        with self._image.open("wb") as file:
            file.truncate(64 * 2**20)
        _run("mkfs.ext4", "-q", str(self._image))
        self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        self._unmount()

    def pull(self) -> None:
        """Pull the disk: what was not written to it is lost, and every access fails."""
        self._cable.kill()

    def plug_in(self) -> None:
        """Mount the pulled disk again."""
        self._unmount()
        self._cable.mount()
        self._mount()

    def _mount(self) -> None:
        self._device = _run("losetup", "--find", "--show", str(self._image))
        _run("mount", self._device, str(self._folder))

    def _unmount(self) -> None:
        _run("umount", "--lazy", str(self._folder))
        _run("losetup", "--detach", self._device)
        self._cable.unmount()


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _may_use_disks() -> bool:
    if not (_may_use_sshfs() and shutil.which("mkfs.ext4")):
        return False
    try:
        with tempfile.NamedTemporaryFile() as file:
            os.truncate(file.name, 2**20)
            _run("losetup", "--detach", _run("losetup", "--find", "--show", file.name))
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


needs_disks = pytest.mark.skipif(
    not _may_use_disks(),
    reason="sshfs or mkfs.ext4 is missing, or this account has no loop devices",
)


def may_mount_disks() -> bool:
    """Return whether a `SmallDisk` can be mounted here."""
    try:
        with tempfile.TemporaryDirectory() as folder, SmallDisk(Path(folder), "1m"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


SAMBA = ("smbd", "smbnetfs")
_ADDRESS = "127.0.0.45"  # its own, since smbnetfs knows no other port than 445
_SMB_CONF = """
[global]
server role = standalone server
interfaces = {address}/8
bind interfaces only = yes
smb ports = 445
disable netbios = yes
map to guest = Bad User
guest account = root
private dir = {folder}
lock directory = {folder}
state directory = {folder}
cache directory = {folder}
pid directory = {folder}
ncalrpc dir = {folder}
log file = {folder}/log
load printers = no
[share]
path = {share}
read only = no
guest ok = yes
force user = root
"""


def _may_use_samba() -> bool:
    installed = all(map(shutil.which, SAMBA)) and os.access("/dev/fuse", os.R_OK | os.W_OK)
    return installed and os.geteuid() == 0


needs_samba = pytest.mark.skipif(
    not _may_use_samba(), reason="Samba and smbnetfs are not installed, or this account is not root"
)


class SmbMount:
    """A folder that Samba serves, mounted by smbnetfs over SMB.

    smbnetfs 0.6.3 decodes names as in a URL, so that names with `%20` are others on the server.
    """

    def __init__(self, folder: Path, share: Path) -> None:
        self._mountpoint = folder / "smb"
        self._state = folder / "samba"
        for made in (self._mountpoint, self._state, self._state / ".smb"):
            made.mkdir()
        self._config = self._state / "smb.conf"
        self._config.write_text(
            _SMB_CONF.format(address=_ADDRESS, folder=self._state, share=share), encoding="utf-8"
        )
        self.target = self._mountpoint / _ADDRESS / "share"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "SmbMount":
        self._run("smbd", "--foreground", "--no-process-group", f"--configfile={self._config}")
        environment = os.environ | {"HOME": str(self._state)}
        self._run("smbnetfs", "-f", "-o", "allow_other", self._mountpoint, env=environment)
        while not self._is_served():
            os.sched_yield()
        return self

    def __exit__(self, *_: object) -> None:
        command = ["umount", "--lazy", str(self._mountpoint)]
        subprocess.run(command, check=False, capture_output=True)
        for process in self._processes:
            process.kill()
            process.wait()

    def _is_served(self) -> bool:
        try:
            list(self.target.iterdir())
        except OSError:  # while the server is starting
            return False
        return True

    def _run(self, *words: object, env: dict[str, str] | None = None) -> None:
        quiet = subprocess.DEVNULL
        command = list(map(str, words))
        self._processes.append(subprocess.Popen(command, stdout=quiet, stderr=quiet, env=env))
