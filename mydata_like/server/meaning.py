"""What a server's reply means: an answer, a refusal, a server that is busy or is none."""

import logging
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

from mydata_like.core.errors import (
    RejectedError,
    ServerUnavailableError,
    SettingsError,
    TransientError,
    UnansweredError,
)
from mydata_like.core.ports import Clock
from mydata_like.server.records import RecordError
from mydata_like.server.replies import (
    API,
    decode_json,
    excerpt,
    find_server_address,
    parse_rest,
    plain,
)
from mydata_like.server.wire import Reply, proxy_wants_password

logger = logging.getLogger(__name__)
T = TypeVar("T")

_BUSY: Final = (408, 425, 429, 500, 502, 503, 504)
_GAVE_UP: Final = (408, 502, 504)  # said by what stands before the server, which may work on
_LOGIN_FIRST: Final = 511  # of a network that wants its own login; RFC 6585


class StrangeAnswerError(TransientError):
    """The server's answer makes no sense; the second in a row is no accident."""

    code = "server.strange-answer"


class OtherBytesError(TransientError):
    """A file came whole, and is not the one that the server has verified.

    It is not fetched again at once: what lies on a disk stays the same.
    """

    code = "server.strange-answer"


class StrangeRecordError(TransientError):
    """One record of a listing makes no sense: its dataset waits, the run goes on."""

    code = "server.strange-record"


class MovedError(SettingsError):
    """The server sends us to another address; empty where it does not name one of a server."""

    code = "server.moved"

    def __init__(self, message: str, *, hint: str, address: str) -> None:
        super().__init__(message, hint=hint)
        self.address = address


class Meaning:
    """Reads the replies of one server; whom it does not know is for others to find out."""

    def __init__(self, host: str, api_key: str, clock: Clock) -> None:
        self._host = host
        self._api_key = api_key
        self._clock = clock

    def check(self, reply: Reply, expected: tuple[int, ...]) -> Reply:
        """Return a reply of an expected status; raise what any other one means."""
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

    def decode(self, reply: Reply, parse: Callable[[Any], T]) -> T:
        """Return what `parse` makes of a reply's JSON."""
        if reply.content_type == "text/html" or reply.body.lstrip()[:1] == b"<":
            self._raise_web_page()
        try:
            return parse(decode_json(reply.body))
        except RecordError as error:
            raise StrangeRecordError(
                f"A record of {self._host} makes no sense: {plain(str(error), 200)}.",
                hint="Tell the server's administrator; the files of other datasets go on.",
            ) from error
        except ValueError as error:
            logger.debug("strange answer: %s", error)
            raise StrangeAnswerError(
                f"{self._host} gives an answer that makes no sense: {self.excerpt(reply)}",
                hint="Check that the address is that of a MyTardis server.",
            ) from error

    def excerpt(self, reply: Reply) -> str:
        """Return the beginning of what the server said, as plain text without our key."""
        return excerpt(reply, self._api_key)

    def _raise_moved(self, reply: Reply) -> NoReturn:
        target = plain(reply.headers.get("Location", ""), 300)
        if target and API not in target:  # such as the login page of a network
            self._raise_web_page(f", {target}")
        address = find_server_address(target)
        hint = (
            f"If that is your server now: mydata-like settings set server.url {address}"
            if address
            else "If your server has moved, change server.url in the settings."
        )
        raise MovedError(
            f"{self._host} sends us to another address: {target or 'it does not say which'}.",
            hint=hint,
            address=address,
        )

    def _raise_web_page(self, which: str = "") -> NoReturn:
        raise ServerUnavailableError(
            f"The address {self._host} answers with a web page{which}.",
            hint="If this network wants a login first, open any page in a browser and log in; "
            "else check the server address.",
            code="server.web-page",
        )

    def busy(self, reply: Reply) -> TransientError:
        """Return the error of a server that cannot answer now."""
        kind = UnansweredError if reply.status in _GAVE_UP else TransientError
        return kind(
            f"{self._host} could not answer (status {reply.status}).",
            code={500: "server.error", 429: "server.throttled"}.get(reply.status, "server.busy"),
            retry_after=parse_rest(reply, self._clock.now()),
        )

    def refused(self, reply: Reply) -> RejectedError:
        """Return the error of a server that does not want what it was asked for."""
        code = {404: "server.not-found", 409: "server.duplicate"}.get(reply.status)
        said = self.excerpt(reply) if reply.content_type != "text/html" else ""
        return RejectedError(
            f"{self._host} refuses this (status {reply.status}){': ' if said else ''}{said}.",
            code=code or "server.refused",
        )
