"""A slow disk on one machine: a file as a block device, held to so many bytes a second.

It has a file system that is written at once, as storage without a memory of its own is, so that
whoever writes waits for it. Needs root: Linux throttles the device for the processes of a group.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.groups import Group, open_group

_SIZE = 3 * 2**30  # bytes of the disk, of which only those that are used take memory


class SlowDisk(NamedTuple):
    """A disk that is slow for the processes of a group, and as fast as memory for all others."""

    folder: Path
    group: Group


@contextmanager
def open_disk(image: Path, folder: Path, rate: float) -> Iterator[SlowDisk]:
    """Mount a disk that carries so many bytes a second at a folder, for as long as this lasts."""
    with ExitStack() as stack:
        with image.open("wb") as file:
            file.truncate(_SIZE)
        device = _say("losetup", "--find", "--show", str(image))
        stack.callback(_say, "losetup", "--detach", device)
        _say("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0", device)
        folder.mkdir(parents=True, exist_ok=True)
        _say("mount", "-o", "sync,noatime", device, str(folder))
        stack.callback(_say, "umount", "--lazy", str(folder))
        number = Path(device).stat().st_rdev
        rule = f"{os.major(number)}:{os.minor(number)} {int(rate)}"
        rules = {f"blkio.throttle.{way}_bps_device": rule for way in ("read", "write")}
        yield SlowDisk(folder, stack.enter_context(open_group("blkio", folder.name, rules)))


def forget(disk: SlowDisk) -> None:
    """Have the system forget what it keeps of the disk in memory."""
    for path in disk.folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file)
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _say(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()
