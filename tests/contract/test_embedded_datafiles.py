"""The embedded server against a real MyTardis: what a new datafile record may be."""

import pytest

from tests.embedded import (
    HTML,
    SORRY,
    is_bare,
    record,
    staged,
)


def test_a_new_datafile_answers_with_its_staging_path(server, api):
    reply = api.post("mydata_dataset_file/", json=record(directory="sub dir/ü"))

    assert reply.status_code == 201
    assert reply.headers["Content-Type"] == HTML
    assert reply.headers["Location"] == "/api/v1/mydata_dataset_file/1/"
    assert reply.text == f"{server.box_location}/My%20Scan-1/sub%20dir/%C3%BC/a.txt"


def test_an_existing_name_is_an_empty_409(api):
    api.post("mydata_dataset_file/", json=record())

    same = api.post("mydata_dataset_file/", json=record())
    other = api.post("mydata_dataset_file/", json=record(size=1, md5sum="0" * 32))
    plain = api.post("dataset_file/", json=record())

    assert all(is_bare(reply, 409) for reply in (same, other, plain))


def test_a_directory_left_out_is_null_and_never_collides(api):
    for _ in range(2):
        assert api.post("mydata_dataset_file/", json=record(directory=...)).status_code == 201

    assert api.names() == ["a.txt", "a.txt"]
    assert api.names("dataset__id=1&directory=") == []


@pytest.mark.parametrize(
    "changes",
    [
        {"md5sum": ...},
        {"md5sum": ""},
        {"md5sum": None},
        {"md5sum": "x" * 33},
        {"size": ...},
        {"size": -1},
        {"size": "abc"},
        {"modification_time": "yesterday"},
        {"modification_time": 1714557600},
        {"mimetype": "m" * 81},
        {"directory": "d" * 256},
        {"filename": "n" * 401},
        {"filename": "nul\0x"},
    ],
    ids=lambda changes: f"{next(iter(changes))} {str(next(iter(changes.values())))[:12]!a}",
)
def test_invalid_fields_are_a_bare_500(api, changes):
    reply = api.post("mydata_dataset_file/", json=record(**changes))

    assert (reply.status_code, reply.json()) == (500, SORRY)
    assert api.names() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"md5sum": "zz"},
        {"size": "5"},
        {"mimetype": None},
        {"filename": ...},
        {"filename": "n" * 400},
        {"version": 2},
        {"created_time": ..., "modification_time": ...},
        {"md5sum": ..., "sha512sum": "0" * 128},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_strange_fields_are_taken(api, changes):
    assert api.post("mydata_dataset_file/", json=record(**changes)).status_code == 201


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2024-05-01T10:00:00", "2024-05-01T10:00:00"),
        ("2024-05-01T10:00:00Z", "2024-05-01T20:00:00"),
        ("2024-05-01T10:00:00.123456+02:00", "2024-05-01T18:00:00.123456"),
        ("2024-01-01T00:00:00Z", "2024-01-01T11:00:00"),
        ("2024-10-06T02:30:00", "2024-10-06T01:30:00"),
    ],
)
def test_times_are_kept_naive_in_the_servers_zone(api, sent, kept):
    api.post("mydata_dataset_file/", json=record(modification_time=sent))

    assert api.datafile(1)["modification_time"] == kept


def test_an_unknown_dataset_and_none_are_distinguished(api):
    unknown = api.post("mydata_dataset_file/", json=record(dataset="/api/v1/dataset/99/"))
    none = api.post("mydata_dataset_file/", json=record(dataset=...))

    assert unknown.json()["error"] == (
        "Could not find the provided dataset object via resource URI '/api/v1/dataset/99/'."
    )
    assert none.json()["error"] == (
        "The 'dataset' field has no data and doesn't allow a default or null value."
    )
    assert (unknown.status_code, none.status_code) == (400, 400)


def test_bodies_that_are_no_json_are_refused(api):
    json_type = {"Content-Type": "application/json"}

    broken = api.post("mydata_dataset_file/", data=b"{nope", headers=json_type)
    text = api.post("mydata_dataset_file/", data=b"hi", headers={"Content-Type": "text/plain"})

    assert (broken.status_code, broken.json()) == (400, {"error": "Request is not valid JSON."})
    assert (text.status_code, text.json()) == (415, SORRY)


def test_an_immutable_dataset_takes_nothing(server, api):
    server.set_immutable(1)

    assert is_bare(api.post("mydata_dataset_file/", json=record()), 401)
    assert is_bare(api.patch("mydata_dataset_file/", json={"objects": [staged("x")]}), 401)


def test_unknown_boxes_and_uploaders_end_up_elsewhere_silently(server, api):
    unknown = api.post("mydata_dataset_file/", json=record("a", uploader_uuid="unknown"))
    api.post("mydata_dataset_file/", json=staged("b", box="nope"))

    assert unknown.text == f"{server.directory}/receiving/My%20Scan-1/a"
    assert api.datafile(2)["replicas"][0]["location"] == "default"


def test_several_records_are_fetched_by_their_ids(api):
    api.post("mydata_dataset_file/", json=record())

    found = api.get("mydata_dataset_file/set/1;999999/").json()

    assert [entry["id"] for entry in found["objects"]] == [1]
    assert found["not_found"] == ["999999"]


@pytest.mark.parametrize(
    ("directory", "filename", "path"),
    [
        ("", " lead and trail ", "names%2Fx-2/lead and trail"),
        ("", "a%20b%2Fc.txt", "names%2Fx-2/a%20b%2Fc.txt"),
        ("", "quote'\"`$(x)\n.txt", "names%2Fx-2/quote'\"`$(x)\n.txt"),
        ("100%/a%20b", "f", "names%2Fx-2/100%25/a%2520b/f"),
        ("a\\b", "f", "names%2Fx-2/a%5Cb/f"),
        ("trail/", "f", "names%2Fx-2/trail/f"),
        ("..", "f", "f"),
        (".", "f", "names%2Fx-2/f"),
        ("x:y+z@~", "f", "names%2Fx-2/x%3Ay%2Bz%40~/f"),
        ("", "", "names%2Fx-2"),
    ],
)
def test_the_staging_path_quotes_the_directory_and_not_the_name(
    server, api, directory, filename, path
):
    number = api.make_dataset("names/x")
    dataset = f"/api/v1/dataset/{number}/"

    body = record(filename, directory=directory, dataset=dataset)
    reply = api.post("mydata_dataset_file/", json=body)

    assert reply.text == f"{server.box_location}/{path}"
    found = api.datafile(1)
    assert (found["directory"], found["filename"]) == (directory, filename)


@pytest.mark.parametrize(
    ("directory", "filename"), [("/abs", "a"), ("", "../../x"), ("a/../../..", "f")]
)
def test_paths_that_leave_the_box_are_a_500_whose_record_stays(api, directory, filename):
    reply = api.post("mydata_dataset_file/", json=record(filename, directory=directory))

    assert (reply.status_code, reply.json()) == (500, SORRY)
    assert api.names() == [filename]
