"""Connections that break or die, and servers that go down: what that says about a request."""

import socket
import time
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.http_sockets import HttpPool, has_local_address
from mydata_like.core.errors import Loss, ServerUnavailableError, UnansweredError
from mydata_like.settings.schema import Server
from tests.fakes.clock import FakeClock
from tests.fakes.web import page, reply
from tests.faults.tcpproxy import TcpProxy
from tests.faults.test_http_lost_replies import DRAFT, NEW, PATH, ROWS
from tests.privileges import IS_WINE

LIMIT = 300.0
GROUP = {"id": 9, "name": "lab"}
EXPERIMENT = "mydata_experiment/"


class ForwardClock:
    """The real time, which can be put forward."""

    def __init__(self):
        self._passed = 0.0

    def now(self):
        return datetime.now(UTC)

    def monotonic(self):
        return time.monotonic() + self._passed

    def move(self, seconds):
        self._passed += seconds


class Bench:
    """A client that reaches a web server through a proxy; `posts` are the moments of writes."""

    def __init__(self, web, clock, *, buffer=0, **settings):
        self.web = web
        self.clock = clock
        self.proxy = TcpProxy(int(web.url.rpartition(":")[2]), buffer=buffer)
        chosen = Server(url=f"http://127.0.0.1:{self.proxy.port}", username="facility", **settings)
        waiting = clock if isinstance(clock, FakeClock) else FakeClock()
        self.client = ApiClient(chosen, "key", clock, waiting.cancel())
        self.server = HttpServer(self.client)
        self.posts = web.note_writes(self.clock)


@contextmanager
def open_bench(web, clock, **settings):
    bench = Bench(web, clock, **settings)
    with bench.proxy, closing(bench.client):
        yield bench


@pytest.fixture
def bench(web):
    with open_bench(web, FakeClock(), write_timeout=LIMIT) as bench:
        yield bench


def test_a_connection_that_a_firewall_has_forgotten_meanwhile_is_not_used_again(web):
    web.on("GET", "group/", page(GROUP))
    web.on("PATCH", PATH, reply(202))
    with open_bench(web, ForwardClock(), write_timeout=2.0, read_timeout=1.0) as bench:
        bench.server.find_group("lab")
        bench.clock.move(30)
        bench.proxy.forget_all()

        bench.server.register([NEW])

    assert web.count("PATCH") == 1
    assert bench.proxy.connections == 2


def test_a_connection_is_used_again_within_seconds(web):
    web.on("GET", "group/", page(GROUP))
    with open_bench(web, ForwardClock()) as bench:
        for _ in range(3):
            bench.server.find_group("lab")
            bench.clock.move(5)

    assert bench.proxy.connections == 1


def test_connections_are_probed_while_they_are_silent(web):
    with open_bench(web, FakeClock()) as bench:
        connection = HttpPool.ConnectionCls("127.0.0.1", bench.proxy.port)
        with closing(connection):
            connection.connect()

            assert connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            if not IS_WINE:  # which does not take it
                assert connection.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15


@pytest.mark.skipif(IS_WINE, reason="Wine lets programs use the addresses of other computers")
def test_the_address_of_a_network_that_is_gone_is_recognised():
    gone = SimpleNamespace(family=socket.AF_INET, getsockname=lambda: ("203.0.113.7", 5000))
    with socket.create_server(("127.0.0.1", 0)) as here:
        assert has_local_address(here)
        assert not has_local_address(gone)


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux counts these bytes")
def test_a_request_that_does_not_arrive_is_given_up_and_will_never_be_carried_out(web):
    web.on("GET", "group/", page(GROUP))
    web.on("PATCH", PATH, reply(202))
    many = [NEW._replace(name=f"{number:04}.tif") for number in range(300)]
    settings = {"write_timeout": LIMIT, "read_timeout": 0.5, "buffer": 2048}
    with open_bench(web, ForwardClock(), **settings) as bench:
        bench.server.find_group("lab")
        bench.proxy.stall.set()

        with pytest.raises(UnansweredError) as caught:
            bench.server.register(many)
        begun = caught.value.sent_at

        assert caught.value.loss is Loss.UNDELIVERED
        assert bench.clock.monotonic() - begun < 30
        assert bench.server.find_end(begun, caught.value) - begun < 60
        bench.proxy.stall.clear()
        bench.server.find_group("lab")
    whole = [it for it in web.asked if len(it.body) == int(it.headers.get("Content-Length", 0))]
    assert {it.method for it in whole} == {"GET"}


