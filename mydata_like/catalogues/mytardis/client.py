"""The API client: classifies replies, retries requests and checks the authentication."""

import json
import logging
import math
import random
import re
import threading
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import chain, islice, repeat
from typing import Any, Final, NoReturn, TypeVar

import orjson

from mydata_like.catalogues.mytardis.http import (
    BODY_LIMIT,
    BrokenOffError,
    HttpClient,
    HttpRequest,
    HttpResponse,
    NotReachedError,
    proxy_wants_password,
)
from mydata_like.catalogues.mytardis.serializers import Account, page_parser, parse_account
from mydata_like.catalogues.mytardis.server_api import WriteLog
from mydata_like.core.errors import (
    AccessDeniedError,
    Cancelled,
    Loss,
    RejectedError,
    ServerUnavailableError,
    SettingsError,
    TransientError,
    UnansweredError,
    WaitRequestedError,
    describe_wait,
)
from mydata_like.core.events import Notice
from mydata_like.core.formatting import format_path
from mydata_like.core.id_set import IdSet
from mydata_like.core.parsing import check_amount
from mydata_like.core.ports import CancelSignal, Clock, Emit
from mydata_like.settings.schema import Server
from mydata_like.settings.values import parse_url

_TITLE: Final = re.compile(rb"<title[^>]*>(.{0,1000}?)</title>", re.IGNORECASE | re.DOTALL)
_SAFE: Final = re.compile(r"[A-Za-z0-9:/._~\[\]-]+")  # no characters that are special in a shell
API: Final = "/api/v1/"  # the path of every request, after the server's address
LONGEST_REST: Final = 3600.0  # the maximum of seconds that a server may make us wait


def decode_json(body: bytes) -> Any:
    """Return the value of a reply's JSON; every text in it can be encoded as UTF-8.

    Numbers are finite. Raises ValueError for everything else.
    """
    check_amount(body, BODY_LIMIT)
    return orjson.loads(body.removeprefix(BOM_UTF8))


def plain(text: str, limit: int) -> str:
    """Return a server's text for display: without control characters, and shortened."""
    return format_path(text.encode(errors="backslashreplace"))[:limit]


def find_server_address(target: str) -> str:
    """Return the server address, in the form of the settings, to which a redirect points.

    Empty if the target is not an API.
    """
    address, api, _ = target.partition(API)
    try:
        parse_url(address)
    except ValueError:
        return ""
    return address if api and _SAFE.fullmatch(address) else ""


def parse_rest(reply: HttpResponse, now: datetime) -> float:
    """Return the seconds of the server's Retry-After, up to a limit."""
    asked = reply.headers.get("Retry-After", "").strip()
    try:
        if asked[:1] in "-0123456789":
            seconds = float(asked)
        else:
            moment = parsedate_to_datetime(asked)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            seconds = (moment - now).total_seconds()
    except (ValueError, OverflowError, TypeError, IndexError):  # the library's for dates, too
        return 0.0
    if math.isnan(seconds):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_REST)


logger = logging.getLogger(__name__)
T = TypeVar("T")

_BUSY: Final = (408, 425, 429, 500, 502, 503, 504)
_GAVE_UP: Final = (408, 502, 504)  # from a gateway; the server may still process the request
_GATEWAY_TIME: Final = (
    "A gateway in front of the server did not wait for the answer. The server's administrator can "
    "raise its time limit (nginx: proxy_read_timeout)."
)
_GATEWAY_SIZE: Final = (
    "The server, or a gateway in front of it, limits the size of a request. The server's "
    "administrator can raise that limit (nginx: client_max_body_size)."
)
_LOGIN_FIRST: Final = 511  # from a network that requires its own login; RFC 6585


class StrangeAnswerError(TransientError):
    """The server's answer is invalid; a second one in a row is not retried."""

    code = "server.strange-answer"


class OtherBytesError(TransientError):
    """A file was received completely, but differs from the one that the server has verified.

    It is not fetched again at once, since the stored file stays the same.
    """

    code = "server.strange-answer"


