"""Faults on request: what a client sees, and what the server did meanwhile."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from mydata_like.demo.faults import (
    EMPTY_LIST,
    HTML_PAGE,
    WRONG_SHAPE,
    Delay,
    Drip,
    Fault,
    Hang,
    Reply,
    Reset,
    Truncate,
    parse_fault,
)
from mydata_like.demo.server import EmbeddedServer
from tests.embedded import Api, record


@pytest.fixture
def server(tmp_path):
    with EmbeddedServer(tmp_path) as server:
        yield server


@pytest.fixture
def api(server):
    with Api(server) as api:
        api.prepare()
        yield api


def test_a_rule_skips_then_acts_so_many_times(server, api):
    server.faults.add(Fault(action=Reply(503), path="user", skip=1, count=2))

    seen = [api.get("user/").status_code for _ in range(4)]

    assert seen == [200, 503, 503, 200]


def test_rules_are_chosen_by_method_and_path(server, api):
    server.faults.add(Fault(action=Reply(500), method="POST", path=r"instrument/$", count=None))

    assert api.get("instrument/").status_code == 200
    assert api.post("instrument/").status_code == 500
    server.faults.clear()
    assert api.post("instrument/", json={}).status_code == 401


def test_a_reply_has_the_headers_it_was_given(server, api):
    headers = {"Retry-After": "7", "Location": "http://elsewhere/"}
    server.faults.add(Fault(action=Reply(302, b"moved", headers)))

    reply = api.get("user/")

    assert (reply.status_code, reply.content) == (302, b"moved")
    assert {name: reply.headers[name] for name in headers} == headers


def test_a_request_may_be_carried_out_although_the_reply_says_otherwise(server, api):
    server.faults.add(Fault(action=Reply(502, handled=True), method="POST"))

    assert api.post("mydata_dataset_file/", json=record()).status_code == 502
    assert api.names() == ["a.txt"]


@pytest.mark.parametrize("handled", [True, False])
def test_a_reset_comes_after_the_commit_or_before(server, api, handled):
    server.faults.add(Fault(action=Reset(handled=handled), method="PATCH"))

    with pytest.raises(requests.ConnectionError, match="reset by peer"):
        api.patch("mydata_dataset_file/", json={"objects": [record()]})

    assert api.names() == (["a.txt"] if handled else [])


def test_a_truncated_reply_ends_early(server, api):
    server.faults.add(Fault(action=Truncate(keep=10)))

    with pytest.raises(requests.exceptions.ChunkedEncodingError, match="10 bytes read"):
        api.get("facility/")


def test_a_dripping_reply_is_whole_in_the_end(server, api):
    whole = api.get("facility/").content
    server.faults.add(Fault(action=Drip(0.0001)))

    assert api.get("facility/").content == whole


def test_a_delayed_reply_is_late(server, api):
    server.faults.add(Fault(action=Delay(0.2)))

    with pytest.raises(requests.ReadTimeout):
        api.get("facility/", timeout=0.05)


@pytest.mark.parametrize(
    ("action", "body"),
    [(HTML_PAGE, b"<html>"), (WRONG_SHAPE, b'{"objects": {'), (EMPTY_LIST, b'{"meta": ')],
    ids=["page", "shape", "empty"],
)
def test_ready_made_replies_look_like_success(server, api, action, body):
    server.faults.add(Fault(action=action))

    reply = api.get("facility/")

    assert reply.status_code == 200
    assert reply.content.startswith(body)


def test_stopping_the_server_ends_what_hangs(tmp_path):
    def post(api):
        with pytest.raises(requests.ConnectionError):
            api.post("mydata_dataset_file/", json=record())

    with ThreadPoolExecutor(1) as pool, EmbeddedServer(tmp_path) as server, Api(server) as api:
        api.prepare()
        server.faults.add(Fault(action=Hang(handled=True), method="POST"))
        hanging = pool.submit(post, api)
        while not server.datafiles():
            pass
        assert not hanging.done()
        server.stop()
        hanging.result(timeout=10)


def test_requests_are_listed_with_their_status(server, api):
    server.faults.add(Fault(action=Reset(), path="user"))
    start = len(server.requests)

    api.get("facility/?name=x")
    with pytest.raises(requests.ConnectionError):
        api.get("user/")

    seen = [(entry.method, entry.path, entry.status) for entry in server.requests[start:]]
    assert seen == [("GET", "/api/v1/facility/?name=x", 200), ("GET", "/api/v1/user/", 0)]
    assert server.request_counts["GET", "facility", 200] == 1
    assert server.request_counts["GET", "user", 0] == 1


def test_rules_are_made_of_plain_values():
    plain = {"action": "reply", "status": 503, "body": "later", "path": "user", "count": None}

    assert parse_fault(plain) == Fault(action=Reply(503, b"later"), path="user", count=None)
    assert parse_fault({"action": "html"}) == Fault(action=HTML_PAGE)
    with pytest.raises(ValueError, match="explode is no action"):
        parse_fault({"action": "explode"})
