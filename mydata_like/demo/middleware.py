"""Request handling before the application: log, requested faults, missing slashes."""

import io
import json
import os
import re
import socket
import struct
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from threading import Condition, Event, Lock, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


@dataclass(frozen=True, slots=True)
class Delay:
    """Answer after a delay."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """Send this answer instead of handling the request, or, with `handled`, after handling it."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    handled: bool = False


@dataclass(frozen=True, slots=True)
class Drip:
    """Send the body of the answer byte by byte, with a pause of `seconds` before each."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Truncate:
    """Announce the whole body, send its first `keep` bytes and close the connection."""

    keep: int = 10


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection instead of answering; with `handled`, after handling the request."""

    handled: bool = True


@dataclass(frozen=True, slots=True)
class Hang:
    """Send no answer until the server stops; with `handled`, after handling the request."""

    handled: bool = False


@dataclass(frozen=True, slots=True)
class Slow:
    """Handle the request in a transaction that stays open for `seconds`.

    Its changes are visible only at the end, and its rows are locked until then. A second request
    that writes to the same dataset or names blocks its worker for good, as with gevent and
    psycopg2. A gateway in front of the server answers 504 after `patience` seconds.
    """

    seconds: float
    patience: float = inf


@dataclass(frozen=True, slots=True)
class StoreHalf:
    """Store the first half of a bulk request, and answer as if all of it were stored."""


@dataclass(frozen=True, slots=True)
class StoreOtherChecksum:
    """Store other checksums than those of the request."""

    md5sum: str = "f" * 32


@dataclass(frozen=True, slots=True)
class Cached:
    """Answer from a cache of successful answers, which may ignore `Cache-Control: no-cache`."""

    seconds: float = 1.0
    honours_no_cache: bool = True


Action = (
    Delay | Reply | Drip | Truncate | Reset | Hang | Slow | StoreHalf | StoreOtherChecksum | Cached
)

