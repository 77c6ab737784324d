"""What copies claim of files that were seen unchanged before: each change after that is noticed."""

import os
import shutil
import sqlite3

import pytest

from tests.copy_site import find_differences, find_false_claims
from tests.sshd_fixture import needs_sshd

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="times and inodes of POSIX"),
]


@pytest.fixture
def source(site):
    """A source whose files were sent, and seen unchanged as a whole; all have the same size."""
    folder = site.data / "src"
    for place in ("a", "b", "b/deeper"):
        (folder / place).mkdir(parents=True)
        for number in range(12):
            path = folder / place / f"{number:02}.raw"
            path.write_bytes(f"{place[-1]} {number:02}".encode())
            os.utime(path, (1e9, 1e9))
    first = site.copy(folder)
    assert sent(first) == 36
    assert not [it for it in first.lines if it["event"] == "run_paused"], "it is listed too early"
    assert sent(site.copy(folder)) == 0
    assert read_known(site) > 0, "nothing is known as a whole"
    return folder


def sent(ended):
    assert ended.code == 0, ended
    return ended.sums["sent"]


def read_known(site):
    """Return how many digests the ledger has of files here, if it has any of files there."""
    (file,) = [it for it in site.state.rglob("*.db") if "ledger" in str(it)]
    with sqlite3.connect(file) as ledger:
        (here,) = ledger.execute("SELECT count(*) FROM known_groups").fetchone()
        (there,) = ledger.execute("SELECT count(*) FROM listed_parts").fetchone()
    return here * there


def rewrite(path, content):
    """Write other bytes of the same size, and set the time back."""
    path.write_bytes(content)
    os.utime(path, (1e9, 1e9))


def swap_in(path, content):
    """Put another file of the same size and time in the place of one."""
    other = path.with_name("other")
    rewrite(other, content)
    other.replace(path)


def swap_folders(top):
    (top / "a").rename(top / "t")
    (top / "b").rename(top / "a")
    (top / "t").rename(top / "b")


@pytest.mark.parametrize("change", [rewrite, swap_in], ids=["rewritten", "other inode"])
def test_other_bytes_there_of_the_same_size_and_time_are_replaced(site, source, change):
    theirs = site.there / "src" / "b" / "05.raw"
    change(theirs, b"x 05")

    ended = site.copy(source)

    assert sent(ended) == 1
    assert theirs.read_bytes() == b"b 05"
    assert find_false_claims(site.there) == []
    assert sent(site.copy(source)) == 0


@pytest.mark.parametrize("change", [rewrite, swap_in], ids=["rewritten", "other inode"])
def test_other_bytes_here_of_the_same_size_and_time_are_sent(site, source, change):
    change(source / "a" / "05.raw", b"x 05")

    ended = site.copy(source)

    assert sent(ended) == 1
    assert (site.there / "src" / "a" / "05.raw").read_bytes() == b"x 05"
    assert find_false_claims(site.there) == []
    assert sent(site.copy(source)) == 0


def test_what_is_gone_there_is_sent_again(site, source):
    (site.there / "src" / "b" / "05.raw").unlink()
    (site.there / "src" / "b" / "deeper" / "05.raw").unlink()

    assert sent(site.copy(source)) == 2
    assert find_differences(source, site.there, b"src") == []


def test_many_that_are_gone_there_stop_the_copy(site, source):
    shutil.rmtree(site.there / "src" / "b")

    stopped = site.copy(source)
    ended = site.copy(source, "--accept-missing")

    assert stopped.problem == "destination.missing"
    assert sent(ended) == 24
    assert find_differences(source, site.there, b"src") == []


def test_folders_that_were_swapped_there_are_noticed(site, source):
    swap_folders(site.there / "src")

    site.copy(source, "--accept-missing")

    assert (site.there / "src" / "a" / "05.raw").read_bytes() == b"a 05"
    assert (site.there / "src" / "b" / "05.raw").read_bytes() == b"b 05"
    assert find_false_claims(site.there) == []


def test_folders_that_were_swapped_here_are_noticed(site, source):
    swap_folders(source)

    site.copy(source, "--replace-changed")

    assert (site.there / "src" / "a" / "05.raw").read_bytes() == b"b 05"
    assert (site.there / "src" / "b" / "05.raw").read_bytes() == b"a 05"
    assert find_false_claims(site.there) == []


def test_what_is_new_or_gone_here_changes_nothing_else(site, source):
    (source / "a" / "05.raw").unlink()
    (source / "b" / "new").write_bytes(b"new")

    ended = site.copy(source)

    assert (sent(ended), ended.sums["verified"]) == (1, 36)
    assert (site.there / "src" / "b" / "new").read_bytes() == b"new"
    assert sent(site.copy(source)) == 0
