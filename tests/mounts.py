"""Mounts in a private namespace of one command, if the system allows them."""

import shutil
import subprocess

import pytest

# The words before a command that run it in a private mount namespace.
MOUNTS = ("unshare", "--user", "--map-root-user", "--mount")


def _may_mount() -> bool:
    words = [*MOUNTS, "mount", "-t", "tmpfs", "none", "/mnt"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(words, check=False, capture_output=True).returncode == 0
    )


needs_mounts = pytest.mark.skipif(not _may_mount(), reason="mounting is not permitted")
