"""A slow disk on one machine: a file as a block device with limited bytes a second.

Its file system is mounted with `sync`, like storage without a cache, so that every write waits for
the device. Needs root: Linux throttles the device for the processes of a control group.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.groups import Group, open_group

_SIZE = 3 * 2**30  # bytes of the disk; only used ones take memory


class SlowDisk(NamedTuple):
    """A disk that is slow for the processes of a control group, and fast for all others."""

    folder: Path
    group: Group


@contextmanager
def open_disk(image: Path, folder: Path, rate: float) -> Iterator[SlowDisk]:
    """Mount a disk of `rate` bytes a second at a folder during the context."""
    with ExitStack() as stack:
        with image.open("wb") as file:
            file.truncate(_SIZE)
        device = _run("losetup", "--find", "--show", str(image))
        stack.callback(_run, "losetup", "--detach", device)
        _run("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0", device)
        folder.mkdir(parents=True, exist_ok=True)
        _run("mount", "-o", "sync,noatime", device, str(folder))
        stack.callback(_run, "umount", "--lazy", str(folder))
        number = Path(device).stat().st_rdev
        rule = f"{os.major(number)}:{os.minor(number)} {int(rate)}"
        rules = {f"blkio.throttle.{way}_bps_device": rule for way in ("read", "write")}
        yield SlowDisk(folder, stack.enter_context(open_group("blkio", folder.name, rules)))


def forget(disk: SlowDisk) -> None:
    """Drop the files of a disk from the page cache."""
    for path in disk.folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file)
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()
