"""What the embedded server offers to the program that runs it, and the chunked upload."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import xxhash

from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.fixtures import DemoUser
from mydata_like.demo.uploaders import ScpAddress
from tests.embedded import UUID, Api, record, registration, staged


@pytest.fixture
def server(tmp_path):
    with EmbeddedServer(tmp_path, verify_delay=0.0, auto_approve=True) as server:
        yield server


@pytest.fixture
def api(server):
    with Api(server) as api:
        api.prepare(approved=False)
        yield api


def test_no_thread_survives_the_server(tmp_path):
    before = set(threading.enumerate())

    with EmbeddedServer(tmp_path) as server, Api(server) as api:
        api.get("facility/")

    assert set(threading.enumerate()) == before


def test_what_it_knew_is_there_again(tmp_path):
    with EmbeddedServer(tmp_path) as first, Api(first) as api:
        first.hold_verification()
        api.prepare()
        api.put_file("own/a")
        api.post("mydata_dataset_file/", json=staged("a"))
        key = first.api_key

    with EmbeddedServer(tmp_path, verify_delay=0.0) as second:
        assert second.wait_verified()
        assert second.datafiles()[0].verified
        assert second.api_key == key


def test_a_stopped_server_can_return_to_its_port(tmp_path):
    with EmbeddedServer(tmp_path) as first, Api(first) as api:
        assert api.get("facility/").status_code == 200

        port = first.port

    with EmbeddedServer(tmp_path, port=port) as second, Api(second) as api:
        assert second.port == port
        assert api.get("facility/").status_code == 200


def test_automatic_approval_comes_with_the_request(server, api):
    server.set_address(ScpAddress("mydata", "localhost", 2222, ["SHA256:a", "SHA256:b"]))

    found = api.post("mydata_uploaderregistrationrequest/", json=registration("SHA256:new")).json()

    attributes = found["approved_storage_box"]["attributes"]
    assert {entry["key"]: entry["value"] for entry in attributes} == {
        "scp_username": "mydata",
        "scp_hostname": "localhost",
        "scp_port": "2222",
        "host_keys": "SHA256:a,SHA256:b",
    }
    assert len(server.public_keys()) == 2


def test_an_approval_can_be_withdrawn(server, api):
    server.withdraw_approval(UUID)

    found = api.get("mydata_uploaderregistrationrequest/").json()["objects"][0]
    assert (found["approved"], found["approved_storage_box"]) == (False, None)
    assert server.public_keys() == []


def test_an_approval_has_a_last_day_and_comments_that_change_nothing(server, api):
    server.annotate_approval(UUID, expiry="2020-01-31", comments="ask Ann")

    found = api.get("mydata_uploaderregistrationrequest/").json()["objects"][0]
    told = (found["approved"], found["approval_expiry"], found["approver_comments"])
    assert told == (True, "2020-01-31", "ask Ann")


def test_people_can_be_added(server, api):
    server.add_group("lab-b")
    person = DemoUser("carol", "carol@example.org", "Carol Doe", groups=["lab-b"])

    key = server.add_user(person)

    assert key == server.key_of("carol")
    found = api.get("user/?username=carol").json()["objects"][0]
    assert [group["name"] for group in found["groups"]] == ["lab-b"]


def test_a_share_in_an_experiment_shows_it_to_others(server, api):
    acl = {
        "pluginId": "django_group",
        "entityId": str(api.get("group/?name=lab-a").json()["objects"][0]["id"]),
        "content_object": "/api/v1/experiment/1/",
        "isOwner": True,
    }
    with Api(server, "alice") as alice:
        before = alice.get("dataset/").json()["objects"]
        assert api.post("objectacl/", json=acl).status_code == 201
        after = alice.get("dataset/").json()["objects"]

    assert (len(before), len(after)) == (0, 1)


def test_many_connections_make_no_name_twice(server, api):
    def post(number):
        with Api(server) as mine:
            return mine.post("mydata_dataset_file/", json=record(f"f{number % 5}")).status_code

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(post, range(40)))

    assert sorted(seen) == [201] * 5 + [409] * 35


def test_chunks_make_a_file_that_is_verified(server, api):
    content = b"0123456789"
    body = record("c.bin", size=10, md5sum=hashlib.md5(content).hexdigest())
    api.post("mydata_dataset_file/", json=body)

    def send(piece, start, checksum=None):
        headers = {
            "Checksum": checksum or xxhash.xxh3_64_hexdigest(piece),
            "Content-Range": f"{start}-{start + len(piece)}/10",
            "Content-Type": "application/octet-stream",
        }
        return api.post("mydata_upload/1/upload/", data=piece, headers=headers).json()

    start = api.get("mydata_upload/1/").json()
    wrong = send(b"01234", 0, "bad")
    answers = [send(b"01234", 0), send(b"01234", 0), api.get("mydata_upload/1/").json()]
    early = api.get("mydata_upload/1/complete/").json()
    answers += [send(b"56789", 5), api.get("mydata_upload/1/").json()]
    complete = api.get("mydata_upload/1/complete/").json()
    assert server.wait_verified()

    ready = {"success": True, "completed": False, "size": 10_000_000, "checksum": "xxh3_64"}
    assert start == ready | {"offset": 0}
    assert wrong["error"].startswith("Checksum does not match. xxh3_64:")
    assert answers == [
        {"success": True, "id": 1},
        {"success": False, "error": "Chunk already uploaded."},
        ready | {"offset": 5},
        {"success": True, "id": 2},
        {"success": True, "completed": True},
    ]
    assert early["success"] is False
    assert complete == {"success": True, "verified": False}
    assert server.datafiles()[0].verified


def test_chunks_for_files_of_others_are_refused(server, api):
    api.post("mydata_dataset_file/", json=record())

    with Api(server, "visitor") as visitor:
        answer = visitor.get("mydata_upload/1/").json()

    assert answer == {"success": False, "error": "Invalid object or access denied."}


def test_bodies_may_come_in_pieces_of_unknown_number(server, api):
    headers = {"Content-Type": "application/json"}
    pieces = (piece for piece in (b'{"uuid": "u-9",', b' "name": "n"}'))

    assert api.post("mydata_uploader/", data=pieces, headers=headers).status_code == 201
    assert api.get("facility/").status_code == 200
