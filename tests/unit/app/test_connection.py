"""The requests with which a connection begins: which of them wait for others, and how they travel.

The server counts; nothing is timed.
"""

from threading import Barrier, BrokenBarrierError

import pytest

from mydata_like.app.connection import open_connection
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.core.errors import AccessDeniedError, SettingsError
from mydata_like.engine.pipeline import begin
from mydata_like.settings.schema import Instrument, Server
from tests.fakes.clock import FakeClock
from tests.fakes.web import page, reply, web_server

FACILITY = {"id": 1, "name": "F", "manager_group": {"id": 4, "name": "managers"}}
SCOPE = Instrument(name="Scope", facility="F")
RESOURCES = {"dataset": {}, "mydata_uploader": {}}
TOGETHER = {"", "user/", "facility/", "mydata_uploader/", "mydata_uploaderregistrationrequest/"}


@pytest.fixture
def ports():
    """The ports of the client from which requests came."""
    return set()


@pytest.fixture
def web(ports):
    """A server that notes the connection of each request."""
    with web_server() as server:

        def on(path, answer):
            def noted(sock):
                ports.add(sock.getpeername()[1])
                answer(sock)

            server.on("GET", path, noted)

        on("", reply(body=RESOURCES))
        on("facility/", page(FACILITY))
        on("instrument/", page({"id": 3, "name": "Scope"}))
        on("mydata_uploader/", page({"id": 5, "settings": []}))
        on("mydata_uploaderregistrationrequest/", page())
        on("user/", server.account)
        yield server


@pytest.fixture
def client(web):
    clock = FakeClock()
    return ApiClient(Server(url=web.url, username="facility"), "key", clock, clock.cancel())


def answer_together(web, paths):
    """Let the server answer these paths only once it has a request for each of them."""
    barrier = Barrier(len(paths), timeout=10)
    waiting = set(paths)

    def wait(asked):
        if asked.path in waiting:
            waiting.discard(asked.path)
            try:
                barrier.wait()
            except BrokenBarrierError:
                return reply(404)
        return None

    web.rules.insert(0, wait)


def test_what_needs_no_other_answer_is_asked_at_once(web, client):
    answer_together(web, TOGETHER)

    connection = open_connection(client, SCOPE, "0b6")

    assert connection.account.username == "facility"
    assert {it.path for it in web.asked[: len(TOGETHER)]} == TOGETHER
    assert [it.path for it in web.asked[len(TOGETHER) :]] == ["instrument/"]
    connection.close()


def test_our_record_and_requests_are_not_asked_for_again(web, client):
    connection = open_connection(client, SCOPE, "0b6")

    before = len(web.asked)
    assert connection.uploaders.look_up("0b6").id == 5

    assert len(web.asked) == before
    connection.close()


def test_an_installation_without_identity_asks_for_no_record(web, client):
    open_connection(client, SCOPE).close()

    assert web.count("GET", "mydata_uploader/") == 0


def test_later_requests_of_any_thread_use_the_connections_of_the_first_ones(web, client, ports):
    connection = open_connection(client, SCOPE, "0b6")
    before = set(ports)

    for _ in range(3):
        begin(connection.server.fetch_facilities)()

    assert ports == before
    connection.close()


def test_an_account_that_is_refused_is_reported_after_all_answers(web, client):
    web.rules.insert(0, lambda asked: reply(401) if asked.path == "user/" else None)

    with pytest.raises(AccessDeniedError):
        open_connection(client, SCOPE, "0b6")


def test_a_facility_that_is_not_ours_is_named(client):
    with pytest.raises(SettingsError, match='facility named "G"'):
        open_connection(client, Instrument(name="Scope", facility="G"), "0b6")
