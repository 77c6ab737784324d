"""Ways to the server: proxies, several addresses, networks that want a login, moved servers."""

import base64
import socket
import threading
from contextlib import ExitStack, contextmanager

import pytest

from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.core.errors import ServerUnavailableError, SettingsError
from mydata_like.settings.schema import Server, check_values
from mydata_like.ssh.dialing import NoAnswerError, connect_first
from tests.fakes.clock import FakeClock
from tests.fakes.web import reply, web_server

AWAY = "http://mytardis.example.invalid"


@contextmanager
def server_at(url, **settings):
    clock = FakeClock()
    choices = Server(**{"url": url, "username": "facility", "allow_http": True} | settings)
    server = HttpServer(ApiClient(choices, "secret-key", clock, clock.cancel()))
    try:
        yield server
    finally:
        server.close()


class Tunnel:
    """A proxy that answers one CONNECT with a status."""

    def __init__(self, status: str) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._status = status
        self.asked = b""
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "Tunnel":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(60)
        self._listener.close()

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        with client:
            while b"\r\n\r\n" not in self.asked:
                self.asked += client.recv(1000)
            client.sendall(f"HTTP/1.1 {self._status}\r\n\r\n".encode())


def test_a_proxy_of_the_settings_is_asked(web):
    with server_at(AWAY, proxy=web.url) as server:
        assert server.fetch_account().username == "facility"

    assert len(web.asked) == 1


def test_a_proxy_of_the_environment_is_asked_and_none_goes_directly(web, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)

    with server_at(AWAY) as server, pytest.raises(ServerUnavailableError) as asked:
        server.fetch_account()
    with server_at(AWAY, proxy="none") as server, pytest.raises(ServerUnavailableError) as direct:
        server.fetch_account()

    assert asked.value.problem_code == "server.proxy"
    assert "its name cannot be resolved" in direct.value.message


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "127.1", "[::1]"])
@pytest.mark.parametrize("chosen", [False, True], ids=["environment", "settings"])
def test_no_proxy_receives_requests_to_this_computer(host, chosen, monkeypatch):
    with web_server(six=host == "[::1]") as web, web_server() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("no_proxy", "")
        url = f"http://{host}:{web.url.rpartition(':')[2]}"

        with server_at(url, proxy=proxy.url if chosen else "", allow_http=False) as server:
            assert server.fetch_account().username == "facility"

    assert (len(web.asked), proxy.asked) == (1, [])


def test_an_exception_to_the_proxy_of_the_environment_counts(web, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    with server_at(web.url) as server:
        assert server.fetch_account().username == "facility"


def test_a_proxy_of_the_environment_gets_the_account_that_it_names(web, monkeypatch):
    monkeypatch.setenv("http_proxy", web.url.replace("http://", "me:p%40ss@"))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)

    with server_at(AWAY) as server:
        server.fetch_account()

    told = {name.lower(): text for name, text in web.asked[0].headers.items()}
    account = told["proxy-authorization"].removeprefix("Basic ")
    assert base64.b64decode(account) == b"me:p@ss"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("407 Proxy Authentication Required", "a password"),
        ("403 Forbidden", "refuses the connection"),
    ],
)
def test_a_tunnel_that_is_refused_is_explained(status, said):
    with (
        Tunnel(status) as tunnel,
        server_at("https://mytardis.example.invalid", proxy=tunnel.url) as server,
        pytest.raises(ServerUnavailableError, match=said) as caught,
    ):
        server.fetch_account()

    assert caught.value.problem_code == "server.proxy"
    assert b"secret-key" not in tunnel.asked
    assert tunnel.asked.startswith(b"CONNECT mytardis.example.invalid:443")


def test_a_proxy_that_wants_a_password_is_reported_with_how_to_set_one(web):
    web.rules.append(lambda asked: reply(407, b"", "text/html"))

    with server_at(AWAY, proxy=web.url) as server, pytest.raises(ServerUnavailableError) as caught:
        server.fetch_account()

    assert "HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http://me:pw@proxy.example.org:3128", "user name or a password"),
        ("proxy.example.org:3128", "must begin with"),
        ("http://proxy.example.org/path", "a proxy has no path"),
        ("socks5://proxy.example.org", "must begin with"),
    ],
)
def test_a_proxy_is_written_as_an_address_without_secrets(text, message):
    _, problems = check_values({"server.proxy": text})

    assert [message in problem.message for problem in problems] == [True]
    assert all("pw@" not in problem.message for problem in problems)


@pytest.mark.parametrize("text", ["", "none", "NONE", "http://proxy.example.org:3128/"])
def test_a_proxy_may_be_the_systems_or_none(text):
    settings, problems = check_values({"server.proxy": text})

    assert not problems
    assert settings.server.proxy == text.lower().rstrip("/")


def test_a_server_is_reached_over_ipv6():
    with web_server(six=True) as six, server_at(six.url) as server:
        assert server.fetch_account().username == "facility"
        assert six.url.startswith("http://[::1]:")


def addresses(*targets):
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", target) for target in targets]


@contextmanager
def silent():
    """Yield an address whose connections are never answered: its queue is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.2", 0), backlog=0))
        address = listener.getsockname()
        for _ in range(4):
            caller = stack.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(address)
        yield address


def test_a_dead_first_address_holds_nothing_up(web):
    alive = ("127.0.0.1", int(web.url.rpartition(":")[2]))
    with silent() as dead, connect_first(addresses(dead, alive), 60.0) as line:
        assert line.getpeername() == alive


def test_all_addresses_together_have_one_time_limit():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NoAnswerError, match="the connection was refused"):
        connect_first(addresses(("127.0.0.1", port), ("127.0.0.1", port)), 30.0)


def test_a_network_that_wants_a_login_first_is_recognised(web):
    web.rules.append(lambda asked: reply(511, b"<html>Log in</html>", "text/html"))

    with server_at(web.url) as server, pytest.raises(ServerUnavailableError) as caught:
        server.fetch_account()

    assert caught.value.problem_code == "server.web-page"
    assert "in a browser" in caught.value.hint


@pytest.mark.parametrize(
    ("target", "command"),
    [
        (
            "https://new.example.org/tardis/api/v1/user/?format=json",
            "mydata-like settings set server.url https://new.example.org/tardis",
        ),
        ("/api/v1/user/", None),
        ("https://x.example.org/$(reboot)/api/v1/user/", None),
        ("", None),
    ],
)
def test_a_server_that_moved_is_reported_with_the_command_that_follows_it(web, target, command):
    web.rules.append(lambda asked: reply(302, b"", "text/html", Location=target))

    with server_at(web.url) as server, pytest.raises(SettingsError) as caught:
        server.fetch_account()

    assert caught.value.problem_code == "server.moved"
    if command is None:
        assert "settings set" not in caught.value.hint
    else:
        assert caught.value.hint.endswith(command)


def test_a_login_page_elsewhere_is_not_a_server_that_moved(web):
    target = "https://login.example.org/hotspot?next=x"
    web.rules.append(lambda asked: reply(302, b"", "text/html", Location=target))

    with server_at(web.url) as server, pytest.raises(ServerUnavailableError) as caught:
        server.fetch_account()

    assert caught.value.problem_code == "server.web-page"
    assert target in caught.value.message
    assert "in a browser" in caught.value.hint
