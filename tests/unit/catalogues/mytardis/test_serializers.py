"""Whatever JSON a server sends, it becomes a value or a `ShapeError`, and nothing else."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydata_like.catalogues.mytardis import serializers
from mydata_like.catalogues.mytardis.serializers import ShapeError, page_parser, parse_datafile
from mydata_like.catalogues.mytardis.uploader import build_area, parse_approval
from mydata_like.core.errors import StagingError
from mydata_like.core.model import Datafile, Replica

DATAFILE = {
    "id": 301,
    "dataset": "/api/v1/dataset/21/",
    "directory": "sub",
    "filename": "a.tif",
    "size": 3,
    "md5sum": "9" * 32,
    "modification_time": "2026-01-05T09:00:00",
    "replicas": [
        {
            "uri": "Day-21/a.tif",
            "location": "staging",
            "verified": True,
            "last_verified_time": "2026-01-05T10:00:00",
        }
    ],
}
APPROVAL = {
    "id": 8,
    "approved": True,
    "approver_comments": None,
    "requester_key_fingerprint": "SHA256:abc",
    "approved_storage_box": {
        "name": "staging",
        "options": [{"key": "location", "value": "/srv/staging/"}],
        "attributes": [
            {"key": "scp_username", "value": "mydata"},
            {"key": "scp_hostname", "value": "a.example.org, b.example.org"},
            {"key": "scp_port", "value": "2222"},
            {"key": "host_key", "value": "SHA256:xyz"},
        ],
    },
}
PARSERS = {
    "datafile": (page_parser(parse_datafile), DATAFILE),
    "approval": (page_parser(parse_approval), APPROVAL),
    "facility": (
        page_parser(serializers.parse_facility),
        {"id": 1, "name": "F", "manager_group": {"id": 4, "name": "m"}},
    ),
    "account": (
        page_parser(serializers.parse_account),
        {"id": 7, "username": "u", "groups": [{"id": 4, "name": "m"}]},
    ),
    "dataset": (page_parser(serializers.parse_dataset), {"id": 2, "description": "d"}),
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def places(value, path=()):
    yield path
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in pairs:
        yield from places(inner, (*path, key))


def put(value, path, new):
    if not path:
        return new
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return value


@pytest.mark.parametrize(("parse", "row"), PARSERS.values(), ids=PARSERS)
@given(data=st.data())
def test_a_mutilated_answer_is_a_value_or_a_shape_error(parse, row, data):
    answer = {"meta": {"total_count": 1, "next": None}, "objects": [row], "more": "x"}
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(places(answer))))
        answer = put(answer, path, data.draw(ANYTHING))

    try:
        page = parse(json.loads(json.dumps(answer)))
    except ShapeError:
        return

    assert all(type(number) is int for number, _ in page.rows)


def test_a_datafile_is_read_with_its_replicas():
    replica = Replica("Day-21/a.tif", "staging", True, "2026-01-05T10:00:00")

    assert parse_datafile(DATAFILE | {"new": 1}) == Datafile(
        301, 21, "sub", "a.tif", 3, "9" * 32, "2026-01-05T09:00:00", (replica,)
    )


def test_what_servers_leave_out_is_understood():
    record = parse_datafile(DATAFILE | {"directory": None, "md5sum": None, "size": "12"})

    assert (record.directory, record.checksum, record.size) == (None, "", 12)


@pytest.mark.parametrize(
    "wrong",
    [{"id": True}, {"id": 2**70}, {"id": None}],
    ids=str,
)
def test_a_record_without_an_id_is_refused(wrong):
    with pytest.raises(ShapeError):
        parse_datafile(DATAFILE | wrong)


def test_an_approval_names_where_bytes_may_go():
    area = build_area(parse_approval(APPROVAL).box)

    assert (area.box, area.location, area.username, area.port) == (
        "staging",
        "/srv/staging",
        "mydata",
        2222,
    )
    assert area.hosts == ("a.example.org", "b.example.org")
    assert area.host_keys == ("SHA256:xyz",)


def test_an_approval_that_lacks_something_says_what():
    bare = {"name": "staging", "options": [], "attributes": []}

    with pytest.raises(StagingError, match="scp_username, scp_hostname, location"):
        build_area(parse_approval(APPROVAL | {"approved_storage_box": bare}).box)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scp_hostname", "-oProxyCommand=x"),
        ("scp_hostname", "a b;c"),
        ("scp_username", "-l"),
        ("scp_username", "a b"),
        ("scp_port", "99999"),
        ("scp_port", "ssh"),
    ],
)
def test_an_attribute_that_no_ssh_client_should_see_is_refused(key, value):
    box = parse_approval(APPROVAL).box
    box.attributes[key] = value

    with pytest.raises(StagingError, match=key):
        build_area(box)


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"size": None}, "size is NoneType instead of int"),
        ({"size": -1}, "size is out of range"),
        ({"md5sum": 5}, "a datafile's directory or checksum is not text"),
        ({"replicas": None}, "not a datafile"),
        ({"replicas": [{"uri": None}]}, "its replica has no path"),
        ({"replicas": [{"uri": "x", "location": "y"}]}, "not a datafile: KeyError('verified')"),
        ({"dataset": 21}, "a text that is not a number"),
    ],
    ids=str,
)
def test_an_invalid_record_concerns_no_other_record(wrong, fault):
    rows = [DATAFILE, {**DATAFILE, "id": 302, **wrong}]

    page = page_parser(parse_datafile)({"meta": {"total_count": 2}, "objects": rows})

    (_, sound), (number, invalid) = page.rows
    assert not sound.fault
    assert (number, invalid.directory, invalid.name) == (302, "sub", "a.tif")
    assert invalid.fault.startswith(f"datafile 302: {fault}")
    assert (invalid.replicas, invalid.verified) == ((), False)


@pytest.mark.parametrize("wrong", [{"filename": None}, {"directory": 5}], ids=str)
def test_an_invalid_record_without_a_known_place_has_no_name(wrong):
    record = parse_datafile(DATAFILE | wrong)

    assert record.fault
    assert (record.directory or "", record.name) in {("", ""), ("sub", "")}


def test_a_replica_that_is_still_written_does_not_hide_the_others():
    replicas = [{"uri": None, "location": "cache", "verified": False}, *DATAFILE["replicas"]]

    record = parse_datafile(DATAFILE | {"replicas": replicas})

    assert (record.fault, [it.location for it in record.replicas]) == ("", ["staging"])
