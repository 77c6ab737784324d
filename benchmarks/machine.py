"""Facts about the machine and the programs, which the figures depend on."""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from mydata_like import __version__

_VERSIONS = {
    "ssh, scp": ["ssh", "-V"],
    "sshd": ["sshd", "-V"],
    "tar": ["tar", "--version"],
    "rsync": ["rsync", "--version"],
    "lftp": ["lftp", "--version"],
    "rclone": ["rclone", "--version"],
    "md5sum": ["md5sum", "--version"],
}
_PACKAGES = ("ssh-python", "paramiko")


def describe_machine(directory: Path) -> dict[str, str]:
    """Return the facts that the figures depend on; `directory` has the test data."""
    return {
        "processor": _processor(),
        "cores": f"{psutil.cpu_count()} (usable: {len(os.sched_getaffinity(0))})",
        "memory": f"{psutil.virtual_memory().total / 1e9:.0f} GB",
        "system": platform.platform(),
        "storage": f"{directory} ({_file_system(directory)})",
        "load before": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        # Whose build it is matters: many are made without optimisation.
        "Python": f"{platform.python_version()} of {sys.base_prefix}",
        "mydata-like": _revision(),
        **{name: _package(name) for name in _PACKAGES},
        **{name: _first_line(command) for name, command in _VERSIONS.items()},
    }


def is_in_memory(directory: Path) -> bool:
    """Return whether the file system of a directory is in memory."""
    return _file_system(directory) in {"tmpfs", "ramfs"}


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    by_name = {name.strip(): value.strip() for name, value in facts.items()}
    aes = "with" if "aes" in by_name.get("flags", "").split() else "without"
    return f"{by_name.get('model name', platform.machine())}, {aes} AES instructions"


def _file_system(directory: Path) -> str:
    """Return the type of the file system that holds a directory."""
    holding = [
        part
        for part in psutil.disk_partitions(all=True)
        if directory.resolve().is_relative_to(part.mountpoint)
    ]
    return max(holding, key=lambda part: len(part.mountpoint)).fstype if holding else "unknown"


def _package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _revision() -> str:
    """Return our version and, in a checkout, the commit."""
    here = Path(__file__).parent
    described = _first_line(["git", "-C", str(here), "describe", "--always", "--dirty"])
    return f"{__version__} ({described})"


def _first_line(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "missing"
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "OpenSSH" in line]
    lines += (done.stdout + done.stderr).splitlines()
    return lines[0].strip() if lines else "unknown"
