"""A small HTTP/1.1 server for WSGI applications: a thread a connection, kept alive.

Werkzeug's own server closes every connection and lingers over each request, and pools of
threads starve once a few requests are made to hang on purpose; so this is ours.
"""

import io
import sys
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from threading import Lock, Thread
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import unquote_to_bytes

from werkzeug.serving import DechunkedInput

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication, WSGIEnvironment

_HEADER_NAMES = {"CONTENT_TYPE": "CONTENT_TYPE", "CONTENT_LENGTH": "CONTENT_LENGTH"}


class HttpServer(ThreadingHTTPServer):
    """Serves an application on the loopback interface until it is closed."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, port: int, application: "WSGIApplication") -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.application = application
        self._open: set[socket] = set()
        self._guard = Lock()
        self._thread = Thread(target=self.serve_forever, args=(0.02,), name="httpd")

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Break every connection and wait until the last thread has ended."""
        self.shutdown()
        self._thread.join()
        with self._guard:
            for connection in self._open:
                _shut(connection)
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that went away; report what is our own fault."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _shut(connection: socket) -> None:
    try:
        connection.shutdown(SHUT_RDWR)
    except OSError:
        return  # the client was quicker


class _Handler(BaseHTTPRequestHandler):
    """Turns requests into calls of the application."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: HttpServer

    def answer(self) -> None:
        body = self._read_body()
        if body is None:
            self.close_connection = True
            return
        pieces = self.server.application(self._build_environ(body), self._start_response)
        try:
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
        finally:
            _close(pieces)
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing; the application keeps a list of requests."""

    def _read_body(self) -> bytes | None:
        """Return all that was sent, or None where the client broke off."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return DechunkedInput(cast("IO[bytes]", self.rfile)).readall()
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        return body if len(body) == length else None

    def _start_response(
        self, status: str, headers: list[tuple[str, str]], _exc_info: object = None
    ) -> Any:
        code, _, reason = status.partition(" ")
        self.send_response(int(code), reason)
        for name, value in headers:
            self.send_header(name, value)
        names = {name.lower() for name, _ in headers}
        if "content-length" not in names and code != "204":
            self.send_header("Connection", "close")
        self.end_headers()
        return self.wfile.write

    def _build_environ(self, body: bytes) -> "WSGIEnvironment":
        path, _, query = self.path.partition("?")
        environ: WSGIEnvironment = {
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": str(self.server.port),
            "SERVER_PROTOCOL": self.request_version,
            "REMOTE_ADDR": self.client_address[0],
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "mydata_like.handler": self,
        }
        for name, value in self.headers.items():
            key = name.upper().replace("-", "_")
            environ[_HEADER_NAMES.get(key, f"HTTP_{key}")] = value
        return environ


def _close(pieces: Iterable[bytes]) -> None:
    close = getattr(pieces, "close", None)
    if close is not None:
        close()
