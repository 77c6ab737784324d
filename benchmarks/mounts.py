"""File systems that are mounted for a benchmark: a disk in a file, or a folder of a host."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.arena import Link
from benchmarks.measure import ContestError


@contextmanager
def mount_disk(
    image: Path, size: int, folder: Path, *making: str, options: str = "rw"
) -> Iterator[Path]:
    """Mount a new ext4 of `size` bytes in a file at a folder; yield its device. Needs root.

    `making` are options of mkfs.ext4, `options` those of mount.
    """
    with image.open("wb") as file:
        file.truncate(size)
    device = _run("losetup", "--find", "--show", str(image))
    try:
        complete = "lazy_itable_init=0,lazy_journal_init=0"  # else the kernel writes them later
        _run("mkfs.ext4", "-q", "-E", complete, *making, device)
        folder.mkdir(parents=True, exist_ok=True)
        _run("mount", "-o", f"noatime,{options}", device, str(folder))
        try:
            yield Path(device)
        finally:
            _run("umount", "--lazy", str(folder))
    finally:
        _run("losetup", "--detach", device)


@contextmanager
def mount_sshfs(link: Link, source: Path, folder: Path) -> Iterator[None]:
    """Mount a folder of the private sshd's host at another folder."""
    source.mkdir()
    folder.mkdir()
    command = ["sshfs", f"{link.destination}:{source}", str(folder), *link.options()[2:]]
    try:
        subprocess.run(command, check=True)  # ends when the folder is mounted
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise ContestError("sshfs is not installed, or could not mount a folder") from error
    try:
        yield
    finally:
        _run("umount", "--lazy", str(folder))


def _run(*command: str) -> str:
    """Return what a command prints; raises `ContestError` if it fails or is missing."""
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise ContestError(f"{command[0]} is not installed") from error
    except subprocess.CalledProcessError as error:
        raise ContestError(f"{command[0]} failed: {error.stderr.strip()}") from error
    return done.stdout.strip()
