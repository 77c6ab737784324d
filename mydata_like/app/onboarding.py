"""The checks of the setup wizard, each usable before the settings are complete."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from mydata_like.app.settings_service import (
    find_api_key,
    find_legacy,
    find_places,
    load_settings,
    open_secrets,
    prepare_places,
)
from mydata_like.app.source_service import SkippedSource, count_skipped
from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.client import ApiClient, MovedError
from mydata_like.core.errors import (
    OUTSIDE,
    AccessDeniedError,
    Cancelled,
    Problem,
    SettingsError,
    UploaderError,
)
from mydata_like.core.events import Event, FileSkipped, FileWaiting, FolderSkipped
from mydata_like.core.model import DatasetFolder, Facility, Layout, OwnerKind, User
from mydata_like.core.ports import CancelSignal, Emit
from mydata_like.core.problems import PROBLEMS
from mydata_like.engine.data_root import Root
from mydata_like.engine.layout import (
    DEEPEST,
    Branch,
    Known,
    Level,
    judge,
    levels_of,
    suggest_layout,
)
from mydata_like.engine.scan import Scan
from mydata_like.engine.walk import FileFilter, TreeRules, Walk
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.layers import Loaded
from mydata_like.settings.schema import Filters, Server, Settings
from mydata_like.settings.values import complete_address, is_loopback
from mydata_like.ssh.keys import ensure_key
from mydata_like.state.secrets import Secret

ATTEMPTS = 2  # of each request: the user waits for the answer, and can retry
_ELSEWHERE = ("server.not-mytardis", "server.web-page", "server.strange-answer", "server.address")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The server and the account with its API key; if empty, the stored key is used."""

    server: Server
    config: Path | None = None
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class SetupState:
    """The progress of the setup: the existing settings, and whether the API key is stored."""

    loaded: Loaded
    has_key: bool
    legacy: Path | None  # MyData's settings file, if MyData was used here


@dataclass(frozen=True, slots=True)
class ServerCheckResult:
    """The address of a MyTardis server with the MyData app.

    `problem` says why it is not the address that was entered; the target of a redirect has not
    been checked yet.
    """

    url: str
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class PublicKeyInfo:
    """The public half of this installation's key, as an administrator needs it."""

    path: Path
    fingerprint: str
    md5_fingerprint: str
    line: str


def find_setup_state(config: Path | None) -> SetupState:
    """Return what is already set; raises `SettingsError` if the settings are invalid."""
    loaded = load_settings(config, must_exist=False)
    try:
        find_api_key(loaded.settings, open_secrets(config))
    except SettingsError:
        return SetupState(loaded, has_key=False, legacy=find_legacy())
    return SetupState(loaded, has_key=True, legacy=find_legacy())


def check_address(server: Server, text: str, cancel: CancelSignal) -> ServerCheckResult:
    """Check whether a MyTardis server with the MyData app answers at an address as entered.

    Raises `UploaderError` with the problem.
    """
    try:
        url = complete_address(text)
    except ValueError as error:
        hint = "Example: https://mytardis.example.org"
        raise SettingsError(f"The address {error}.", hint=hint, code="server.address") from None
    try:
        return _check_api(server, url, cancel)
    except MovedError as error:
        if not error.address:
            raise
        return ServerCheckResult(error.address, error.problem)
    except UploaderError as error:
        # The likely address: with encryption, and without the path of a page.
        parts = urlsplit(url)
        plain = parts.scheme == "http" and not is_loopback(parts.hostname or "")
        better = f"{'https' if plain else parts.scheme}://{parts.netloc}"
        if better != url and error.problem_code in _ELSEWHERE:
            with suppress(UploaderError):
                _check_api(server, better, cancel)
                return ServerCheckResult(better, error.problem)
        raise


def check_account(login: Credentials, cancel: CancelSignal) -> User:
    """Return our account on the server; raises `AccessDeniedError` if it is not accepted."""
    with _connected(login, cancel) as server:
        return server.fetch_account()


def list_facilities(login: Credentials, cancel: CancelSignal) -> list[Facility]:
    """Return the facilities that the account manages; raises `SettingsError` if there are none."""
    with _connected(login, cancel) as server:
        facilities = server.fetch_facilities()
    if not facilities:
        raise SettingsError(
            f"The account {login.server.username} does not manage any facility.",
            hint="Ask the server's administrator to make it a manager of your facility.",
        )
    return facilities


def list_instruments(login: Credentials, facility: Facility, cancel: CancelSignal) -> list[str]:
    """Return the names of a facility's instruments, sorted."""
    with _connected(login, cancel) as server:
        return sorted(instrument.name for instrument in server.list_instruments(facility))