def lose(bench):
    """Register through a server that goes down during the request; return the error."""
    bench.proxy.down_on = b"md5sum"
    with pytest.raises(UnansweredError) as caught:
        bench.server.register([NEW])
    return caught.value


def test_a_request_has_ended_soon_after_the_server_was_seen_to_be_down(bench):
    bench.web.on("GET", "group/", page(GROUP))
    begun = bench.clock.monotonic()
    lost = lose(bench)
    assert lost.loss is Loss.BROKEN
    assert bench.server.find_end(begun, lost) == begun + LIMIT

    with pytest.raises(ServerUnavailableError):
        bench.server.find_group("lab")
    down_until = bench.clock.monotonic()
    bench.proxy.up()
    bench.server.find_group("lab")

    assert bench.server.find_end(begun, lost) <= down_until + 10.0


def test_a_server_that_takes_long_to_answer_may_take_long_to_end(bench):
    def think(asked):
        if asked.path == "group/":
            bench.clock.move(20)

    bench.web.rules.append(think)
    bench.web.on("GET", "group/", page(GROUP))
    bench.server.find_group("lab")
    lost = lose(bench)
    with pytest.raises(ServerUnavailableError):
        bench.server.find_group("lab")

    assert bench.server.find_end(0.0, lost) >= bench.client.wire.down_at + 60


@pytest.mark.parametrize("status", [408, 504])
def test_a_request_that_a_gateway_has_given_up_may_go_on_behind_one_that_restarts(bench, status):
    bench.web.on("PATCH", PATH, reply(status))
    with pytest.raises(UnansweredError) as caught:
        bench.server.register([NEW])
    bench.proxy.down()
    with pytest.raises(ServerUnavailableError):
        bench.server.find_group("lab")

    assert bench.server.find_end(0.0, caught.value) == LIMIT


def test_a_server_that_was_down_before_says_nothing_about_a_later_request(bench):
    bench.proxy.down()
    with pytest.raises(ServerUnavailableError):
        bench.server.find_group("lab")
    bench.proxy.up()
    begun = bench.clock.monotonic()

    lost = lose(bench)

    assert bench.server.find_end(begun, lost) == begun + LIMIT


def test_a_gateway_that_knows_no_application_shows_that_it_is_down(bench):
    bench.web.on("PATCH", PATH, reply(502))
    bench.web.on("GET", "group/", reply(502), page(GROUP))
    with pytest.raises(UnansweredError) as caught:
        bench.server.register([NEW])
    begun = caught.value.sent_at
    assert bench.server.find_end(begun, caught.value) == begun + LIMIT
    bench.clock.move(1)

    bench.server.find_group("lab")

    assert bench.server.find_end(begun, caught.value) < bench.clock.monotonic() + 10


@pytest.mark.parametrize("carried_out", [False, True])
def test_what_was_being_made_when_the_server_was_killed_is_made_once(bench, carried_out):
    made = []

    def rule(asked):
        if (asked.method, asked.path) == ("POST", EXPERIMENT):
            if carried_out or bench.posts[1:]:
                made.append(ROWS[EXPERIMENT])
            if not bench.posts[1:]:
                bench.proxy.down()
            return reply(201, ROWS[EXPERIMENT])
        return page(*made) if asked.path == EXPERIMENT else None

    bench.web.rules.append(rule)
    begun = bench.clock.monotonic()
    with pytest.raises(ServerUnavailableError):
        bench.server.create_experiment(DRAFT)
    bench.proxy.up()

    bench.server.create_experiment(DRAFT)

    assert len(made) == 1
    assert bench.clock.monotonic() - begun < 30
