"""Settled files: ones whose time stamps are old enough not to count as changing."""

import os
import time
from pathlib import Path

from mydata_like.core.file_access import stat_open

LAG_NS = 30_000_000  # a little more than the age from which `transfer.file_source` trusts a file

FOLLOW = os.utime not in os.supports_follow_symlinks  # as on Windows


def settle(*paths: Path) -> None:
    """Wait until the files' time stamps are old enough for the file not to count as changing."""
    for path in paths:
        status = path.lstat()
        if time.time_ns() - status.st_mtime_ns < 10**10:
            os.utime(path, ns=(0, status.st_mtime_ns - 10**10), follow_symlinks=FOLLOW)
    settle_keeping_times(*paths)


def settle_keeping_times(*paths: Path) -> None:
    """Wait until the change times of files are old, without touching them."""
    for path in paths:
        while (rest := find_change_time(path) + LAG_NS - time.time_ns()) > 0:
            time.sleep(rest / 10**9)


def find_change_time(path: Path) -> int:
    """Return when a file was last changed in any way, in nanoseconds since 1970."""
    if os.name != "nt":
        return path.lstat().st_ctime_ns
    with path.open("rb") as file:
        return stat_open(file.fileno()).st_ctime_ns
