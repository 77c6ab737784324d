"""Runs during which a folder is moved, or replaced by a link to what is never sent then."""

import pytest

from mydata_like.core.events import FilesSeen, FileVerified, FileWaiting, FolderFailed, FolderFound
from tests.builders import a_file
from tests.privileges import needs_links
from tests.site import open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

LONG_AGO = 1_600_000_000
NAMES = {b"alice/Scan/a.tif", b"alice/Scan/b.tif"}


@pytest.fixture
def site(tmp_path):
    for name in ("a.tif", "b.tif"):
        a_file(tmp_path / "data/alice/Scan" / name, 1000, LONG_AGO)
    with open_site(tmp_path) as opened:
        yield opened


def swapping(site, kind, path, name):
    """Return what replaces a folder by a link to it, elsewhere, at an event about a path."""

    def watch(event):
        folder = site.data / name
        if isinstance(event, kind) and path(event) and not folder.is_symlink():
            folder.rename(site.data.parent / "outside")
            folder.symlink_to(site.data.parent / "outside")

    return watch


@needs_links
@pytest.mark.parametrize("method", ["auto", "http"])
def test_a_folder_that_is_swapped_after_it_was_read_is_not_sent(site, method):
    watch = swapping(site, FilesSeen, lambda it: it.folder == b"alice/Scan", "alice/Scan")

    carried = site.carry(f"transfer.method={method}", watch=watch)

    assert not carried.of_kind(FileVerified)
    waiting = carried.of_kind(FileWaiting)
    assert {(it.path, it.problem.code) for it in waiting} == {(k, "file.replaced") for k in NAMES}


@needs_links
def test_a_folder_that_is_swapped_after_it_was_listed_is_not_read(site):
    a_file(site.data / "alice/Before/c.tif", 1000, LONG_AGO)
    watch = swapping(site, FolderFound, lambda it: it.path == b"alice/Before", "alice/Scan")

    carried = site.carry(watch=watch)

    assert {it.path for it in carried.of_kind(FileVerified)} == {b"alice/Before/c.tif"}
    (failed,) = carried.of_kind(FolderFailed)
    assert (failed.path, failed.problem.code) == (b"alice/Scan", "folder.unreadable")


def test_a_folder_that_is_moved_after_it_was_read_costs_its_own_files_only(site):
    a_file(site.data / "alice/Later/c.tif", 1000, LONG_AGO)

    def watch(event):
        if isinstance(event, FilesSeen) and event.folder == b"alice/Scan":
            (site.data / "alice/Scan").rename(site.data.parent / "elsewhere")

    carried = site.carry(watch=watch)

    assert {it.path for it in carried.of_kind(FileVerified)} == {b"alice/Later/c.tif"}
    assert {it.path for it in carried.of_kind(FileWaiting)} == NAMES
