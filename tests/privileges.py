"""What this account and this system may do, and what the system has."""

import ctypes
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from mydata_like.transfer.sessions import count_cpus

IS_WINE = sys.platform == "win32" and hasattr(ctypes.windll.ntdll, "wine_get_version")
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def _links_lead_somewhere() -> bool:
    with TemporaryDirectory() as folder:
        link = Path(folder, "link")
        try:
            link.symlink_to(folder)
        except OSError:  # Windows without the privilege
            return False
        return link.exists()


def _cases_differ() -> bool:
    with TemporaryDirectory() as folder:
        Path(folder, "a").touch()
        return not Path(folder, "A").exists()


def _takes_undecodable_names() -> bool:
    with TemporaryDirectory() as folder:
        try:
            Path(folder, "a\udcff").touch()
        except (OSError, UnicodeError):  # macOS; Wine, but not Windows
            return False
    return True


def _has_process_names() -> bool:
    try:
        return bool(psutil.Process().name())
    except OSError:
        return False


def count_descriptors() -> int:
    """Return how many files, pipes and sockets this process has open."""
    process = psutil.Process()
    return process.num_handles() if os.name == "nt" else process.num_fds()


HAS_SSHD = bool(
    "TEST_OPENSSH" in os.environ  # see tests/openssh.py
    if os.name == "nt"
    else shutil.which("sshd") or Path("/usr/sbin/sshd").exists()
)
ROOT = Path.cwd().anchor.replace("\\", "/")  # the start of an absolute path, as in events
HAS_LINKS = _links_lead_somewhere()
needs_two_processors = pytest.mark.skipif(
    count_cpus() < 2, reason="a near host gets one session for each processor"
)
needs_links = pytest.mark.skipif(
    not HAS_LINKS, reason="links need a privilege on Windows, and Wine has none"
)
needs_undecodable_names = pytest.mark.skipif(
    not _takes_undecodable_names(), reason="macOS and Wine have no names that are not text"
)
needs_bytes = pytest.mark.skipif(
    os.name == "nt", reason="names on Windows are UTF-16, even with lone surrogates"
)
needs_fifos = pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="Windows has no pipes, sockets and devices in folders"
)
needs_holes = pytest.mark.skipif(
    not hasattr(os, "SEEK_DATA"), reason="Python finds no holes of files on Windows"
)
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists() or os.name == "nt", reason="needs the files in /proc"
)
HAS_PROCESS_NAMES = _has_process_names()
needs_process_names = pytest.mark.skipif(
    not HAS_PROCESS_NAMES, reason="Wine 8 lacks the SystemProcessIdInformation of Windows"
)
needs_shell = pytest.mark.skipif(os.name == "nt", reason="Windows has no POSIX shell")
needs_case = pytest.mark.skipif(
    not _cases_differ(), reason="names that differ only in case are one on this file system"
)
needs_one_case = pytest.mark.skipif(
    _cases_differ(), reason="names that differ only in case are different on this file system"
)
needs_change_times = pytest.mark.skipif(
    os.name == "nt", reason="folders on Windows do not list when a file was last changed"
)
