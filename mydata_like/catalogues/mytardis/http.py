"""The HTTP client: one request and one reply, with TLS, proxies and time limits.

The API key is only sent to the address in the settings: every URL is built here from that
address, redirects are not followed, and links from a server are not used.
"""

import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager, nullcontext
from dataclasses import field, replace
from math import inf
from threading import Lock
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlencode, urlsplit
from urllib.request import getproxies

import truststore
from urllib3 import HTTPConnectionPool, PoolManager, ProxyManager, make_headers
from urllib3.exceptions import HTTPError, NewConnectionError, ProtocolError, ProxyError
from urllib3.exceptions import TimeoutError as HTTPTimeoutError
from urllib3.response import BaseHTTPResponse
from urllib3.util import Retry, Timeout, parse_url

from mydata_like import __version__
from mydata_like.catalogues.mytardis.http_sockets import (
    HttpPool,
    HttpsPool,
    RequestDeadline,
    UndeliveredError,
    current_limit,
)
from mydata_like.catalogues.mytardis.request_limit import RequestLimit
from mydata_like.core.errors import (
    Cancelled,
    Loss,
    ServerUnavailableError,
    SettingsError,
    TransientError,
    UnansweredError,
    UploaderError,
)
from mydata_like.core.frozen import frozen
from mydata_like.core.ports import CancelSignal, Clock
from mydata_like.settings.schema import Server
from mydata_like.settings.values import DIRECT, is_loopback
from mydata_like.ssh.dialing import NOBODY_LISTENS

_ONCE: Final = Retry(0, read=False)  # retries are decided by `ApiClient`
_DELIVERY: Final = 20.0  # seconds in which a part of a request must be confirmed by the host
_MOST_IDLE: Final = 64  # connections that are kept; more than there are threads


class AnswerTimer:
    """The time for which requests have waited without a sign of the server; thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._waiting = 0  # requests
        self._since: float | None = None  # the last sign, or the first request after it

    @property
    def seconds(self) -> float:
        """How long nothing has come that was waited for, 0 if nothing is; also after time limits.

        As long as any request is answered, the others are not counted.
        """
        since = self._since
        return 0.0 if since is None else self._clock.monotonic() - since

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for an answer in this context; it counts as answered if nothing is raised."""
        with self._lock:
            self._waiting += 1
            if self._since is None:
                self._since = self._clock.monotonic()
        try:
            yield
        except BaseException:
            with self._lock:
                self._waiting -= 1
            raise
        with self._lock:
            self._waiting -= 1
            self._since = self._clock.monotonic() if self._waiting else None

    def restart(self) -> None:
        """Count from now on: bytes have arrived, or were accepted."""
        self._since = self._clock.monotonic()


def _find_proxy(origin: str, proxy: str) -> str:
    """Return the address of the proxy for a server; empty if there is none.

    `proxy` is an address, `none` for a direct connection, or empty for the system's setting
    (`HTTPS_PROXY`, `NO_PROXY` and similar). This computer is always connected directly: http is
    allowed there because no one else can read it.
    """
    if is_loopback(urlsplit(origin).hostname or ""):
        return ""
    if proxy:
        return "" if proxy == DIRECT else proxy
    if not getproxies():
        return ""
    # `requests` handles all exceptions, but its import takes a tenth of a run's start.
    from requests.utils import get_environ_proxies, select_proxy

    found = select_proxy(origin, get_environ_proxies(origin)) or ""
    return found if "://" in found or not found else f"http://{found}"


BODY_LIMIT: Final = 16 * 1024 * 1024  # bytes of a reply, after decompression
_PIECE: Final = 64 * 1024
_SCHEMES: Final = ("https", "http")


class NotReachedError(TransientError):
    """No connection was made: the request has certainly not been sent."""

    code = "server.unreachable"


class BrokenOffError(TransientError):
    """A request was cancelled while it was sent; it is not retried at once."""

    code = "transfer.closed"


