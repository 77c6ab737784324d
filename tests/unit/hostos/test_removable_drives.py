"""Which drives a user may want to eject, and that the system ejects them."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from mydata_like.hostos.removable_drives import eject, find_drive

MOUNTED = Path("/dev/shm")

pytestmark = pytest.mark.skipif(not os.path.ismount(MOUNTED), reason="no other drive is mounted")


def test_a_drive_that_is_mounted_below_the_folder_of_drives_is_found() -> None:
    assert find_drive(MOUNTED / "folder" / "file", [Path("/dev")]) == MOUNTED


@pytest.mark.parametrize("media", [Path("/media"), MOUNTED, Path("/de")], ids=str)
def test_other_drives_are_not(media: Path) -> None:
    assert find_drive(MOUNTED / "file", [media]) is None


def test_a_folder_of_the_drive_of_the_system_is_on_no_drive() -> None:
    assert find_drive(Path("/etc"), [Path("/")]) is None


def find_disk() -> str:
    """Return the device of the file system of this computer, if it is on a disk."""
    device = next(it.device for it in psutil.disk_partitions(all=True) if it.mountpoint == "/")
    block = Path("/sys/class/block", Path(device).name).resolve()
    named = [it for it in (block / "removable", block.parent / "removable") if it.exists()]
    return device if named and named[0].read_text().strip() == "0" else ""


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="of udisks")
def test_a_disk_is_powered_off_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (device := find_disk()):
        pytest.skip("no file system on a disk")
    program = tmp_path / "udisksctl"
    program.write_text(f'#!/bin/sh\necho "$1 $4" >>{tmp_path}/calls\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    eject(Path("/"))

    calls = (tmp_path / "calls").read_text().splitlines()
    assert (calls[0], calls[-1]) == (f"unmount {device}", f"power-off {device}")
    assert {it.partition(" ")[0] for it in calls[1:-1]} <= {"unmount"}  # of the same disk
    assert len(set(calls)) == len(calls)
