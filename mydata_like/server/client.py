"""What each reply means, what is worth repeating, and the proof of who we are."""

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
_WALKS: Final = 4  # times that a listing which changes under us is walked anew
_FAILING: Final = ("server.busy", "server.error")
_UNTOUCHED: Final = 429  # the one busy answer which says that nothing was done
_LOOKS: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # seconds between looks for what may still come

Query = Mapping[str, str | int]


class ApiClient:
    """A typed, patient line to one server; every method may be called from any thread.

    `attempts` is how often a request is made at most; it may be set before the first one, and
    so may `emit`, which is told of long waits, and `writes`, where they are noted.
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
        self._quiet_until = 0.0  # what the server asked for holds for all threads
        self._proof_lock = threading.Lock()
        self._account: Account | None = None
        self._proved_at = 0.0

    def fetch(self, path: str, parse: Callable[[Any], T], query: Query | None = None) -> T:
        """Ask for JSON and return what `parse` makes of it."""
        request = HttpRequest("GET", path, {"format": "json", **(query or {})})
        return self._persist(lambda: self._fetch_once(request, parse))

    def find(self, path: str, parse: Callable[[Any], T], query: Query | None = None) -> T | None:
        """Ask for JSON that may not exist."""
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

        Rows are counted, not links followed: some servers ignore the limit, others' links
        lose the filter. A listing that changes meanwhile is walked anew.
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
            f"A listing of {self.wire.host} changed again and again while it was read.",
            code="server.listing-unsteady",
        )

    def change(self, method: str, path: str, document: object) -> None:
        """Ask for a change that does no harm when it is asked for twice."""
        self.insist(json_request(method, path, document))

    def insist(
        self, request: HttpRequest, seen: Callable[[], bool] = lambda: False
    ) -> HttpResponse | None:
        """Send a request that does no harm when it is sent again, until it succeeds.

        One that writes is sent again only when the former one must be over. Returns None where
        `seen` says meanwhile that it was carried out.
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
        """Wait until a request that writes must be over, since its answer was not heard.

        It may be at work on the server until then: a second one would block the first. Returns
        what `find` finds of its work, as soon as it does; else it was not carried out.
        """
        end = begun + self.write_timeout
        self._tell_wait(end - self._clock.monotonic())
        for interval in chain(_LOOKS, repeat(_LOOKS[-1])):
            found = find()
            rest = end - self._clock.monotonic()
            if found is not None or rest <= 0:
                return found
            self._wait(min(interval, rest))
        return None

    def _tell_wait(self, seconds: float) -> None:
        logger.info("A request may still be at work on the server for %.0f s", seconds)
        if self.emit is not None and seconds > 0:
            self.emit(Notice(problem=describe_wait(seconds)))

    def create(self, path: str, document: object, parse: Callable[[Any], T]) -> T:
        """Make a record, asking once; after a `TransientError` nobody knows whether it is there."""
        request = json_request("POST", path, document)
        return self.decode(self.check(self.submit(request), (201,)), parse)

    def submit(self, request: HttpRequest) -> HttpResponse:
        """Send what must not be done twice: it is repeated only where nothing was done."""

        def attempt() -> HttpResponse:
            reply = self.exchange(request)
            if reply.status == _UNTOUCHED:
                raise self._meaning.busy(reply)
            return reply

        return self._repeat(attempt, lambda error: _is_untouched(error))

    def read(self, path: str, patience: float, take: Callable[[Iterable[bytes]], T]) -> T:
        """Return what `take` makes of a file's bytes, from the first, perhaps several times."""

        def attempt() -> T:
            taken: list[T] = []
            request = HttpRequest(
                "GET", path, patience=patience, take=lambda pieces: taken.append(take(pieces))
            )
            reply = self.exchange(request)
            if 300 <= reply.status < 400:  # it is somewhere else, where our key stays away
                raise self._meaning.refused(reply)
            self.check(reply, (200,))
            if not taken:
                raise StrangeAnswerError(f"{self.wire.host} gives an empty page for a file.")
            return taken[0]

        return self._persist(attempt)

    def exchange(self, request: HttpRequest) -> HttpResponse:
        """Send a request once, when the server has had the rest that it asked for."""
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
        """Return a reply of an expected status; raise what any other one means."""
        if reply.status in (401, 403) and reply.status not in expected:
            self._raise_denied()
        return self._meaning.check(reply, expected)

    def prove(self, within: float = _PROOF_LASTS) -> Account:
        """Prove that the server knows us and that we are who we were; `within` seconds will do.

        An empty list means nothing without it: that is also what strangers are given.
        """
        with self._proof_lock:
            age = self._clock.monotonic() - self._proved_at
            if self._account is None or age > within or within <= 0:
                self._account = self._ask_who_we_are(self._account)
                self._proved_at = self._clock.monotonic()
            return self._account

    def now(self) -> float:
        """Return seconds that only grow."""
        return self._clock.monotonic()

    def rest(self, seconds: float) -> None:
        """Wait, unless somebody asks to stop."""
        self._wait(seconds)

    def close(self) -> None:
        self.wire.close()

    def _fetch_once(self, request: HttpRequest, parse: Callable[[Any], T]) -> T:
        return self.decode(self.check(self.exchange(request), (200,)), parse)

    def _persist(self, action: Callable[[], T]) -> T:
        """Repeat a harmless action; what fails for good may be its own fault or the server's.

        A server that fails in everything is away, which is no matter of one file or dataset.
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
        except TransientError as error:  # a server that cannot even tell this is away
            raise _unavailable(error) from error
        if now is None:
            raise AccessDeniedError(
                f"{self.wire.host} does not accept the account {self._username} with its API key.",
                hint="Check the account's name and its API key in the settings.",
            )
        if before and before.groups.keys() - now.groups.keys():
            raise AccessDeniedError(
                f"The account {self._username} has lost rights on {self.wire.host}.",
                hint="Ask the facility's administrator to make it a member of its group again.",
            )
        return now

    def _raise_denied(self) -> NoReturn:
        """Tell a key that is refused from a thing that is not ours: the server says 401 to both."""
        self.prove(within=0)
        raise RejectedError(
            f"The account {self._username} has no permission for this.",
            hint="Ask the facility's administrator; the dataset may also be locked.",
            code="server.forbidden",
        )


def json_request(method: str, path: str, document: object) -> HttpRequest:
    """Return a request that carries JSON; None stands for no body."""
    if document is None:
        return HttpRequest(method, path)
    body = json.dumps(document).encode()
    return HttpRequest(method, path, body=body, headers={"Content-Type": "application/json"})


def _unavailable(error: TransientError) -> ServerUnavailableError:
    return ServerUnavailableError(error.message, hint=error.hint, code=error.problem_code)


def _may_pass(error: TransientError) -> bool:
    return not isinstance(error, BrokenOffError | OtherBytesError | StrangeRecordError)


def _is_untouched(error: TransientError) -> bool:
    """Whether a failed request has certainly not been carried out."""
    return isinstance(error, NotReachedError) or error.problem_code == "server.throttled"


def _delay(failures: int) -> float:
    """Return how many seconds to wait after so many failures.

    A rest that the server asked for comes on top, before the next request.
    """
    return min(2.0 ** (failures - 2) + random.random(), 30.0)  # noqa: S311 - it hides nothing
