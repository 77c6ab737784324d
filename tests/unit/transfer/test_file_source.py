"""A source yields what the scan saw, whole and unchanged, or says that it cannot."""

import hashlib
import os
import socket
import time
from pathlib import Path

import pytest

from mydata_like.core.errors import FileChangedError
from mydata_like.core.local_files import LocalFile
from mydata_like.core.openat import FolderCache
from mydata_like.transfer.archive_writer import read_tiny
from mydata_like.transfer.file_source import CHUNK, LARGE, open_source, read_checksum
from tests.privileges import (
    IS_ROOT,
    count_descriptors,
    needs_fifos,
    needs_holes,
    needs_links,
    needs_proc,
)
from tests.settled import settle, settle_keeping_times

NOBODY = 65534


def seen(path):
    """Return a file as a scan would have seen it now."""
    status = path.lstat()
    name = os.fsencode(path)
    return LocalFile(
        name, name, b"", name, status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino
    )


def read_whole(member):
    buffer = bytearray(64 * 1024)
    with open_source(member) as source:
        content = b"".join(map(bytes, source.chunks(buffer)))
        return content, source.finish()


def md5(content):
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


@pytest.fixture
def file(tmp_path):
    """Return a file that nothing has touched lately."""
    path = tmp_path / "scan.tif"
    path.write_bytes(os.urandom(300_000))
    settle(path)
    return path


def read_at_once(member):
    with FolderCache() as folders:
        return read_tiny(member, folders)


@pytest.fixture(params=[read_whole, read_at_once], ids=["source", "tiny"])
def read(request):
    return request.param


@pytest.mark.parametrize("size", [0, 1, 511, 64 * 1024, 64 * 1024 + 1, 300_000])
def test_a_quiet_file_is_read_whole_with_its_checksum(read, tmp_path, size):
    path = tmp_path / "file"
    path.write_bytes(os.urandom(size))
    settle(path)

    assert read(seen(path)) == (path.read_bytes(), md5(path.read_bytes()))


