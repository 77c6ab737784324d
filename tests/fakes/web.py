"""A web server on a real socket with scripted answers."""

import json
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from mydata_like.core.ports import Clock

ACCOUNT = {
    "id": 7,
    "username": "facility",
    "first_name": "Ann",
    "last_name": "Lee",
    "email": "ann@example.org",
    "groups": [{"id": 4, "name": "managers"}],
}


class Asked(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


Answer = Callable[[socket.socket], None]
Rule = Callable[[Asked], Answer | None]


def reply(
    status: int = 200, body: Any = b"", kind: str = "application/json", **headers: str
) -> Answer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return raw("\r\n".join(lines).encode() + b"\r\n\r\n" + content, close=False)


def raw(content: bytes, *, close: bool = True) -> Answer:
    def answer(sock: socket.socket) -> None:
        sock.sendall(content)
        if close:
            sock.shutdown(socket.SHUT_WR)

    return answer


def reset(sock: socket.socket) -> None:
    """Reset the connection, as a crashed proxy does."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    socket.close(sock.detach())


def page(*rows: Any, total: int | None = None) -> Answer:
    meta = {
        "limit": 1000,
        "next": None,
        "offset": 0,
        "total_count": len(rows) if total is None else total,
    }
    return reply(body={"meta": meta, "objects": list(rows)})


class Web:
    """The answers of a server: `rules` are tried in order, then the account's query, then a 404."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[Asked] = []
        self.rules: list[Rule] = []
        self.stopped = threading.Event()
        self.account: Answer = page(ACCOUNT)

    def on(self, method: str, path: str, *answers: Answer) -> None:
        """Answer matching requests with these in turn; the last answer is repeated."""
        left = deque(answers)

        def rule(asked: Asked) -> Answer | None:
            if (asked.method, asked.path) != (method, path):
                return None
            return left.popleft() if len(left) > 1 else left[0]

        self.rules.append(rule)

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        for rule in self.rules:
            answer = rule(asked)
            if answer is not None:
                return answer
        return self.account if asked.path == "user/" else reply(404, kind="text/html")

    def note_writes(self, clock: Clock) -> list[float]:
        """Return a list of the moments at which the server is asked to write from now on."""
        moments: list[float] = []

        def note(asked: Asked) -> None:
            if asked.method != "GET":
                moments.append(clock.monotonic())

        self.rules.insert(0, note)
        return moments

    def count(self, method: str, path: str = "") -> int:
        return sum(it.method == method and path in ("", it.path) for it in self.asked)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    web: Web

    def handle_error(self, *args: Any) -> None:
        pass


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        split = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(split.query).items()}
        path = split.path.partition("/api/v1/")[2]
        asked = Asked(self.command, path, query, dict(self.headers), body)
        try:
            self.server.web.answer(asked)(self.connection)
        except OSError:
            self.close_connection = True
        if self.connection.fileno() < 0:
            self.close_connection = True

    do_GET = do_POST = do_PATCH = do_PUT = do_CONNECT = handle_any  # noqa: N815

    def log_message(self, *args: Any) -> None:
        pass

    def finish(self) -> None:
        if self.connection.fileno() >= 0:
            super().finish()


class SixServer(Server):
    address_family = socket.AF_INET6


@contextmanager
def web_server(context: ssl.SSLContext | None = None, *, six: bool = False) -> Iterator[Web]:
    """Serve on a free port of this machine, optionally over IPv6."""
    server = SixServer(("::1", 0), Handler) if six else Server(("127.0.0.1", 0), Handler)
    host = "[::1]" if six else "127.0.0.1"
    scheme = "http"
    if context:
        scheme = "https"
        server.socket = context.wrap_socket(server.socket, server_side=True)
    web = server.web = Web(f"{scheme}://{host}:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield web
    finally:
        web.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()
