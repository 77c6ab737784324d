"""A datafile of which the server keeps a second copy: new bytes are proven by themselves."""

import pytest

from mydata_like.core.events import FileVerified, FileWaiting
from tests.builders import a_file
from tests.site import open_site

LONG_AGO = 1_600_000_000


@pytest.fixture
def site(tmp_path):
    """A site whose one file has a copy on the server, and other bytes here since then."""
    a_file(tmp_path / "data/alice/Scan/a.tif", 1000, LONG_AGO)
    with open_site(tmp_path) as opened:
        assert opened.carry().code == 0
        opened.server.add_copy(1)
        a_file(opened.data / "alice/Scan/a.tif", 2000, LONG_AGO + 100)
        yield opened


def test_a_copy_of_earlier_bytes_does_not_verify_those_that_replaced_them(site):
    site.server.hold_verification()
    ended = site.carry("advanced.verify_patience=0")
    assert ended.of_kind(FileVerified) == []
    assert [event.problem.code for event in ended.of_kind(FileWaiting)] == ["verify.pending"]

    site.server.release_verification()
    again = site.carry()
    assert (again.code, len(again.of_kind(FileVerified))) == (0, 1)


def test_bytes_are_verified_where_they_were_put_though_a_copy_has_earlier_ones(site):
    ended = site.carry()
    assert (ended.code, len(ended.of_kind(FileVerified))) == (0, 1)
    assert sorted(file.verified for file in site.server.datafiles()) == [False, True]
    assert site.carry().of_kind(FileVerified) == []
