"""Files that a folder receives get their names only when they are right, and replace nothing."""

import errno
import hashlib
import os
from random import Random

import pytest

from mydata_like.core.destination_files import StoredContent
from mydata_like.core.errors import StagingError
from mydata_like.transfer.folder.received_files import (
    RESUMED,
    HashedFiles,
    ReceivedFiles,
    WantedFile,
    hash_alone,
)
from tests.privileges import needs_bytes

pytestmark = [needs_bytes]

LARGE = Random(1).randbytes(3 * RESUMED)


@pytest.fixture
def files(tmp_path):
    files = ReceivedFiles(os.fsencode(tmp_path / "here"))
    files.open(create=True)
    return files


def want(content, place=b"sub/file"):
    checksum = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return WantedFile(b"there/" + place, place, len(content), checksum, 10**18 + 7)


def pieces(content):
    return iter([content[at : at + 100_000] for at in range(0, len(content), 100_000)])


def receive(files, file, content, *, replace=False, sparse=False, before_names=lambda: None):
    """Receive a file; return whether it was right, what prevented its name, and its offset."""
    with files.receiving(replace=replace, sparse=sparse) as reception:
        with reception.open(file) as incoming:
            offset = incoming.offset
            stored = StoredContent(file.path, pieces(content[offset:]), 0o640)
            right = hash_alone(reception.write(incoming, stored, lambda size: None))
        before_names()
        problems = [problem.code for _, problem in reception.name_all() if problem]
    return right, problems, offset


def names(tmp_path):
    return sorted(it.name for it in (tmp_path / "here").rglob("*") if it.is_file())


def test_a_file_has_its_bytes_mode_and_time(files, tmp_path):
    assert receive(files, want(LARGE), LARGE) == (True, [], 0)

    found = tmp_path / "here" / "sub" / "file"
    assert found.read_bytes() == LARGE
    assert (found.stat().st_mode & 0o777, found.stat().st_mtime_ns) == (0o640, 10**18 + 7)


@pytest.mark.parametrize("content", [b"", b"contenT", b"conten", b"contents"])
def test_other_bytes_leave_nothing(files, tmp_path, content):
    assert receive(files, want(b"content"), content) == (False, [], 0)
    assert names(tmp_path) == []


@pytest.mark.parametrize("make", [os.mkdir, lambda path: path.write_bytes(b"mine")])
def test_what_appears_meanwhile_is_not_replaced(files, tmp_path, make):
    place = tmp_path / "here" / "sub" / "file"

    found = receive(files, want(b"content"), b"content", before_names=lambda: make(place))

    assert found == (True, ["destination.occupied"], 0)
    assert place.is_dir() or place.read_bytes() == b"mine"
    assert names(tmp_path) in ([], ["file"])


def test_on_request_only_regular_files_are_replaced(files, tmp_path):
    here, other = tmp_path / "here", tmp_path / "other"
    other.write_bytes(b"mine")
    (here / "file").write_bytes(b"mine")
    (here / "link").symlink_to(other)
    (here / "folder").mkdir()

    found = [
        receive(files, want(b"content", name), b"content", replace=True)[1]
        for name in (b"file", b"link", b"folder")
    ]

    assert found == [[], ["destination.occupied"], ["destination.occupied"]]
    assert (here / "file").read_bytes() == b"content"
    assert other.read_bytes() == b"mine"
    assert (here / "link").is_symlink()


def break_off(files, file, content):
    def few():
        yield from pieces(content)
        raise StagingError("broken")

    with (
        pytest.raises(StagingError),
        files.receiving(replace=False, sparse=False) as reception,
        reception.open(file) as incoming,
    ):
        hash_alone(reception.write(incoming, StoredContent(file.path, few()), lambda size: None))


def test_what_is_denied_ends_it_only_while_the_folder_is_empty(files, tmp_path):
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with pytest.raises(StagingError) as caught:
        files.judge(b"a", denied)
    (tmp_path / "here" / "mine").mkdir()

    assert caught.value.problem_code == files.judge(b"a", denied).code == "destination.denied"


def test_a_large_file_is_continued(files, tmp_path):
    break_off(files, want(LARGE), LARGE[: 2 * RESUMED + 5])

    right, problems, offset = receive(files, want(LARGE), LARGE)

    assert (right, problems, offset) == (True, [], 2 * RESUMED)
    assert (tmp_path / "here" / "sub" / "file").read_bytes() == LARGE
    assert names(tmp_path) == ["file"]


def test_a_small_file_is_not_left_in_part(files, tmp_path):
    break_off(files, want(b"content"), b"con")

    assert names(tmp_path) == []


def test_a_link_in_the_place_of_the_part_is_not_followed(files, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"mine" * RESUMED)
    part = tmp_path / "here" / os.fsdecode(want(LARGE).part)
    part.parent.mkdir()
    for link in (part.symlink_to, part.hardlink_to):
        link(other)

        found = receive(files, want(LARGE), LARGE)

        assert (found, other.read_bytes()) == ((True, [], 0), b"mine" * RESUMED)
        (tmp_path / "here" / "sub" / "file").unlink()


def test_zeros_become_holes_and_stay_zeros(files, tmp_path):
    content = b"x" + bytes(4 * RESUMED) + b"x" + bytes(3 * RESUMED)

    assert receive(files, want(content), content, sparse=True) == (True, [], 0)

    found = tmp_path / "here" / "sub" / "file"
    assert found.read_bytes() == content
    assert found.stat().st_blocks * 512 < RESUMED


def test_a_file_that_is_only_hashed_continues_after_an_error():
    files, file = HashedFiles(), want(LARGE)
    break_off(files, file, LARGE[: 2 * RESUMED])

    assert receive(files, file, LARGE) == (True, [], 2 * RESUMED)
    assert files.right == {file.path: file.checksum}


@pytest.mark.parametrize("content", [LARGE[:-1], LARGE + b"x", b"x" + LARGE[1:]])
def test_other_bytes_of_a_file_that_is_only_hashed_are_not_right(content):
    files, file = HashedFiles(), want(LARGE)

    assert receive(files, file, content) == (False, [], 0)
    assert files.right == {}
    assert receive(files, file, LARGE) == (True, [], 0)


def test_a_small_file_that_is_only_hashed_begins_again():
    files, file = HashedFiles(), want(b"content")
    break_off(files, file, b"con")

    assert receive(files, file, b"content") == (True, [], 0)
