"""Which new files were renamed, by what the ledger has of names that are gone."""

import os

import pytest

from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import DatasetId, Entry, EntryState
from mydata_like.engine.renamed import RenamedFiles
from tests.fakes.ledger import MemoryLedger


def scan(root, name):
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"abc")
    seen = path.stat()
    return LocalFile(
        bytes(path),
        os.fsencode(name),
        b"",
        os.fsencode(path.name),
        seen.st_size,
        seen.st_mtime_ns,
        seen.st_dev,
        seen.st_ino,
        seen.st_ctime_ns,
    )


def row_of(file, key=b"old/a", **changes):
    row = Entry(
        key,
        file.size,
        file.modified_ns,
        EntryState.VERIFIED,
        DatasetId(1),
        inode=file.inode,
        ctime_ns=file.ctime_ns,
    )
    return row._replace(**changes)


def test_a_row_whose_name_is_gone_is_the_former_one(tmp_path):
    file = scan(tmp_path, "new/a")
    row = row_of(file)
    assert RenamedFiles(MemoryLedger([row]), bytes(tmp_path))([file]) == {b"new/a": row}


@pytest.mark.parametrize(
    "changes", [{"size": 4}, {"modified_ns": 5}, {"inode": 6}, {"key": b"NEW/A"}], ids=str
)
def test_other_rows_are_not(tmp_path, changes):
    file = scan(tmp_path, "new/a")
    ledger = MemoryLedger([row_of(file, **changes)])
    assert RenamedFiles(ledger, bytes(tmp_path))([file]) == {}


def test_a_name_that_is_still_there_is_not_gone(tmp_path):
    file, other = scan(tmp_path, "new/a"), scan(tmp_path, "old/a")
    assert other.key == b"old/a"
    assert RenamedFiles(MemoryLedger([row_of(file)]), bytes(tmp_path))([file]) == {}


def test_a_name_on_another_file_system_may_only_be_unmounted(tmp_path):
    file = scan(tmp_path, "new/a")
    moved = file._replace(device=file.device + 1)
    assert RenamedFiles(MemoryLedger([row_of(file)]), bytes(tmp_path))([moved]) == {}


def test_a_row_is_found_for_one_file_only(tmp_path):
    file, row = scan(tmp_path, "new/a"), None
    link = file._replace(key=b"new/b")
    row = row_of(file)
    find = RenamedFiles(MemoryLedger([row]), bytes(tmp_path))
    assert [find([file]), find([link])] == [{b"new/a": row}, {}]
