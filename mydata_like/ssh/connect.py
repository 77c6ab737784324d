"""Opening SSH sessions: on which way, by which stack, which host key, which key of ours."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from socket import socket
from typing import TYPE_CHECKING, Protocol

from mydata_like.core.errors import HostKeyError, SettingsError, StagingError, TransientError
from mydata_like.ssh import links
from mydata_like.ssh.algorithms import HOST_KEYS, prefer
from mydata_like.ssh.hosts import check_host_key, preferred_types
from mydata_like.ssh.keys import KeyPair, PublicKey, load_key
from mydata_like.ssh.session import Endpoint, Session

if TYPE_CHECKING:
    from mydata_like.ssh.master import Master

_FAMILIES = (HOST_KEYS[:1], HOST_KEYS[1:4], HOST_KEYS[4:])  # Ed25519, ECDSA, RSA
_Dial = Callable[[], socket]  # one more connection to the host


class _Line(Protocol):
    """A connection of either library, before it is known to be the right host's."""

    def greet(self, host_keys: tuple[str, ...]) -> PublicKey: ...

    def authenticate(self, key: KeyPair) -> None: ...

    def session(self) -> Session: ...

    def cut(self) -> None: ...


def connect(endpoint: Endpoint) -> Session:
    """Return an authenticated session; nothing is sent before the host's key was checked.

    Raises `HostKeyError`, `AccessDeniedError` where our key is refused, `SettingsError` where
    it cannot be used, `StagingError` where no encryption suits both, and `TransientError`
    where the host does not answer.
    """
    key = load_key(endpoint.key_file)
    with _find_way(endpoint) as dial:
        if endpoint.stack == "system":
            from mydata_like.ssh.session_system import SystemSession

            return SystemSession(_log_in(endpoint, dial))
        _require_whole(key)
        line, _ = _greet_known(endpoint, dial)
        try:
            line.authenticate(key)
        except BaseException:
            line.cut()
            raise
        return line.session()


def fetch_host_key(endpoint: Endpoint) -> PublicKey:
    """Return the key that the host shows, trusted or not; we do not say there who we are."""
    with _find_way(endpoint) as dial:
        line = _open_line(endpoint, dial)
        try:
            return line.greet(prefer(preferred_types(endpoint)))
        finally:
            line.cut()


def choose_library(endpoint: Endpoint) -> str:
    """Return `libssh` or `paramiko`; raises `SettingsError` where the wanted one is missing."""
    installed = _has_libssh()
    if endpoint.stack == "libssh" and not installed:
        raise SettingsError(
            "The SSH implementation libssh is not installed here.",
            hint="Install the package ssh-python, or let the implementation be chosen.",
            code="ssh.no-libssh",
        )
    return "libssh" if installed and endpoint.stack != "paramiko" else "paramiko"


def import_ahead() -> None:
    """Import what most sessions need, before it is known where one goes."""
    if _has_libssh():
        import_module("mydata_like.ssh.session_libssh")


def _has_libssh() -> bool:
    return find_spec("ssh") is not None


@contextmanager
def _find_way(endpoint: Endpoint) -> Iterator[_Dial]:
    """Yield what connects with the host: directly, or through the hosts before it.

    A connection lasts beyond this, and the logins on the hosts between last as long as it.
    """
    if endpoint.via is None:
        yield partial(links.dial, endpoint)
        return
    load_key(endpoint.via.key_file)
    with _find_way(endpoint.via) as dial:
        master = _log_in(endpoint.via, dial)
        from mydata_like.ssh.hop import Hop

        with Hop(master) as hop:
            yield partial(hop.dial, endpoint)


def _log_in(endpoint: Endpoint, dial: _Dial) -> "Master":
    """Log in by the system's ssh, which is told of one host key: the one just checked."""
    from mydata_like.ssh.master import Master
    from mydata_like.ssh.openssh import find_ssh

    find_ssh()

    host_key = _fetch_known(endpoint, dial)
    return Master(endpoint, dial(), host_key)


def _fetch_known(endpoint: Endpoint, dial: _Dial) -> PublicKey:
    """Return the host's key, which is trusted."""
    line, host_key = _greet_known(endpoint, dial)
    line.cut()
    return host_key


def _greet_known(endpoint: Endpoint, dial: _Dial) -> tuple[_Line, PublicKey]:
    """Return a line to the right host, and the key that it has shown.

    Of a pinned fingerprint we do not know what type of key it belongs to, so before a host
    with several keys counts as the wrong one, each of them is asked for.
    """
    try:
        return _greet(endpoint, dial, prefer(preferred_types(endpoint)))
    except HostKeyError as error:
        if not endpoint.host_keys:
            raise
        for family in _FAMILIES:
            try:
                return _greet(endpoint, dial, family)
            except (HostKeyError, StagingError, TransientError):
                continue
        raise error from None


def _greet(endpoint: Endpoint, dial: _Dial, host_keys: tuple[str, ...]) -> tuple[_Line, PublicKey]:
    line = _open_line(endpoint, dial)
    try:
        key = line.greet(host_keys)
        check_host_key(endpoint, key)
    except BaseException:
        line.cut()
        raise
    return line, key


def _open_line(endpoint: Endpoint, dial: _Dial) -> _Line:
    """Connect by one of the libraries; only that one is imported, while the host wakes up."""
    library = choose_library(endpoint)
    connected = dial()
    if library == "libssh":
        from mydata_like.ssh import session_libssh

        return session_libssh.Line(endpoint, connected)
    from mydata_like.ssh import session_paramiko

    return session_paramiko.Line(endpoint, connected)


def _require_whole(key: KeyPair) -> None:
    if not key.whole:
        raise SettingsError(
            f"The private half of the key {key.path} is kept by a device or an agent.",
            hint='Set transfer.ssh to "system", which can ask it to sign.',
            code="key.elsewhere",
        )
