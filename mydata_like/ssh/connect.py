"""Opening SSH sessions: which stack, which host key, which key of ours."""

from importlib.util import find_spec
from typing import Protocol

from mydata_like.core.errors import HostKeyError, SettingsError, TransientError
from mydata_like.ssh.algorithms import HOST_KEYS, prefer
from mydata_like.ssh.hosts import check_host_key, preferred_types
from mydata_like.ssh.keys import KeyPair, PublicKey, load_key
from mydata_like.ssh.session import Endpoint, Session

_FAMILIES = (HOST_KEYS[:1], HOST_KEYS[1:4], HOST_KEYS[4:])  # Ed25519, ECDSA, RSA


class _Line(Protocol):
    """A connection of either stack, before it is known to be the right host's."""

    def greet(self, host_keys: tuple[str, ...]) -> PublicKey: ...

    def authenticate(self, key: KeyPair) -> None: ...

    def session(self) -> Session: ...

    def cut(self) -> None: ...


def connect(endpoint: Endpoint) -> Session:
    """Return an authenticated session; nothing is sent before the host's key was checked.

    Raises `HostKeyError`, `AccessDeniedError` where our key is refused, `SettingsError` where
    it cannot be used, and `TransientError` where the host does not answer.
    """
    key = load_key(endpoint.key_file)
    line = _greet_known(endpoint)
    try:
        line.authenticate(key)
    except BaseException:
        line.cut()
        raise
    return line.session()


def fetch_host_key(endpoint: Endpoint) -> PublicKey:
    """Return the key that the host shows, trusted or not; we do not say who we are."""
    line = _open_line(endpoint)
    try:
        return line.greet(prefer(preferred_types(endpoint)))
    finally:
        line.cut()


def choose_stack(endpoint: Endpoint) -> str:
    """Return `libssh` or `paramiko`; raises `SettingsError` where the wanted one is missing."""
    installed = find_spec("ssh") is not None
    if endpoint.stack == "libssh" and not installed:
        raise SettingsError(
            "The SSH implementation libssh is not installed here.",
            hint="Install the package ssh-python, or let the implementation be chosen.",
            code="ssh.no-libssh",
        )
    return "libssh" if installed and endpoint.stack != "paramiko" else "paramiko"


def _greet_known(endpoint: Endpoint) -> _Line:
    """Return a line to the right host.

    Of a pinned fingerprint we do not know what type of key it belongs to, so before a host
    with several keys counts as the wrong one, each of them is asked for.
    """
    try:
        return _greet(endpoint, prefer(preferred_types(endpoint)))
    except HostKeyError as error:
        if not endpoint.host_keys:
            raise
        for family in _FAMILIES:
            try:
                return _greet(endpoint, family)
            except (HostKeyError, TransientError):
                continue
        raise error from None


def _greet(endpoint: Endpoint, host_keys: tuple[str, ...]) -> _Line:
    line = _open_line(endpoint)
    try:
        check_host_key(endpoint, line.greet(host_keys))
    except BaseException:
        line.cut()
        raise
    return line


def _open_line(endpoint: Endpoint) -> _Line:
    """Connect by the chosen stack; only that one is imported, to start fast."""
    if choose_stack(endpoint) == "libssh":
        from mydata_like.ssh import session_libssh

        return session_libssh.Line(endpoint)
    from mydata_like.ssh import session_paramiko

    return session_paramiko.Line(endpoint)
