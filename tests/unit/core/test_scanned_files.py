"""Parts of scanned files, which are known or unknown together."""

from array import array

import pytest

from mydata_like.core.scanned_files import FEWEST, MOST, FolderPart, ScannedFiles


def list_folder(number, inodes):
    name = b"folder %d/" % number
    names = [b"%d.dat" % inode for inode in inodes]
    facts = array("q", (it for inode in inodes for it in (inode % 7, 10**9, 2 * 10**9, inode)))
    size = sum(inode % 7 for inode in inodes)
    numbers = array("Q", [5] * len(inodes)), array("I", [0o644] * len(inodes))
    return FolderPart(b"/data/" + name, name, b"", 5, names, facts, *numbers, size)


def scan(*folders):
    """Return files of folders, of which each is given by the inodes of its files."""
    return ScannedFiles([list_folder(*folder) for folder in enumerate(folders)])


@pytest.mark.parametrize(
    "folders",
    [
        [range(1, 951)],
        [range(100, 101)],
        [range(700, 760), range(3), range(990, 1400)],
        [[number] for number in range(60)],
        [range(1, 2000, 2)],
        [range(0, 100_000, 100)],
        [],
    ],
)
def test_parts_have_all_files_in_their_order(folders):
    files = scan(*folders)
    parts = list(files.divide())

    assert [file for part in parts for file in part] == list(files)
    assert all(part.size == sum(file.size for file in part) for part in parts)
    assert all(FEWEST <= len(part) <= MOST for part in parts[:-1])
    assert len({part.digest for part in parts}) == len(parts)


@pytest.mark.parametrize("number", [1, 299, 300, 301, 950])
def test_one_file_less_changes_two_parts_at_most(number):
    inodes = range(1, 951)
    before = [part.digest for part in scan(inodes).divide()]
    left = [inode for inode in inodes if inode != number]
    after = {part.digest for part in scan(left).divide()}

    assert 8 <= len(before) <= 12
    assert 1 <= len(set(before) - after) <= 2


def test_names_of_archives_are_not_known_as_a_whole():
    folder = list_folder(0, range(1, 301))
    names = [*folder.names[:150], b"a.tar", *folder.names[151:]]

    digests = [part.digest for part in ScannedFiles([folder._replace(names=names)]).divide()]

    assert [digest == b"" for digest in digests] == [False, True, False, False]
