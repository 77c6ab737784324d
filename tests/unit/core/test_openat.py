"""Files and folders are opened below a trusted folder without following any link."""

import errno
import os
import stat
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mydata_like.core.openat import FOLDER, NO_LINK, FolderCache, OpenFolder, check_path, look
from tests.privileges import IS_ROOT, needs_links

READ = os.O_RDONLY | NO_LINK
NOBODY = 65534


on_posix = pytest.mark.skipif(sys.platform == "win32", reason="only POSIX has openat")


@pytest.fixture(
    params=[pytest.param(True, marks=on_posix), False],
    ids=["by descriptor", "by path, as on Windows"],
)
def by_descriptor(request):
    return request.param


@pytest.fixture
def folders(by_descriptor):
    with FolderCache(by_descriptor=by_descriptor) as folders:
        yield folders


@pytest.fixture
def data(tmp_path):
    """Return a data directory in which a file lies two folders deep."""
    for folder in (tmp_path / "data", tmp_path / "outside"):
        (folder / "a/b").mkdir(parents=True)
        (folder / "a/b/file").write_text(folder.name)
    return tmp_path / "data"


def read(folders, path, top):
    descriptor = folders.open(os.fsencode(path), len(os.fsencode(top)), READ)
    with open(descriptor) as file:  # noqa: PTH123 - it is open already
        return file.read()


def swap(folder, target):
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(target)


def test_a_file_is_opened_by_its_folders(data, folders):
    assert read(folders, data / "a/b/file", data) == "data"
    assert read(folders, data / "a/b/file", data / "a/b/file") == "data"
    assert read(folders, data / "a/b/file", "") == "data"


def test_many_folders_in_turn_are_found(data, folders):
    paths = [data / name for name in ("a/b/file", "a/c", "d/e/f/g", "a/b/h", "i", "d/e/f/j")]
    for path in paths[1:]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)

    texts = [read(folders, path, data) for path in paths * 2]

    assert texts == ["data", "c", "g", "h", "i", "j"] * 2


@needs_links
@pytest.mark.parametrize("swapped", ["a", "a/b"])
def test_a_folder_that_has_become_a_link_is_refused(data, folders, swapped):
    swap(data / swapped, data.parent / "outside" / swapped)

    with pytest.raises(OSError, match="link") as refusal:
        read(folders, data / "a/b/file", data)

    assert refusal.value.errno == errno.ELOOP


def test_a_link_to_the_very_same_folder_is_refused_as_well(data, folders):
    (data / "a").rename(data.parent / "elsewhere")
    (data / "a").symlink_to(data.parent / "elsewhere")

    with pytest.raises(OSError, match="link"):
        read(folders, data / "a/b/file", data)


@needs_links
def test_links_in_what_is_trusted_are_followed(data, folders):
    link = data.with_name("link")
    link.symlink_to(data)

    assert read(folders, link / "a/b/file", link) == "data"
    assert read(folders, link / "a/b/file", "") == "data"


@needs_links
def test_a_link_in_the_place_of_the_file_is_refused(data, folders):
    (data / "link").symlink_to(data / "a/b/file")

    for top in (data, ""):
        with pytest.raises(OSError, match="link") as refusal:
            read(folders, data / "link", top)
        assert refusal.value.errno == errno.ELOOP


@pytest.mark.parametrize("name", ["gone/file", "a/b/file/below"])
def test_what_is_not_there_is_said_to_be_so(data, folders, name):
    with pytest.raises((FileNotFoundError, NotADirectoryError)):
        read(folders, data / name, data)


def test_after_a_refusal_others_are_still_found(data, folders):
    read(folders, data / "a/b/file", data)
    (data / "a/link").symlink_to("b")
    with pytest.raises(OSError, match="link"):
        read(folders, data / "a/link/file", data)

    assert read(folders, data / "a/b/file", data) == "data"


@needs_links
def test_no_descriptor_is_left(data, by_descriptor):
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only their number counts
    (data / "link").symlink_to("a")

    with FolderCache(by_descriptor=by_descriptor) as folders:
        read(folders, data / "a/b/file", data)
        for name in ("link/b/file", "gone", "a/gone/file"):
            with pytest.raises(OSError, match=r"link|No such"):
                read(folders, data / name, data)
    with pytest.raises(OSError, match=r"link|No such"):
        OpenFolder.open(os.fsencode(data / "link"), len(os.fsencode(data)))

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.skipif(not IS_ROOT, reason="only root can take another identity")
@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="Linux only")
def test_folders_that_may_only_be_passed_are_passed():
    with TemporaryDirectory() as name, FolderCache() as folders:
        top = Path(name)
        (top / "a").mkdir()
        (top / "a/file").write_text("here")
        for folder in (top, top / "a"):
            folder.chmod(0o711)
        os.seteuid(NOBODY)
        try:
            assert read(folders, top / "a/file", top) == "here"
        finally:
            os.seteuid(0)


def test_a_folder_is_listed_with_what_lies_below(data, by_descriptor):
    top = os.fsencode(data)
    with OpenFolder.open(top, len(top), by_descriptor=by_descriptor) as listing:
        assert [os.fsencode(entry.name) for entry in listing.entries] == [b"a"]
        with listing.open_below(b"a") as below:
            assert below.path == os.fsencode(data / "a")
            assert os.path.samestat(below.status, (data / "a").stat())
            assert [entry.is_dir() for entry in below.entries] == [True]


@needs_links
def test_a_listed_folder_that_has_become_a_link_is_not_entered(data, by_descriptor):
    top = os.fsencode(data)
    with OpenFolder.open(top, len(top), by_descriptor=by_descriptor) as listing:
        assert len(list(listing.entries)) == 1
        swap(data / "a", data.parent / "outside/a")

        with pytest.raises(OSError, match="link"):
            listing.open_below(b"a")


@on_posix
def test_an_open_folder_stays_the_one_that_was_opened(data):
    path = os.fsencode(data / "a/b")
    with OpenFolder.open(path, len(os.fsencode(data))) as listing:
        expected = (data / "a/b/file").stat()
        swap(data / "a", data.parent / "outside/a")

        (entry,) = listing.entries
        assert os.path.samestat(entry.stat(follow_symlinks=False), expected)


@needs_links
def test_a_folder_is_no_longer_read_through_a_link(data):
    top = len(os.fsencode(data))
    assert stat.S_ISREG(look(os.fsencode(data / "a/b/file"), top).st_mode)
    swap(data / "a", data.parent / "outside/a")

    with pytest.raises(OSError, match="link"):
        look(os.fsencode(data / "a/b/file"), top)
    assert stat.S_ISLNK(look(os.fsencode(data / "a"), top).st_mode)
    with pytest.raises(OSError, match="link"):
        check_path(os.fsencode(data / "a/b"), top)


@on_posix
def test_the_top_of_all_is_opened(by_descriptor):
    with FolderCache(by_descriptor=by_descriptor) as folders:
        os.close(folders.open(b"/", 1, FOLDER))
        os.close(folders.open(os.fsencode(Path("/").joinpath(*Path.cwd().parts[1:2])), 1, FOLDER))