class MovedError(SettingsError):
    """The server redirects to another `address`, which is empty if that is not a server's."""

    code = "server.moved"

    def __init__(self, message: str, *, hint: str, address: str) -> None:
        super().__init__(message, hint=hint)
        self.address = address


class ResponseClassifier:
    """Classifies the replies of one server, except for authentication errors."""

    def __init__(self, host: str, api_key: str) -> None:
        self._host = host
        self._api_key = api_key

    def check(self, reply: HttpResponse, expected: tuple[int, ...]) -> HttpResponse:
        """Return a reply with an expected status; raise the error for any other status."""
        status = reply.status
        if status == 200 and reply.content_type == "text/html" and reply.body.strip():
            self.raise_web_page()
        if status in expected:
            return reply
        if 300 <= status < 400:
            target = plain(reply.headers.get("Location", ""), 300)
            if target and API not in target:  # for example the login page of a network
                self.raise_web_page(f", {target}")
            address = find_server_address(target)
            hint = (
                "If your server has moved there, run: "
                f"mydata-like settings set server.url {address}"
                if address
                else "If your server has moved, change server.url in the settings."
            )
            raise MovedError(
                f"{self._host} redirects to another address: {target or 'none given'}.",
                hint=hint,
                address=address,
            )
        if status == _LOGIN_FIRST:
            self.raise_web_page()
        if status == 407:
            raise proxy_wants_password(self._host)
        raise self.busy(reply) if status in _BUSY else self.refused(reply)

    def decode(self, reply: HttpResponse, parse: Callable[[Any], T]) -> T:
        """Return a reply's JSON, parsed by `parse`."""
        if reply.content_type == "text/html" or reply.body.lstrip()[:1] == b"<":
            self.raise_web_page()
        try:
            return parse(decode_json(reply.body))
        except ValueError as error:
            logger.debug("invalid answer: %s", error)
            raise StrangeAnswerError(
                f"{self._host} returned an invalid answer: {self.excerpt(reply)}",
                hint="Check that this is the address of a MyTardis server.",
            ) from error

    def excerpt(self, reply: HttpResponse) -> str:
        """Return the beginning of the server's answer, as plain text without our key."""
        text = reply.body.decode(errors="backslashreplace")
        if self._api_key:
            text = text.replace(self._api_key, "...")
        return plain(" ".join(text[:1000].split()), 200)

    def raise_web_page(self, which: str = "") -> NoReturn:
        """Raise the error for a server in whose place a web page answers."""
        raise ServerUnavailableError(
            f"The address {self._host} answers with a web page{which}.",
            hint="If this network requires a login, open any page in a browser and log in. "
            "Otherwise, check the server address.",
            code="server.web-page",
        )

    def busy(self, reply: HttpResponse) -> TransientError:
        """Return the error for a server that cannot answer now."""
        message = f"{self._host} could not answer (status {reply.status})."
        code = {500: "server.error", 429: "server.throttled"}.get(reply.status, "server.busy")
        if reply.status not in _GAVE_UP:
            return TransientError(message, code=code)
        loss = Loss.BROKEN if reply.status == 502 else Loss.SILENT
        hint = _GATEWAY_TIME if reply.status == 504 else ""
        return UnansweredError(message, hint=hint, code=code, loss=loss, sent_at=reply.sent_at)

    def intercepted(self, reply: HttpResponse) -> RejectedError:
        """Return the error for a single request that a gateway refuses with a web page."""
        title = _TITLE.search(reply.body)
        said = plain(" ".join(title[1].decode(errors="replace").split()), 100) if title else ""
        return RejectedError(
            f"A web page answered instead of {self._host} (status {reply.status})"
            f"{f': {said}' if said else ''}.",
            hint="A firewall in front of the server may object to a name. Rename the file, or ask "
            "the server's administrator.",
            code="server.gateway",
        )

    def refused(self, reply: HttpResponse) -> RejectedError:
        """Return the error for a request that the server refuses."""
        code = {404: "server.not-found", 409: "server.duplicate"}.get(reply.status)
        said = self.excerpt(reply) if reply.content_type != "text/html" else ""
        return RejectedError(
            f"{self._host} refused this (status {reply.status}){': ' if said else ''}{said}.",
            hint=_GATEWAY_SIZE if reply.status == 413 else "",
            code=code or "server.refused",
        )


