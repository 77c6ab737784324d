"""Signals to a dead man's switch, over real sockets."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from mydata_like.hostos.healthcheck_ping import call_signal, write_signal
from tests.umasks import has_mode


class Switch(BaseHTTPRequestHandler):
    """Answers with the status that the path names, and remembers who called."""

    def do_GET(self):
        self.server.calls.append((self.path, dict(self.headers)))
        self.send_response(int(self.path.rpartition("/")[2]))
        self.send_header("Location", "/elsewhere/200")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


@contextmanager
def listening() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Switch)
    server.calls = []
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def switch():
    with listening() as server:
        yield server


def address(switch, status):
    return f"http://127.0.0.1:{switch.server_port}/secret-path/{status}"


def test_a_call_reports_only_itself(switch):
    assert call_signal(address(switch, 200)) is None
    ((path, headers),) = switch.calls
    assert path == "/secret-path/200"
    assert "Authorization" not in headers


def test_a_call_on_this_computer_goes_through_no_proxy(switch, monkeypatch):
    with listening() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
        monkeypatch.setenv("all_proxy", f"http://127.0.0.1:{proxy.server_port}")
        monkeypatch.setenv("no_proxy", "")

        assert call_signal(address(switch, 200)) is None
        call_signal("http://switch.example.invalid/200")

    assert len(switch.calls) == 1
    assert [path for path, _ in proxy.calls] == ["http://switch.example.invalid/200"]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_refusal_is_reported_without_the_address(switch, status):
    problem = call_signal(address(switch, status))

    assert problem.code == "monitor.no-signal"
    assert str(status) in problem.message
    assert "secret-path" not in problem.message
    assert len(switch.calls) == 1  # redirects are not followed


def test_an_unreachable_server_is_reported():
    with listening() as server:
        gone = address(server, 200)

    assert call_signal(gone).code == "monitor.no-signal"


def test_a_signal_file_can_be_read_by_a_monitor(tmp_path):
    file = tmp_path / "signals" / "ok.json"

    assert write_signal(file, {"found": 3}) is None
    assert json.loads(file.read_text()) == {"found": 3}
    assert has_mode(file, 0o644)


def test_a_signal_file_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "signals").write_text("no folder")

    assert write_signal(tmp_path / "signals" / "ok.json", {}).code == "monitor.no-signal"
