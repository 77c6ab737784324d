"""The login to a host with the keys that the user has, as OpenSSH would do it."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.core.errors import AccessDeniedError, HostKeyError, SettingsError, StagingError
from mydata_like.settings.atomic_write import write_private
from mydata_like.ssh.agent import FIDO_KEYS, Agent
from mydata_like.ssh.connect import answer_questions, connect, fetch_host_key, find_accepted_key
from mydata_like.ssh.credentials import ATTEMPTS, LOCKED, Ask, LoginCredentials
from mydata_like.ssh.keys import (
    CHANGED,
    UNKNOWN,
    KeyPair,
    PublicKey,
    accept_host_key,
    ensure_key,
    find_public_key,
    load_key,
    parse_key,
)
from mydata_like.ssh.session import Endpoint, UserKnownHosts, signatures
from mydata_like.ssh.user_config import Login

Confirm = Callable[[str, str, str], bool]  # host, fingerprint and type of a host key

_MOST_KEYS: Final = 8  # that are tried on a host


class Prompts(NamedTuple):
    """Questions to the user: about host keys, and for what is typed if `ask` is set."""

    confirm: Confirm
    ask: Ask | None = None


class Trust(NamedTuple):
    """Who decides on host keys that neither the user's known_hosts nor our own file has.

    `accepted` are fingerprints. `confirm` asks the user, if it is set; a key that it confirms, or
    that is accepted, is stored in `known_hosts`.
    """

    known_hosts: Path
    accepted: tuple[str, ...] = ()
    confirm: Confirm | None = None


def log_in(
    login: Login, own_key: Path, trust: Trust, credentials: LoginCredentials | None = None
) -> Endpoint:
    """Return an endpoint with a key that the host accepted, as have the jump hosts before it.

    Our own key is tried after all others that have no passphrase. If none is accepted, the user is
    asked for passphrases, then for what the host asks. Our own key is created if nothing is
    accepted, for the hint of the error. An agent's key becomes a file with its public key in the
    folder of our own. Raises `HostKeyError`, `AccessDeniedError`, and as `connect` does.
    """
    credentials = credentials or LoginCredentials()
    endpoint = Endpoint(
        host=login.host,
        port=login.port,
        username=login.username,
        key_file=own_key,
        known_hosts=trust.known_hosts,
        host_keys=tuple(key.line() for key in login.host_keys.keys),
        also_trusted=tuple(key.fingerprint for key in login.host_keys.portless),
        agent=login.agent,
        via=log_in(login.via, own_key, trust, credentials) if login.via else None,
        user_known_hosts=UserKnownHosts(login.known_hosts, login.host_keys.name),
        revoked=tuple(key.fingerprint for key in login.host_keys.revoked),
        credentials=credentials,
    )
    search = _KeySearch(login, own_key, credentials)
    keys = search.find_keys()
    try:
        key = find_accepted_key(endpoint, keys, search.note_refusal)
    except HostKeyError as error:
        _decide(endpoint, trust, error)
        key = find_accepted_key(endpoint, keys, search.note_refusal)
    if key is None:
        for unlocked in search.unlock_keys():
            if key := find_accepted_key(endpoint, [unlocked], search.note_refusal):
                break
    if key is None:
        if credentials.ask and _ask_host(endpoint):
            return _settle(endpoint._replace(keyless=True))
        raise _denied(login, search.tried, search.skipped, own_key)
    if key.whole:
        return _settle(endpoint._replace(key_file=key.path, agent=""))
    return _settle(endpoint._replace(key_file=_store_public(key, own_key)))


class _KeySearch:
    """Finds the keys that may be tried on a host; `skipped` names others, with the reasons."""

    def __init__(self, login: Login, own_key: Path, credentials: LoginCredentials) -> None:
        self.tried: list[str] = []
        self.skipped: list[str] = []
        self._locked: list[Path] = []
        self._login = login
        self._own_key = own_key
        self._credentials = credentials
        self._agent_keys = self._list_agent()

    def find_keys(self) -> list[KeyPair]:
        """Return different keys in the order in which they are tried."""
        found: dict[PublicKey, KeyPair] = {}
        for key in self._find_all():
            found.setdefault(key.public, key)
        return list(found.values())[:_MOST_KEYS]

    def unlock_keys(self) -> Iterator[KeyPair]:
        """Yield the keys whose passphrases the user types."""
        # Imported here for the same reason as in `load_key`.
        from mydata_like.ssh.key_formats import unlock_key

        credentials = self._credentials
        for path in self._locked:
            text, question = path.read_bytes(), f"Passphrase of {path} (empty: without this key): "
            for _ in range(ATTEMPTS):
                typed = credentials.ask(question, shown=False) if credentials.ask else ""
                if not typed:
                    break
                if unlocked := unlock_key(text, typed):
                    credentials.keys[path] = unlocked
                    yield parse_key(path, unlocked)
                    break
            if path not in credentials.keys:
                why = "its passphrase was not given" if credentials.ask else _REASONS[LOCKED]
                self.skipped.append(f"{path} ({why})")

    def note_refusal(self, key: KeyPair, error: AccessDeniedError) -> None:
        """Remember that the host refused a key, or that the agent did not sign with it."""
        name = self._describe(key)
        failed = error.message.partition(" cannot be used: ")[2].rstrip(".")
        self.tried.append(f"{name} ({failed})" if failed else name)

    def _describe(self, key: KeyPair) -> str:
        if key.text or key.whole:
            return str(key.path)
        return f"{key.public.type} {key.public.fingerprint} of the agent"

    def _find_all(self) -> Iterator[KeyPair]:
        login = self._login
        for path in login.key_files:
            yield from self._load(path)
        if not (login.identities_only and login.key_files):
            for path in login.standard_files:
                if path.exists() or find_public_key(path) in self._agent_keys:
                    yield from self._load(path)
        touched = []
        if not login.identities_only:
            for public in self._agent_keys:
                key = KeyPair(Path(), b"", public, whole=False)
                if public.type in FIDO_KEYS:  # paramiko signs before the host accepts the key
                    touched.append(key)
                elif signatures(public.type):
                    yield key
        if self._own_key.exists():
            yield from self._load(self._own_key)
        yield from touched

    def _load(self, path: Path) -> Iterator[KeyPair]:
        """Yield the key of a file, or the same key of the agent; else remember why not."""
        if text := self._credentials.keys.get(path):  # as for a jump host before this one
            yield parse_key(path, text)
            return
        try:
            key = load_key(path)
        except SettingsError as error:
            public = find_public_key(path)
            if public in self._agent_keys:
                assert public is not None
                yield KeyPair(path, public.line().encode(), public, whole=False)
            elif error.problem_code == LOCKED:
                self._locked.append(path)
            else:
                self.skipped.append(_describe_failure(path, error))
            return
        if key.whole or key.public in self._agent_keys:
            yield key
        else:
            self.skipped.append(f"{path} (the agent does not have it)")

    def _list_agent(self) -> tuple[PublicKey, ...]:
        if not self._login.agent:
            return ()
        try:
            agent = Agent(self._login.agent, _AGENT_TIMEOUT)
        except SettingsError:
            self.skipped.append("the agent (it does not answer)")
            return ()
        agent.close()
        return agent.keys


def _ask_host(endpoint: Endpoint) -> bool:
    """Let the user answer what the host asks; return whether it asks anything."""
    try:
        answer_questions(endpoint)
    except AccessDeniedError:
        return False
    return True


def _settle(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint; stop sharing its login if the same answers open another session."""
    credentials = endpoint.credentials
    if credentials is None or not (login := credentials.logins.pop(endpoint.account, None)):
        return endpoint
    if all(credentials.may_repeat(hop.account) for hop in endpoint.way):
        with suppress(StagingError):
            connect(endpoint).close()
            login.abort()
            return endpoint
    credentials.logins[endpoint.account] = login
    return endpoint


