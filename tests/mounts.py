"""File systems that only one command sees mounted, where the system lets us mount any."""

import shutil
import subprocess

import pytest

# The words before a command that may mount what it likes, seen by nobody else.
MOUNTS = ("unshare", "--user", "--map-root-user", "--mount")


def _may_mount() -> bool:
    words = [*MOUNTS, "mount", "-t", "tmpfs", "none", "/mnt"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(words, check=False, capture_output=True).returncode == 0
    )


needs_mounts = pytest.mark.skipif(not _may_mount(), reason="the system lets us mount nothing")