def find_strangers(
    login: Credentials, kind: OwnerKind | None, names: Iterable[str], cancel: CancelSignal
) -> tuple[str, ...]:
    """Return the owners that do not exist on the server; without a kind, names are of groups."""
    with _connected(login, cancel) as server:
        find = {
            OwnerKind.USERNAME: server.find_user,
            OwnerKind.EMAIL: server.find_user_by_email,
        }.get(kind or OwnerKind.ACCOUNT, server.find_group)
        return tuple(name for name in names if find(name) is None)


def show_key(settings: Settings, config: Path | None) -> PublicKeyInfo:
    """Return this installation's key; create it if there is none."""
    places = find_places(config)
    prepare_places(settings, places)
    pair = ensure_key(settings.transfer.key_file or places.key_file)
    key = pair.public
    line = key.line(f"mydata-like {settings.instrument.name}")
    return PublicKeyInfo(pair.path, key.fingerprint, key.md5_fingerprint, line)


def _check_api(server: Server, url: str, cancel: CancelSignal) -> ServerCheckResult:
    """Check for the API, which needs no login."""
    there = server.with_values(url=url, username="")
    with _opened(there, "", cancel) as asked:
        try:
            resources = asked.fetch_resources()
        except AccessDeniedError as error:
            raise SettingsError(
                f"{url} requires a login for its API; a MyTardis server does not.",
                hint="Check the server address.",
                code="server.not-mytardis",
            ) from error
    if "mydata_uploader" not in resources:
        raise SettingsError(
            f"{urlsplit(url).netloc} is a MyTardis server, but the MyData app, which approves "
            "uploaders, is not installed.",
            hint="Ask the server's administrator to install it.",
            code="server.no-mydata",
        )
    return ServerCheckResult(url)


@contextmanager
def _connected(login: Credentials, cancel: CancelSignal) -> Iterator[HttpServer]:
    """Yield the server, accessed with this account."""
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


SHOWN = 50  # dataset folders that are shown with the number of files
_MOST_FOLDERS = 10_000  # dataset folders that are searched
_MOST_BRANCHES = 2_000  # folders from which the layout is guessed
_MOST_FILES = 20_000  # counted in one folder
_MOST_ASKED = 20  # names that are looked up on the server


class LayoutSample(NamedTuple):
    """The dataset that one folder becomes; with `more`, not all its files were counted.

    `experiment` is empty if it is named after the instrument and the owner's full name, which only
    the server knows.
    """

    path: bytes
    owner: str
    experiment: str
    dataset: str
    files: int
    size: int
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutPreview:
    """The result of applying a layout to a data directory.

    `complete` says that all folders were scanned. `strangers` are owners that do not exist on
    the server, None if it could not be queried. `left_out` is what is skipped on the levels of the
    layout and in the reported folders, by reason, with what is not left out on purpose first.
    """

    folders: int
    complete: bool
    misfits: tuple[str, ...] = ()
    strangers: tuple[str, ...] | None = ()
    suggestion: Layout | None = None
    left_out: tuple[SkippedSource, ...] = ()


def preview_layout(
    settings: Settings,
    login: Credentials,
    report: Callable[[LayoutSample], object],
    cancel: CancelSignal,
) -> LayoutPreview:
    """Report the first dataset folders one by one, then return the complete preview.

    Raises `SettingsError` if the folder cannot be read, `Cancelled` when asked to stop. For a
    destination without a server, the layout does not matter.
    """
    assert settings.data.directory is not None
    takes_tree = settings.destination.takes_tree
    if takes_tree:
        # Imported here, in the background, since this takes a fifth of a second.
        from mydata_like.app.settings_destination import refuse_overlap

        refuse_overlap(settings)
    root = Root(settings.data.directory)
    left_out: dict[str, SkippedSource] = {}

    def note(event: Event) -> None:
        if isinstance(event, FileSkipped | FolderSkipped):
            count_skipped(left_out, event)

    folders: list[DatasetFolder] = []
    scan = Scan(settings, note, SystemClock(), cancel)
    for folder in islice(scan.find_folders(root.path), _MOST_FOLDERS):
        if cancel.is_set():
            raise Cancelled
        folders.append(folder)
    for folder in folders[:SHOWN]:
        report(_sample(settings, root, folder, note, cancel))

    def rank(left: SkippedSource) -> tuple[bool, int]:
        """Rank what another layout may include before others, and the most frequent first."""
        code = left.problem.code
        info = PROBLEMS.get(code)
        return bool(info and info.intended) and code != OUTSIDE, -left.number

    if takes_tree:
        return LayoutPreview(
            folders=len(folders),
            complete=len(folders) < _MOST_FOLDERS,
            left_out=tuple(sorted(left_out.values(), key=rank)),
        )
    branches = list(_find_branches(root, cancel))
    instrument = settings.instrument.name
    fit = judge(settings.data.layout, branches, instrument)
    known, strangers = _look_up_owners(settings, login, branches, cancel)
    left_out.pop("skipped.layout", None)  # the misfits
    return LayoutPreview(
        folders=len(folders),
        complete=len(folders) < _MOST_FOLDERS and len(branches) < _MOST_BRANCHES,
        misfits=tuple("/".join(names) for names in fit.misfits),
        strangers=strangers,
        suggestion=suggest_layout(settings.data.layout, branches, instrument, known),
        left_out=tuple(sorted(left_out.values(), key=rank)),
    )


