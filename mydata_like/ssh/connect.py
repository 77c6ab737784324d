"""Opens SSH sessions: chooses route, library, host key and private key."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from typing import Protocol, cast

from mydata_like.core.errors import (
    AccessDeniedError,
    HostKeyError,
    SettingsError,
    StagingError,
    TransientError,
)
from mydata_like.ssh import dialing
from mydata_like.ssh.credentials import SharedLogin
from mydata_like.ssh.keys import (
    KeyPair,
    PublicKey,
    check_host_key,
    is_trusted,
    load_key,
    parse_key,
    preferred_types,
)
from mydata_like.ssh.libssh_version import may_receive
from mydata_like.ssh.session import HOST_KEYS, Endpoint, OpenSession, prefer

_FAMILIES = (HOST_KEYS[:1], HOST_KEYS[1:4], HOST_KEYS[4:])  # Ed25519, ECDSA, RSA
_NOTHING_COMMON = (dialing.NO_AGREEMENT, dialing.NO_ALGORITHM)
_Dial = Callable[[], socket]  # opens a connection to the host


class _Connection(Protocol):
    """A connection of either library, before the host's key was checked."""

    def handshake(self, host_keys: tuple[str, ...]) -> PublicKey: ...

    def authenticate(self, key: KeyPair | None) -> None: ...

    def session(self) -> OpenSession: ...

    def abort(self) -> None: ...


def connect(endpoint: Endpoint) -> OpenSession:
    """Return an authenticated session; nothing is sent before the host's key was checked.

    Libssh is used if it is installed, but paramiko to receive much, and for a host from which
    libssh could only receive with ciphers that it does not check. Raises `HostKeyError`,
    `AccessDeniedError` if our key is refused, `SettingsError` if it is not usable, `StagingError`
    if there is no common encryption, and `TransientError` if the host does not answer.

    With a login that is shared, this is one of the sessions over it. A session that was kept for
    the endpoint is used first.
    """
    if endpoint.credentials and (kept := endpoint.credentials.take(_place_of(endpoint))):
        return cast(OpenSession, kept)
    if login := _find_shared(endpoint):
        shared: OpenSession = login.share()
        return shared
    key = _find_key(endpoint)
    usable = _for_key(endpoint, key)
    with _find_route(endpoint) as dial:
        return _log_in(usable, key, dial).session()


def find_accepted_key(
    endpoint: Endpoint,
    keys: Sequence[KeyPair],
    refused: Callable[[KeyPair, AccessDeniedError], None],
) -> KeyPair | None:
    """Return the first of several keys that the host accepts; each other one is `refused`.

    The endpoint's own key is not used. Several keys are tried over one connection, since hosts
    block clients whose logins fail often (PerSourcePenalties of OpenSSH 9.8). When the host has
    closed it after too many (MaxAuthTries), the rest is tried over another. The session is kept for
    the first `connect`. Raises as `connect` does.
    """
    waiting = list(keys)
    usable = _for_key(endpoint, keys[0]) if len(keys) == 1 else endpoint
    if len(keys) > 1 and not all(key.whole for key in keys):
        usable = endpoint._replace(stack="paramiko")  # libssh would need an agent for each of them
    with _find_route(endpoint) as dial:
        while True:
            connection = _open_known(usable, dial)
            try:
                found = _try_keys(connection, waiting, refused)
            except BaseException as error:
                connection.abort()
                if not _asks_libssh(usable, error):
                    raise
                usable = usable._replace(stack="paramiko")
                continue
            if found:
                _keep_login(endpoint, connection)
                return found
            connection.abort()
            if not waiting:
                return None


def _asks_libssh(endpoint: Endpoint, error: BaseException) -> bool:
    """Return whether a host asks for what the user can answer, but libssh's binding cannot."""
    wanted = getattr(error, "problem_code", "") == dialing.SECOND_FACTOR
    can_ask = endpoint.credentials is not None and endpoint.credentials.ask is not None
    return wanted and can_ask and choose_library(endpoint) == "libssh"


def _try_keys(
    connection: _Connection,
    waiting: list[KeyPair],
    refused: Callable[[KeyPair, AccessDeniedError], None],
) -> KeyPair | None:
    """Try keys, and remove those that were refused, until the host closes the connection."""
    tried = False
    while waiting:
        try:
            connection.authenticate(waiting[0])
        except AccessDeniedError as error:
            refused(waiting.pop(0), error)
            tried = True
        except TransientError:
            if not tried:
                raise
            return None
        else:
            return waiting[0]
    return None


