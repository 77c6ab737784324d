"""The HTTP library bent to our rules: limits on waiting, trust, no redirects, no cookies."""

import io
import socket
import ssl
from contextvars import ContextVar
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any, Final

import requests
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError
from urllib3.response import BaseHTTPResponse

from mydata_like.core.errors import Cancelled
from mydata_like.core.ports import Cancel, Clock
from mydata_like.settings.values import DIRECT
from mydata_like.ssh.race import NoAnswerError, connect_first

_LONGEST_DIAL: Final = 60.0  # seconds, where a caller named none
_SLICE: Final = 0.25  # seconds within which a blocked read notices a request to stop


@dataclass(slots=True)
class Limit:
    """How long an answer may take as a whole, counted from the first wait for it."""

    clock: Clock
    cancel: Cancel
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


class _Adapter(HTTPAdapter):
    """Connections with our limits and our idea of trust, which nothing can switch off."""

    def __init__(self, trust: ssl.SSLContext) -> None:
        self._trust = trust
        super().__init__(pool_connections=1, pool_maxsize=1)

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        super().init_poolmanager(*args, **more)
        _limit_pools(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **more)
        _limit_pools(manager)
        return manager

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: Any, cert: Any = None
    ) -> Any:
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {"cert_reqs": "CERT_REQUIRED", "ssl_context": self._trust}

    def close(self) -> None:
        """Close every connection now: urllib3 leaves open what an error's traceback holds."""
        for manager in (self.poolmanager, *self.proxy_manager.values()):
            for key in manager.pools.keys():  # noqa: SIM118 - it is no mapping to iterate over
                pool = manager.pools.get(key)
                if pool is not None:
                    pool.close()
        super().close()

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Leave the decision to the context: no bundle is added, no check dropped."""


def _limit_pools(manager: Any) -> None:
    manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}


class Session:
    """The connections of one thread to one server; redirects and cookies are nothing to it.

    `requests` finds the proxies and the way through them, once; its own sessions would prepare
    anew for each request what is the same for all, which took half of a request's CPU.

    `proxy` is the address of a proxy, `none` to go directly, or empty for what the system says
    (`HTTPS_PROXY`, `NO_PROXY` and their like).
    """

    def __init__(self, trust: ssl.SSLContext, origin: str, proxy: str = "") -> None:
        self._adapter = _Adapter(trust)
        home = requests.Request("GET", origin).prepare()
        proxies = _find_proxies(origin, proxy)
        pool: Any = self._adapter.get_connection_with_tls_context(home, True, proxies)  # noqa: FBT003
        self._pool: HTTPConnectionPool = pool
        asked_for = self._adapter.request_url(home, proxies)
        self._origin = "" if asked_for.startswith("/") else origin  # which proxies want to hear

    def send(self, method: str, target: str, **options: Any) -> BaseHTTPResponse:
        """Ask for a path with its query, and return the answer with its body to be read."""
        return self._pool.urlopen(
            method,
            self._origin + target,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
            decode_content=False,
            retries=self._adapter.max_retries,
            **options,
        )

    def close(self) -> None:
        self._adapter.close()


def _find_proxies(origin: str, proxy: str) -> dict[str, str]:
    if not proxy:
        return get_environ_proxies(origin)
    return {} if proxy == DIRECT else {"http": proxy, "https": proxy}