def _sample(
    settings: Settings, root: Root, folder: DatasetFolder, emit: Emit, cancel: CancelSignal
) -> LayoutSample:
    files, size, more = _count(settings, root, folder, emit, cancel)
    owner = folder.owner or settings.data.group_prefix + folder.group_folder
    if not folder.owner and not folder.group_folder:
        owner = settings.server.username
    experiment = folder.title or ""
    return LayoutSample(folder.path, owner, experiment, folder.name, files, size, more)


def _count(
    settings: Settings, root: Root, folder: DatasetFolder, emit: Emit, cancel: CancelSignal
) -> tuple[int, int, bool]:
    """Return the files and bytes that a run would eventually send, and whether there are more."""
    waiting: list[int] = []

    def note(event: Event) -> None:
        emit(event)
        if isinstance(event, FileWaiting):
            waiting.append(event.size)

    as_is = TreeRules() if settings.destination.takes_tree else None
    walk = Walk(root, settings.filters, note, SystemClock(), cancel, as_is=as_is)
    path = os.path.join(root.path, folder.path) if folder.path else root.path  # noqa: PTH118
    files = size = 0
    try:
        for group in walk.open(folder, path):
            files += len(group.files)
            size += sum(file.size for file in group.files)
            if files + len(waiting) >= _MOST_FILES:
                return files + len(waiting), size + sum(waiting), True
    except OSError:  # a folder that cannot be read counts as empty
        return 0, 0, False
    return files + len(waiting), size + sum(waiting), False


def _find_branches(root: Root, cancel: CancelSignal) -> Iterator[Branch]:
    """Yield the folders down to the level of the deepest layout, upper levels first."""
    refuse = FileFilter(Filters()).refuse
    waiting: deque[tuple[bytes, tuple[str, ...]]] = deque([(root.path, ())])
    given = 0
    while waiting and given < _MOST_BRANCHES:
        if cancel.is_set():
            raise Cancelled
        path, names = waiting.popleft()
        folders, files = _list(root, path)
        taken = [name for name in files if refuse(name, name) is None]
        if names:
            yield Branch(names, len(taken))
            given += 1
        if len(names) < DEEPEST:
            below = ((os.path.join(path, name), name) for name in sorted(folders))  # noqa: PTH118
            waiting += ((place, (*names, os.fsdecode(name))) for place, name in below)


def _list(root: Root, path: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the names of a folder's folders and files; none if it cannot be read."""
    folders: list[bytes] = []
    files: list[bytes] = []
    try:
        with root.open(path) as listing:
            for entry in listing.entries:
                kind = folders if entry.is_dir(follow_symlinks=False) else files
                kind.append(os.fsencode(entry.name))
    except OSError:
        return [], []
    return folders, files


def _look_up_owners(
    settings: Settings, login: Credentials, branches: Iterable[Branch], cancel: CancelSignal
) -> tuple[Known, tuple[str, ...] | None]:
    """Return which of the top-level folders are owners on the server, and which are not.

    They are looked up as users or groups according to the layout; if none exists, they are
    looked up as the other kind as well, because the layout may be the wrong one.
    """
    names = sorted({branch.names[0] for branch in branches if branch.names[0].isprintable()})
    names = names[:_MOST_ASKED]
    prefix = settings.data.group_prefix
    top = levels_of(settings.data.layout)[0]
    try:
        if top is Level.GROUP:
            groups = _find_groups(login, prefix, names, cancel)
            users = frozenset() if groups else _find_users(login, names, cancel)
        else:
            users = _find_users(login, names, cancel)
            groups = frozenset() if users else _find_groups(login, prefix, names, cancel)
    except UploaderError:
        return Known(), None
    known = {Level.OWNER: users, Level.GROUP: groups}.get(top, frozenset(names))
    strangers = tuple(name for name in names if name not in known)
    return Known(frozenset(names), users, groups), strangers


def _find_users(login: Credentials, names: Iterable[str], cancel: CancelSignal) -> frozenset[str]:
    emails = {name for name in names if "@" in name}
    others = set(names) - emails
    strange = {
        *find_strangers(login, OwnerKind.EMAIL, emails, cancel),
        *find_strangers(login, OwnerKind.USERNAME, others, cancel),
    }
    return frozenset(names) - strange


def _find_groups(
    login: Credentials, prefix: str, names: Iterable[str], cancel: CancelSignal
) -> frozenset[str]:
    strange = set(find_strangers(login, None, [prefix + name for name in names], cancel))
    return frozenset(name for name in names if prefix + name not in strange)
