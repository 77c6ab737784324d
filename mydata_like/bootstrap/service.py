"""The service that runs `watch`, and the start at a login: made and removed on this computer."""

import getpass
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mydata_like.bootstrap.settings import find_places, find_state
from mydata_like.bootstrap.watching import WatchOrder
from mydata_like.settings.schema import Settings
from mydata_like.store.paths import HOME
from mydata_like.system.autostart import Autostart, find_autostart
from mydata_like.system.installing import (
    Carried,
    carry_out,
    remove_definition,
    write_definition,
)
from mydata_like.system.program import find_program, find_window
from mydata_like.system.service import Definition, Errand, Folders, define_service


class Service:
    """The service of this installation, for the person alone or for the whole computer."""

    def __init__(self, settings: Settings, order: WatchOrder, *, everyone: bool) -> None:
        program, config = find_program(), order.config
        chosen: tuple[str, ...] = ("--config", str(config.absolute())) if config else ()
        chosen += tuple(word for text in order.assignments for word in ("--set", text))
        chosen += tuple(word for key in order.host_keys for word in ("--accept-host-key", key))
        home = os.environ.get(HOME)
        errand = Errand(
            words=(*program, "watch", *chosen),
            environment={HOME: str(Path(home).absolute())} if home else {},
            account=_account(),
            uid=os.getuid() if sys.platform != "win32" else 0,
            everyone=everyone,
        )
        self._program = Path(program[0])
        folders = _find_folders(find_state(settings, find_places(config)))
        self.definition: Definition = define_service(sys.platform, errand, folders)

    @property
    def warning(self) -> str:
        """What may keep the service from lasting; empty where nothing does."""
        if self._program.is_relative_to(tempfile.gettempdir()):
            return f"The program lies among temporary files, which may vanish: {self._program}"
        return ""

    def install(self) -> Iterator[Carried]:
        """Put the definition into its place and make it count, command by command."""
        write_definition(self.definition)
        return carry_out(self.definition.install)

    def uninstall(self) -> Iterator[Carried]:
        """Stop the service and take the definition away; raises SettingsError if it is not ours.

        The file goes even where the system's own commands do not work.
        """
        if not Path(self.definition.file).exists():
            return
        yield from carry_out(self.definition.uninstall)
        remove_definition(self.definition)


def apply_autostart(settings: Settings) -> str:
    """Make or remove the start at a login as the settings say; return where that is written."""
    entry = open_autostart()
    entry.turn(on=settings.window.start_at_login)
    return entry.place


def open_autostart() -> Autostart:
    """Return the entry that starts this program when the person logs in."""
    state = find_places().state
    return find_autostart(sys.platform, (*find_window(), "--hidden"), _find_folders(state))


def _find_folders(state: Path) -> Folders:
    home = Path.home()
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return Folders(home, configuration, state)


def _account() -> str:
    """Return whose rights the service gets: of who asks, also where that is through sudo."""
    name = os.environ.get("SUDO_USER") or getpass.getuser()
    domain = os.environ.get("USERDOMAIN") if sys.platform == "win32" else None
    return f"{domain}\\{name}" if domain else name
