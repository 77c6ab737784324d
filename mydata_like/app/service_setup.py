"""Installing and removing the service that runs `watch`, and the start at login."""

import ntpath
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mydata_like.app.settings_service import find_places, find_state, load_settings
from mydata_like.core.errors import SettingsError
from mydata_like.core.frozen import frozen
from mydata_like.hostos.lock import is_local
from mydata_like.hostos.process import find_background_program, find_window, read_account
from mydata_like.hostos.service import (
    LOCAL_SYSTEM,
    Autostart,
    InstallStep,
    ServiceCommand,
    ServiceDefinition,
    ServiceFolders,
    define_service,
    find_autostart,
    find_service_account,
    make_folders_as,
    remove_definition,
    run_commands,
    write_definition,
)
from mydata_like.settings.schema import Settings
from mydata_like.state.paths import HOME, StatePaths

if sys.platform != "win32":
    import pwd


@frozen(kw_only=True)
class WatchRequest:
    """The parameters of a watch that are not in the settings; its service gets them as options."""

    config: Path | None = None
    assignments: tuple[str, ...] = ()
    host_keys: tuple[str, ...] = ()
    attended: bool = False  # a program shows its activity


class ServiceRequest(NamedTuple):
    """The service to install: for one account or the whole computer, and its account."""

    everyone: bool = False
    account: str = ""  # by default the current user, also if sudo is used
    as_root: bool = False  # running as root is intended


class Service:
    """The service of this installation, for one account or for the whole computer."""

    def __init__(self, request: WatchRequest, wanted: ServiceRequest) -> None:
        """Raises `SettingsError` for invalid settings and for an account that is refused."""
        program, config = find_background_program(), request.config
        chosen: tuple[str, ...] = ("--config", str(config.absolute())) if config else ()
        chosen += tuple(word for text in request.assignments for word in ("--set", text))
        chosen += tuple(word for key in request.host_keys for word in ("--accept-host-key", key))
        home = str(Path(os.environ[HOME]).absolute()) if os.environ.get(HOME) else ""
        if sys.platform == "win32" and home:
            chosen += ("--home", home)
        account = _choose_account(wanted)
        if sys.platform == "win32" and wanted.everyone and not (home or config):
            require_own_account(account)
        places = _find_places_of(account, request) if wanted.everyone else find_places(config)
        settings = load_settings(
            config or (places.config_file if places.config_file.is_file() else None),
            request.assignments,
        ).settings
        command = ServiceCommand(
            words=(*program, "watch", *chosen),
            environment={HOME: home} if home else {},
            account=account,
            uid=os.getuid() if sys.platform != "win32" else 0,
            everyone=wanted.everyone,
            writable=tuple(map(str, _find_writable(settings, places))),
            as_root=_is_root(account),
        )
        self._program = Path(program[0])
        self._risks: tuple[str, ...] = ()
        if sys.platform == "win32" and wanted.everyone:
            self._risks = tuple(_find_risks(account, home, settings.data.directory))
        self._needed = places.folders(find_state(settings, places)) if wanted.everyone else ()
        self._account = account
        folders = _find_folders(find_state(settings, places))
        self.definition: ServiceDefinition = define_service(sys.platform, command, folders)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The reasons why the service may not work, or stop working later."""
        if self._program.is_relative_to(tempfile.gettempdir()):
            text = f"The program is in a temporary folder, which may be deleted: {self._program}"
            return (text, *self._risks)
        return self._risks

    def install(self) -> Iterator[InstallStep]:
        """Write the definition and activate it, command by command."""
        write_definition(self.definition)
        if self._needed and sys.platform != "win32":
            make_folders_as(self._account, self._needed)
        return run_commands(self.definition.install)

    def uninstall(self) -> Iterator[InstallStep]:
        """Stop the service and remove the definition; raises `SettingsError` if it is not ours.

        All of the system's commands are tried, and the file is removed even if they fail.
        """
        if not Path(self.definition.file).exists():
            # The system may have the service although its file is not here.
            query = self.definition.query
            if not query or any(step.problem for step in run_commands([query])):
                return
        for command in self.definition.uninstall:
            yield from run_commands([command])
        remove_definition(self.definition)


def apply_autostart(settings: Settings) -> str:
    """Add or remove the start at login according to the settings; return the entry's location."""
    entry = open_autostart()
    entry.turn(on=settings.window.start_at_login)
    return entry.place


