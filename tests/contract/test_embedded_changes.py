"""The embedded server against a real MyTardis: bulk requests, repairs, verification."""

import hashlib
import json

import pytest

from tests.embedded import (
    HELLO,
    SORRY,
    UUID,
    is_bare,
    record,
    registration,
    staged,
)


def test_a_file_that_arrives_is_verified_when_asked_for(server, api):
    api.post("mydata_dataset_file/", json=record())
    assert server.wait_verified()
    before = api.datafile(1)["replicas"][0]
    assert api.get("mydata_replica/1/").json()["size"] is None

    api.put_file("My%20Scan-1/a.txt")
    asked = api.get("dataset_file/1/verify/")
    assert server.wait_verified()

    after = api.datafile(1)["replicas"][0]
    assert is_bare(asked, 200)
    assert (before["verified"], after["verified"]) == (False, True)
    assert after["last_verified_time"] > before["last_verified_time"]
    assert api.get("mydata_replica/1/").json()["size"] == 5


def test_files_that_are_there_first_are_registered_in_bulk_and_verified(server, api):
    for name in ("w0", "w1"):
        api.put_file(f"own/{name}")

    reply = api.patch("mydata_dataset_file/", json={"objects": [staged("w0"), staged("w1")]})
    assert server.wait_verified()

    assert is_bare(reply, 202)
    assert [api.datafile(number)["replicas"][0]["verified"] for number in (1, 2)] == [True, True]
    numbers = api.get("mydata_dataset_stats/1/").json()
    last = numbers.pop("last_verified")
    assert last.endswith("Z")
    assert numbers == {
        "success": True,
        "files": {"total": 2, "verified": 2},
        "verified": True,
        "size": 10,
        "location": "staging",
    }


@pytest.mark.parametrize(
    "spoilt",
    [record("old"), record("n", md5sum=...), record("n", uploader_uuid="u-2"), staged("n", "../x")],
    ids=["duplicate", "no checksum", "not approved", "outside the box"],
)
def test_a_bulk_request_happens_wholly_or_not_at_all(api, spoilt):
    api.post("mydata_uploader/", json={"uuid": "u-2", "name": "n"})
    body = registration() | {"uploader": "/api/v1/mydata_uploader/2/"}
    api.post("mydata_uploaderregistrationrequest/", json=body)
    api.post("mydata_dataset_file/", json=record("old"))
    change = {"resource_uri": "/api/v1/mydata_dataset_file/1/", "size": 77}

    reply = api.patch("mydata_dataset_file/", json={"objects": [change, record("new"), spoilt]})

    assert (reply.status_code, reply.json()) == (500, SORRY)
    assert api.names() == ["old"]
    assert api.datafile(1)["size"] == 5


def test_bulk_requests_may_change_and_create_and_be_disguised_as_post(api):
    api.post("mydata_dataset_file/", json=record("old"))
    change = {"resource_uri": "/api/v1/mydata_dataset_file/1/", "md5sum": "0" * 32}
    override = {"X-HTTP-Method-Override": "PATCH"}

    body = {"objects": [change, record("new")]}
    reply = api.post("mydata_dataset_file/", json=body, headers=override)

    assert is_bare(reply, 202)
    assert api.names() == ["old", "new"]
    assert api.datafile(1)["md5sum"] == "0" * 32


def test_the_reply_after_a_bulk_request_can_show_a_foreign_path(server, api):
    api.patch("mydata_dataset_file/", json={"objects": [record("bulk")]})

    first = api.post("mydata_dataset_file/", json=staged("z1"))
    second = api.post("mydata_dataset_file/", json=staged("z2"))

    assert first.text == f"{server.box_location}/My%20Scan-1/bulk"
    assert second.text == ""


def test_an_uploader_that_is_not_approved_leaves_a_record_without_replicas(server, api):
    server.withdraw_approval(UUID)

    reply = api.post("mydata_dataset_file/", json=record())

    assert (reply.status_code, reply.json()) == (500, SORRY)
    assert api.datafile(1)["replicas"] == []


def test_a_record_without_replicas_is_repaired_by_patch(server, api):
    server.withdraw_approval(UUID)
    api.post("mydata_dataset_file/", json=record())
    api.put_file("rep/a.txt")
    replicas = {"replicas": [{"url": "rep/a.txt", "location": "staging", "protocol": "file"}]}

    repaired = api.patch("mydata_dataset_file/1/", json=replicas)
    assert server.wait_verified()
    again = api.patch("mydata_dataset_file/1/", json=replicas)

    assert is_bare(repaired, 202)
    assert api.datafile(1)["replicas"][0]["verified"] is True
    assert again.status_code == 500
    assert server.check_invariants() == []