def test_a_large_file_is_read_in_chunks_of_one_reused_buffer(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(os.urandom(LARGE + 12_345))
    settle(path)
    buffer = bytearray(1024 * 1024)
    together = hashlib.md5(usedforsecurity=False)

    with open_source(seen(path)) as source:
        for chunk in source.chunks(buffer):
            assert chunk.obj is buffer
            together.update(chunk)
        checksum = source.finish()

    assert source.remaining == 0
    assert checksum == together.hexdigest() == md5(path.read_bytes())


def test_unknown_device_and_inode_are_not_compared(read, file):
    content, _ = read(seen(file)._replace(device=0, inode=0))

    assert content == file.read_bytes()


def replace_by_other_file(path):
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    status = path.stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


def replace_by_symlink(path):
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def replace_by_folder(path):
    path.unlink()
    path.mkdir()


def replace_by_fifo(path):
    path.unlink()
    os.mkfifo(path)


def replace_by_socket(path):
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def replace_by_loop(path):
    path.unlink()
    path.symlink_to(path)


def grow(path):
    with path.open("ab") as file:
        file.write(b"more")


def touch(path):
    os.utime(path)


def replace_parent_by_file(path):
    path.unlink()
    path.parent.rmdir()
    path.parent.write_bytes(b"")


LINKS = {"symlink": replace_by_symlink, "loop": replace_by_loop}
SPECIAL = {"fifo": replace_by_fifo, "socket": replace_by_socket}
BETWEEN_SCAN_AND_OPEN = {
    "deleted": (Path.unlink, "file.vanished"),
    "folder became a file": (replace_parent_by_file, "file.vanished"),
    "other file": (replace_by_other_file, "file.replaced"),
    "folder": (replace_by_folder, "file.replaced"),
    "grown": (grow, "file.changed"),
    "truncated": (lambda path: os.truncate(path, 10), "file.changed"),
    "touched": (touch, "file.changed"),
}


@pytest.mark.parametrize(
    ("change", "code"), BETWEEN_SCAN_AND_OPEN.values(), ids=BETWEEN_SCAN_AND_OPEN
)
def test_a_file_that_is_not_what_the_scan_saw_is_refused(read, file, change, code):
    refuse_after(change, code, read, file)


@needs_links
@pytest.mark.parametrize("change", LINKS.values(), ids=LINKS)
def test_a_link_in_place_of_the_file_is_refused(read, file, change):
    refuse_after(change, "file.replaced", read, file)


@needs_fifos
@pytest.mark.parametrize("change", SPECIAL.values(), ids=SPECIAL)
def test_a_special_file_in_place_of_the_file_is_refused(read, file, change):
    refuse_after(change, "file.replaced", read, file)


def refuse_after(change, code, read, file):
    """Check that a file is not read after this change, with this code."""
    member = seen(file)
    change(file)
    if file.is_file() and not file.is_symlink():
        settle_keeping_times(file)

    with pytest.raises(FileChangedError) as refusal:
        read(member)

    assert refusal.value.problem_code == code
    assert "scan.tif" in refusal.value.message


def rewrite(path):
    """Change one byte, and put the time back as if nothing had happened."""
    status = path.stat()
    with path.open("r+b", buffering=0) as file:
        file.seek(299_999)
        file.write(b"!")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


WHILE_READ = {
    "grown": grow,
    "truncated": lambda path: os.truncate(path, 70_000),
    "emptied": lambda path: os.truncate(path, 0),
    "rewritten": rewrite,
    "touched": touch,
    "cut and filled up again": lambda path: (os.truncate(path, 0), os.truncate(path, 300_000)),
}


@pytest.mark.parametrize("change", WHILE_READ.values(), ids=WHILE_READ)
def test_a_file_that_changes_while_it_is_read_fails(file, change):
    with open_source(seen(file)) as source:
        chunks = source.chunks(bytearray(64 * 1024))
        next(chunks)
        change(file)

        with pytest.raises(FileChangedError) as failure:
            read_to_end(chunks, source)

    assert failure.value.problem_code == "file.changed"


@pytest.mark.skipif(os.name == "nt", reason="Windows does not change the times of a deleted file")
def test_a_file_that_is_deleted_while_it_is_read_fails(file):
    with open_source(seen(file)) as source:
        chunks = source.chunks(bytearray(64 * 1024))
        next(chunks)
        file.unlink()  # a change of the number of its links is one of the file

        with pytest.raises(FileChangedError):
            read_to_end(chunks, source)


def read_to_end(chunks, source):
    """Take what is left; a source that ends early must have said so."""
    for _ in chunks:
        pass
    return source.finish()


def test_a_source_that_fails_reports_how_much_is_missing(file):
    with open_source(seen(file)) as source:
        chunks = source.chunks(bytearray(64 * 1024))
        next(chunks)
        os.truncate(file, 70_000)
        with pytest.raises(FileChangedError):
            read_to_end(chunks, source)

        assert source.remaining == 300_000 - 70_000


def test_a_file_changed_just_before_it_was_opened_is_not_trusted(read, file):
    rewrite(file)

    with pytest.raises(FileChangedError) as failure:
        read(seen(file))

    assert failure.value.problem_code == "file.changed"


def test_a_file_on_a_disk_with_coarse_times_is_not_trusted_for_two_seconds(read, file):
    this_second = time.time_ns() // 10**9 * 10**9
    os.utime(file, ns=(this_second, this_second))
    settle_keeping_times(file)

    with pytest.raises(FileChangedError):
        read(seen(file))


@pytest.mark.parametrize("modified", [0, 1, 5 * 10**18, 4 * 10**18 + 7])
def test_strange_times_of_a_quiet_file_do_no_harm(read, file, modified):
    os.utime(file, ns=(0, modified))
    settle_keeping_times(file)

    assert read(seen(file))[0] == file.read_bytes()


def test_a_file_that_was_not_read_to_its_end_has_no_checksum(file):
    with open_source(seen(file)) as source:
        next(source.chunks(bytearray(1000)))

        with pytest.raises(FileChangedError):
            source.finish()


@pytest.fixture
def as_nobody():
    """Return to being root after a test that has taken another identity."""
    if not IS_ROOT:
        pytest.skip("only root can take another identity")
    yield lambda: os.seteuid(NOBODY)
    os.seteuid(0)


def test_a_file_that_may_not_be_read_is_unreadable(read, file, as_nobody):
    file.chmod(0)
    settle_keeping_times(file)
    member = seen(file)
    as_nobody()

    with pytest.raises(FileChangedError) as failure:
        read(member)

    assert failure.value.problem_code == "file.unreadable"
    assert "ermission denied" in failure.value.message


@needs_proc
def test_an_error_of_the_disk_makes_a_file_unreadable(read):
    member = seen(Path("/proc/self/mem"))  # reading its first page is an I/O error

    with pytest.raises(FileChangedError) as failure:
        read(member)

    assert failure.value.problem_code == "file.unreadable"


@needs_holes
def test_an_error_while_holes_are_looked_for_makes_a_file_unreadable(file):
    with open_source(seen(file)) as source:
        pipe, other = os.pipe()
        os.dup2(pipe, source.fileno())  # its descriptor fails as one on a broken disk does
        with pytest.raises(FileChangedError) as failure:
            source.find_extents()
        os.close(pipe)
        os.close(other)

    assert failure.value.problem_code == "file.unreadable"


@needs_proc
def test_a_file_that_claims_to_be_empty_and_is_not_fails(read):
    with pytest.raises(FileChangedError) as failure:
        read(seen(Path("/proc/self/status")))

    assert failure.value.problem_code == "file.changed"


def test_a_path_that_is_too_long_for_the_system_is_unreadable(read, file):
    with pytest.raises(FileChangedError) as failure:
        read(seen(file)._replace(path=b"/d" * 3000))

    # Windows says of a path of any length that it was not found.
    code = "file.vanished" if os.name == "nt" else "file.unreadable"
    assert failure.value.problem_code == code


def test_a_name_that_cannot_be_decoded_is_shown_safely(read, tmp_path):
    name = os.fsencode("\udcff\x1b[31m")
    member = seen(tmp_path)._replace(path=os.path.join(os.fsencode(tmp_path), name))  # noqa: PTH118
    reason = "no longer exists|cannot be read: Invalid name"  # the latter from Wine

    with pytest.raises(FileChangedError, match=rf"\\x[bf]f\\x1b\[31m ({reason})"):
        read(member)


def test_no_failure_leaves_a_descriptor_open(read, file):
    before = count_descriptors()
    member = seen(file)

    for wrong in (member._replace(size=1), member._replace(inode=1), member._replace(path=b"/")):
        with pytest.raises(FileChangedError):
            read(wrong)

    assert count_descriptors() == before


def test_the_source_tree_stays_as_it_was(read, file):
    os.utime(file, ns=(5, 5))
    settle_keeping_times(file)
    before = file.stat()

    read(seen(file))

    after = file.stat()
    assert (before.st_mtime_ns, before.st_ctime_ns) == (after.st_mtime_ns, after.st_ctime_ns)


@pytest.fixture
def sparse_file(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
        file.seek(50 * 1024 * 1024)
        file.write(os.urandom(100_000))
    settle(path)
    return path


@needs_holes
@pytest.mark.slow
def test_holes_are_checksummed_without_being_read(sparse_file):
    buffer = bytearray(1024 * 1024)
    with open_source(seen(sparse_file)) as source:
        extents = source.find_extents()
        chunks = [bytes(chunk) for chunk in source.chunks(buffer, extents)]
        checksum = source.finish()

        assert source.may_have_holes

    assert len(b"".join(chunks)) == sum(length for _, length in extents) < 110_000
    assert checksum == md5(sparse_file.read_bytes())


@needs_holes
def test_a_long_hole_gives_signs_of_life(sparse_file):
    with open_source(seen(sparse_file)) as source:
        extents = source.find_extents()
        chunks = source.chunks(bytearray(1024 * 1024), extents)

        assert sum(1 for chunk in chunks if not chunk) >= 2


def test_a_file_without_holes_says_so(file):
    with open_source(seen(file)) as source:
        assert not source.may_have_holes


# For who wants nothing but the checksum.


@pytest.mark.parametrize("size", [0, 1, CHUNK, 3 * CHUNK + 1])
def test_the_checksum_of_a_quiet_file_is_read_in_pieces_between_which_it_may_be_stopped(
    tmp_path, size
):
    path = tmp_path / "scan.tif"
    content = os.urandom(size)
    path.write_bytes(content)
    settle(path)
    pieces = []

    assert read_checksum(seen(path), lambda: pieces.append(1)) == md5(content)
    assert len(pieces) == 1 + (size + CHUNK - 1) // CHUNK


@pytest.mark.slow
def test_the_checksum_of_a_file_with_holes_is_that_of_all_its_bytes(sparse_file):
    content = sparse_file.read_bytes()

    assert read_checksum(seen(sparse_file), lambda: None) == md5(content)


def test_a_file_that_changed_since_the_scan_has_no_checksum(file):
    member = seen(file)
    file.write_bytes(b"other bytes")

    with pytest.raises(FileChangedError):
        read_checksum(member, lambda: None)
