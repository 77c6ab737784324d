"""Holes are found without reading them, and never where data is."""

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mydata_like.transfer import sparse
from mydata_like.transfer.sparse import MOST_EXTENTS, SMALLEST_HOLE, find_extents, zeros
from tests.privileges import needs_holes, needs_proc

KIB = 1024


def write_at(file, offset, content):
    file.seek(offset)
    file.write(content)


@pytest.fixture
def extents_of(tmp_path):
    """Return a function that makes a file with data here and there and finds its extents."""

    def find(size, data=()):
        with (tmp_path / "file").open("w+b", buffering=0) as file:
            file.truncate(size)
            for offset, length in data:
                write_at(file, offset, b"\xaa" * length)
            return find_extents(file.fileno(), size)

    return find


def test_an_empty_file_has_no_extents(extents_of):
    assert extents_of(0) == []


@pytest.mark.parametrize("size", [1, 511, 512, 100_000])
def test_a_file_without_holes_is_one_extent(extents_of, size):
    assert extents_of(size, [(0, size)]) == [(0, size)]


@needs_holes
def test_a_terabyte_of_nothing_takes_no_time(extents_of):
    started = time.process_time()

    assert extents_of(1024**4) == []
    assert time.process_time() - started < 1


@needs_holes
def test_data_at_both_ends_of_a_terabyte_is_found(extents_of):
    size = 1024**4 + 1

    assert extents_of(size, [(0, 4096), (size - 1, 1)]) == [(0, 4096), (size - 1, 1)]


def test_a_small_hole_counts_as_data(extents_of):
    hole = SMALLEST_HOLE - 4096

    assert extents_of(hole + 8192, [(0, 4096), (hole + 4096, 4096)]) == [(0, hole + 8192)]


@needs_holes
def test_a_file_with_very_many_holes_has_a_bounded_map(tmp_path):
    count, step = 2 * MOST_EXTENTS + 10, SMALLEST_HOLE + 8192
    with (tmp_path / "file").open("w+b", buffering=0) as file:
        for number in range(count):
            write_at(file, number * step, b"x")
        size = os.fstat(file.fileno()).st_size

        extents = find_extents(file.fileno(), size)

    assert len(extents) <= MOST_EXTENTS
    assert extents[0][0] == 0
    assert sum(extents[-1]) == size


@needs_proc
def test_a_file_whose_holes_are_unknown_is_one_extent():
    with open("/proc/self/maps", "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
        assert find_extents(file.fileno(), 700_000) == [(0, 700_000)]


DATA = st.lists(st.tuples(st.integers(0, 3000 * KIB), st.integers(1, 200 * KIB)), max_size=8)


@settings(max_examples=60, deadline=None)
@given(data=DATA, more=st.integers(0, 500 * KIB))
def test_all_that_lies_between_extents_is_zeros(tmp_path_factory, data, more):
    path = tmp_path_factory.mktemp("sparse") / "file"
    size = max([0, *(sum(extent) for extent in data)]) + more
    with path.open("w+b", buffering=0) as file:
        file.truncate(size)
        for offset, length in data:
            write_at(file, offset, os.urandom(length))
        extents = find_extents(file.fileno(), size)
    content = path.read_bytes()
    path.unlink()

    rebuilt = bytearray(size)
    for offset, length in extents:
        rebuilt[offset : offset + length] = content[offset : offset + length]
    ends = [sum(extent) for extent in extents]

    assert rebuilt == content
    assert all(offset % 512 == 0 and length > 0 for offset, length in extents)
    assert all(length % 512 == 0 for _, length in extents[:-1])
    assert all(start > end for (start, _), end in zip(extents[1:], ends, strict=False))
    assert max(ends, default=0) <= size


@pytest.mark.parametrize("count", [0, 1, 1024 * KIB - 1, 1024 * KIB, 3 * 1024 * KIB + 5])
def test_zeros_are_counted_exactly(count):
    assert sum(map(len, zeros(count))) == count
    assert not any(b"".join(zeros(count)))


def test_zeros_are_one_shared_read_only_constant():
    assert all(chunk.obj is sparse.zeros(1).__next__().obj for chunk in zeros(3 * 1024 * KIB))
    assert all(chunk.readonly for chunk in zeros(5))
