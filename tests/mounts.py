"""Mounts, in a private namespace of one command or by sshfs, if the system allows them."""

import os
import shutil
import signal
import subprocess
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
