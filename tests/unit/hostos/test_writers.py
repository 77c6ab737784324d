"""Programs that may write to a file are noticed, by every means that the system offers."""

import os
import sys
from contextlib import contextmanager

import pytest

from mydata_like.hostos.safe_delete_posix import FileUse, WriteGuard
from tests.builders import a_file

fcntl = pytest.importorskip("fcntl")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of writers")


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
