"""Files below a mounted folder: what is kept or refused, and which folder is the right one."""

import errno
import hashlib
import os
import shutil
import stat
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from mydata_like.core.errors import (
    RejectedError,
    ServerUnavailableError,
    StagingError,
    TransientError,
)
from mydata_like.core.model import StagingArea
from mydata_like.core.openat import BY_DESCRIPTOR
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import SmallFile
from mydata_like.transfer.folder.folder_files import open_files, translated
from mydata_like.transfer.folder.folder_session import FolderSession
from mydata_like.transfer.folder.staging_folder import MARKER
from mydata_like.transfer.ssh.sftp_sender import SftpSender
from mydata_like.transfer.temporary_files import part_name
from mydata_like.transfer.worker_messages import MemberResult, SendTask
from tests.fakes.place import MODIFIED, checksum
from tests.fakes.session import state, throttled
from tests.privileges import count_descriptors
from tests.staging import mark_folder
from tests.unit.transfer.test_file_source_page_cache import forget, is_there

needs_counts = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux counts what is written"
)
needs_links = pytest.mark.skipif(os.name == "nt", reason="Windows lets few accounts make links")
MIB = 1 << 20


@pytest.fixture
def folder(place):
    place.location.mkdir()
    return mark_folder(StagingArea(box="box", location=str(place.location), username="", hosts=()))


@pytest.fixture(params=["by descriptor", "by path"])
def files(request, folder):
    """The files of a folder, opened as on Linux or as on Windows."""
    if request.param == "by descriptor" and not BY_DESCRIPTOR:
        pytest.skip("Windows opens files by their paths only")
    files = open_files(folder, by_descriptor=request.param == "by descriptor")
    yield files
    files.close()


FOLDER = HostCapabilities("folder")


def send(folder, *members):
    sender = SftpSender(throttled(FolderSession(folder)), state(folder.path, FOLDER))
    try:
        return sender.send(SendTask(members, batched=False), lambda *_: None).results
    finally:
        sender.close()


def put(files, path: bytes, content: bytes = b"content"):
    small = SmallFile(path + b".part", path, content, 0o660, MODIFIED)
    return [refusal for _, refusal in files.put_all([small])]


def small_files(folder, count):
    for number in range(count):
        path = folder.below(b"set/%d" % number)
        yield SmallFile(path + b".part", path, b"%d" % number * 3000, 0o660, MODIFIED)


