"""Asking for a newer version, over real sockets."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from typer.testing import CliRunner

from mydata_like import __version__
from mydata_like.app.update_check import fetch_newer, is_allowed
from mydata_like.cli.main import build_app
from mydata_like.core.errors import ServerUnavailableError
from mydata_like.settings.layers import LayerSources
from mydata_like.settings.layers import load_settings as load_layers
from mydata_like.state.paths import HOME


class Page(BaseHTTPRequestHandler):
    """Answers with the text of the server, and remembers what was sent."""

    def do_GET(self):
        self.server.calls.append((self.path, dict(self.headers)))
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(self.server.text)))
        self.end_headers()
        self.wfile.write(self.server.text)

    def log_message(self, *words):
        pass


@pytest.fixture
def page():
    with publishing() as server:
        yield server


@contextmanager
def publishing():
    server = HTTPServer(("127.0.0.1", 0), Page)
    server.calls, server.status, server.text = [], 200, b""
    server.url = f"http://127.0.0.1:{server.server_port}/newest.txt"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("text", "newer"),
    [
        (b"v99.10.2\n", "99.10.2"),
        (b"99.1\r\nwith more lines\n" + b"x" * 5000, "99.1"),
        (__version__.encode(), ""),
        (b"0.0.9", ""),
    ],
)
def test_a_newer_version_is_found(page, text, newer):
    page.text = text

    assert fetch_newer(page.url) == newer


def test_a_request_tells_the_version_and_nothing_else(page, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine newest.example.invalid login ann password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", page.url)  # so that it is asked for an address elsewhere
    monkeypatch.setenv("no_proxy", "")
    page.text = b"99.0"

    assert fetch_newer("http://newest.example.invalid/newest.txt") == "99.0"

    ((path, headers),) = page.calls
    assert path == "http://newest.example.invalid/newest.txt"
    assert headers.pop("User-Agent") == f"mydata-like/{__version__}"
    assert headers.keys() <= {"Host", "Accept", "Accept-Encoding", "Connection", "Proxy-Connection"}


@pytest.mark.parametrize(
    ("status", "text"), [(302, b"99.0"), (404, b"99.0"), (200, b""), (200, b"<b>99.0</b>")]
)
def test_other_answers_are_no_version(page, status, text):
    page.status, page.text = status, text

    with pytest.raises(ServerUnavailableError):
        fetch_newer(page.url)
    assert len(page.calls) == 1  # redirects are not followed


@pytest.mark.parametrize("managed", [False, True])
def test_a_managed_computer_does_not_ask(tmp_path, managed):
    file = tmp_path / "managed.toml"
    if managed:
        file.touch()
    settings = tmp_path / "settings.toml"
    settings.write_text('[window]\nupdate_url = "https://example.org/newest.txt"\n')
    sources = LayerSources(user=settings, managed=file, environment={})

    assert is_allowed(load_layers(sources)) is not managed


def test_nothing_is_asked_unless_an_address_is_set(tmp_path):
    sources = LayerSources(user=tmp_path / "settings.toml", environment={})

    assert not is_allowed(load_layers(sources))


def test_the_command_prints_the_newer_version(page, tmp_path):
    page.text = b"99.0\n"
    given = {HOME: str(tmp_path), "MYDATA_LIKE_WINDOW_UPDATE_URL": page.url}

    def ask(*words):
        return CliRunner().invoke(build_app(), ["version", "--check", *words], env=given).output

    assert ask() == "Version 99.0 is available.\n"
    assert json.loads(ask("--json")) == {"version": __version__, "asked": True, "newer": "99.0"}
