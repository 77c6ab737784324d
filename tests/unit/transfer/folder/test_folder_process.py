"""The process that works on a mounted folder for the engine."""

import hashlib
import os
import sys
from pathlib import Path

import psutil
import pytest

from mydata_like.core.errors import ServerUnavailableError, StagingError
from mydata_like.core.model import StagingArea
from mydata_like.transfer.folder.folder_process import (
    FolderRemover,
    FolderTasks,
    open_folder_process,
)
from mydata_like.transfer.folder.staging_folder import MARKER
from mydata_like.transfer.ssh.probe_file import ProbeResult
from mydata_like.transfer.temporary_files import Leftover, owner_mark
from tests.staging import mark_folder

pytestmark = pytest.mark.process

OURS = owner_mark("uploader")


@pytest.fixture
def folder(place):
    place.location.mkdir()
    return mark_folder(StagingArea(box="box", location=str(place.location), username="", hosts=()))


@pytest.fixture
def process(folder):
    before = psutil.Process().children()
    with open_folder_process(folder, 10) as process:
        process.system = [one for one in psutil.Process().children() if one not in before]
        yield process


def test_files_are_inspected_and_removed(place, process):
    (place.location / "file").write_bytes(b"content")
    checksum = hashlib.md5(b"content").hexdigest()
    assert process.call(FolderTasks.inspect, b"file") == ProbeResult(7, checksum)
    assert process.call(FolderTasks.remove, b"file")
    assert process.call(FolderTasks.inspect, b"file") == ProbeResult(None, "")


def test_only_old_leftovers_of_this_uploader_are_found_and_removed(place, process):
    old = f".mydata-{OURS.decode()}{'a' * 24}.part"
    for name in (old, f".mydata-{OURS.decode()}{'b' * 24}.part", f".mydata-{'0' * 32}.part"):
        (place.location / name).write_bytes(b"left")
    for name in (old, f".mydata-{'0' * 32}.part"):
        os.utime(place.location / name, (1, 1))
    remover = FolderRemover(process, OURS)

    assert remover.find_left(b"") == [Leftover(old.encode(), 4)]
    assert remover.remove(b"", old.encode())
    assert not (place.location / old).exists()


def test_a_folder_is_confirmed_once_for_all_uploaders(place, folder, process):
    marker = place.location / os.fsdecode(MARKER)
    marker.unlink()
    with pytest.raises(ServerUnavailableError):
        process.call(FolderTasks.open)

    process.call(FolderTasks.confirm)

    assert marker.read_bytes() == folder.marker
    assert process.call(FolderTasks.open).access == "folder"
    assert [path.name for path in place.location.iterdir()] == [marker.name]


def test_the_folder_of_another_storage_box_is_refused(folder):
    other = folder._replace(box="other")
    with open_folder_process(other, 10) as process, pytest.raises(StagingError) as caught:
        process.call(FolderTasks.open)
    assert caught.value.problem_code == "staging.wrong"


def test_the_mount_of_a_folder_is_named(process):
    assert os.path.ismount(process.call(FolderTasks.find_mount))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux shows open files")
def test_it_lets_go_of_our_streams(process):
    process.call(FolderTasks.open)
    (system,) = process.system
    held = {Path(f"/proc/{system.pid}/fd/{number}").readlink() for number in (1, 2)}
    assert held == {Path(os.devnull)}