@contextmanager
def calls_of(*names):
    """Yield a list of these functions of the module `os`, in the order of their calls."""
    calls = []

    def note(_, event, function):
        if event == "c_call" and function.__module__ == os.name and function.__name__ in names:
            calls.append(function.__name__)

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def count_written() -> int:
    """Return how many bytes this process has written by system calls."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def test_a_directory_is_removed_with_all_that_is_in_it(place, folder, files):
    path = folder.below(b"set/inner")
    files.make_directories(path, 0o700)
    assert put(files, path + b"/file") == [None]

    for _ in range(2):  # the second time, there is nothing left to remove
        files.remove_directory(folder.below(b"set"))

    assert [left.name for left in place.location.iterdir()] == [os.fsdecode(MARKER)]
    files.make_directories(path, 0o700)
    assert put(files, path + b"/file") == [None]


@needs_links
def test_removing_a_directory_follows_no_links(place, folder, files, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    files.make_directories(folder.below(b"set"), 0o700)
    (place.location / "set" / "link").symlink_to(other)
    (place.location / "link").symlink_to(other)

    files.remove_directory(folder.below(b"set"))
    with pytest.raises(RejectedError):
        files.remove_directory(folder.below(b"link"))

    assert (other / "file").exists()


@pytest.mark.parametrize("left", [0, 9 * MIB, 9 * MIB + 7, 12 * MIB])
@needs_counts
def test_what_an_earlier_attempt_left_is_compared_and_not_written_again(place, folder, left):
    member = place.write("a/file", 12 * MIB)
    place.settle(member)
    part = place.there(member).with_name(os.fsdecode(part_name(member)))
    part.parent.mkdir()
    part.write_bytes(Path(os.fsdecode(member.path)).read_bytes()[:left])
    before = count_written()

    results = send(folder, member)

    assert results == (MemberResult(0, checksum(member)),)
    assert place.arrived(member)
    assert count_written() - before < member.size - left + MIB
    assert not part.exists()


@pytest.mark.parametrize("wrong", [0, 5 * MIB, 9 * MIB - 1])
def test_from_the_first_wrong_byte_on_everything_is_written(place, folder, wrong):
    content = bytearray(os.urandom(12 * MIB))
    content[6 * MIB : 10 * MIB] = bytes(4 * MIB)
    path = place.source / "holes"
    with path.open("wb") as file:
        file.write(content[: 6 * MIB])
        file.seek(10 * MIB)
        file.write(content[10 * MIB :])
    os.utime(path, (MODIFIED, MODIFIED))
    member = place.member(path, "a/holes")
    place.settle(member)
    left = bytearray(content[: 9 * MIB])
    left[wrong] ^= 0xFF  # the last one where the file has a hole
    place.there(member).parent.mkdir()
    place.there(member).with_name(os.fsdecode(part_name(member))).write_bytes(left)

    results = send(folder, member)

    assert results == (MemberResult(0, hashlib.md5(content).hexdigest()),)
    assert place.there(member).read_bytes() == content


@needs_counts
def test_with_a_new_start_everything_is_written(place, folder):
    member = place.write("a/file", 9 * MIB)._replace(from_scratch=True)
    place.settle(member)
    part = place.there(member).with_name(os.fsdecode(part_name(member)))
    part.parent.mkdir()
    part.write_bytes(Path(os.fsdecode(member.path)).read_bytes() + b"more")
    before = count_written()

    assert send(folder, member) == (MemberResult(0, checksum(member)),)
    assert count_written() - before >= member.size
    assert place.arrived(member)


def test_a_part_that_is_too_long_is_removed_and_sent_again(place, folder):
    member = place.write("a/file", 9 * MIB)
    place.settle(member)
    part = place.there(member).with_name(os.fsdecode(part_name(member)))
    part.parent.mkdir()
    part.write_bytes(Path(os.fsdecode(member.path)).read_bytes() + b"more")

    (first,) = send(folder, member)

    assert first.again
    assert send(folder, member) == (MemberResult(0, checksum(member)),)


def test_a_file_that_changes_gets_no_final_name(place, folder):
    member = place.write("a/file", 9 * MIB)
    place.settle(member)
    sender = SftpSender(throttled(FolderSession(folder)), state(folder.path, FOLDER))

    def change(count: int, *_: int) -> None:
        with Path(os.fsdecode(member.path)).open("ab") as file:
            file.write(b"more")

    (result,) = sender.send(SendTask((member,), batched=False), change).results
    sender.close()

    assert result.problem.code == "file.changed"
    assert list(place.there(member).parent.iterdir()) == []


@needs_links
@pytest.mark.parametrize("linked", ["folder", "folder/deeper", "folder/file.part"])
def test_links_below_the_folder_are_not_followed(tmp_path, place, folder, files, linked):
    outside = tmp_path / "outside"
    outside.mkdir()
    link = place.location / linked
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside / "file" if linked.endswith("part") else outside)
    path = folder.below(b"folder/deeper/file" if linked == "folder/deeper" else b"folder/file")

    (refusal,) = put(files, path)

    assert refusal.problem_code == "staging.denied"
    assert "symbolic link" in refusal.message
    assert list(outside.iterdir()) == []


@needs_links
def test_no_directories_are_made_through_a_link(tmp_path, place, folder, files):
    (place.location / "link").symlink_to(tmp_path)
    with pytest.raises(RejectedError) as caught:
        files.make_directories(folder.below(b"link/new"), 0o2770)
    assert caught.value.problem_code == "staging.denied"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", [b"../out", b"a/../../out", b"..", b"a/."])
def test_no_path_leaves_the_folder(place, folder, files, name):
    files.make_directories(folder.below(b"a"), 0o770)
    (refusal,) = put(files, folder.below(name))
    assert refusal is not None
    assert not place.location.with_name("out").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_a_fifo_in_the_place_of_a_part_is_refused_and_blocks_nothing(place, folder, files):
    os.mkfifo(place.location / "file.part")
    (refusal,) = put(files, folder.below(b"file"))
    assert refusal is not None
    os.mkfifo(place.location / "another")
    with pytest.raises(RejectedError, match="not a regular file"):
        files.open_file(folder.below(b"another"), keep=True)


def test_small_files_are_written_together_and_each_is_durable_before_it_gets_its_name(
    folder, files
):
    files.make_directories(folder.below(b"set"), 0o770)
    with calls_of("write", "fsync", "replace") as calls:
        results = files.put_all(small_files(folder, 5))
        first = next(results)
        at_first_result = calls.copy()

    assert [first, *results] == [(number, None) for number in range(5)]
    assert calls[:5] == ["write"] * 5
    assert calls[5:15] == ["fsync", "replace"] * 5
    # Only a directory with a descriptor can be made durable, and is so before the first result.
    assert calls[15:] in ([], ["fsync"])
    assert at_first_result == calls


def test_a_small_file_that_is_refused_stops_none_that_is_written_with_it(place, folder, files):
    (place.location / "set" / "3").mkdir(parents=True)  # cannot be replaced by a file
    (place.location / "set" / "70.part").mkdir()  # cannot be written

    results = dict(files.put_all(small_files(folder, 100)))

    assert {number for number, refusal in results.items() if refusal} == {3, 70}
    names = {path.name for path in (place.location / "set").iterdir() if path.is_file()}
    assert names == {str(number) for number in range(100)} - {"3", "70"}


def test_what_an_earlier_attempt_left_of_a_small_file_is_overwritten(place, folder, files):
    (place.location / "set").mkdir()
    (place.location / "set" / "0.part").write_bytes(b"left " * 10_000)

    assert list(files.put_all(small_files(folder, 1))) == [(0, None)]

    assert (place.location / "set" / "0").read_bytes() == b"0" * 3000
    assert [path.name for path in (place.location / "set").iterdir()] == ["0"]


@needs_counts
def test_small_files_that_are_given_up_are_closed(folder, files):
    def interrupted():
        yield from small_files(folder, 5)
        raise TransientError("cancelled", code="cancelled")

    files.make_directories(folder.below(b"set"), 0o770)
    list(files.put_all(small_files(folder, 1)))  # opens the directory
    before = count_descriptors()
    with pytest.raises(TransientError):
        list(files.put_all(interrupted()))

    assert count_descriptors() == before


@needs_counts
def test_tiny_files_that_come_from_a_disk_are_fetched_together(place, folder):
    members = [place.write(f"set/{number}", 3000) for number in range(40)]
    place.settle(*members)
    for member in members:
        with Path(os.fsdecode(member.path)).open("rb") as file:
            os.fsync(file.fileno())
        forget(member.path)
    if is_there(members[-1].path, 0):  # this makes the system fetch it
        pytest.skip("this file system keeps its files in memory")

    with calls_of("open", "read") as calls:
        results = send(folder, *members)

    assert all(result.checksum for result in results)
    assert ["open"] * 20 in [calls[start : start + 20] for start in range(len(calls))]


def test_files_of_a_folder_are_listed_without_links_and_directories(place, folder, files):
    put(files, folder.below(b"file"), b"four")
    (place.location / "directory").mkdir()
    if os.name == "posix":
        (place.location / "link").symlink_to("file")
    found = {each.name: each for each in files.list_files(folder.path)}
    assert set(found) == {b"file", MARKER}
    assert (found[b"file"].size, found[b"file"].modified) == (4, MODIFIED)


def test_modes_and_times_are_set(place, folder, files):
    files.make_directories(folder.below(b"a/b"), 0o2770)
    put(files, folder.below(b"a/b/file"))
    there = place.location / "a" / "b" / "file"
    assert there.stat().st_mtime == MODIFIED
    if os.name == "posix":
        assert stat.S_IMODE(there.stat().st_mode) == 0o660


@pytest.mark.skipif(not BY_DESCRIPTOR, reason="directories have no modes on Windows")
def test_directories_belong_to_the_group_of_the_folder(place, folder):
    files = open_files(folder)
    files.make_directories(folder.below(b"a/b"), 0o2770)
    files.close()
    modes = {stat.S_IMODE((place.location / name).stat().st_mode) for name in ("a", "a/b")}
    assert modes == {0o2770}


def test_a_rename_between_directories_replaces_the_target(place, folder, files):
    for name in (b"a", b"b"):
        files.make_directories(folder.below(name), 0o770)
    put(files, folder.below(b"a/new"), b"new")
    put(files, folder.below(b"b/old"), b"old")
    files.replace(folder.below(b"a/new"), folder.below(b"b/old"))
    assert (place.location / "b" / "old").read_bytes() == b"new"
    assert files.find_size(folder.below(b"a/new")) is None


def test_a_folder_that_is_not_there_is_absent(folder, place):
    (place.location / os.fsdecode(MARKER)).unlink()
    place.location.rmdir()
    with pytest.raises(ServerUnavailableError) as caught:
        open_files(folder)
    assert caught.value.problem_code == "staging.absent"
    assert not place.location.exists()


def test_a_folder_without_the_marker_is_not_used(folder, place):
    (place.location / os.fsdecode(MARKER)).unlink()
    with pytest.raises(ServerUnavailableError) as caught:
        open_files(folder)
    assert caught.value.problem_code == "staging.unconfirmed"


def test_the_folder_of_another_storage_box_is_not_used(folder):
    for other in (folder._replace(box="other"), folder._replace(location="/other")):
        with pytest.raises(StagingError) as caught:
            open_files(other)
        assert caught.value.problem_code == "staging.wrong"


def test_while_files_are_opened_by_path_the_marker_has_to_stay(place, folder):
    files = open_files(folder, by_descriptor=False)
    (place.location / os.fsdecode(MARKER)).unlink()
    with pytest.raises(ServerUnavailableError):
        put(files, folder.below(b"file"))
    with pytest.raises(ServerUnavailableError):
        files.open_file(folder.below(b"file"))
    assert list(place.location.iterdir()) == []


@pytest.mark.skipif(not BY_DESCRIPTOR, reason="Windows cannot keep a folder open")
def test_what_is_opened_stays_the_same_folder(place, folder):
    """As if it were unmounted: an empty directory appears in its place."""
    files = open_files(folder)
    moved = place.location.with_name("mounted")
    place.location.rename(moved)
    place.location.mkdir()

    assert put(files, folder.below(b"file")) == [None]

    assert list(place.location.iterdir()) == []
    assert (moved / "file").read_bytes() == b"content"
    files.close()


@pytest.mark.skipif(not BY_DESCRIPTOR, reason="Windows lets nobody delete an open directory")
@pytest.mark.parametrize("deleted", ["a", "."])
def test_a_directory_that_is_deleted_while_it_is_used_is_lost(place, folder, deleted):
    files = open_files(folder)
    files.make_directories(folder.below(b"a"), 0o770)
    put(files, folder.below(b"a/file"))
    shutil.rmtree(place.location / deleted)

    for use in (
        partial(put, files, folder.below(b"a/file")),
        partial(files.make_directories, folder.below(b"a/b"), 0o770),
    ):
        with pytest.raises(TransientError) as caught:
            use()
        assert caught.value.problem_code == "staging.lost"
    files.close()


LOST = ["ESTALE", "ENOTCONN", "EIO", "EHOSTDOWN", "ETIMEDOUT", "ENODEV"]
CODES = [
    *((name, TransientError, "staging.lost") for name in LOST),
    ("ENOSPC", RejectedError, "staging.full"),
    ("EDQUOT", RejectedError, "staging.full"),
    ("EROFS", TransientError, "staging.lost"),
    ("EACCES", RejectedError, "staging.denied"),
    ("EPERM", RejectedError, "staging.denied"),
    ("ELOOP", RejectedError, "staging.denied"),
    ("EISDIR", RejectedError, "staging.refused"),
    ("ENAMETOOLONG", RejectedError, "staging.refused"),
]


@pytest.mark.parametrize(("name", "kind", "code"), CODES)
def test_what_the_system_refuses_is_translated(name, kind, code):
    if not hasattr(errno, name):
        pytest.skip("this system has no such error")
    number = getattr(errno, name)
    error = translated(b"/mnt/staging/file", OSError(number, os.strerror(number)))
    assert (type(error), error.problem_code) == (kind, code)


@pytest.mark.parametrize(("number", "code"), [(53, "lost"), (64, "lost"), (67, "lost")])
def test_lost_connections_of_windows_are_translated(number, code):
    error = OSError(errno.EINVAL, "The network path was not found")
    error.winerror = number
    assert translated(b"file", error).problem_code == f"staging.{code}"