ATTEMPTS: Final = 4
PAGE: Final = 1000
_PROOF_LASTS: Final = 30.0
_WALKS: Final = 4  # times that a listing is read again after it changed during the reading
_FAILING: Final = ("server.busy", "server.error", "server.connection-lost", "server.slow")
_SHORT_REST: Final = 5.0  # seconds of a requested pause that a request waits for
_LOOK_INTERVAL: Final = 3.0  # minimum seconds between looks during a requested pause
_UNTOUCHED: Final = 429  # the only busy status that guarantees that nothing was done
_LOOKS: Final = (1.0, 2.0, 5.0)  # seconds between checks for a late result
_SETTLING: Final = 10.0  # seconds after which a request has ended whose server went down
_AT_ONCE: Final = 1.0  # seconds within which a gateway answers that knows no application

Query = Mapping[str, str | int]


class RequestedPause:
    """The pause that a server has asked for with Retry-After, in which all threads send nothing.

    A server that is back early is noticed by a request now and then (`enter_look`).
    """

    def __init__(self, host: str, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self._lock = threading.Lock()
        self._until = -math.inf
        self._look_at = -math.inf

    @property
    def rest(self) -> float:
        """How many seconds are left."""
        return max(0.0, self._until - self._clock.monotonic())

    def begin(self, seconds: float) -> None:
        """Begin the pause, or prolong it."""
        with self._lock:
            now = self._clock.monotonic()
            self._until = max(self._until, now + seconds)
            self._look_at = now + _LOOK_INTERVAL

    def end(self) -> None:
        """End the pause before its time: the server has answered."""
        self._until = -math.inf

    def enter_look(self) -> None:
        """Let one thread look whether the server is back; raise `WaitRequestedError` in others."""
        with self._lock:
            now = self._clock.monotonic()
            if now < self._look_at:
                raise self.error()
            self._look_at = now + _LOOK_INTERVAL

    def error(self) -> WaitRequestedError:
        """Return the error for a request during the pause."""
        rest = self.rest
        until = (self._clock.now() + timedelta(seconds=rest)).astimezone()
        return WaitRequestedError(
            f"{self._host} asks us to wait until {until:%H:%M}.",
            hint="To try at once, resume the run.",
            rest=rest,
        )


class ApiClient:
    """A typed client for one server, with retries; every method is thread-safe.

    Before the first request, these may be set: `attempts`, the maximum number of attempts of a
    request; `emit`, which receives an event for long waits; `writes`, which records writes;
    `pause_at`, where a read waits for the end of a pause that the server has asked for.
    """

    def __init__(self, settings: Server, api_key: str, clock: Clock, cancel: CancelSignal) -> None:
        self.attempts = ATTEMPTS
        self.emit: Emit | None = None
        self.writes: WriteLog | None = None
        self.pause_at: Callable[[WaitRequestedError, Callable[[], None]], None] | None = None
        self.write_timeout = settings.write_timeout
        self.wire = HttpClient(settings, api_key, clock, cancel)
        self._meaning = ResponseClassifier(self.wire.host, api_key)
        self.decode = self._meaning.decode
        self.excerpt = self._meaning.excerpt
        self._username = settings.username
        self._clock = clock
        self._cancel = cancel
        self._pause = RequestedPause(self.wire.host, clock)
        self._proof_lock = threading.Lock()
        self._account: Account | None = None
        self._proved_at = 0.0

    def fetch(self, path: str, parse: Callable[[Any], T], query: Query | None = None) -> T:
        """Fetch JSON and return it parsed by `parse`."""
        request = HttpRequest("GET", path, {"format": "json", **(query or {})})
        return self._persist(lambda: self.decode(self.check(self.exchange(request), (200,)), parse))

    def find(self, path: str, parse: Callable[[Any], T], query: Query | None = None) -> T | None:
        """Fetch JSON; return None if it does not exist."""
        try:
            return self.fetch(path, parse, query)
        except RejectedError as error:
            if error.problem_code == "server.not-found":
                return None
            raise

    def pages(
        self, path: str, parse_row: Callable[[Any], T], query: Query, offset: int = 0
    ) -> Iterator[list[T]]:
        """Yield the rows of all pages from `offset` on, each row (by its id) once.

        Pages are requested by offset, not by links: some servers ignore the limit, and the links
        of others lose the filter. A listing that changes during the reading is read again.
        """
        given = walked = IdSet()
        parse = page_parser(parse_row)
        for _ in range(_WALKS):
            position, total = offset, offset
            while True:
                page = self.fetch(path, parse, {**query, "limit": PAGE, "offset": position})
                shrunk, total = page.total < total, page.total
                before = len(walked)
                fresh = {number: row for number, row in page.rows if number not in given}
                for seen in {given, walked}:
                    seen.update([number for number, _ in page.rows])
                yield list(fresh.values())
                position += len(page.rows)
                if shrunk or position >= total or len(walked) == before:
                    break
            if offset + len(walked) >= total and not shrunk:
                return
            walked = IdSet()
        raise TransientError(
            f"A listing of {self.wire.host} changed repeatedly while it was read.",
            code="server.listing-unsteady",
        )

    def change(self, method: str, path: str, document: object) -> None:
        """Send an idempotent change."""
        self.insist(json_request(method, path, document))

    def insist(
        self, request: HttpRequest, seen: Callable[[], bool] = lambda: False
    ) -> HttpResponse | None:
        """Send an idempotent request until it succeeds.

        A request that writes is only sent again after the previous one must have ended. Returns
        None if `seen` reports in the meantime that it was carried out.
        """

        def attempt() -> HttpResponse | None:
            begun = self._clock.monotonic()
            try:
                return self.check(self.exchange(request), (200, 201, 202, 204))
            except UnansweredError as lost:
                if request.writes and self.outlast(begun, lost, lambda: seen() or None):
                    return None
                raise

        return self._persist(attempt)

    def outlast(
        self,
        begun: float,
        lost: UnansweredError | None,
        find: Callable[[], T | None],
        work: float = 0.0,
    ) -> T | None:
        """Wait until a write request without an answer must have ended, as in `find_end`.

        The server may process it until then, and would block a second one. Returns the result of
        `find` as soon as there is one; otherwise the request was not carried out.
        """
        seconds = self.find_end(begun, lost, work) - self.now()
        logger.info("The server may still process a request for %.0f s", seconds)
        if self.emit is not None and seconds > 0:
            self.emit(Notice(problem=describe_wait(seconds, lost)))
        for interval in chain(_LOOKS, repeat(_LOOKS[-1])):
            found = find()
            rest = self.find_end(begun, lost, work) - self._clock.monotonic()
            if found is not None or rest <= 0:
                return found
            self.rest(min(interval, rest))
        return None

    def find_end(self, begun: float, lost: UnansweredError | None, work: float = 0.0) -> float:
        """Return the monotonic time when a write request with a lost answer must have ended.

        That is `write_timeout` after `begun`. If the server went down since the request was sent,
        or it did not arrive completely, the time is shortly after that: a gateway may hide that the
        application goes on, but not for longer than answers took so far (decision 58). `work` is
        how many seconds longer than usual the application may work on this request.
        """
        latest, known = begun + self.write_timeout, self.wire.down_at
        if lost is not None and lost.loss is Loss.UNDELIVERED:
            known = begun
        elif lost is None or lost.loss is Loss.SILENT or known <= lost.sent_at:
            return latest
        return min(latest, known + max(_SETTLING, 3 * self.wire.longest) + work)

    def create(self, path: str, document: object, parse: Callable[[Any], T]) -> T:
        """Create a record with one request; after a `TransientError` it may or may not exist."""
        request = json_request("POST", path, document)
        return self.decode(self.check(self.submit(request), (201,)), parse)

    def submit(self, request: HttpRequest) -> HttpResponse:
        """Send a request that is not idempotent; it is retried only if nothing was done."""

        def attempt() -> HttpResponse:
            reply = self.exchange(request)
            if reply.status == _UNTOUCHED:
                raise self._meaning.busy(reply)
            return reply

        return self._repeat(
            attempt,
            lambda error: (
                isinstance(error, NotReachedError) or error.problem_code == "server.throttled"
            ),
        )

    def read(self, path: str, answer_timeout: float, take: Callable[[Iterable[bytes]], T]) -> T:
        """Return the result of `take` for a file's bytes; it may be called again from the start."""

        def attempt() -> T:
            taken: list[T] = []
            request = HttpRequest(
                "GET",
                path,
                answer_timeout=answer_timeout,
                take=lambda pieces: taken.append(take(pieces)),
            )
            reply = self.exchange(request)
            if 300 <= reply.status < 400:  # our key must not be sent to another address
                raise self._meaning.refused(reply)
            self.check(reply, (200,))
            if not taken:
                raise StrangeAnswerError(f"{self.wire.host} returned an empty file.")
            return taken[0]

        return self._persist(attempt)

    @contextmanager
    def open(self, path: str, offset: int = 0) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Ask once for a file; yield where its pieces begin, and these.

        That is at the offset, or at 0 if the server returns whole files only. Any page is taken for
        the file, as it may be one, unless the server answers all requests with a page.
        """
        headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        with self.wire.open(HttpRequest("GET", path, headers=headers)) as (reply, pieces):
            if reply.content_type == "text/html":
                self.prove(within=0)
            if reply.status not in (200, 206):
                reply = replace(reply, body=b"".join(islice(pieces, 10)))
                if 300 <= reply.status < 400:  # our key must not be sent to another address
                    raise self._meaning.refused(reply)
                self.check(reply, ())
            yield offset if reply.status == 206 else 0, pieces

    def exchange(self, request: HttpRequest) -> HttpResponse:
        """Send a request once.

        During a pause that the server asked for, it waits for the last seconds only. Before that,
        a read waits at `pause_at`, and a write raises `WaitRequestedError`: its caller measures
        from the beginning how long it may take.
        """
        rest = self._pause.rest
        if 0 < rest <= _SHORT_REST:
            self.rest(rest)
        elif rest > 0:
            try:
                self._pause.enter_look()
                self._look()
            except WaitRequestedError as error:
                if request.writes or self.pause_at is None:
                    raise
                self.pause_at(error, self._look)
        return self._exchange(request)

    def _look(self) -> None:
        """End a requested pause if the server answers; else raise `WaitRequestedError`."""
        self._exchange(self._account_request(), looks=True)
        if self._pause.rest > 0:
            raise self._pause.error()

    def _exchange(self, request: HttpRequest, *, looks: bool = False) -> HttpResponse:
        begun = self._clock.monotonic()
        reply = self.wire.exchange(request)
        now = self._clock.monotonic()
        if reply.status == 502 and not request.writes and now - begun < _AT_ONCE:
            self.wire.down_at = now
        logger.debug("%s %s: %d", request.method, request.path, reply.status)
        asked = parse_rest(reply, self._clock.now())
        if asked and reply.status in (429, 503):
            self._pause.begin(asked)
        elif looks and reply.status not in _BUSY:
            self._pause.end()
        return reply

    def check(self, reply: HttpResponse, expected: tuple[int, ...]) -> HttpResponse:
        """Return a reply with an expected status; raise the error for any other status."""
        if reply.status in (401, 403) and reply.status not in expected:
            self.prove(within=0)  # the server sends 401 also for a missing permission
            if _is_page_of_gateway(reply):
                raise self._meaning.intercepted(reply)
            raise RejectedError(
                f"The account {self._username} has no permission for this.",
                hint="Ask the facility's administrator. The dataset may also be locked.",
                code="server.forbidden",
            )
        return self._meaning.check(reply, expected)

    def prove(self, within: float = _PROOF_LASTS) -> Account:
        """Check that the server accepts our account, unchanged; a check `within` seconds is reused.

        Without it an empty list means nothing, since the server also returns one to strangers.
        """
        with self._proof_lock:
            age = self._clock.monotonic() - self._proved_at
            if self._account is None or age > within or within <= 0:
                self._account = self._ask_who_we_are(self._account)
                self._proved_at = self.now()
            return self._account

    def now(self) -> float:
        """Return monotonic time in seconds."""
        return self._clock.monotonic()

    def rest(self, seconds: float) -> None:
        """Wait, unless asked to stop."""
        if self._cancel.wait(seconds):
            raise Cancelled

    def close(self) -> None:
        self.wire.close()

    def _persist(self, action: Callable[[], T]) -> T:
        """Retry an idempotent action; a final failure may concern only this action or the server.

        If the server fails for every request, it is unavailable, which stops the whole run.
        """
        try:
            return self._repeat(action)
        except TransientError as error:
            if error.problem_code in _FAILING:
                self.prove(within=0)
            raise

    def _repeat(
        self,
        action: Callable[[], T],
        worth: Callable[[TransientError], bool] = lambda error: (
            not isinstance(error, BrokenOffError | OtherBytesError)
        ),
    ) -> T:
        """Repeat an action after failures for which that is `worth` it."""
        failures = strange = 0
        while True:
            try:
                return action()
            except TransientError as error:
                failures += 1
                strange += isinstance(error, StrangeAnswerError)
                last = failures >= self.attempts or strange > 1 or not worth(error)
                if last and isinstance(error, NotReachedError | StrangeAnswerError):
                    raise _unavailable(error) from error
                if last:
                    raise
            jitter = random.random()  # noqa: S311 - not for security
            self.rest(min(2.0 ** (failures - 2) + jitter, 30.0))

    def _ask_who_we_are(self, before: Account | None) -> Account:
        def attempt() -> Account | None:
            reply = self.exchange(self._account_request())
            if _is_page_of_gateway(reply):
                self._meaning.raise_web_page(f" (status {reply.status})")
            if reply.status in (401, 403):
                return None
            page = self.decode(self.check(reply, (200,)), page_parser(parse_account))
            mine = (it for _, it in page.rows if it.user.username == self._username)
            return next(mine, None)

        try:
            now = self._repeat(attempt)
        except TransientError as error:  # if even this fails, the server is unavailable
            raise _unavailable(error) from error
        if now is None:
            raise AccessDeniedError(
                f"{self.wire.host} does not accept the account {self._username} with its API key.",
                hint="Check the account name and the API key in the settings.",
            )
        if before and before.groups.keys() - now.groups.keys():
            raise AccessDeniedError(
                f"The account {self._username} has lost permissions on {self.wire.host}.",
                hint="Ask the facility's administrator to add it to its group again.",
            )
        return now

    def _account_request(self) -> HttpRequest:
        return HttpRequest("GET", "user/", {"format": "json", "username": self._username})


def json_request(method: str, path: str, document: object) -> HttpRequest:
    """Return a request with a JSON body; with None, without a body."""
    if document is None:
        return HttpRequest(method, path)
    body = json.dumps(document).encode()
    return HttpRequest(method, path, body=body, headers={"Content-Type": "application/json"})


def _is_page_of_gateway(reply: HttpResponse) -> bool:
    """Return whether a 403 is not MyTardis's, which has no body."""
    return reply.status == 403 and reply.content_type == "text/html" and bool(reply.body.strip())


def _unavailable(error: TransientError) -> ServerUnavailableError:
    return ServerUnavailableError(error.message, hint=error.hint, code=error.problem_code)
