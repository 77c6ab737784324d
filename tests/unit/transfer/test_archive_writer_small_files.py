"""Tiny files fetched before their turn are read with the same care as all others."""

import errno
import os
from contextlib import closing
from itertools import count

import pytest

from mydata_like.core.errors import FileChangedError
from mydata_like.core.openat import FolderCache
from mydata_like.transfer.archive_writer import TINY, PrefetchedFile, fetch_ahead, read_tiny
from tests.privileges import count_descriptors
from tests.unit.transfer.test_file_source import md5, seen, settle_keeping_times


@pytest.fixture
def files(tmp_path):
    """Return 70 small files that nothing has touched lately, the third too large to be tiny."""
    paths = [tmp_path / str(number) for number in range(70)]
    for number, path in enumerate(paths):
        path.write_bytes(os.urandom(TINY + 1 if number == 2 else number))
        os.utime(path, ns=(0, 10**18))
    settle_keeping_times(*paths)
    return paths


@pytest.fixture
def folders():
    with FolderCache() as folders:
        yield folders


@pytest.fixture
def ahead_of(folders):
    """Fetch ahead of a reader for whom so many blocks come from the disk with each file."""

    def fetch(files, blocks):
        fetched = count(0, blocks)
        return closing(fetch_ahead(files, folders, lambda: next(fetched)))

    return fetch


def test_where_no_file_comes_from_the_disk_none_is_opened_before_its_turn(files, ahead_of):
    with ahead_of([seen(path) for path in files], blocks=0) as ahead:
        assert list(ahead) == [None] * len(files)


def test_files_on_the_disk_are_open_before_their_turn_and_read_as_always(files, ahead_of, folders):
    members = [seen(path) for path in files]
    early = 0

    with ahead_of(members, blocks=8) as ahead:
        for path, member, fetched in zip(files, members, ahead, strict=True):
            early += fetched is not None
            assert read_tiny(member, folders, fetched) == (
                path.read_bytes(),
                md5(path.read_bytes()),
            )

    assert early == 70 - 3 - 1  # three tell where the others are, one is not tiny


def test_a_file_that_changes_after_it_was_fetched_fails(files, ahead_of, folders):
    members = [seen(path) for path in files]
    with ahead_of(members, blocks=8) as ahead:
        next(ahead)
        fetched = next(ahead)
        files[1].write_bytes(b"x")
        os.utime(files[1], ns=(0, members[1].modified_ns))
        settle_keeping_times(files[1])

        with pytest.raises(FileChangedError):
            read_tiny(members[1], folders, fetched)


def test_a_file_that_cannot_be_opened_early_fails_at_its_turn(files, ahead_of, folders):
    members = [seen(path) for path in files]
    files[1].unlink()
    with ahead_of(members, blocks=8) as ahead:
        next(ahead)
        with pytest.raises(FileChangedError, match="no longer exists"):
            read_tiny(members[1], folders, next(ahead))


def test_a_reader_that_gives_up_leaves_no_file_open(files, ahead_of, folders):
    before = count_descriptors()

    with ahead_of([seen(path) for path in files], blocks=8) as ahead:
        next(ahead)
        os.close(next(ahead).descriptor)
    folders.close()

    assert count_descriptors() == before


class Disk:
    """Reads as a disk does that gives so many bytes at a time and then fails, or has no more."""

    def __init__(self, page, error_after=None):
        self._page = page
        self._left = error_after

    def __call__(self, descriptor, size):
        if self._left == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        size = min(size, self._page)
        if self._left is not None:
            size = min(size, self._left)
            self._left -= size
        return os.read(descriptor, size)


def test_a_bad_sector_beyond_the_first_page_makes_a_small_file_unreadable(files, folders):
    path = files[69]
    path.write_bytes(os.urandom(20_000))
    settle_keeping_times(path)

    with pytest.raises(FileChangedError) as failure:
        read_tiny(seen(path), folders, read=Disk(4096, error_after=4096))

    assert failure.value.problem_code == "file.unreadable"
    assert "nput/output error" in failure.value.message


def test_a_small_file_that_comes_in_pieces_is_read_whole(files, folders):
    path = files[69]

    assert read_tiny(seen(path), folders, read=Disk(7)) == (
        path.read_bytes(),
        md5(path.read_bytes()),
    )


def test_a_small_file_that_ends_early_has_changed(files, folders):
    path = files[69]
    member = seen(path)._replace(size=90)
    fetched = PrefetchedFile(os.open(path, os.O_RDONLY), path.stat(), 0)

    with pytest.raises(FileChangedError) as failure:
        read_tiny(member, folders, fetched, read=Disk(7))

    assert failure.value.problem_code == "file.changed"


def test_a_small_file_that_has_grown_has_changed(files, folders):
    path = files[69]
    member = seen(path)._replace(size=60)
    fetched = PrefetchedFile(os.open(path, os.O_RDONLY), path.stat(), 0)

    with pytest.raises(FileChangedError) as failure:
        read_tiny(member, folders, fetched, read=Disk(7))

    assert failure.value.problem_code == "file.changed"
