"""What the first start asks, each question by itself, before the settings are whole."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from mydata_like.app.settings import (
    find_api_key,
    find_legacy,
    find_places,
    load_settings,
    open_secrets,
    prepare_places,
)
from mydata_like.core.errors import AccessDeniedError, Problem, SettingsError, UploaderError
from mydata_like.core.model import Facility, OwnerKind, User
from mydata_like.core.ports import CancelSignal
from mydata_like.hostos.clock import SystemClock
from mydata_like.server.api import HttpServer
from mydata_like.server.client import ApiClient
from mydata_like.server.responses import MovedError
from mydata_like.settings.layers import Loaded
from mydata_like.settings.schema import Server, Settings
from mydata_like.settings.values import complete_address, is_loopback
from mydata_like.ssh.keys import ensure_key
from mydata_like.state.secrets import Secret

ATTEMPTS = 2  # of each request: somebody waits for the answer, and can ask again
_ELSEWHERE = ("server.not-mytardis", "server.web-page", "server.strange-answer", "server.address")


@dataclass(frozen=True, slots=True)
class Login:
    """The server and the account with its API key; an empty one stands for the one kept here."""

    server: Server
    config: Path | None = None
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Beginning:
    """How far the set-up has come: the settings that there are, and whether the key is kept."""

    loaded: Loaded
    has_key: bool
    legacy: Path | None  # MyData's settings, where MyData has been used here


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a MyTardis server with the MyData app is.

    `problem` says why that is not the address which was asked about; behind a redirect nothing
    has been looked at yet.
    """

    url: str
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class OwnKey:
    """The public half of this installation's key, as an administrator wants to see it."""

    path: Path
    fingerprint: str
    md5_fingerprint: str
    line: str


def find_beginning(config: Path | None) -> Beginning:
    """Return what is set already; raises SettingsError where the settings are wrong."""
    loaded = load_settings(config, must_exist=False)
    try:
        find_api_key(loaded.settings, open_secrets(config))
    except SettingsError:
        return Beginning(loaded, has_key=False, legacy=find_legacy())
    return Beginning(loaded, has_key=True, legacy=find_legacy())


def check_address(server: Server, text: str, cancel: CancelSignal) -> Reached:
    """Look whether a MyTardis server with the MyData app answers at an address as it was typed.

    Raises `UploaderError` with what is wrong with it.
    """
    try:
        url = complete_address(text)
    except ValueError as error:
        hint = "It looks like https://mytardis.example.org."
        raise SettingsError(f"The address {error}.", hint=hint, code="server.address") from None
    try:
        return _look_at(server, url, cancel)
    except MovedError as error:
        if not error.address:
            raise
        return Reached(error.address, error.problem)
    except UploaderError as error:
        better = _guess_better(url) if error.problem_code in _ELSEWHERE else ""
        if better and _answers(server, better, cancel):
            return Reached(better, error.problem)
        raise


def check_account(login: Login, cancel: CancelSignal) -> User:
    """Return who we are to the server; raises `AccessDeniedError` where it does not know us."""
    with _asked(login, cancel) as server:
        return server.fetch_account()


def list_facilities(login: Login, cancel: CancelSignal) -> list[Facility]:
    """Return the facilities that the account manages; raises SettingsError if there are none."""
    with _asked(login, cancel) as server:
        facilities = server.fetch_facilities()
    if not facilities:
        raise SettingsError(
            f"The account {login.server.username} manages no facility.",
            hint="Ask the server's administrator to make it a manager of yours.",
        )
    return facilities


def list_instruments(login: Login, facility: Facility, cancel: CancelSignal) -> list[str]:
    """Return the names of a facility's instruments, sorted."""
    with _asked(login, cancel) as server:
        return sorted(instrument.name for instrument in server.list_instruments(facility))


def find_strangers(
    login: Login, kind: OwnerKind | None, names: Iterable[str], cancel: CancelSignal
) -> tuple[str, ...]:
    """Return those of these owners whom the server does not know; without a kind, of groups."""
    with _asked(login, cancel) as server:
        find = {
            OwnerKind.USERNAME: server.find_user,
            OwnerKind.EMAIL: server.find_user_by_email,
        }.get(kind or OwnerKind.ACCOUNT, server.find_group)
        return tuple(name for name in names if find(name) is None)


def show_key(settings: Settings, config: Path | None) -> OwnKey:
    """Return this installation's key, made now where there is none."""
    places = find_places(config)
    prepare_places(settings, places)
    pair = ensure_key(settings.transfer.key_file or places.key_file)
    key = pair.public
    line = key.line(f"mydata-like {settings.instrument.name}")
    return OwnKey(pair.path, key.fingerprint, key.md5_fingerprint, line)


def _look_at(server: Server, url: str, cancel: CancelSignal) -> Reached:
    """Look for the API, which is there for everybody."""
    there = server.changed(url=url, username="")
    with _opened(there, "", cancel) as asked:
        try:
            resources = asked.fetch_resources()
        except AccessDeniedError as error:
            raise SettingsError(
                f"{url} wants a login before it says anything, which MyTardis does not.",
                hint="Check the server address.",
                code="server.not-mytardis",
            ) from error
    if "mydata_uploader" not in resources:
        raise SettingsError(
            f"{urlsplit(url).netloc} is a MyTardis server, but it lacks the MyData app, which "
            "approves uploaders.",
            hint="Ask the server's administrator to install it.",
            code="server.no-mydata",
        )
    return Reached(url)


def _guess_better(url: str) -> str:
    """Return what may have been meant: with encryption, and without the path of a page."""
    parts = urlsplit(url)
    plain = parts.scheme == "http" and not is_loopback(parts.hostname or "")
    guess = f"{'https' if plain else parts.scheme}://{parts.netloc}"
    return "" if guess == url else guess


def _answers(server: Server, url: str, cancel: CancelSignal) -> bool:
    try:
        _look_at(server, url, cancel)
    except UploaderError:
        return False
    return True


@contextmanager
def _asked(login: Login, cancel: CancelSignal) -> Iterator[HttpServer]:
    """Yield the server as this account sees it."""
    if login.key:
        secret = Secret(login.key)
    else:
        settings = Settings(server=login.server)
        secret, _ = find_api_key(settings, open_secrets(login.config))
    with _opened(login.server, secret.reveal(), cancel) as server:
        yield server


@contextmanager
def _opened(server: Server, key: str, cancel: CancelSignal) -> Iterator[HttpServer]:
    client = ApiClient(server, key, SystemClock(), cancel)
    client.attempts = ATTEMPTS
    try:
        yield HttpServer(client)
    finally:
        client.close()
