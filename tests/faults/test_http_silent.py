"""A server that takes requests and does not answer: the time is measured, and reported."""

import socket

import pytest

from mydata_like.app.run_connection import SilenceReport
from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.http import AnswerTimer
from mydata_like.core.errors import UploaderError
from mydata_like.core.events import ServerSilent
from mydata_like.settings.schema import Server
from tests.fakes.clock import FakeClock
from tests.fakes.web import page, reset


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def timer(clock):
    return AnswerTimer(clock)


@pytest.fixture
def server(web, clock, timer):
    settings = Server(url=web.url, username="facility")
    client = ApiClient(settings, "secret-key", clock, clock.cancel())
    client.wire.answers = timer
    server = HttpServer(client)
    yield server
    server.close()


def test_a_request_is_silent_until_its_answer(web, server, clock, timer):
    seen = []

    def think(asked):
        clock.move(12)
        seen.append(timer.seconds)

    web.rules.append(think)
    web.on("GET", "group/", page())

    server.find_group("lab")

    assert set(seen) == {12}
    clock.move(60)
    assert timer.seconds == 0


def test_an_answer_ends_the_silence_of_all_requests(clock, timer):
    with timer.waiting():
        clock.move(12)
        with timer.waiting():
            clock.move(1)
            assert timer.seconds == 13
        assert timer.seconds == 0
        clock.move(3)
        assert timer.seconds == 3
        timer.restart()
        assert timer.seconds == 0
    clock.move(3)
    assert timer.seconds == 0


def end(sock):
    """Close the connection without an answer."""
    socket.close(sock.detach())


@pytest.mark.parametrize("fault", [reset, end])
def test_a_request_that_was_given_up_was_not_answered(web, server, clock, timer, fault):
    web.on("GET", "group/", fault)
    web.account = fault
    began = clock.monotonic()
    with pytest.raises(UploaderError):
        server.find_group("lab")

    clock.move(12)

    assert timer.seconds == clock.monotonic() - began


def test_silence_is_reported_while_it_lasts_and_its_end_once(clock, timer):
    events = []
    report = SilenceReport(timer, events.append)

    with timer.waiting():
        for _ in range(6):
            report()
            clock.move(2.5)
    for _ in range(2):
        report()

    assert events == [ServerSilent(seconds=10), ServerSilent(seconds=12), ServerSilent(seconds=0)]