_AGENT_TIMEOUT: Final = 10.0  # seconds
_REASONS: Final = {
    LOCKED: "it has a passphrase, which is only asked on a terminal, and no agent has it",
    "key.exposed": "other users can read it",
    "key.unreadable": "it cannot be read",
    "key.unusable": "it is not a private key that can be used",
}


def _describe_failure(path: Path, error: SettingsError) -> str:
    return f"{path} ({_REASONS.get(error.problem_code, error.message)})"


def _decide(endpoint: Endpoint, trust: Trust, error: HostKeyError) -> None:
    """Store the host's key if it may be trusted; else raise the error.

    A key in place of one that our own file has must be in `accepted`. Nothing is stored in place of
    a key in the user's known_hosts, or of a revoked one.
    """
    unknown = error.problem_code == UNKNOWN
    if endpoint.host_keys or not (unknown or error.problem_code == CHANGED):
        raise error
    key = fetch_host_key(endpoint._replace(also_trusted=trust.accepted))
    fingerprint = key.fingerprint
    if fingerprint in endpoint.revoked:
        raise error
    if fingerprint not in trust.accepted and not (
        unknown and trust.confirm and trust.confirm(endpoint.host, fingerprint, key.type)
    ):
        raise error
    accept_host_key(trust.known_hosts, endpoint.host, endpoint.port, key)


def _store_public(key: KeyPair, own_key: Path) -> Path:
    """Return a file with the public key of an agent's key, for sessions that use it."""
    if key.text and key.path.name.endswith(".pub"):
        return key.path
    digest = hashlib.sha256(key.public.blob).hexdigest()
    file = own_key.parent / "agent-keys" / f"{digest[:32]}.pub"
    line = key.public.line().encode() + b"\n"
    if not file.exists() or file.read_bytes() != line:
        write_private(file, line)
    return file


def _denied(login: Login, tried: list[str], skipped: list[str], own_key: Path) -> AccessDeniedError:
    """Return the error for a host that accepts no key, with our own as a remedy."""
    line = ensure_key(own_key).public.line("mydata-like")
    names = f"Tried: {', '.join(tried)}." if tried else "There is no key to try."
    others = f" Not tried: {', '.join(skipped)}." if skipped else ""
    return AccessDeniedError(
        f"{login.host}, port {login.port}, accepts no key for {login.username}. {names}{others}",
        hint=f"Add this line to ~/.ssh/authorized_keys of {login.username} on {login.host}: {line}",
        code="ssh.key-refused",
    )
