"""How a local file compares with the one in the ledger."""

import pytest

from mydata_like.core.file_status import LocalFacts, LocalState, compare
from mydata_like.core.local_files import signed
from mydata_like.core.model import DatasetId, Entry, EntryState


@pytest.mark.parametrize("inode", [7, 2**64 - 2], ids=["short", "of 64 bits, as on Windows"])
def test_a_file_is_the_same_whatever_its_inode(inode):
    facts = LocalFacts(size=3, modified_ns=1, ctime_ns=2, inode=inode)
    entry = Entry(b"a", 3, 1, EntryState.VERIFIED, DatasetId(1), ctime_ns=2, inode=signed(inode))

    assert compare(entry, facts) is LocalState.SAME
    assert compare(entry, facts._replace(inode=inode - 1)) is LocalState.UNCERTAIN
