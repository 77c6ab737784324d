"""What stands before the application: the list of requests, the faults, the missing slash."""

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from threading import Event
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from mydata_like.demo.faults import (
    Action,
    Delay,
    Drip,
    FaultList,
    Hang,
    Reply,
    Reset,
    Truncate,
)

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

CONTROL = "/control/"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Request(NamedTuple):
    """One request that was answered; status 0 where the client got no answer."""

    method: str
    path: str  # with its query
    status: int
    seconds: float


class Answer(NamedTuple):
    """What the application answered, as a whole."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes


class Gate:
    """A WSGI application around ours; hanging requests end when `stopped` is set."""

    def __init__(self, application: "WSGIApplication", faults: FaultList, stopped: Event) -> None:
        self._application = application
        self._faults = faults
        self._stopped = stopped
        self.requests: list[Request] = []

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith(CONTROL):
            return self._application(environ, start_response)
        started = perf_counter()
        method, path = environ["REQUEST_METHOD"], _full_path(environ)
        status = 0
        try:
            action = self._faults.find(method, path)
            answer = self._handle(environ, action)
            status = int(answer.status[:3])
        finally:
            self.requests.append(Request(method, path, status, perf_counter() - started))
        start_response(answer.status, answer.headers)
        if isinstance(action, Drip):
            return self._drip(answer.body, action.seconds)
        return [answer.body]

    def _handle(self, environ: "WSGIEnvironment", action: Action | None) -> Answer:
        """Return the answer that goes out, or break the connection."""
        match action:
            case Delay(seconds):
                self._stopped.wait(seconds)
            case Reply():
                if action.handled:
                    self._run(environ)
                return _build(action)
            case Truncate(keep):
                return _truncate(self._run(environ), keep)
            case Reset() | Hang():
                self._break(environ, action)
            case Drip() | None:
                pass
        return self._run(environ)

    def _run(self, environ: "WSGIEnvironment") -> Answer:
        """Let the application answer; a path without its last slash is sent elsewhere."""
        path = environ["PATH_INFO"]
        if not path.endswith("/"):
            query = f"?{environ['QUERY_STRING']}" if environ["QUERY_STRING"] else ""
            headers = [("Location", f"{path}/{query}"), ("Content-Type", _HTML)]
            return Answer("301 Moved Permanently", [*headers, ("Content-Length", "0")], b"")
        heard: list[tuple[str, list[tuple[str, str]]]] = []

        def hear(status: str, headers: list[tuple[str, str]], _error: Any = None) -> Any:
            heard.append((status, headers))

        pieces = self._application(environ, hear)
        body = b"".join(pieces)
        status, headers = heard[-1]
        return Answer(status, headers, body)

    def _break(self, environ: "WSGIEnvironment", action: Reset | Hang) -> None:
        if action.handled:
            self._run(environ)
        if isinstance(action, Hang):
            self._stopped.wait()
        connection: socket.socket = environ["mydata_like.handler"].connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        # Shutting down, as the server would, says good-bye politely; closing the bare
        # descriptor resets.
        os.close(connection.detach())
        raise ConnectionResetError

    def _drip(self, body: bytes, seconds: float) -> Iterator[bytes]:
        for index in range(len(body)):
            self._stopped.wait(seconds)
            yield body[index : index + 1]


_HTML = "text/html; charset=utf-8"


def _full_path(environ: "WSGIEnvironment") -> str:
    path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
    query = environ["QUERY_STRING"]
    return f"{path}?{query}" if query else path


def _build(reply: Reply) -> Answer:
    headers = {"Content-Type": _HTML, **reply.headers, "Content-Length": str(len(reply.body))}
    return Answer(f"{reply.status} Because", list(headers.items()), reply.body)


def _truncate(answer: Answer, keep: int) -> Answer:
    body = answer.body[: max(0, min(keep, len(answer.body) - 1))]
    return Answer(answer.status, [*answer.headers, ("Connection", "close")], body)
