"""Classification of a server's replies: answers, refusals, busy servers and other servers."""

import logging
import math
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, NoReturn, TypeVar

import orjson

from mydata_like.core.errors import (
    RejectedError,
    ServerUnavailableError,
    SettingsError,
    TransientError,
    UnansweredError,
)
from mydata_like.core.formatting import format_path
from mydata_like.core.parsing import check_amount
from mydata_like.core.ports import Clock
from mydata_like.server.http import BODY_LIMIT, HttpResponse, proxy_wants_password
from mydata_like.server.serializers import RecordError
from mydata_like.settings.values import parse_url

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


def excerpt(reply: HttpResponse, secret: str) -> str:
    """Return the beginning of a reply as plain text in one line, without the secret."""
    text = reply.body.decode(errors="backslashreplace")
    if secret:
        text = text.replace(secret, "...")
    return plain(" ".join(text[:1000].split()), 200)


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
        seconds = float(asked) if asked[:1] in "-0123456789" else _until(asked, now)
    except (ValueError, OverflowError, TypeError, IndexError):  # the library's for dates, too
        return 0.0
    if math.isnan(seconds):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_REST)


def _until(date: str, now: datetime) -> float:
    moment = parsedate_to_datetime(date)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - now).total_seconds()


logger = logging.getLogger(__name__)
T = TypeVar("T")

_BUSY: Final = (408, 425, 429, 500, 502, 503, 504)
_GAVE_UP: Final = (408, 502, 504)  # from a gateway; the server may still process the request
_LOGIN_FIRST: Final = 511  # from a network that requires its own login; RFC 6585


class StrangeAnswerError(TransientError):
    """The server's answer is invalid; a second one in a row is not retried."""

    code = "server.strange-answer"


class OtherBytesError(TransientError):
    """A file was received completely, but differs from the one that the server has verified.

    It is not fetched again at once, since the stored file stays the same.
    """

    code = "server.strange-answer"


class StrangeRecordError(TransientError):
    """One record of a listing is invalid: its dataset waits, the run continues."""

    code = "server.strange-record"


class MovedError(SettingsError):
    """The server redirects to another `address`, which is empty if that is not a server's."""

    code = "server.moved"

    def __init__(self, message: str, *, hint: str, address: str) -> None:
        super().__init__(message, hint=hint)
        self.address = address


class ResponseClassifier:
    """Classifies the replies of one server, except for authentication errors."""

    def __init__(self, host: str, api_key: str, clock: Clock) -> None:
        self._host = host
        self._api_key = api_key
        self._clock = clock

    def check(self, reply: HttpResponse, expected: tuple[int, ...]) -> HttpResponse:
        """Return a reply with an expected status; raise the error for any other status."""
        status = reply.status
        if status == 200 and reply.content_type == "text/html" and reply.body.strip():
            self._raise_web_page()
        if status in expected:
            return reply
        if 300 <= status < 400:
            self._raise_moved(reply)
        if status == _LOGIN_FIRST:
            self._raise_web_page()
        if status == 407:
            raise proxy_wants_password(self._host)
        raise self.busy(reply) if status in _BUSY else self.refused(reply)

    def decode(self, reply: HttpResponse, parse: Callable[[Any], T]) -> T:
        """Return a reply's JSON, parsed by `parse`."""
        if reply.content_type == "text/html" or reply.body.lstrip()[:1] == b"<":
            self._raise_web_page()
        try:
            return parse(decode_json(reply.body))
        except RecordError as error:
            raise StrangeRecordError(
                f"A record of {self._host} is invalid: {plain(str(error), 200)}.",
                hint="Report this to the server's administrator. Other datasets are not affected.",
            ) from error
        except ValueError as error:
            logger.debug("invalid answer: %s", error)
            raise StrangeAnswerError(
                f"{self._host} returned an invalid answer: {self.excerpt(reply)}",
                hint="Check that this is the address of a MyTardis server.",
            ) from error

    def excerpt(self, reply: HttpResponse) -> str:
        """Return the beginning of the server's answer, as plain text without our key."""
        return excerpt(reply, self._api_key)

    def _raise_moved(self, reply: HttpResponse) -> NoReturn:
        target = plain(reply.headers.get("Location", ""), 300)
        if target and API not in target:  # for example the login page of a network
            self._raise_web_page(f", {target}")
        address = find_server_address(target)
        hint = (
            f"If your server has moved there, run: mydata-like settings set server.url {address}"
            if address
            else "If your server has moved, change server.url in the settings."
        )
        raise MovedError(
            f"{self._host} redirects to another address: {target or 'none given'}.",
            hint=hint,
            address=address,
        )

    def _raise_web_page(self, which: str = "") -> NoReturn:
        raise ServerUnavailableError(
            f"The address {self._host} answers with a web page{which}.",
            hint="If this network requires a login, open any page in a browser and log in. "
            "Otherwise, check the server address.",
            code="server.web-page",
        )

    def busy(self, reply: HttpResponse) -> TransientError:
        """Return the error for a server that cannot answer now."""
        kind = UnansweredError if reply.status in _GAVE_UP else TransientError
        return kind(
            f"{self._host} could not answer (status {reply.status}).",
            code={500: "server.error", 429: "server.throttled"}.get(reply.status, "server.busy"),
            retry_after=parse_rest(reply, self._clock.now()),
        )

    def refused(self, reply: HttpResponse) -> RejectedError:
        """Return the error for a request that the server refuses."""
        code = {404: "server.not-found", 409: "server.duplicate"}.get(reply.status)
        said = self.excerpt(reply) if reply.content_type != "text/html" else ""
        return RejectedError(
            f"{self._host} refused this (status {reply.status}){': ' if said else ''}{said}.",
            code=code or "server.refused",
        )
