"""Which drives a user may want to eject."""

import os
from pathlib import Path

import pytest

from mydata_like.hostos.removable_drives import find_drive

MOUNTED = Path("/dev/shm")

pytestmark = pytest.mark.skipif(not os.path.ismount(MOUNTED), reason="no other drive is mounted")


def test_a_drive_that_is_mounted_below_the_folder_of_drives_is_found() -> None:
    assert find_drive(MOUNTED / "folder" / "file", [Path("/dev")]) == MOUNTED


@pytest.mark.parametrize("media", [Path("/media"), MOUNTED, Path("/de")], ids=str)
def test_other_drives_are_not(media: Path) -> None:
    assert find_drive(MOUNTED / "file", [media]) is None


def test_a_folder_of_the_drive_of_the_system_is_on_no_drive() -> None:
    assert find_drive(Path("/etc"), [Path("/")]) is None
