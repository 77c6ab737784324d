"""What was carried out although the reply was lost, and what two ask for at once."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.server_api import ExperimentDraft
from mydata_like.core.errors import RejectedError, ServerUnavailableError, TransientError
from mydata_like.core.model import (
    DatafileId,
    DatasetId,
    Experiment,
    ExperimentId,
    Facility,
    Group,
    InstrumentRecord,
    Registration,
    User,
)
from mydata_like.settings.schema import Server
from tests.fakes.clock import FakeClock
from tests.fakes.web import page, raw, reply, reset

FACILITY = Facility(1, "F", Group(4, "managers"))
SCOPE = InstrumentRecord(3, "Scope")
EXPERIMENT = Experiment(ExperimentId(11), "Cells")
DRAFT = ExperimentDraft("Cells", "d", "Username / Dataset", "ann", "", "uuid")
ROWS = {
    "instrument/": {"id": 3, "name": "Scope"},
    "mydata_experiment/": {"id": 11, "title": "Cells"},
    "dataset/": {"id": 21, "description": "Day 1"},
}
MAKE = {
    "instrument/": lambda server: server.ensure_instrument(FACILITY, "Scope"),
    "mydata_experiment/": lambda server: server.create_experiment(DRAFT),
    "dataset/": lambda server: server.create_dataset(EXPERIMENT, "Day 1", SCOPE),
}
LOST = {
    "reset": reset,
    "proxy": reply(502, b"<html>", "text/html"),
    "gateway": reply(504, b"", "text/html"),
    "error": reply(500, {"error_message": "Sorry"}),
    "cut": raw(b"HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{"),
    "nonsense": reply(201, b"{"),
}


@pytest.fixture
def server(api_client):
    return HttpServer(api_client)


def keep_one(web, path, *answers):
    """Serve a resource whose POSTs are carried out, whatever they are answered."""
    kept, left, guard = [], list(answers), threading.Lock()

    def rule(asked):
        if asked.path != path:
            return None
        if asked.method == "GET":
            return page(*kept)
        with guard:
            kept.append({**ROWS[path], "id": ROWS[path]["id"] + len(kept)})
            return left.pop(0) if left else reply(201, kept[-1])

    web.rules.append(rule)
    return kept


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
@pytest.mark.parametrize("path", ROWS)
def test_what_was_made_before_the_reply_was_lost_is_adopted(web, server, path, lost):
    kept = keep_one(web, path, lost)

    assert MAKE[path](server).id == ROWS[path]["id"]

    assert len(kept) == 1


@pytest.mark.parametrize("path", ROWS)
def test_what_was_not_made_is_asked_for_again(web, server, path):
    web.on("GET", path, page())
    web.on("POST", path, reply(503), reply(201, ROWS[path]))

    assert MAKE[path](server).id == ROWS[path]["id"]


@pytest.mark.parametrize("path", ROWS)
def test_many_threads_that_ask_for_the_same_get_the_same(web, server, path):
    kept = keep_one(web, path)

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: MAKE[path](server).id, range(8)))

    assert made == [ROWS[path]["id"]] * 8
    assert len(kept) == 1


@pytest.mark.parametrize("path", ROWS)
def test_what_a_server_never_makes_is_refused_in_the_end(web, server, path):
    web.on("GET", path, page())
    web.on("POST", path, reply(500, {"error_message": "Sorry"}))

    with pytest.raises(RejectedError):
        MAKE[path](server)


def test_a_name_that_the_server_cannot_keep_is_not_sent(web, server):
    for make in (
        lambda: server.ensure_instrument(FACILITY, "x" * 101),
        lambda: server.create_experiment(DRAFT._replace(title="x" * 401)),
        lambda: server.create_experiment(DRAFT._replace(title=" ")),
        lambda: server.create_dataset(EXPERIMENT, "a\0b", SCOPE),
    ):
        with pytest.raises(RejectedError):
            make()

    assert web.asked == []


def test_a_server_without_access_lists_is_reported_as_such(web, server):
    with pytest.raises(RejectedError) as caught:
        server.grant(EXPERIMENT, User(5, "bob", "Bob"))

    assert caught.value.problem_code == "server.no-acl"


def test_a_grant_whose_reply_is_lost_is_made_again(web, server):
    web.on("POST", "objectacl/", reset, reply(201, b"", "text/html"))

    server.grant(EXPERIMENT, Group(4, "managers"))

    assert json.loads(web.asked[-1].body)["pluginId"] == "django_group"


NEW = Registration(
    dataset=DatasetId(21),
    directory="",
    name="a.tif",
    size=3,
    checksum="9" * 32,
    created="2026-01-05T09:00:00+00:00",
    modified="2026-01-05T09:00:00.250000+00:00",
    uri="Day%201-21/a.tif",
    box="staging",
)
PATH = "mydata_dataset_file/"


def test_records_are_made_and_repaired_in_one_request(web, server):
    web.on("PATCH", PATH, reply(202, b"", "text/html"))

    server.register(
        [
            NEW,
            NEW._replace(datafile=DatafileId(301), uri=None),
            NEW._replace(datafile=DatafileId(302)),
        ]
    )

    made, changed, repaired = json.loads(web.asked[0].body)["objects"]
    replicas = [{"url": "Day%201-21/a.tif", "location": "staging", "protocol": "file"}]
    assert made == {
        "dataset": "/api/v1/dataset/21/",
        "directory": "",
        "filename": "a.tif",
        "mimetype": "image/tiff",
        "md5sum": "9" * 32,
        "size": 3,
        "created_time": "2026-01-05T09:00:00+00:00",
        "modification_time": "2026-01-05T09:00:00.250000+00:00",
        "replicas": replicas,
    }
    assert changed == {
        "resource_uri": "/api/v1/mydata_dataset_file/301/",
        "md5sum": "9" * 32,
        "size": 3,
        "modification_time": "2026-01-05T09:00:00.250000+00:00",
    }
    assert repaired == {
        **changed,
        "resource_uri": "/api/v1/mydata_dataset_file/302/",
        "replicas": replicas,
    }


@pytest.mark.parametrize(
    "lost",
    [reset, reply(502, b"<html>", "text/html"), reply(500, b"<html>", "text/html"), reply(503)],
    ids=["reset", "proxy", "proxy 500", "busy"],
)
def test_a_registration_with_a_lost_reply_is_unknown_and_not_repeated(web, server, lost):
    web.on("PATCH", PATH, lost)

    with pytest.raises(TransientError) as caught:
        server.register([NEW])

    assert caught.value.problem_code == "register.unknown"
    assert web.count("PATCH") == 1


@pytest.mark.parametrize(
    "refusal",
    [reply(500, {"error_message": "Sorry"}), reply(400, {"error": "bad"}), reply(409), reply(413)],
    ids=["500", "400", "409", "413"],
)
def test_a_refused_registration_has_not_happened(web, server, refusal):
    web.on("PATCH", PATH, refusal)

    with pytest.raises(RejectedError) as caught:
        server.register([NEW])

    assert caught.value.problem_code == "register.refused"
    assert web.count("PATCH") == 1


@pytest.mark.parametrize("name", ["Färbung 3.tif", "細胞.tif", "a\u2028b.tif"])
def test_names_of_any_language_are_sent_as_plain_ascii(web, server, name):
    web.on("PATCH", PATH, reply(202))

    server.register([NEW._replace(name=name), NEW])

    assert web.asked[0].body.isascii()
    assert [it["filename"] for it in json.loads(web.asked[0].body)["objects"]] == [name, "a.tif"]


def test_a_registration_answered_with_200_is_not_believed(web, server):
    web.on("PATCH", PATH, reply(200, {"objects": []}))

    with pytest.raises(RejectedError):
        server.register([NEW])


def test_a_registration_that_was_turned_away_at_the_door_is_repeated(web, server):
    web.on("PATCH", PATH, reply(429, Retry_After="1"), reply(202))

    server.register([NEW])

    assert web.count("PATCH") == 2


def test_a_registration_that_reached_no_server_makes_it_unavailable():
    clock = FakeClock()
    settings = Server(url="http://127.0.0.1:1", username="facility")
    server = HttpServer(ApiClient(settings, "key", clock, clock.cancel()))

    with pytest.raises(ServerUnavailableError):
        server.register([NEW])

    server.close()


@pytest.mark.parametrize(
    "bad",
    [
        NEW._replace(name=""),
        NEW._replace(name="x" * 401),
        NEW._replace(name=".."),
        NEW._replace(name="a\0"),
        NEW._replace(name="\udcff"),
        NEW._replace(directory="/abs"),
        NEW._replace(directory="a/../b"),
        NEW._replace(directory="a/"),
        NEW._replace(directory="d" * 256),
        NEW._replace(checksum=""),
        NEW._replace(checksum="A" * 32),
        NEW._replace(uri="../other/a"),
        NEW._replace(uri="/etc/passwd"),
        NEW._replace(size=-1),
    ],
    ids=lambda record: repr(record)[:0] or None,
)
def test_a_record_that_would_do_harm_is_not_sent(web, server, bad):
    with pytest.raises(RejectedError):
        server.register([NEW, bad])

    assert web.asked == []
