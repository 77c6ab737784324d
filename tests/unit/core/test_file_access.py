"""Files of any name are found and read, and stay free for other programs while we read them."""

import ctypes
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from mydata_like.core.errors import FileChangedError
from mydata_like.core.file_access import (
    is_in_use,
    is_remote,
    open_shared,
    open_shared_text,
    stat_open,
    system_path,
    verbatim,
)
from mydata_like.core.local_files import LocalFile
from mydata_like.core.openat import FolderCache, OpenFolder
from mydata_like.transfer.file_source import open_source
from tests.settled import settle_keeping_times

on_windows = pytest.mark.skipif(sys.platform != "win32", reason="the rules of Windows")
ODD = [
    "con",
    "nul.txt",
    "com1",
    "ends with a dot.",
    "ends with a space ",
    "x" * 200 + "/" + "y" * 200,
]


@pytest.mark.parametrize(
    ("attributes", "remote"),
    [
        pytest.param(0x20, False, id="archive"),
        pytest.param(0x80220, False, id="pinned in OneDrive"),
        pytest.param(0x500220, True, id="OneDrive, online only"),
        pytest.param(0x1020, True, id="offline, as on tape"),
        pytest.param(0x40020, True, id="recalled when opened"),
    ],
)
def test_attributes_say_whether_the_content_is_elsewhere(attributes, remote):
    assert is_remote(SimpleNamespace(st_file_attributes=attributes)) == remote


def test_files_of_other_systems_have_their_content(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")

    assert not is_remote((tmp_path / "a").stat())


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        (b"C:\\data\\con", b"\\\\?\\C:\\data\\con"),
        (b"C:\\data\\\\a", b"\\\\?\\C:\\data\\a"),
        (b"C:/data/a. /b", b"\\\\?\\C:\\data\\a. \\b"),
        (b"\\\\nas\\share\\a", b"\\\\?\\UNC\\nas\\share\\a"),
        (b"//nas/share/a", b"\\\\?\\UNC\\nas\\share\\a"),
        (b"\\\\?\\C:\\a", b"\\\\?\\C:\\a"),
        (b"\\\\.\\pipe\\agent", b"\\\\.\\pipe\\agent"),
        (b"data\\a", b"data\\a"),
    ],
)
def test_a_complete_path_is_taken_as_it_is(path: bytes, taken: bytes) -> None:
    assert verbatim(path) == taken
    assert verbatim(taken) == taken


@pytest.mark.parametrize("name", ODD)
def test_a_file_of_any_name_is_found_and_read(tmp_path: Path, name: str) -> None:
    root = os.fsencode(tmp_path)
    path = root + b"/" + os.fsencode(name)
    make(path, b"content")

    folder, _, last = path.rpartition(b"/")
    with OpenFolder.open(folder, len(root)) as opened:
        (entry,) = opened.entries
        assert os.fsencode(entry.name) == last
        assert entry.stat().st_size == 7
    with FolderCache() as folders:
        descriptor = folders.open(path, len(root), os.O_RDONLY)
    with os.fdopen(descriptor, "rb") as file:
        assert file.read() == b"content"


def test_an_open_file_can_be_renamed_rewritten_and_deleted(tmp_path: Path) -> None:
    for number, change in enumerate((move, rewrite, Path.unlink)):
        path = tmp_path / f"{number}.tif"
        path.write_bytes(b"as it was")
        with os.fdopen(open_shared(os.fsencode(path), os.O_RDONLY), "rb") as file:
            change(path)
            assert file.read() == (b"as it is" if change is rewrite else b"as it was")


def test_a_change_shows_in_the_status_when_the_time_of_modification_is_put_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "scan.tif"
    path.write_bytes(b"as it was")
    os.utime(path, ns=(0, 10**18))
    settle_keeping_times(path)
    with path.open("rb") as file:
        before = stat_open(file.fileno())
        rewrite(path)
        os.utime(path, ns=(0, 10**18))
        after = stat_open(file.fileno())

    assert before.st_mtime_ns == after.st_mtime_ns == 10**18
    assert before.st_ctime_ns < after.st_ctime_ns
    assert time.time_ns() - after.st_ctime_ns < 60 * 10**9
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert after.st_ctime == pytest.approx(after.st_ctime_ns / 10**9)


def test_writers_of_one_file_add_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    with (
        open(path, "a", opener=open_shared_text) as one,
        open(path, "a", opener=open_shared_text) as other,
    ):
        for number in range(3):
            for file in (one, other):
                file.write(f"{number}\n")
                file.flush()

    assert path.read_text().split() == ["0", "0", "1", "1", "2", "2"]


def test_what_is_not_there_is_not_in_use(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        open_shared(os.fsencode(tmp_path / "none"), os.O_RDONLY)

    assert not is_in_use(missing.value)


@on_windows
def test_a_file_that_a_program_lets_no_other_read_is_in_use(tmp_path: Path) -> None:
    path = tmp_path / "scan.tif"
    path.write_bytes(b"content")
    status = path.stat()
    seen = LocalFile(
        os.fsencode(path), b"scan.tif", b"", b"scan.tif", 7, status.st_mtime_ns, 0, 0, 0, 0
    )
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    kernel.CreateFileW.restype = ctypes.c_void_p
    handle = kernel.CreateFileW(str(path), 0x80000000, 0, None, 3, 0, None)
    try:
        with pytest.raises(FileChangedError) as refusal:
            open_source(seen)
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))

    assert refusal.value.problem_code == "file.in-use"


def make(path: bytes, content: bytes) -> None:
    """Write a file whose name Windows would interpret."""
    place = Path(os.fsdecode(system_path(path)))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def move(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))


def rewrite(path: Path) -> None:
    path.write_bytes(b"as it is")