HTML_PAGE = Reply(
    200, b"<html><body>Please log in to the network.</body></html>", {"Content-Type": "text/html"}
)
WRONG_SHAPE = Reply(
    200, b'{"objects": {"not": "a list"}, "meta": []}', {"Content-Type": "application/json"}
)
EMPTY_LIST = Reply(
    200,
    b'{"meta": {"limit": 20, "next": null, "offset": 0, "previous": null, "total_count": 0},'
    b' "objects": []}',
    {"Content-Type": "application/json"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A rule that applies an action to `count` matching requests, after the first `skip`.

    `path` is a regular expression that is searched for in path and query. `count` None is without
    end. The action applies to every `every`-th of these requests only.
    """

    action: Action
    method: str | None = None
    path: str = ""
    count: int | None = 1
    skip: int = 0
    every: int = 1

    def matches(self, method: str, path: str) -> bool:
        return self.method in (None, method) and re.search(self.path, path) is not None


class FaultList:
    """The active rules; the first one that matches a request and is not used up applies."""

    def __init__(self) -> None:
        self._rules: list[Fault] = []
        self._met: list[int] = []
        self._guard = Lock()

    def add(self, *rules: Fault) -> None:
        """Append rules."""
        with self._guard:
            self._rules.extend(rules)
            self._met.extend(0 for _ in rules)

    def clear(self) -> None:
        with self._guard:
            self._rules.clear()
            self._met.clear()

    def find(self, method: str, path: str) -> Action | None:
        """Return the action for a request; rules before the one that applies count the request."""
        with self._guard:
            chosen: Action | None = None
            for index, rule in enumerate(self._rules):
                if chosen is not None or not rule.matches(method, path):
                    continue
                self._met[index] += 1
                turn = self._met[index] - rule.skip
                due = turn > 0 and (rule.count is None or turn <= rule.count)
                if due and turn % rule.every == 0:
                    chosen = rule.action
            return chosen


Rows = frozenset[Hashable]


class RequestWorkers:
    """The workers, initially without a limit, and the rows that slow requests have locked."""

    def __init__(self, stopped: Event) -> None:
        self.blocked = 0  # workers that wait forever
        self._limit = inf
        self._busy = 0
        self._locked: list[Rows] = []
        self._stopped = stopped
        self._changed = Condition()

    @property
    def any_locked(self) -> bool:
        return bool(self._locked)

    def limit(self, workers: float) -> None:
        """Set the number of workers from now on."""
        with self._changed:
            self._limit = workers
            self._changed.notify_all()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Occupy a worker as soon as one is free."""
        with self._changed:
            while self._busy >= self._limit and not self._stopped.is_set():
                self._changed.wait(0.1)
            self._busy += 1
        try:
            yield
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self, rows: Rows, *, slowly: bool) -> Iterator[bool]:
        """Lock rows if the request is slow; yield whether no other request had locked them.

        If another one had, yield False when the server stops.
        """
        with self._changed:
            conflict = any(not rows.isdisjoint(others) for others in self._locked)
            self.blocked += conflict
            if slowly and not conflict:
                self._locked.append(rows)
        if conflict:
            self._stopped.wait()
        try:
            yield not conflict
        finally:
            with self._changed:
                if slowly and not conflict:
                    self._locked.remove(rows)


def find_rows(environ: "WSGIEnvironment") -> Rows:
    """Return the datasets, records and names that a request writes to; none for a GET request."""
    if environ["REQUEST_METHOD"] == "GET":
        return frozenset()
    rows = {_row(environ["PATH_INFO"])} if environ["REQUEST_METHOD"] in ("PUT", "PATCH") else set()
    if environ["PATH_INFO"].endswith("dataset_file/"):
        rows = set()
    try:
        document = json.loads(read_body(environ))
    except ValueError:
        return frozenset(rows)
    listed = document.get("objects") if isinstance(document, dict) else None
    records = listed if isinstance(listed, list) else [document]
    return frozenset(rows.union(*(_rows_of(it) for it in records if isinstance(it, dict))))


def _rows_of(record: dict[str, Any]) -> set[Hashable]:
    """Return what a record locks: the record, its dataset, or its name if it is new."""
    if "resource_uri" in record:
        return {_row(str(record["resource_uri"]))}
    if "dataset" in record:
        return {_row(str(record["dataset"]))}
    return {("name", str(record.get(key))) for key in ("title", "description") if key in record}


def _row(path: str) -> Hashable:
    return tuple(path.strip("/").removeprefix("api/v1/").split("/"))


def read_body(environ: "WSGIEnvironment") -> bytes:
    """Return the body of a request, and rewind its stream."""
    stream: Any = environ["wsgi.input"]
    body: bytes = stream.read()
    stream.seek(0)
    return body


_HTML = "text/html; charset=utf-8"
_LOG_LIMIT = 200_000
_RESET_ON_CLOSE = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)


class LoggedRequest(NamedTuple):
    """A completed request; status 0 means that the client received no answer."""

    method: str
    path: str  # with its query
    status: int
    seconds: float


