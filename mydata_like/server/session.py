"""The HTTP library bent to our rules: limits on waiting, trust, no redirects, no cookies."""

import io
import socket
import ssl
from contextvars import ContextVar
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies

from urllib3 import PoolManager, ProxyManager, make_headers
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError
from urllib3.response import BaseHTTPResponse
from urllib3.util import Retry, parse_url

from mydata_like.core.errors import Cancelled
from mydata_like.core.ports import CancelSignal, Clock
from mydata_like.settings.values import DIRECT, is_loopback
from mydata_like.ssh.race import NoAnswerError, connect_first

_ONCE: Final = Retry(0, read=False)  # whatever is sent again, we decide on
_LONGEST_DIAL: Final = 60.0  # seconds, where a caller named none
_SLICE: Final = 0.25  # seconds within which a blocked read notices a request to stop


@dataclass(slots=True, eq=False)
class Limit:
    """How long an answer may take as a whole, counted from the first wait for it."""

    clock: Clock
    cancel: CancelSignal
    silence: float
    total: float
    end: float | None = None

    def receive(self, sock: socket.socket, buffer: Any) -> int:
        """Read what comes next; a dripping server gets no more time than a silent one."""
        now = self.clock.monotonic()
        if self.end is None:
            self.end = now + self.total
        silent_until = now + self.silence
        try:
            while True:
                if self.cancel.is_set():
                    raise Cancelled
                left = min(self.end, silent_until) - self.clock.monotonic()
                if left <= 0:
                    raise TimeoutError("the answer took too long")
                sock.settimeout(min(left, _SLICE))
                try:
                    return sock.recv_into(buffer)
                except TimeoutError:
                    continue
        finally:
            sock.settimeout(self.silence)


current_limit: ContextVar[Limit] = ContextVar("limit")


class _LimitedReader(io.RawIOBase):
    """The receiving end of a socket, under the limit of the request that waits for it."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._sock = sock
        self._raw = raw  # keeps the socket open until the reply is read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return current_limit.get().receive(self._sock, buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _LimitedResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp.close()
        raw: Any = sock.makefile("rb", buffering=0)
        self.fp = io.BufferedReader(_LimitedReader(sock, raw))


class _Dialled(HTTPConnection):
    """A connection whose time limit is for all addresses of the host together."""

    def _new_conn(self) -> socket.socket:
        timeout = self.timeout if isinstance(self.timeout, int | float) else _LONGEST_DIAL
        try:
            found = socket.getaddrinfo(self._dns_host, self.port, type=socket.SOCK_STREAM)
            sock = connect_first(found, timeout)
        except (socket.gaierror, UnicodeError) as error:
            raise NewConnectionError(self, "its name is not known") from error
        except NoAnswerError as error:
            raise NewConnectionError(self, str(error)) from error
        for option in self.socket_options or ():
            sock.setsockopt(*option)
        sock.settimeout(timeout)
        return sock


class _HttpConnection(_Dialled):
    response_class = _LimitedResponse


class _HttpsConnection(_Dialled, HTTPSConnection):
    response_class = _LimitedResponse


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


class Session:
    """The connections of one thread to one server; redirects and cookies are nothing to it.

    `trust` decides whom we talk to, and nothing can switch that off. `proxy` is the address of a
    proxy, `none` to go directly, or empty for what the system says (`HTTPS_PROXY`, `NO_PROXY` and
    their like). This computer is always reached directly: http is allowed there because nobody
    else can read it.
    """

    def __init__(self, trust: ssl.SSLContext, origin: str, proxy: str = "") -> None:
        through = _find_proxy(origin, proxy)
        options: Any = {"maxsize": 1, "cert_reqs": "CERT_REQUIRED", "ssl_context": trust}
        manager = _through(through, options) if through else PoolManager(**options)
        manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
        self._pool = manager.connection_from_url(origin)
        # Proxies want to hear of the server whom they carry an open request to.
        self._origin = origin if through and origin.startswith("http:") else ""

    def send(self, method: str, target: str, **options: Any) -> BaseHTTPResponse:
        """Ask for a path with its query, and return the answer with its body to be read."""
        return self._pool.urlopen(
            method,
            self._origin + target,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
            decode_content=False,
            retries=_ONCE,
            **options,
        )

    def close(self) -> None:
        """Close every connection now."""
        self._pool.close()


def _find_proxy(origin: str, proxy: str) -> str:
    """Return the address of the proxy on the way to a server; empty where there is none."""
    if is_loopback(urlsplit(origin).hostname or ""):
        return ""
    if proxy:
        return "" if proxy == DIRECT else proxy
    if not getproxies():
        return ""
    # It knows all exceptions, but takes a tenth of a run's start; most systems name no proxy.
    from requests.utils import get_environ_proxies, select_proxy

    found = select_proxy(origin, get_environ_proxies(origin)) or ""
    return found if "://" in found or not found else f"http://{found}"


def _through(proxy: str, options: Any) -> ProxyManager:
    """Return what connects through a proxy, as the account that its address may name."""
    account = parse_url(proxy).auth
    known = make_headers(proxy_basic_auth=unquote(account)) if account else None
    return ProxyManager(proxy, proxy_headers=known, **options)