def test_posting_the_name_of_a_record_without_replicas_destroys_another_file(server, api):
    victim = api.put_file("own/victim")
    api.post("mydata_dataset_file/", json=staged("victim"))
    assert server.wait_verified()
    server.withdraw_approval(UUID)
    api.post("mydata_dataset_file/", json=record())
    server.approve(UUID)

    reply = api.post("mydata_dataset_file/", json=record())

    assert reply.status_code == 500
    assert (api.names(), victim.exists()) == ([], False)
    assert len(server.violations()) == 2


def test_a_freed_name_comes_back_under_the_datasets_id(server, api):
    api.make_dataset("second")
    server.withdraw_approval(UUID)
    api.post("mydata_dataset_file/", json=record(dataset="/api/v1/dataset/2/"))
    server.approve(UUID)

    reply = api.post("mydata_dataset_file/", json=record(dataset="/api/v1/dataset/2/"))

    assert reply.status_code == 201
    assert reply.headers["Location"] == "/api/v1/mydata_dataset_file/2/"
    assert len(server.check_invariants()) == 1


def test_checksums_can_be_changed_and_are_judged_at_the_next_look(server, api):
    api.put_file("own/a")
    api.post("mydata_dataset_file/", json=staged("a", md5sum="0" * 32))
    assert server.wait_verified()
    assert api.datafile(1)["replicas"][0]["verified"] is False

    changed = api.patch("dataset_file/1/", json={"md5sum": hashlib.md5(HELLO).hexdigest()})
    api.get("dataset_file/1/verify/")
    assert server.wait_verified()

    assert is_bare(changed, 202)
    assert api.datafile(1)["replicas"][0]["verified"] is True


@pytest.mark.parametrize(
    "changes", [{"md5sum": hashlib.md5(HELLO).hexdigest().upper()}, {"size": 4}]
)
def test_upper_case_checksums_and_other_sizes_never_verify(server, api, changes):
    api.put_file("own/a")
    api.post("mydata_dataset_file/", json=staged("a", **changes))
    assert server.wait_verified()

    replica = api.datafile(1)["replicas"][0]
    assert replica["verified"] is False
    assert replica["last_verified_time"] is not None


def test_a_verified_file_that_is_overwritten_loses_its_state(server, api):
    api.put_file("own/a")
    api.post("mydata_dataset_file/", json=staged("a"))
    assert server.wait_verified()

    api.put_file("own/a", b"olleh")
    api.get("dataset_file/1/verify/")
    assert server.wait_verified()

    assert api.datafile(1)["replicas"][0]["verified"] is False


def test_a_missing_checksum_is_filled_in_by_the_verification(server, api):
    api.put_file("own/a")
    api.post("mydata_dataset_file/", json=staged("a", md5sum=..., sha512sum="0" * 128))
    assert server.wait_verified()

    found = api.datafile(1)
    assert found["replicas"][0]["verified"] is True
    assert found["md5sum"] == hashlib.md5(HELLO).hexdigest()


def test_only_the_plain_resource_can_verify(api):
    api.post("mydata_dataset_file/", json=record())

    wrong = api.get("mydata_dataset_file/1/verify/")
    unknown = api.get("dataset_file/999999/verify/")

    assert (wrong.status_code, wrong.json()) == (500, SORRY)
    assert (unknown.status_code, unknown.json()) == (404, SORRY)


def test_records_are_put_only_without_their_replicas_and_never_deleted(api):
    api.post("mydata_dataset_file/", json=record())
    whole = api.datafile(1)
    part = {name: whole[name] for name in whole.keys() - {"replicas", "datafile"}}

    assert api.put("mydata_dataset_file/1/", json=whole).status_code == 500
    assert api.put("mydata_dataset_file/1/", json=part | {"md5sum": "1" * 32}).status_code == 204
    assert api.datafile(1)["md5sum"] == "1" * 32
    assert is_bare(api.delete("mydata_dataset_file/1/"), 401)


def test_replicas_are_never_written(api):
    api.post("mydata_dataset_file/", json=record())

    assert api.patch("mydata_replica/1/", json={"verified": True}).status_code == 500
    assert api.post("replica/", json={}).status_code == 500
    assert api.get("mydata_replica/").json()["objects"] == []


def test_a_multipart_post_stores_the_file_in_the_default_box(server, api):
    parts = {"json_data": (None, json.dumps(record("mp.txt"))), "attached_file": ("x", HELLO)}

    reply = api.post("mydata_dataset_file/", files=parts)
    assert server.wait_verified()

    assert (reply.status_code, reply.content) == (201, b"")
    replica = api.datafile(1)["replicas"][0]
    assert (replica["location"], replica["verified"]) == ("default", True)


def test_a_posted_file_that_destroys_another_is_reported(server, api):
    def post(name):
        parts = {"json_data": (None, json.dumps(record(name))), "attached_file": ("x", HELLO)}
        return api.post("mydata_dataset_file/", files=parts)

    post("victim.txt")
    post("b.txt")
    server.lose_copy(2)

    reply = post("b.txt")

    assert reply.status_code == 500
    assert api.names() == []
    assert [text.rpartition(" ")[2] for text in server.violations()] == ["replica", "bytes"]