def answer_questions(endpoint: Endpoint) -> None:
    """Log in without a key, so that the `credentials` have the answers to the host's questions.

    Raises `AccessDeniedError` if the host asks nothing, and as `connect` does.
    """
    with _find_route(endpoint) as dial:
        connection = _log_in(endpoint._replace(stack="paramiko"), None, dial)
        _keep_login(endpoint, connection)


def _keep_login(endpoint: Endpoint, connection: _Connection) -> None:
    """Share a login for which questions were answered, also on the way; else keep its session."""
    credentials = endpoint.credentials
    if credentials and any(credentials.has_answers(hop.account) for hop in endpoint.way):
        credentials.logins[endpoint.account] = cast(SharedLogin, connection)
    else:
        keep(endpoint, connection.session())


def keep(endpoint: Endpoint, session: OpenSession) -> None:
    """Keep a session for the next `connect` to the same endpoint, whatever its key is."""
    if endpoint.credentials:
        endpoint.credentials.keep(_place_of(endpoint), session)
    else:
        session.close()


def _place_of(endpoint: Endpoint) -> Endpoint:
    """Return what must be the same if a session is to serve for an endpoint."""
    return endpoint._replace(key_file=Path(), agent="", keyless=False)


def _find_shared(endpoint: Endpoint) -> SharedLogin | None:
    """Return the login of an endpoint that is shared, if it is still open."""
    login = endpoint.credentials and endpoint.credentials.logins.get(endpoint.account)
    return login if login and login.is_open else None


def fetch_host_key(endpoint: Endpoint) -> PublicKey:
    """Return a trusted key of the host, else the one that it shows first, without logging in."""
    with _find_route(endpoint) as dial:
        shown = _fetch_shown(endpoint, dial, prefer(preferred_types(endpoint)))
        if not (endpoint.host_keys or endpoint.also_trusted) or is_trusted(endpoint, shown):
            return shown
        for family in _FAMILIES:
            with suppress(StagingError, TransientError):
                other = _fetch_shown(endpoint, dial, family)
                if is_trusted(endpoint, other):
                    return other
        return shown


def _fetch_shown(endpoint: Endpoint, dial: _Dial, host_keys: tuple[str, ...]) -> PublicKey:
    connection, shown = _shake_hands(endpoint, dial, host_keys)
    connection.abort()
    return shown


def choose_library(endpoint: Endpoint) -> str:
    """Return `libssh` or `paramiko`.

    Raises `SettingsError` if the required one is missing, `StagingError` if it would check nothing
    that it receives.
    """
    installed = _has_libssh()
    if endpoint.stack == "libssh" and not installed:
        raise SettingsError(
            "The SSH implementation libssh is not installed here.",
            hint='Install the package ssh-python, or set transfer.ssh to "auto".',
            code="ssh.no-libssh",
        )
    if not installed or endpoint.stack == "paramiko":
        return "paramiko"
    if endpoint.receives_much and endpoint.stack == "auto":
        return "paramiko"
    if may_receive(endpoint.allowed_inward):
        return "libssh"
    if endpoint.stack == "libssh":
        raise dialing.unchecked(endpoint)
    return "paramiko"


def import_ahead() -> None:
    """Import the modules of most sessions in advance."""
    if _has_libssh():
        import_module("mydata_like.ssh.session_libssh")


def _has_libssh() -> bool:
    return find_spec("ssh") is not None


@contextmanager
def _find_route(endpoint: Endpoint) -> Iterator[_Dial]:
    """Yield a function that connects to the host, directly or through jump hosts.

    A connection outlives this context, and the logins on its jump hosts last as long as it does.
    """
    if endpoint.via is None:
        yield partial(dialing.dial, endpoint)
        return
    # Imported late: few hosts need a jump host, and libssh may be sufficient.
    from mydata_like.ssh.jump_host import JumpHost
    from mydata_like.ssh.session_paramiko import ParamikoTransport

    jump = endpoint.via._replace(stack="paramiko")
    if isinstance(login := _find_shared(jump), ParamikoTransport):
        yield partial(JumpHost(login).dial, endpoint)  # never released, so it does not end
        return
    key = _find_key(jump)
    usable = _for_key(jump, key)
    with _find_route(jump) as dial:
        connection = _log_in(usable, key, dial)
        assert isinstance(connection, ParamikoTransport)
        with JumpHost(connection) as host:
            yield partial(host.dial, endpoint)


