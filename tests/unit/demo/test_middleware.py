"""Faults on request: what a client sees, and what the server did."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.middleware import (
    EMPTY_LIST,
    HTML_PAGE,
    WRONG_SHAPE,
    Cached,
    Delay,
    Drip,
    Fault,
    Hang,
    Reply,
    Reset,
    Slow,
    StoreHalf,
    StoreOtherChecksum,
    Truncate,
)
from tests.embedded import Api, record, staged


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


# On Windows: "forcibly closed"; Wine never sends a reset, but ends the connection.
RESET = "reset by peer|forcibly closed|closed connection without response"


@pytest.mark.parametrize("handled", [True, False])
def test_a_reset_comes_after_the_commit_or_before(server, api, handled):
    server.faults.add(Fault(action=Reset(handled=handled), method="PATCH"))

    with pytest.raises(requests.ConnectionError, match=RESET):
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
        hanging.result(timeout=60)


def test_requests_are_listed_with_their_status(server, api):
    server.faults.add(Fault(action=Reset(), path="user"))
    start = len(server.requests)

    api.get("facility/?name=x")
    with pytest.raises(requests.ConnectionError):
        api.get("user/")

    seen = [(entry.method, entry.path, entry.status) for entry in server.requests[start:]]
    assert seen == [("GET", "/api/v1/facility/?name=x", 200), ("GET", "/api/v1/user/", 0)]


def test_every_second_request_meets_a_fault(server, api):
    server.faults.add(Fault(action=Reply(503), path="user", count=None, every=2))

    seen = [api.get("user/").status_code for _ in range(4)]

    assert seen == [200, 503, 200, 503]


@pytest.mark.parametrize(
    ("action", "stored"),
    [(Reply(202), []), (StoreHalf(), ["a"]), (StoreOtherChecksum(), ["a", "b"])],
    ids=["nothing", "half", "other checksums"],
)
def test_a_bulk_request_is_acknowledged_whatever_is_stored(server, api, action, stored):
    server.faults.add(Fault(action=action, method="PATCH"))

    reply = api.patch("mydata_dataset_file/", json={"objects": [staged("a"), staged("b")]})

    assert reply.status_code == 202
    assert api.names() == stored
    assert {it.md5sum for it in server.datafiles()} <= {staged("a")["md5sum"], "f" * 32}


@pytest.mark.parametrize(
    ("honours", "header", "fresh"),
    [(True, "no-cache", True), (True, "", False), (False, "no-cache", False)],
    ids=["asked for fresh answers", "not asked", "ignores it"],
)
def test_a_cache_keeps_answers(server, api, honours, header, fresh):
    cached = Cached(60.0, honours_no_cache=honours)
    server.faults.add(Fault(action=cached, method="GET", path="dataset_file", count=None))
    api.headers["Cache-Control"] = header
    before = api.names()
    api.patch("mydata_dataset_file/", json={"objects": [staged("a")]})

    assert before == []
    assert api.names() == (["a"] if fresh else [])


def test_a_second_writer_to_what_a_slow_request_writes_blocks_a_worker_for_good(server, api):
    server.limit_workers(2)
    server.faults.add(Fault(action=Slow(2.0), method="PATCH"))
    other = api.make_dataset("Other")

    def write(name, dataset=1, timeout=60):
        document = {"objects": [staged(name, dataset=f"/api/v1/dataset/{dataset}/")]}
        with Api(server) as own:
            return own.patch("mydata_dataset_file/", json=document, timeout=timeout).status_code

    with ThreadPoolExecutor() as threads:
        slow = threads.submit(write, "a")
        while not server.locked:
            pass
        beside = write("b", other)
        second = threads.submit(write, "c", timeout=1)
        assert slow.result() == 202
        assert second.exception() is not None

    assert beside == 202
    assert server.blocked_workers == 1
    assert api.names() == ["a"]


def test_a_gateway_that_gives_up_leaves_the_request_at_work(server, api):
    server.faults.add(Fault(action=Slow(1.0, patience=0.1), method="PATCH"))

    reply = api.patch("mydata_dataset_file/", json={"objects": [staged("a")]})
    before = api.names()
    while server.locked:
        pass

    assert (reply.status_code, before) == (504, [])
    assert api.names() == ["a"]
