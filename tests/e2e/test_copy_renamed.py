"""Files that were renamed here are renamed at the destination: no byte of them is sent again."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from mydata_like.catalogues.manifest.segments import Manifest
from mydata_like.transfer.folder.mounted_files import LocalFiles
from tests.copy_site import find_differences, find_false_claims
from tests.sshd_fixture import needs_sshd

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="times and inodes of POSIX"),
]
FILES = 30


@pytest.fixture
def source(site):
    """A source that was copied; all files have the same size and time, and other bytes."""
    folder = site.data / "src"
    (folder / "a" / "deeper").mkdir(parents=True)
    for number in range(FILES):
        path = folder / "a" / ("deeper" if number % 2 else "") / f"{number:02}.raw"
        path.write_bytes(b"bytes %02d" % number)
        os.utime(path, (1e9, 1e9))
    assert_done(site.copy(folder), sent=FILES)
    return folder


def assert_done(ended, *, sent, renamed=0):
    assert ended.code == 0, ended
    sums = ended.sums
    assert (sums["sent"], sums["renamed"]) == (sent, renamed)
    assert sums["verified"] == sums["found"]


def assert_same(site, source, *others):
    """Compare the copy with the source; these other files or folders are there in addition."""
    wrongs = find_differences(source, site.there, os.fsencode(source.name), others=others)
    assert wrongs == []


def read(path):
    return path.read_bytes() if path.exists() else None


def rewrite(path, content):
    """Write other bytes of the same size, and set the time back."""
    path.write_bytes(content)
    os.utime(path, (1e9, 1e9))


def test_a_renamed_folder_is_renamed_there(site, source):
    (source / "a").rename(source / "b")
    inodes = {it.stat().st_ino for it in (site.there / "src").rglob("*.raw")}

    ended = site.copy(source)

    assert_done(ended, sent=0, renamed=FILES)
    renamed = {it["before"]: it["path"] for it in ended.lines if it["event"] == "file_renamed"}
    assert renamed[f"{source}/a/00.raw"] == f"{source}/b/00.raw"
    assert {it.stat().st_ino for it in (site.there / "src" / "b").rglob("*.raw")} == inodes
    assert_same(site, source, b"a", b"a/deeper")
    assert_done(site.copy(source), sent=0)


def test_a_renamed_source_is_renamed_there(site, source):
    other = source.rename(source.with_name("other"))
    assert_done(site.copy(other), sent=0, renamed=FILES)
    assert_same(site, other)


def test_a_file_is_read_before_its_copy_is_moved_to_another_folder(site, source):
    (source / "a" / "00.raw").rename(source / "moved.raw")
    assert_done(site.copy(source), sent=0, renamed=1)
    assert_same(site, source)


def test_a_file_with_an_unusual_name_is_renamed_there(site, source):
    (source / "a" / "00.raw").rename(source / "a" / "-n 'x'\n$(id)\\ .raw")
    assert_done(site.copy(source), sent=0, renamed=1)
    assert_same(site, source)


def test_files_that_were_swapped_are_sent(site, source):
    first, second, third = (source / "a" / name for name in ("00.raw", "02.raw", "t"))
    first.rename(third)
    second.rename(first)
    third.rename(second)
    assert_done(site.copy(source), sent=2)
    assert read(site.there / "src" / "a" / "00.raw") == b"bytes 02"


def test_three_files_that_moved_on_by_one_name(site, source):
    (source / "a" / "04.raw").rename(source / "a" / "t")
    (source / "a" / "02.raw").rename(source / "a" / "04.raw")
    (source / "a" / "00.raw").rename(source / "a" / "02.raw")
    ended = site.copy(source)
    assert_done(ended, sent=3)
    assert read(site.there / "src" / "a" / "t") == b"bytes 04"
    assert find_false_claims(site.there) == []


def test_copies_and_hard_links_of_a_file_are_sent(site, source):
    shutil.copy2(source / "a" / "00.raw", source / "copy")
    os.link(source / "a" / "02.raw", source / "link")
    assert_done(site.copy(source), sent=2)
    assert_same(site, source)


def test_only_one_of_two_new_hard_links_gets_the_copy(site, source):
    os.link(source / "a" / "00.raw", source / "one")
    os.link(source / "a" / "00.raw", source / "two")
    (source / "a" / "00.raw").unlink()
    assert_done(site.copy(source), sent=1, renamed=1)
    assert_same(site, source)


def test_a_file_that_was_modified_and_moved_is_sent(site, source):
    (source / "a" / "00.raw").write_bytes(b"bytes and more")
    (source / "a" / "00.raw").rename(source / "moved")
    assert_done(site.copy(source), sent=1)
    assert_same(site, source, b"a/00.raw")


def test_another_file_with_inode_size_and_time_of_a_gone_one_is_sent(site, source):
    rewrite(source / "a" / "00.raw", b"BYTES 00")
    (source / "a" / "00.raw").rename(source / "new")
    assert_done(site.copy(source), sent=1)
    assert read(site.there / "src" / "a" / "00.raw") == b"bytes 00"
    assert_same(site, source, b"a/00.raw")


def test_a_copy_that_was_changed_is_not_taken_for_the_renamed_file(site, source):
    rewrite(site.there / "src" / "a" / "00.raw", b"OTHERS'!")
    (source / "a").rename(source / "b")
    assert_done(site.copy(source), sent=1, renamed=FILES - 1)
    assert read(site.there / "src" / "a" / "00.raw") == b"OTHERS'!"
    assert read(site.there / "src" / "b" / "00.raw") == b"bytes 00"
    rewrite(site.there / "src" / "a" / "00.raw", b"bytes 00")  # what is listed of it


def test_nothing_is_renamed_over_a_file_of_others(site, source):
    (site.there / "src" / "b").mkdir()
    (site.there / "src" / "b" / "00.raw").write_bytes(b"theirs")
    (source / "a").rename(source / "b")
    ended = site.copy(source)
    assert (ended.code, ended.sums["failed"], ended.sums["renamed"]) == (1, 1, FILES - 1)
    assert read(site.there / "src" / "b" / "00.raw") == b"theirs"
    assert read(site.there / "src" / "a" / "00.raw") == b"bytes 00"
    assert find_false_claims(site.there) == []


def test_what_another_uploader_has_sent_keeps_its_name(site, source):
    site.state = site.folder / "another computer"
    assert_done(site.copy(source), sent=0)
    (source / "a").rename(source / "b")
    assert_done(site.copy(source), sent=FILES)
    assert read(site.there / "src" / "a" / "00.raw") == b"bytes 00"
    assert find_false_claims(site.there) == []


def test_a_new_name_in_other_case_is_sent(site, source):
    (source / "a").rename(source / "A")
    assert_done(site.copy(source), sent=FILES)
    assert find_false_claims(site.there) == []


def test_without_the_ledger_renamed_files_are_sent(site, source):
    shutil.rmtree(site.state)
    (source / "a").rename(source / "b")
    assert_done(site.copy(source), sent=FILES)
    assert find_false_claims(site.there) == []


@pytest.mark.parametrize("moved", [0, 10], ids=["before", "within"])
def test_a_copy_that_was_killed_while_it_renamed_is_continued(site, source, moved):
    (source / "a").rename(source / "b")
    there, (uploader,) = site.there / "src", (site.there / ".mydata-like/manifest").iterdir()
    with closing(LocalFiles(bytes(site.there))) as files:
        files.open(create=False)
        paths = [bytes(it.relative_to(site.there)) for it in there.rglob("*.raw")]
        Manifest(files, uploader.name, report=pytest.fail).withdraw(paths)
    (ledger,) = [it for it in site.state.rglob("*.db") if "ledger" in str(it)]
    with closing(sqlite3.connect(ledger)) as rows, rows:
        rows.execute("UPDATE files SET state = 'registered', datafile = NULL")
    (there / "b" / "deeper").mkdir(parents=True)
    for path in sorted((there / "a").rglob("*.raw"))[:moved]:
        path.rename(there / "b" / path.relative_to(there / "a"))

    assert_done(site.copy(source), sent=0, renamed=FILES - moved)
    assert_same(site, source, b"a", b"a/deeper")
    assert_done(site.copy(source), sent=0)


def test_a_preview_says_what_would_be_renamed(site, source):
    (source / "a").rename(source / "b")
    (source / "b" / "00.raw").rename(source / "b" / "new")
    ended = site.copy(source, "--dry-run", "--text")
    assert "0 files, 0 bytes would be sent; 30 would be renamed there" in ended.output
    assert (site.there / "src" / "a" / "00.raw").exists()
    assert_done(site.copy(source), sent=0, renamed=FILES)


def test_a_renamed_folder_of_the_data_directory_is_renamed_there(site, source):
    site.write_settings(data__directory=str(source))
    shutil.rmtree(site.there)
    assert site.call("run", "--events").code == 0
    (source / "a").rename(source / "b")
    ended = site.call("run", "--events")
    assert_done(ended, sent=0, renamed=FILES)
    assert not [it for it in ended.lines if it["event"] == "notice"]
    assert find_false_claims(site.there) == []
