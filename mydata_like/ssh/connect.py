"""Opens SSH sessions: chooses route, library, host key and private key."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from socket import socket
from typing import Protocol

from mydata_like.core.errors import HostKeyError, SettingsError, StagingError, TransientError
from mydata_like.ssh import dialing
from mydata_like.ssh.keys import KeyPair, PublicKey, check_host_key, load_key, preferred_types
from mydata_like.ssh.session import HOST_KEYS, Endpoint, SshSession, prefer

_FAMILIES = (HOST_KEYS[:1], HOST_KEYS[1:4], HOST_KEYS[4:])  # Ed25519, ECDSA, RSA
_Dial = Callable[[], socket]  # one more connection to the host


class _Line(Protocol):
    """A connection of either library, before it is known to be the right host's."""

    def greet(self, host_keys: tuple[str, ...]) -> PublicKey: ...

    def authenticate(self, key: KeyPair) -> None: ...

    def session(self) -> SshSession: ...

    def cut(self) -> None: ...


def connect(endpoint: Endpoint) -> SshSession:
    """Return an authenticated session; nothing is sent before the host's key was checked.

    Raises `HostKeyError`, `AccessDeniedError` where our key is refused, `SettingsError` where
    it cannot be used, `StagingError` where no encryption suits both, and `TransientError`
    where the host does not answer.
    """
    key = load_key(endpoint.key_file)
    usable = _for_key(endpoint, key)
    with _find_way(endpoint) as dial:
        return _log_in(usable, key, dial).session()


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
            hint='Install the package ssh-python, or set transfer.ssh to "auto".',
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
        yield partial(dialing.dial, endpoint)
        return
    # Imported late: few hosts lie behind others, and libssh may be all that is needed.
    from mydata_like.ssh.jump_host import JumpHost
    from mydata_like.ssh.session_paramiko import ParamikoTransport

    jump = endpoint.via._replace(stack="paramiko")
    key = load_key(jump.key_file)
    usable = _for_key(jump, key)
    with _find_way(jump) as dial:
        line = _log_in(usable, key, dial)
        assert isinstance(line, ParamikoTransport)
        with JumpHost(line) as host:
            yield partial(host.dial, endpoint)


def _for_key(endpoint: Endpoint, key: KeyPair) -> Endpoint:
    """Return the endpoint with a library that can use this key; raises `SettingsError`."""
    if key.whole:
        return endpoint
    if endpoint.agent and endpoint.stack != "libssh":
        return endpoint._replace(stack="paramiko")
    raise SettingsError(
        f"The private half of the key {key.path} is kept by a device or an agent.",
        hint='Set transfer.ssh to "auto": libssh does not use agents.'
        if endpoint.agent
        else "Add the key to an SSH agent (ssh-add), and switch transfer.ssh_agent on.",
        code="key.elsewhere",
    )


def _log_in(endpoint: Endpoint, key: KeyPair, dial: _Dial) -> _Line:
    """Return a line to the right host that has let us in."""
    line = _greet_known(endpoint, dial)
    try:
        line.authenticate(key)
    except BaseException:
        line.cut()
        raise
    return line


def _greet_known(endpoint: Endpoint, dial: _Dial) -> _Line:
    """Return a line to the right host, by its key.

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


def _greet(endpoint: Endpoint, dial: _Dial, host_keys: tuple[str, ...]) -> _Line:
    line = _open_line(endpoint, dial)
    try:
        check_host_key(endpoint, line.greet(host_keys))
    except BaseException:
        line.cut()
        raise
    return line


def _open_line(endpoint: Endpoint, dial: _Dial) -> _Line:
    """Connect with one of the libraries."""
    library = choose_library(endpoint)
    connected = dial()
    if library == "libssh":
        # Only the chosen library is imported, while the host prepares its first message.
        from mydata_like.ssh import session_libssh

        return session_libssh.LibsshTransport(endpoint, connected)
    # Importing this one takes 110 ms.
    from mydata_like.ssh import session_paramiko

    return session_paramiko.ParamikoTransport(endpoint, connected)
