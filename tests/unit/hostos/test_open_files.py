"""Programs that may write to a file are noticed, by every means that the system offers."""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from mydata_like.core.local_files import LocalFile
from mydata_like.hostos.open_files import FileUse, FileWriters, OpenPath, WriteGuard, find_each
from tests.builders import a_file

fcntl = pytest.importorskip("fcntl")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of writers")
PROGRAM = """
import sys
with open(sys.argv[1], "ab"):
    print("open", flush=True)
    sys.stdin.read()
"""


@contextmanager
def opened(path, flags=os.O_RDONLY):
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@pytest.fixture
def file(tmp_path):
    return a_file(tmp_path / "scan.tif")


@pytest.fixture
def pipe(tmp_path):
    """Something for which the system gives no lease, as for files on some network drives."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def find_use(descriptor):
    with WriteGuard(descriptor) as guard:
        return guard.find_use()


def test_a_file_that_others_only_read_is_free(file):
    with opened(file) as descriptor, file.open("rb"):
        assert find_use(descriptor) is FileUse.NONE


@pytest.mark.parametrize("mode", ["ab", "r+b"])
def test_a_file_that_is_open_to_write_is_noticed(file, mode):
    with opened(file) as descriptor, file.open(mode):
        assert find_use(descriptor) is FileUse.OPEN


def test_a_program_that_wants_to_write_in_the_meantime_is_noticed(file):
    with opened(file) as descriptor, WriteGuard(descriptor) as guard:
        assert guard.find_use() is FileUse.NONE
        with pytest.raises(BlockingIOError):
            os.open(file, os.O_WRONLY | os.O_NONBLOCK)
        assert guard.find_use() is FileUse.OPEN


@pytest.mark.parametrize("lock", [fcntl.flock, fcntl.lockf], ids=["flock", "POSIX"])
def test_a_lock_to_write_is_noticed_and_one_to_read_is_not(file, lock):
    with opened(file) as descriptor:
        with file.open("r+b" if lock is fcntl.lockf else "rb") as other:
            lock(other, fcntl.LOCK_EX)
            assert find_use(descriptor) in (FileUse.LOCKED, FileUse.OPEN)
        with file.open("rb") as other:
            lock(other, fcntl.LOCK_SH)
            assert find_use(descriptor) is FileUse.NONE


def test_without_leases_open_descriptors_are_searched(pipe):
    with opened(pipe, os.O_RDONLY | os.O_NONBLOCK) as descriptor:
        assert find_use(descriptor) is FileUse.NONE
        with opened(pipe, os.O_WRONLY | os.O_NONBLOCK):
            assert find_use(descriptor) is FileUse.OPEN
        assert find_use(descriptor) is FileUse.NONE


def local(path):
    status = path.stat()
    where = os.fsencode(path), os.fsencode(path.name), b"", os.fsencode(path.name)
    times = status.st_mtime_ns, status.st_dev, status.st_ino, status.st_ctime_ns
    return LocalFile(*where, status.st_size, *times)


@contextmanager
def other_program(path):
    command = [sys.executable, "-c", PROGRAM, path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout.readline() == "open\n"
        yield
        process.stdin.close()


@pytest.mark.process
def test_the_program_that_writes_to_a_file_is_named(file, tmp_path):
    read, same_name = a_file(tmp_path / "read.tif"), a_file(tmp_path / "other" / file.name)
    files = [local(path) for path in (read, same_name, file)]
    with read.open("rb"), other_program(file):
        ((_, name),) = FileWriters()(files).items()
    assert name.startswith("python")
    assert FileWriters()(files) == {}


@pytest.mark.process
def test_a_writer_by_another_name_of_our_file_is_noticed(file):
    other = file.with_name("another name")
    os.link(file, other)
    with other_program(other):
        assert FileWriters()([local(file)]) == {b"scan.tif": "Another program"}


def test_a_file_that_was_closed_a_moment_ago_is_free(file):
    find_writers = FileWriters()
    with file.open("ab"):
        assert find_writers([local(file)])
    assert find_writers([local(file)]) == {}


def test_of_many_files_the_open_ones_are_found_by_halving():
    paths, asked = [b"%d" % number for number in range(500)], []
    held = {b"7": 70, b"8": 80, b"499": 70}

    def ask(some):
        asked.append(len(some))
        return sorted({held[path] for path in some if path in held})

    assert [*find_each(paths, ask)] == [
        OpenPath(b"7", 70),
        OpenPath(b"8", 80),
        OpenPath(b"499", 70),
    ]
    assert len(asked) < 60
    assert [*find_each(paths[9:400], ask)] == []
    assert [*find_each([], ask)] == []


def test_a_file_that_the_system_refuses_to_tell_of_hides_no_other_one():
    def ask(paths):
        return None if b"folder now" in paths else [7] if b"open" in paths else []

    assert [*find_each([b"a", b"open", b"folder now", b"b"], ask)] == [OpenPath(b"open", 7)]
    assert [*find_each([b"folder now"], ask)] == []
