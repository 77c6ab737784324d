"""The embedded server against what a real MyTardis was seen to answer: access, hierarchy, lists."""

import pytest
import requests

from tests.embedded import (
    FINGERPRINT,
    SORRY,
    UUID,
    Api,
    experiment,
    is_bare,
    record,
    registration,
    staged,
)


def test_the_root_needs_no_credentials(server):
    with Api(server, None) as nobody:
        reply = nobody.get("?format=json")

    assert reply.status_code == 200
    assert reply.json()["mydata_upload"] == {
        "list_endpoint": "/api/v1/mydata_upload/",
        "schema": "/api/v1/mydata_upload/schema/",
    }


def test_users_are_found_by_name_exactly_and_by_email_in_any_case(api):
    by_name = api.get("user/?format=json&username=alice").json()
    by_email = api.get("user/?format=json&email__iexact=ALICE%40example.org").json()

    assert by_name == by_email
    assert by_name["meta"] == {
        "limit": 20,
        "next": None,
        "offset": 0,
        "previous": None,
        "total_count": 1,
    }
    assert set(by_name["objects"][0]) == {
        *("email", "first_name", "groups", "id", "last_name", "resource_uri", "username")
    }
    assert api.get("user/?username=ALICE").json()["objects"] == []
    assert api.get("user/?username__iexact=alice").status_code == 400


def test_other_peoples_addresses_are_shown_to_facility_managers_only(server):
    with Api(server, "visitor") as visitor:
        user = visitor.get("user/?username=alice").json()["objects"][0]

    assert (user["email"], user["first_name"]) == ("", "")


@pytest.mark.parametrize(
    "header", ["ApiKey demo:wrong", "ApiKey nobody:x", "Token abc", "ApiKey demo:"]
)
def test_a_wrong_key_is_an_empty_401(server, header):
    with Api(server, None) as api:
        reply = api.get("user/?format=json", headers={"Authorization": header})

    assert is_bare(reply, 401)


@pytest.mark.parametrize("resource", ["user", "facility", "dataset", "mydata_dataset_file"])
def test_no_value_is_an_empty_list(server, resource):
    with Api(server, None) as nobody:
        reply = nobody.get(f"{resource}/?format=json")

    assert (reply.status_code, reply.json()["objects"]) == (200, [])


def test_a_key_that_was_revoked_is_refused(server, api):
    server.revoke_key()

    assert is_bare(api.get("user/?username=demo"), 401)


def test_a_user_without_rights_sees_empty_lists_and_may_nothing(server, api):
    api.post("mydata_dataset_file/", json=record())
    with Api(server, "visitor") as visitor:
        seen = [
            visitor.get(path).json()["objects"]
            for path in ("facility/", "mydata_uploader/", "dataset/", "mydata_dataset_file/")
        ]
        refused = [
            visitor.get("dataset/1/"),
            visitor.get("mydata_dataset_file/1/"),
            visitor.post("mydata_dataset_file/", json=record("x")),
            visitor.post("mydata_uploader/", json={"uuid": "u", "name": "n"}),
            visitor.post("mydata_experiment/", json={"title": "t"}),
        ]
        verify = visitor.get("dataset_file/1/verify/")

    assert seen == [[], [], [], []]
    assert all(is_bare(reply, 401) for reply in refused)
    assert is_bare(verify, 403)


def test_instruments_are_made_once_and_only_in_facilities_one_manages(api):
    found = api.get("instrument/?format=json&facility__id=1&name=Scope").json()["objects"]
    again = api.post("instrument/", json={"facility": "/api/v1/facility/1/", "name": "Scope"})
    foreign = api.post("instrument/", json={"facility": "/api/v1/facility/2/", "name": "x"})

    assert found[0]["facility"]["manager_group"]["name"] == "Demo Facility Managers"
    assert (again.status_code, again.json()) == (500, SORRY)
    assert is_bare(foreign, 401)


def test_an_uploader_keeps_its_settings(api):
    uri = "mydata_uploader/1/"
    settings = [{"key": "a", "value": "1"}]

    patched = api.patch(uri, json={"uuid": UUID, "settings": settings})
    api.patch(uri, json={"uuid": UUID, "settings": [{"key": "b", "value": "2"}]})
    put = api.put(uri, json={"uuid": UUID, "name": "New name"})

    assert (patched.status_code, put.status_code) == (202, 200)
    found = api.get(f"mydata_uploader/?uuid={UUID}").json()["objects"][0]
    assert set(found) == {
        *("id", "name", "resource_uri", "settings", "settings_downloaded", "settings_updated")
    }
    kept = {setting["key"]: setting["value"] for setting in found["settings"]}
    assert (found["name"], kept) == ("New name", {"a": "1", "b": "2"})


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "mydata_uploader/", {"uuid": UUID, "name": "n"}, 500),
        ("POST", "mydata_uploader/", {"uuid": "other", "name": "n" * 65}, 500),
        ("PATCH", "mydata_uploader/1/", {"settings": []}, 500),
        ("PATCH", "mydata_uploader/1/", {"uuid": "other"}, 401),
        ("POST", "mydata_uploaderregistrationrequest/", registration(), 500),
    ],
    ids=["uuid exists", "long name", "no uuid", "other uuid", "request exists"],
)
def test_what_an_uploader_may_not_do(api, method, path, body, status):
    assert api.request(method, path, json=body).status_code == status


