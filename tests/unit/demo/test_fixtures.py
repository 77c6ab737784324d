"""Sample data: the same every time, odd where it should be."""

import time
import unicodedata

import pytest

from mydata_like.demo.fixtures import MEBIBYTE, make_samples
from tests.privileges import needs_holes


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    make_samples(folder, tiny_files=30, large=4 * MEBIBYTE)
    return folder


def read_tree(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_they_are_the_same_every_time(samples, tmp_path):
    make_samples(tmp_path, tiny_files=30, large=4 * MEBIBYTE)

    assert read_tree(tmp_path) == read_tree(samples)


def test_they_belong_to_two_owners(samples):
    assert sorted(path.name for path in samples.iterdir()) == ["alice", "bob"]


def test_nothing_is_too_new(samples):
    assert all(time.time() - path.stat().st_mtime > 3600 for path in samples.rglob("*"))


def test_there_are_empty_sparse_and_large_files(samples):
    sparse = (samples / "bob/Long run/sparse.dat").stat()

    assert any(path.stat().st_size == 0 for path in samples.rglob("empty.dat"))
    assert sparse.st_size == 4 * MEBIBYTE
    assert (samples / "alice/Tomogram 7/volume.raw").stat().st_size == 4 * MEBIBYTE


@needs_holes
def test_a_sparse_file_takes_less_than_its_size(samples):
    sparse = (samples / "bob/Long run/sparse.dat").stat()

    assert sparse.st_blocks * 512 < 2 * MEBIBYTE


def test_both_normal_forms_of_a_name_are_there(samples):
    names = [path.name for path in samples.rglob("*.txt")]

    assert sum(unicodedata.is_normalized("NFC", name) for name in names) == len(names) - 1
