"""The examination of database and boxes finds each kind of wrong."""

import hashlib

import pytest

from mydata_like.demo.demo_server import EmbeddedServer
from tests.embedded import HELLO, Api, record, staged


@pytest.fixture
def server(tmp_path):
    with EmbeddedServer(tmp_path / "site", verify_delay=0.0) as server:
        yield server


@pytest.fixture
def api(server):
    with Api(server) as api:
        api.prepare()
        api.put_file("own/a")
        api.post("mydata_dataset_file/", json=staged("a"))
        assert server.wait_verified()
        yield api


@pytest.fixture
def expected(tmp_path):
    local = tmp_path / "a"
    local.write_bytes(HELLO)
    return {("My Scan", "", "a"): local}


def test_all_is_well(server, api, expected):
    assert server.check_invariants(expected) == []


def test_an_unregistered_file_is_a_loss(server, api, expected):
    expected["My Scan", "", "b"] = expected["My Scan", "", "a"]

    (wrong,) = server.check_invariants(expected)

    assert "0 true records" in wrong


def test_a_record_of_no_local_file_is_found(server, api, expected):
    api.put_file("own/b")
    api.post("mydata_dataset_file/", json=staged("b"))
    assert server.wait_verified()

    assert server.check_invariants() == []
    assert len(server.check_invariants(expected)) == 1


def test_a_local_file_with_other_bytes_is_found(server, api, expected):
    expected["My Scan", "", "a"].write_bytes(b"olleh")

    assert len(server.check_invariants(expected)) == 1


def test_an_unverified_file_is_not_a_success(server, api, expected):
    server.hold_verification()
    api.put_file("own/b")
    expected["My Scan", "", "b"] = expected["My Scan", "", "a"]
    api.post("mydata_dataset_file/", json=staged("b"))

    assert server.check_invariants(expected) == ["('My Scan', '', 'b') is not verified"]
    server.release_verification()
    assert server.wait_verified()
    assert server.check_invariants(expected) == []


def test_changed_bytes_are_found(server, api):
    api.put_file("own/a", b"olleh")

    assert server.check_invariants() == ["datafile 1 ('a') is verified with other bytes"]


def test_vanished_bytes_are_found(server, api):
    (server.box_location / "own/a").unlink()

    assert server.check_invariants() == ["datafile 1 ('a') is verified and has no bytes"]


def test_registered_bytes_that_differ_are_found(server, api):
    api.put_file("own/b")
    api.post("mydata_dataset_file/", json=staged("b", md5sum="0" * 32))

    assert server.check_invariants() == ["datafile 2 ('b') is registered with other bytes"]


def test_doubles_are_found(server, api):
    for _ in range(2):
        api.post("mydata_dataset_file/", json=record("x", directory=...))
    api.make_dataset("My Scan")

    wrong = server.check_invariants()

    assert len(wrong) == 3
    assert "2 records of (1, '', 'x')" in wrong
    assert "2 datasets 'My Scan' in experiment 1" in wrong


def test_paths_outside_the_box_are_found(server, api):
    api.post("mydata_dataset_file/", json=staged("x", "../outside"))

    assert server.check_invariants() == ["datafile 2 ('x') has no replica inside its box"]


def test_datafiles_are_shown_with_the_location_of_their_bytes(server, api):
    (file,) = server.datafiles()

    assert file.key == ("My Scan", "", "a")
    assert (file.size, file.md5sum) == (5, hashlib.md5(HELLO).hexdigest())
    assert file.verified
    assert file.path.samefile(server.box_location / "own/a")
