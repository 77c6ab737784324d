"""A slow disk on one machine: a file as a block device with limited bytes a second.

Its file system is mounted with `sync`, like storage without a cache, so that every write waits for
the device. Needs root: Linux throttles the device for the processes of a control group.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.groups import Group, open_group
from benchmarks.mounts import mount_disk

_SIZE = 3 * 2**30  # bytes of the disk; only used ones take memory


class SlowDisk(NamedTuple):
    """A disk that is slow for the processes of a control group, and fast for all others."""

    folder: Path
    group: Group


@contextmanager
def open_disk(image: Path, folder: Path, rate: float) -> Iterator[SlowDisk]:
    """Mount a disk of `rate` bytes a second at a folder during the context."""
    disk = mount_disk(image, _SIZE, folder, "-O", "^has_journal", options="sync")
    with disk as device:
        number = device.stat().st_rdev
        rule = f"{os.major(number)}:{os.minor(number)} {int(rate)}"
        rules = {f"blkio.throttle.{way}_bps_device": rule for way in ("read", "write")}
        with open_group("blkio", folder.name, rules) as group:
            yield SlowDisk(folder, group)


def forget(disk: SlowDisk) -> None:
    """Drop the files of a disk from the page cache."""
    for path in disk.folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file)
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