def _find_key(endpoint: Endpoint) -> KeyPair | None:
    """Return the endpoint's key, if it has one; raises `SettingsError`."""
    if endpoint.keyless:
        return None
    if endpoint.credentials and (text := endpoint.credentials.keys.get(endpoint.key_file)):
        return parse_key(endpoint.key_file, text)
    return load_key(endpoint.key_file)


def _for_key(endpoint: Endpoint, key: KeyPair | None) -> Endpoint:
    """Return the endpoint with a library that can use this key; raises `SettingsError`."""
    credentials = endpoint.credentials
    if key is None or (credentials and credentials.has_answers(endpoint.account)):
        return endpoint._replace(stack="paramiko")  # libssh's binding cannot answer questions
    if key.whole:
        return endpoint
    device = key.public.type.startswith("sk-")
    if endpoint.agent and not device:
        return endpoint
    if endpoint.agent and endpoint.stack != "libssh":
        return endpoint._replace(stack="paramiko")
    raise SettingsError(
        f"The private key of {key.path} is stored on a device or in an agent.",
        hint='Set transfer.ssh to "auto": libssh does not use keys of FIDO devices.'
        if endpoint.agent
        else "Add the key to an SSH agent (ssh-add), and switch transfer.ssh_agent on. On Windows, "
        "use a key file without a passphrase.",
        code="key.elsewhere",
    )


def _log_in(endpoint: Endpoint, key: KeyPair | None, dial: _Dial) -> _Connection:
    """Return an authenticated connection to the expected host."""
    connection = _open_known(endpoint, dial)
    try:
        connection.authenticate(key)
    except BaseException:
        connection.abort()
        raise
    return connection


def _open_known(endpoint: Endpoint, dial: _Dial) -> _Connection:
    """Return a connection to the expected host, identified by its key.

    The key type of a pinned fingerprint is unknown. So all key types are requested before a host
    with several keys is rejected.
    """
    try:
        return _open_checked(endpoint, dial, prefer(preferred_types(endpoint)))
    except HostKeyError as error:
        if not endpoint.host_keys:
            raise
        for family in _FAMILIES:
            try:
                return _open_checked(endpoint, dial, family)
            except (HostKeyError, StagingError, TransientError):
                continue
        raise error from None


def _open_checked(endpoint: Endpoint, dial: _Dial, host_keys: tuple[str, ...]) -> _Connection:
    connection, shown = _shake_hands(endpoint, dial, host_keys)
    try:
        check_host_key(endpoint, shown)
    except BaseException:
        connection.abort()
        raise
    return connection


def _shake_hands(
    endpoint: Endpoint, dial: _Dial, host_keys: tuple[str, ...]
) -> tuple[_Connection, PublicKey]:
    """Return a connection and the host's key, which is not checked yet.

    If the host and libssh agree on no cipher that libssh checks, paramiko is used from the start of
    another connection; and libssh, if a host that should send much agrees on nothing with paramiko.
    """
    library = choose_library(endpoint)
    while True:
        connected = dial()
        connection: _Connection
        if library == "libssh":
            # Only the chosen library is imported, while the host prepares its first message.
            from mydata_like.ssh.session_libssh import LibsshTransport

            connection = LibsshTransport(endpoint, connected)
        else:  # importing this one takes 110 ms
            from mydata_like.ssh.session_paramiko import ParamikoTransport

            automatic = endpoint.stack == "auto" and not endpoint.receives_much
            gcm_only = automatic and _has_libssh()
            connection = ParamikoTransport(endpoint, connected, gcm_only=gcm_only)
        try:
            return connection, connection.handshake(host_keys)
        except BaseException as error:
            connection.abort()
            code = getattr(error, "problem_code", "")
            much, endpoint = endpoint.receives_much, endpoint._replace(receives_much=False)
            if much and code in _NOTHING_COMMON and library != choose_library(endpoint):
                library = "libssh"
            elif code == dialing.UNCHECKED and endpoint.stack != "libssh":
                library = "paramiko"
            else:
                raise
