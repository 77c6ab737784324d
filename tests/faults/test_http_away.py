"""A server that fails in everything is away; one that fails in one thing is not."""

import pytest

from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.core.errors import ServerUnavailableError, TransientError
from mydata_like.settings.schema import Server
from tests.fakes.clock import FakeClock
from tests.fakes.web import ACCOUNT, page, reply


@pytest.fixture
def server(web):
    clock = FakeClock()
    settings = Server(url=web.url, username="facility")
    server = HttpServer(ApiClient(settings, "secret-key", clock, clock.cancel()))
    yield server
    server.close()


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_server_that_fails_in_everything_is_away(web, server, status):
    web.on("GET", "group/", reply(status))
    web.on("GET", "user/", reply(status))

    with pytest.raises(ServerUnavailableError):
        server.find_group("lab")


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_server_that_fails_in_one_thing_is_there(web, server, status):
    web.on("GET", "group/", reply(status))
    web.on("GET", "user/", page(ACCOUNT))

    with pytest.raises(TransientError):
        server.find_group("lab")