class PlannedAnswer(NamedTuple):
    """A complete answer of the application."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes


class Middleware:
    """A WSGI middleware that logs requests and applies faults.

    Hanging requests end when `stopped` is set.
    """

    def __init__(self, application: "WSGIApplication", faults: FaultList, stopped: Event) -> None:
        self._application = application
        self._faults = faults
        self._stopped = stopped
        self._kept: dict[str, tuple[float, PlannedAnswer]] = {}  # cached answers and their expiry
        self._threads: list[Thread] = []
        self.log = deque[LoggedRequest](maxlen=_LOG_LIMIT)  # the latest requests
        self.workers = RequestWorkers(stopped)

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        started = perf_counter()
        method, path = environ["REQUEST_METHOD"], _full_path(environ)
        action = self._faults.find(method, path)
        if isinstance(action, Slow) and action.patience < action.seconds:
            # The gateway stops waiting; the request continues.
            thread = Thread(target=self._work, args=(environ, action), name="slow request")
            self._threads.append(thread)
            thread.start()
            thread.join(action.patience)
            answer: PlannedAnswer | None = _build(Reply(504))
        else:
            answer = self._work(environ, action)
        status = int(answer.status[:3]) if answer is not None else 0
        self.log.append(LoggedRequest(method, path, status, perf_counter() - started))
        if answer is None:
            _reset(environ["mydata_like.handler"].connection)
        start_response(answer.status, answer.headers)
        if isinstance(action, Drip):
            return self._drip(answer.body, action.seconds)
        return [answer.body]

    def close(self) -> None:
        """Wait for requests that continue after their answer."""
        for thread in self._threads:
            thread.join()

    def _work(self, environ: "WSGIEnvironment", action: Action | None) -> PlannedAnswer | None:
        """Handle a request; return None, when the server stops, if its rows are locked."""
        slowly = isinstance(action, Slow)
        with self.workers.working():
            rows = find_rows(environ) if slowly or self.workers.any_locked else frozenset()
            with self.workers.writing(rows, slowly=slowly) as free:
                return self._handle(environ, action) if free else None

    def _handle(self, environ: "WSGIEnvironment", action: Action | None) -> PlannedAnswer | None:
        """Return the answer to send, or None to reset the connection."""
        match action:
            case Delay(seconds) | Slow(seconds):
                self._stopped.wait(seconds)
            case Cached():
                return self._answer_from_cache(environ, action)
            case StoreHalf() | StoreOtherChecksum():
                _change_body(environ, action)
            case Truncate(keep):
                answer = self._run(environ)
                body = answer.body[: max(0, min(keep, len(answer.body) - 1))]
                return PlannedAnswer(
                    answer.status, [*answer.headers, ("Connection", "close")], body
                )
            case Reply() | Reset() | Hang():
                if action.handled:
                    self._run(environ)
                if isinstance(action, Hang):
                    self._stopped.wait()
                return _build(action) if isinstance(action, Reply) else None
            case Drip() | None:
                pass
        return self._run(environ)

    def _run(self, environ: "WSGIEnvironment") -> PlannedAnswer:
        """Return the application's answer, or a redirect for a path without its final slash."""
        path = environ["PATH_INFO"]
        if not path.endswith("/"):
            query = f"?{environ['QUERY_STRING']}" if environ["QUERY_STRING"] else ""
            headers = [("Location", f"{path}/{query}"), ("Content-Type", _HTML)]
            return PlannedAnswer("301 Moved Permanently", [*headers, ("Content-Length", "0")], b"")
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], _error: Any = None) -> Any:
            started.append((status, headers))

        pieces = self._application(environ, start_response)
        body = b"".join(pieces)
        status, headers = started[-1]
        return PlannedAnswer(status, headers, body)

    def _answer_from_cache(self, environ: "WSGIEnvironment", cache: Cached) -> PlannedAnswer:
        """Return the cached answer if it is fresh; otherwise cache and return a new one."""
        path, now = _full_path(environ), perf_counter()
        bypass = "no-cache" in environ.get("HTTP_CACHE_CONTROL", "") and cache.honours_no_cache
        until, kept = self._kept.get(path, (0.0, None))
        if kept is not None and now < until and not bypass:
            return kept
        answer = self._run(environ)
        if answer.status.startswith("200"):
            self._kept[path] = (now + cache.seconds, answer)
        return answer

    def _drip(self, body: bytes, seconds: float) -> Iterator[bytes]:
        for index in range(len(body)):
            self._stopped.wait(seconds)
            yield body[index : index + 1]


def _change_body(environ: "WSGIEnvironment", action: StoreHalf | StoreOtherChecksum) -> None:
    """Change the body of a request before the application reads it."""
    document = json.loads(read_body(environ))
    records = document.get("objects", [document])
    if isinstance(action, StoreHalf):
        document["objects"] = records[: len(records) // 2]
    else:
        for record in records:
            record["md5sum"] = action.md5sum
    body = json.dumps(document).encode()
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))


def _reset(connection: socket.socket) -> NoReturn:
    """Close a connection with a TCP reset instead of a normal shutdown."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    socket.close(connection.detach())
    raise ConnectionResetError


def _full_path(environ: "WSGIEnvironment") -> str:
    path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
    query = environ["QUERY_STRING"]
    return f"{path}?{query}" if query else path


def _build(reply: Reply) -> PlannedAnswer:
    headers = {"Content-Type": _HTML, **reply.headers, "Content-Length": str(len(reply.body))}
    return PlannedAnswer(f"{reply.status} Because", list(headers.items()), reply.body)