def test_an_approved_request_comes_with_its_storage_box(server, api):
    query = f"uploader__uuid={UUID}&requester_key_fingerprint={FINGERPRINT.replace('/', '%2F')}"

    found = api.get(f"mydata_uploaderregistrationrequest/?{query}").json()["objects"][0]

    box = found["approved_storage_box"]
    assert found["approved"] is True
    assert box["options"][0]["value"] == str(server.box_location)
    assert {entry["key"] for entry in box["attributes"]} == {
        *("scp_username", "scp_hostname", "scp_port")
    }
    assert "name" not in found


def test_experiments_are_found_by_title_and_owner(api):
    api.post("mydata_experiment/", json=experiment("Exp", "bob@example.org"))
    api.post("mydata_experiment/", json=experiment("Exp", "x", group_folder_name="lab-a"))

    def find(**query):
        found = api.get("mydata_experiment/", params={"title": "Exp", **query}).json()["objects"]
        return [entry["id"] for entry in found]

    users = {"folder_structure": "Username / Dataset"}
    groups = {"folder_structure": "User Group / Dataset", "group_folder_name": "lab-a"}
    assert find(**users, user_folder_name="ALICE") == [1]
    assert find(**users, user_folder_name="bob") == [2]
    assert find(**users, user_folder_name="eve") == []
    assert find(**groups) == [3]


def test_datasets_are_found_within_their_experiment(api):
    again = api.make_dataset("My Scan")

    query = "dataset/?format=json&experiments__id=1&description=My%20Scan&instrument__id=1"
    found = api.get(query).json()["objects"]

    assert [entry["id"] for entry in found] == [1, again]
    assert found[0]["instrument"]["name"] == "Scope"
    assert is_bare(api.get("dataset/999999/"), 404)


@pytest.mark.parametrize("experiments", [[], ["/api/v1/experiment/99/"]], ids=["none", "unknown"])
def test_a_dataset_without_an_experiment_is_refused(api, experiments):
    body = {"description": "d", "experiments": experiments, "immutable": False}

    assert is_bare(api.post("dataset/", json=body), 401)


def test_pages_have_20_objects_or_at_most_1000(api):
    objects = [staged(f"f{number:04d}") for number in range(1227)]
    api.patch("mydata_dataset_file/", json={"objects": objects})

    def meta(query):
        found = api.get(f"mydata_dataset_file/?format=json&dataset__id=1{query}").json()
        return found["meta"], len(found["objects"])

    path = "/api/v1/mydata_dataset_file/?format=json&dataset__id=1"
    first = {
        "limit": 1000,
        "next": f"{path}&limit=1000&offset=1000",
        "offset": 0,
        "previous": None,
        "total_count": 1227,
    }
    assert meta("")[1] == 20
    assert meta("&limit=0") == meta("&limit=5000") == (first, 1000)
    last, number = meta("&limit=0&offset=1000")
    assert (last["next"], number) == (None, 227)
    assert last["previous"] == f"{path}&limit=1000&offset=0"
    assert api.names()[:2] == ["f0000", "f0001"]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("md5sum=abc", "The 'md5sum' field does not allow filtering."),
        ("filename__contains=a", "'contains' is not an allowed filter on the 'filename' field."),
        (
            "limit=-1",
            "Invalid limit '-1' provided. Please provide a positive integer &gt;= 0.",
        ),
        ("limit=abc", "Invalid limit 'abc' provided. Please provide a positive integer."),
        ("order_by=-id", "The 'id' field does not allow ordering."),
    ],
)
def test_what_lists_cannot_do_is_a_400(api, query, error):
    reply = api.get(f"mydata_dataset_file/?{query}")

    assert (reply.status_code, reply.json()) == (400, {"error": error})


def test_a_url_without_its_last_slash_is_a_301_that_makes_nothing(server, api):
    reply = api.post("mydata_dataset_file?x=1", json=record())
    followed = api.post("mydata_dataset_file", json=record(), allow_redirects=True)

    assert reply.status_code == 301
    assert reply.headers["Location"] == "/api/v1/mydata_dataset_file/?x=1"
    assert (followed.status_code, followed.json()["objects"]) == (200, [])


def test_connections_are_kept_alive(server, api):
    plain = requests.Session()
    plain.trust_env = False

    with plain:
        for _ in range(3):
            reply = plain.get(f"{server.url}/api/v1/", timeout=5)

        assert reply.headers.get("Connection") != "close"
        assert reply.raw.version == 11
        pool = next(iter(plain.adapters["http://"].poolmanager.pools._container.values()))
        assert pool.num_connections == 1
