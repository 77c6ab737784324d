"""Reading a large file leaves the system's memory of files as it was."""

import errno
import os

import pytest

from mydata_like.transfer.file_source import LARGE, open_source
from tests.settled import settle
from tests.unit.transfer.test_file_source import read_whole, seen

pytestmark = pytest.mark.skipif(
    not hasattr(os, "posix_fadvise"), reason="programs tell this system nothing about its cache"
)

SIZE = 4 * LARGE
PLACES = [place * LARGE + 12_345 for place in range(4)]


def is_there(path, offset):
    """Return whether a byte of a file is in memory, by asking for it without waiting."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    try:
        return os.preadv(descriptor, [bytearray(1)], offset, os.RWF_NOWAIT) == 1
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        pytest.skip("this file system does not tell what is in memory")
    finally:
        os.close(descriptor)


def was_dropped(path):
    """Return whether a file is not in memory; a page that someone holds just now may stay."""
    return sum(is_there(path, place) for place in PLACES) <= 1


def forget(path):
    descriptor = os.open(path, os.O_RDONLY)
    for _ in range(3):  # what a processor has just put there does not go at once
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


@pytest.fixture
def large(tmp_path):
    """Return a large file that is in memory, and on the disk, so that the system may drop it."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(os.urandom(SIZE))
        file.flush()
        os.fsync(file.fileno())
    settle(path)
    if not is_there(path, 0):
        pytest.skip("this system does not keep what was written")
    return path


def test_what_only_we_have_read_does_not_stay_in_memory(large):
    forget(large)
    assert not is_there(large, PLACES[1])

    read_whole(seen(large))

    assert was_dropped(large)


def test_what_was_in_memory_before_us_stays(large):
    read_whole(seen(large))

    assert all(is_there(large, place) for place in PLACES)


def test_stat_of_a_file_before_it_is_read_does_not_make_it_anothers(large):
    forget(large)
    for _ in range(4):
        open_source(seen(large)).close()

    read_whole(seen(large))

    assert was_dropped(large)


def test_a_file_of_which_only_the_beginning_was_in_memory_does_not_stay(large):
    forget(large)
    with large.open("rb", buffering=0) as file:
        file.read(4096)

    read_whole(seen(large))

    assert was_dropped(large)