def open_autostart() -> Autostart:
    """Return the entry that starts this program when the user logs in."""
    state = find_places().state
    return find_autostart(sys.platform, (*find_window(), "--hidden"), _find_folders(state))


def _find_folders(state: Path) -> ServiceFolders:
    home = Path.home()
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return ServiceFolders(home, configuration, state)


def _choose_account(wanted: ServiceRequest) -> str:
    """Return the account of the service; one with all rights only if it is named and confirmed."""
    account = wanted.account or _account()
    if not wanted.everyone:
        return account
    if sys.platform != "win32":
        _find_home(account)
    if _is_root(account) and not wanted.as_root:
        raise SettingsError(
            f"The service would run as {'SYSTEM' if sys.platform == 'win32' else 'root'}, with "
            "full access to this computer.",
            hint="Name an account that may read the data: --user NAME. To use this one anyway: "
            "--as-root.",
        )
    return account


def _is_root(account: str) -> bool:
    if sys.platform == "win32":
        return find_service_account(account) == LOCAL_SYSTEM
    try:
        return pwd.getpwnam(account).pw_uid == 0
    except KeyError:
        return False


def require_own_account(account: str) -> None:
    """Raise `SettingsError` for another account of Windows, whose profile has other settings."""
    own = (read_account().casefold(), _account().casefold())
    if account.casefold() not in own:
        raise SettingsError(
            f"The settings of this account are not those of {account}.",
            hint=f"Choose a folder for the settings, keys and state of the service: set {HOME} to "
            "it, and install the service again.",
        )


def _find_risks(account: str, home: str, data: Path | None) -> Iterator[str]:
    """Yield what a task of Windows that runs without a login may not find, or not protect."""
    if data and (share := find_share(str(data), os.path.realpath(data))):
        yield (
            f"The drive of {data} exists only while you are logged in. Set data.directory to the "
            f"folder on the share: {share}"
        )
    service_account = find_service_account(account)
    if service_account and home:
        yield (
            f"The settings and keys of the service are in {home}. Let only administrators and the "
            f'service read them: icacls "{home}" /inheritance:r '
            f"/grant *S-1-5-32-544:(OI)(CI)F /grant *{service_account}:(OI)(CI)F"
        )


def find_share(path: str, real: str) -> str:
    r"""Return the path of a network share if a path of Windows is on a letter for it, else "".

    `real` is its path as Windows resolves it, such as `\\server\share\data`.
    """
    drive, share = ntpath.splitdrive(path)[0], ntpath.splitdrive(real)[0]
    is_share = share.startswith("\\\\") and not share.startswith(("\\\\?", "\\\\."))
    return real if drive.endswith(":") and is_share else ""


def _find_home(account: str) -> Path:
    try:
        return Path(pwd.getpwnam(account).pw_dir)
    except KeyError:
        raise SettingsError(
            f"This computer has no account named {account}.",
            hint="Name an account that may read the data: --user NAME.",
        ) from None


def _find_places_of(account: str, request: WatchRequest) -> StatePaths:
    """Return the folders of the service, which are in the home of its account."""
    if sys.platform != "linux" or os.environ.get(HOME):
        return find_places(request.config)
    places = StatePaths.in_home(_find_home(account))
    return places.with_config(request.config.absolute()) if request.config else places


def _find_writable(settings: Settings, places: StatePaths) -> Iterator[Path]:
    """Yield the folders to which a watch writes.

    The data directory is included only if other computers may reach it: it then has a lock file.
    """
    yield from (find_state(settings, places), places.logs, places.known_hosts.parent)
    if settings.monitor.signal_file:
        yield settings.monitor.signal_file.absolute().parent
    data = settings.data.directory
    if data and not is_local(os.fsencode(data)):
        yield data.absolute()


def _account() -> str:
    """Return the current user's account, also if sudo is used."""
    account = os.environ.get("SUDO_USER", "") if sys.platform != "win32" else ""
    account = account or read_account()
    if not account:
        raise SettingsError(
            "This account has no name, and a service runs as an account with a name.",
            hint="Name one with --system --user; in a container, start `mydata-like watch` itself.",
        )
    domain = os.environ.get("USERDOMAIN") if sys.platform == "win32" else None
    return f"{domain}\\{account}" if domain else account
