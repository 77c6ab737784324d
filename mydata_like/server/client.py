"""The API client: interprets replies, retries requests and checks the authentication."""

import json
import logging
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any, Final, NoReturn, TypeVar

from mydata_like.core.errors import (
    AccessDeniedError,
    Cancelled,
    RejectedError,
    ServerUnavailableError,
    TransientError,
    UnansweredError,
    describe_wait,
)
from mydata_like.core.events import Notice
from mydata_like.core.id_set import IdSet
from mydata_like.core.ports import CancelSignal, Clock, Emit, WriteLog
from mydata_like.server.http import (
    BrokenOffError,
    HttpClient,
    HttpRequest,
    HttpResponse,
    NotReachedError,
)
from mydata_like.server.responses import (
    OtherBytesError,
    ResponseClassifier,
    StrangeAnswerError,
    StrangeRecordError,
    parse_rest,
)
from mydata_like.server.serializers import Account, page_parser, parse_account
from mydata_like.settings.schema import Server

logger = logging.getLogger(__name__)
T = TypeVar("T")

ATTEMPTS: Final = 4
PAGE: Final = 1000
_PROOF_LASTS: Final = 30.0
_WALKS: Final = 4  # times that a listing is read again after it changed during the reading
_FAILING: Final = ("server.busy", "server.error")
_UNTOUCHED: Final = 429  # the only busy status that guarantees that nothing was done
_LOOKS: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # seconds between checks for a late result

Query = Mapping[str, str | int]


class ApiClient:
    """A typed client for one server, with retries; every method is thread-safe.

    Before the first request, these may be set: `attempts`, the maximum number of attempts of a
    request; `emit`, which receives an event for long waits; `writes`, which records writes.
    """

    def __init__(self, settings: Server, api_key: str, clock: Clock, cancel: CancelSignal) -> None:
        self.attempts = ATTEMPTS
        self.emit: Emit | None = None
        self.writes: WriteLog | None = None
        self.write_timeout = settings.write_timeout
        self.wire = HttpClient(settings, api_key, clock, cancel)
        self._meaning = ResponseClassifier(self.wire.host, api_key, clock)
        self.decode = self._meaning.decode
        self.excerpt = self._meaning.excerpt
        self._username = settings.username
        self._clock = clock
        self._cancel = cancel
        self._quiet_until = 0.0  # the server's Retry-After applies to all threads
        self._proof_lock = threading.Lock()
        self._account: Account | None = None
        self._proved_at = 0.0

    def fetch(self, path: str, parse: Callable[[Any], T], query: Query | None = None) -> T:
        """Fetch JSON and return it parsed by `parse`."""
        request = HttpRequest("GET", path, {"format": "json", **(query or {})})
        return self._persist(lambda: self._fetch_once(request, parse))

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
            except UnansweredError:
                if request.writes and self.outlast(begun, lambda: seen() or None):
                    return None
                raise

        return self._persist(attempt)

    def outlast(self, begun: float, find: Callable[[], T | None]) -> T | None:
        """Wait until a write request without an answer must have ended.

        The server may process it until then, and would block a second one. Returns the result of
        `find` as soon as there is one; otherwise the request was not carried out.
        """
        end = begun + self.write_timeout
        self._report_wait(end - self._clock.monotonic())
        for interval in chain(_LOOKS, repeat(_LOOKS[-1])):
            found = find()
            rest = end - self._clock.monotonic()
            if found is not None or rest <= 0:
                return found
            self._wait(min(interval, rest))
        return None

    def _report_wait(self, seconds: float) -> None:
        logger.info("The server may still process a request for %.0f s", seconds)
        if self.emit is not None and seconds > 0:
            self.emit(Notice(problem=describe_wait(seconds)))

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

        return self._repeat(attempt, lambda error: _is_untouched(error))

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

    def exchange(self, request: HttpRequest) -> HttpResponse:
        """Send a request once, after the delay that the server asked for."""
        rest = self._quiet_until - self._clock.monotonic()
        if rest > 0:
            self._wait(rest)
        reply = self.wire.exchange(request)
        asked = parse_rest(reply, self._clock.now())
        if asked and reply.status in (429, 503):
            self._quiet_until = max(self._quiet_until, self._clock.monotonic() + asked)
        logger.debug("%s %s: %d", request.method, request.path, reply.status)
        return reply

    def check(self, reply: HttpResponse, expected: tuple[int, ...]) -> HttpResponse:
        """Return a reply with an expected status; raise the error for any other status."""
        if reply.status in (401, 403) and reply.status not in expected:
            self._raise_denied()
        return self._meaning.check(reply, expected)

    def prove(self, within: float = _PROOF_LASTS) -> Account:
        """Check that the server accepts our account, unchanged; a check `within` seconds is reused.

        Without it an empty list means nothing, since the server also returns one to strangers.
        """
        with self._proof_lock:
            age = self._clock.monotonic() - self._proved_at
            if self._account is None or age > within or within <= 0:
                self._account = self._ask_who_we_are(self._account)
                self._proved_at = self._clock.monotonic()
            return self._account

    def now(self) -> float:
        """Return monotonic time in seconds."""
        return self._clock.monotonic()

    def rest(self, seconds: float) -> None:
        """Wait, unless asked to stop."""
        self._wait(seconds)

    def close(self) -> None:
        self.wire.close()

    def _fetch_once(self, request: HttpRequest, parse: Callable[[Any], T]) -> T:
        return self.decode(self.check(self.exchange(request), (200,)), parse)

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
        worth: Callable[[TransientError], bool] = lambda error: _may_pass(error),
    ) -> T:
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
            self._wait(_delay(failures))

    def _wait(self, seconds: float) -> None:
        if self._cancel.wait(seconds):
            raise Cancelled

    def _ask_who_we_are(self, before: Account | None) -> Account:
        request = HttpRequest("GET", "user/", {"format": "json", "username": self._username})

        def attempt() -> Account | None:
            reply = self.exchange(request)
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

    def _raise_denied(self) -> NoReturn:
        """Raise for a refused key or a missing permission; the server sends 401 for both."""
        self.prove(within=0)
        raise RejectedError(
            f"The account {self._username} has no permission for this.",
            hint="Ask the facility's administrator. The dataset may also be locked.",
            code="server.forbidden",
        )


def json_request(method: str, path: str, document: object) -> HttpRequest:
    """Return a request with a JSON body; with None, without a body."""
    if document is None:
        return HttpRequest(method, path)
    body = json.dumps(document).encode()
    return HttpRequest(method, path, body=body, headers={"Content-Type": "application/json"})


def _unavailable(error: TransientError) -> ServerUnavailableError:
    return ServerUnavailableError(error.message, hint=error.hint, code=error.problem_code)


def _may_pass(error: TransientError) -> bool:
    return not isinstance(error, BrokenOffError | OtherBytesError | StrangeRecordError)


def _is_untouched(error: TransientError) -> bool:
    """Return whether a failed request has certainly not been carried out."""
    return isinstance(error, NotReachedError) or error.problem_code == "server.throttled"


def _delay(failures: int) -> float:
    """Return the seconds to wait after this many failures.

    A delay that the server asked for is added before the next request.
    """
    return min(2.0 ** (failures - 2) + random.random(), 30.0)  # noqa: S311 - not for security