@frozen()
class HttpRequest:
    """A request; `path` is relative to `/api/v1/` and ends with a slash.

    `answer_timeout` is the time limit for the answer if it is longer than the one in the settings.
    `take` receives the bytes of a successful answer as they arrive, which then has no body; it is
    for files, which may be larger than any other answer.
    """

    method: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=lambda: MappingProxyType({}))
    body: bytes | Iterable[bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    answer_timeout: float = 0.0
    take: Callable[[Iterator[bytes]], None] | None = None

    @property
    def writes(self) -> bool:
        """Whether the request changes something on the server."""
        return self.method not in ("GET", "HEAD", "OPTIONS")


@frozen()
class HttpResponse:
    """A complete response; `headers` ignore case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    sent_at: float = 0.0  # monotonic

    @property
    def content_type(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()


class HttpClient:
    """Sends requests to one server and reads the replies; thread-safe.

    A thread uses a connection that is idle, and opens one if there is none.

    `answers` measures how long the server has been silent; it may be replaced before the first
    request. `down_at` is the monotonic time when it was last seen that nothing answers at the
    server's address, and `longest` how many seconds the slowest answer took.
    """

    def __init__(self, settings: Server, api_key: str, clock: Clock, cancel: CancelSignal) -> None:
        address = _check_address(settings)
        self.host = address.netloc
        self._origin = f"{address.scheme}://{address.netloc}"
        self._prefix = address.path.rstrip("/") + "/api/v1/"
        self._settings = settings
        self._headers = {
            "User-Agent": f"mydata-like/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            "Authorization": f"ApiKey {settings.username}:{api_key}",
        }
        self._clock = clock
        self._cancel = cancel
        self.answers = AnswerTimer(clock)
        self.down_at = -inf
        self.longest = 0.0
        self._limit = RequestLimit(settings.requests, clock.monotonic, cancel)
        # Redirects and cookies are ignored. The trust in servers cannot be switched off.
        options: Any = {
            "maxsize": _MOST_IDLE,
            "cert_reqs": "CERT_REQUIRED",
            "ssl_context": build_trust(settings),
        }
        proxy = _find_proxy(self._origin, settings.proxy)
        manager = PoolManager(**options)
        try:
            if proxy:
                account = parse_url(proxy).auth  # in the proxy's address, if any
                known = make_headers(proxy_basic_auth=unquote(account)) if account else None
                manager = ProxyManager(proxy, proxy_headers=known, **options)
            manager.pool_classes_by_scheme = {"http": HttpPool, "https": HttpsPool}
            pool: Any = manager.connection_from_url(self._origin)
        except HTTPError as error:  # the proxy's address is invalid
            raise _translate(error, self.host) from error
        pool.clock = clock
        self._pool: HTTPConnectionPool = pool
        self._is_direct = not proxy
        # Proxies need the host of a request that is not encrypted.
        self._target = self._origin if proxy and address.scheme == "http" else ""

    def uri(self, resource: str, number: int) -> str:
        """Return the URI of a record on the server."""
        return f"{self._prefix}{resource}/{number}/"

    def exchange(self, request: HttpRequest) -> HttpResponse:
        """Send a request once and read the whole reply, whatever its status.

        Raises `NotReachedError` if nothing was sent, `TransientError` if no complete reply
        arrived (`UnansweredError` for a request that writes), `ServerUnavailableError` if the
        server's certificate is not trusted.
        """
        if self._cancel.is_set():
            raise Cancelled
        settings = self._settings
        answer_timeout = max(
            request.answer_timeout, settings.write_timeout if request.writes else 0.0
        )
        silence = max(settings.read_timeout, answer_timeout)
        total = max(settings.deadline, answer_timeout)
        heard = self.answers.restart
        delivery = min(_DELIVERY, settings.read_timeout)
        deadline = RequestDeadline(self._clock, self._cancel, silence, total, delivery, heard)
        token = current_limit.set(deadline)
        body = _Body(request.body, heard)
        begun = self._clock.monotonic()
        # Transfers of files are not limited here. One that writes never waits, as its time counts.
        is_file = request.take is not None or not isinstance(request.body, bytes | None)
        turn = nullcontext() if is_file else self._limit.turn(waits=not request.writes)
        try:
            with turn, self.answers.waiting():
                reply = self._exchange(request, body.pieces, silence)
        except (HTTPError, OSError) as error:
            failure = _translate(error, self.host)
            if self._is_direct and is_refused(failure):
                self.down_at = self._clock.monotonic()
            if request.writes and body.sent:
                raise _unanswered(failure, error, begun) from error
            raise failure from error
        finally:
            current_limit.reset(token)
        if not is_file:
            self.longest = max(self.longest, self._clock.monotonic() - begun)
        return replace(reply, sent_at=begun)

    @contextmanager
    def open(self, request: HttpRequest) -> Iterator[tuple[HttpResponse, Iterator[bytes]]]:
        """Send a request for a file; yield the reply without its body, and the pieces of that.

        The body may take any time, as long as bytes arrive. Both raise as `exchange` does.
        """
        if self._cancel.is_set():
            raise Cancelled
        silence = self._settings.read_timeout
        delivery, heard = min(_DELIVERY, silence), self.answers.restart
        deadline = RequestDeadline(self._clock, self._cancel, silence, inf, delivery, heard)
        token = current_limit.set(deadline)
        try:
            with self._translated():
                response = self._send(request, None, silence)
            with response:
                pieces = self._translate_pieces(_iter_pieces(response))
                yield HttpResponse(response.status, response.headers, b""), pieces
        finally:
            current_limit.reset(token)

    def _translate_pieces(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        with self._translated():
            yield from pieces

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise our errors for those of the libraries."""
        try:
            yield
        except (HTTPError, OSError) as error:
            raise _translate(error, self.host) from error

    def _send(
        self, request: HttpRequest, body: bytes | Iterable[bytes] | None, silence: float
    ) -> BaseHTTPResponse:
        query = urlencode(request.query)
        headers = dict(self._headers)
        if not request.writes:
            headers["Cache-Control"] = "no-cache"
        headers.update(request.headers)
        if isinstance(request.body, Sized):
            headers["Content-Length"] = str(len(request.body))
        return self._pool.urlopen(
            request.method,
            f"{self._target}{self._prefix}{request.path}{'?' if query else ''}{query}",
            body=body,
            headers=headers,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
            decode_content=False,
            retries=_ONCE,
            timeout=Timeout(self._settings.connect_timeout, silence),
        )

    def _exchange(
        self, request: HttpRequest, body: bytes | Iterable[bytes] | None, silence: float
    ) -> HttpResponse:
        with self._send(request, body, silence) as response:
            page = response.headers.get("Content-Type", "").startswith("text/html")
            answer, pieces = bytearray(), _iter_pieces(response)
            if request.take is not None and response.status == 200 and not page:
                request.take(pieces)
            else:
                for piece in pieces:
                    answer += piece
                    if len(answer) > BODY_LIMIT:
                        raise ServerUnavailableError(
                            "The server's answer is too large.",
                            hint="Check the server address.",
                            code="server.strange-answer",
                        )
            if not response.headers:
                # Work-around: urllib3 2.8.0 returns an empty answer if the connection breaks after
                # the status line. No report known; see
                # test_a_reply_that_is_always_truncated_is_a_transient_error.
                # Remove when `http.client` raises an error for a header without its end.
                raise ProtocolError("no headers received")
            return HttpResponse(response.status, response.headers, bytes(answer))

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Body:
    """A request's body; for one that is generated, it records whether all of it was sent.

    `accepted` is called after each piece of it.
    """

    def __init__(self, body: bytes | Iterable[bytes] | None, accepted: Callable[[], None]) -> None:
        self._accepted = accepted
        self.pieces: bytes | Iterable[bytes] | None = body
        self.sent = body is None or isinstance(body, bytes)
        if not (body is None or isinstance(body, bytes)):
            self.pieces = self._follow(body)

    def _follow(self, body: Iterable[bytes]) -> Iterator[bytes]:
        for piece in body:
            yield piece
            self._accepted()
        self.sent = True


def _iter_pieces(response: BaseHTTPResponse) -> Iterator[bytes]:
    """Yield a reply's body; raises urllib3's errors if it is truncated or invalid."""
    try:
        yield from response.stream(_PIECE, decode_content=True)
    except (ValueError, OverflowError) as error:
        # Work-around: urllib3 2.8.0 accepts any chunk length; http.client then fails on negative
        # ones and on those beyond the machine's integers. No report known; see
        # test_anything_else_is_refused_with_the_errors_that_are_declared.
        # Remove when urllib3 raises InvalidChunkLength for these.
        raise ProtocolError(f"a body that cannot be read: {error}") from error


def _check_address(settings: Server) -> SplitResult:
    try:
        address = urlsplit(settings.url.strip())
        port_is_sound = address.port != 0
    except ValueError:
        address, port_is_sound = urlsplit(""), False
    plain = not (address.username or address.password or address.query or address.fragment)
    if not (address.hostname and port_is_sound and plain) or address.scheme not in _SCHEMES:
        raise SettingsError(
            f"The server address {settings.url!r} is not a web address.",
            hint="Example: https://mytardis.example.org",
            code="server.address",
        )
    if address.scheme == "http" and not (settings.allow_http or is_loopback(address.hostname)):
        raise SettingsError(
            f"The server address {settings.url} is not encrypted.",
            hint="Use its https:// address; the setting server.allow_http permits http://.",
            code="server.address",
        )
    return address


def build_trust(settings: Server) -> ssl.SSLContext:
    """Return the TLS context that verifies servers; raises `SettingsError` for an invalid file."""
    if settings.ca_file is None:
        context: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        try:
            context = ssl.create_default_context(cafile=settings.ca_file)
        except OSError as error:
            raise SettingsError(
                f"The certificate authorities in {settings.ca_file} cannot be read: {error}.",
                hint="The setting server.ca_file requires a PEM file.",
                code="server.ca-file",
            ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


# OpenSSL's reasons for a peer with outdated protocols only, or without TLS.
_NO_COMMON_TLS: Final = (
    "UNSUPPORTED_PROTOCOL",
    "WRONG_VERSION_NUMBER",
    "TLSV1_ALERT_PROTOCOL_VERSION",
    "NO_PROTOCOLS_AVAILABLE",
    "SSLV3_ALERT_HANDSHAKE_FAILURE",
)


def _translate(error: Exception, host: str) -> UploaderError:
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ServerUnavailableError(
                f"The certificate of {host} is not trusted: {cause.verify_message}.",
                hint="Check the address and the clock of this computer. To use your own "
                "certificate authorities, set server.ca_file.",
                code="server.certificate",
            )
        if isinstance(cause, ssl.SSLError) and cause.reason in _NO_COMMON_TLS:
            return ServerUnavailableError(
                f"{host} and this program have no common encryption method.",
                hint="The server must offer TLS 1.2 or later on this port.",
                code="server.tls",
            )
        if isinstance(cause, ProxyError):
            if "407" in " ".join(str(inner) for inner in _causes(cause)):
                return proxy_wants_password(host)
            return ServerUnavailableError(
                f"The proxy for {host} refuses the connection.",
                hint="Check the proxy in the setting server.proxy, or else in the environment "
                "variable HTTPS_PROXY. To connect directly, set server.proxy to none.",
                code="server.proxy",
            )
        if isinstance(cause, NewConnectionError):
            why = str(cause).rpartition(": ")[2]
            hint = "Check the network and the server address."
            return NotReachedError(f"{host} cannot be reached: {why}.", hint=hint)
    if any(isinstance(cause, TimeoutError | HTTPTimeoutError) for cause in causes):
        return TransientError(f"{host} took too long to answer.", code="server.slow")
    return TransientError(f"The connection to {host} broke.", code="server.connection-lost")


def is_refused(failure: UploaderError) -> bool:
    """Return whether a connection failed because nothing listens at the address."""
    return isinstance(failure, NotReachedError) and NOBODY_LISTENS in failure.message


def _unanswered(failure: UploaderError, error: Exception, sent_at: float) -> UploaderError:
    """Return the error for a failed request that writes; it may have been sent completely."""
    if type(failure) is not TransientError:
        return failure
    loss = Loss.SILENT if failure.problem_code == "server.slow" else Loss.BROKEN
    if any(isinstance(cause, UndeliveredError) for cause in _causes(error)):
        loss = Loss.UNDELIVERED
    return UnansweredError(
        failure.message,
        hint=failure.hint,
        code=failure.problem_code,
        loss=loss,
        sent_at=sent_at,
    )


def proxy_wants_password(host: str) -> ServerUnavailableError:
    """Return the error for a proxy that requires authentication (status 407)."""
    return ServerUnavailableError(
        f"The proxy for {host} requires an account and a password.",
        hint="Set them in the environment of this program, "
        "HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT, and leave the setting server.proxy empty. "
        "Or ask for access without a password.",
        code="server.proxy",
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, as the HTTP libraries nest them."""
    waiting, seen = [error], set[int]()
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        nested = (*current.args, getattr(current, "reason", None), current.__cause__)
        waiting += [each for each in nested if isinstance(each, BaseException)]
