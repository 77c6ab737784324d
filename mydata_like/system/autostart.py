"""Starts the program in the tray when somebody logs in, as each system wants it.

Formats: the Desktop Application Autostart Specification of freedesktop.org; launchd.plist(5);
the registry key `Run` of Windows.
"""

import sys
from pathlib import Path, PurePath
from subprocess import list2cmdline
from typing import Final

from mydata_like.system.installing import remove_definition, write_definition
from mydata_like.system.service import MARK, NAME, Definition, Folders, format_plist

LABEL: Final = "org.mydata-like.window"
_RUN: Final = r"Software\Microsoft\Windows\CurrentVersion\Run"
_RESERVED: Final = '"`$\\'  # characters that an Exec line escapes within quotes


class FileAutostart:
    """An entry that is a file in a folder of the person."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition

    @property
    def place(self) -> str:
        """Where the entry is written."""
        return str(self._definition.file)

    @property
    def is_on(self) -> bool:
        """Whether the entry is there and would start this very program."""
        try:
            return Path(self._definition.file).read_bytes() == self._definition.content
        except FileNotFoundError:
            return False

    def turn(self, *, on: bool) -> None:
        """Make or remove the entry; raises SettingsError where it is somebody else's."""
        if on:
            write_definition(self._definition)
        else:
            remove_definition(self._definition)


class RegistryAutostart:
    """An entry in the person's registry on Windows."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self._line = list2cmdline(words)

    @property
    def place(self) -> str:
        """Where the entry is written."""
        return rf"HKEY_CURRENT_USER\{_RUN}\{NAME}"

    @property
    def is_on(self) -> bool:
        """Whether the entry is there and would start this very program."""
        return self._read() == self._line

    def turn(self, *, on: bool) -> None:
        """Make or remove the entry."""
        if sys.platform == "win32":
            import winreg

            with winreg.CreateKey(winreg.HKEY_CURRENT_USER, _RUN) as key:
                if on:
                    winreg.SetValueEx(key, NAME, 0, winreg.REG_SZ, self._line)
                elif self._read():
                    winreg.DeleteValue(key, NAME)

    def _read(self) -> str:
        if sys.platform == "win32":
            import winreg

            try:
                with winreg.OpenKey(winreg.HKEY_CURRENT_USER, _RUN) as key:
                    return str(winreg.QueryValueEx(key, NAME)[0])
            except FileNotFoundError:
                return ""
        return ""


Autostart = FileAutostart | RegistryAutostart


def find_autostart(system: str, words: tuple[str, ...], folders: Folders) -> Autostart:
    """Return the entry of a system (`sys.platform`) that starts these words."""
    match system:
        case "win32":
            return RegistryAutostart(words)
        case "darwin":
            return FileAutostart(_define_agent(words, folders.home))
        case _:
            return FileAutostart(_define_desktop_file(words, folders.configuration))


def _define_desktop_file(words: tuple[str, ...], configuration: PurePath) -> Definition:
    lines = (
        "[Desktop Entry]",
        f"# {MARK}",
        "Type=Application",
        f"Name={NAME}",
        "Comment=Carries instrument data to its server",
        f"Exec={' '.join(_quote(word) for word in words)}",
        "Terminal=false",
        "X-GNOME-Autostart-enabled=true",
        "",
    )
    file = configuration / "autostart" / f"{NAME}.desktop"
    return Definition(file=file, content="\n".join(lines).encode(), install=(), uninstall=())


def _quote(word: str) -> str:
    escaped = "".join(f"\\{char}" if char in _RESERVED else char for char in word)
    # The value of a key has escapes of its own, and % begins a code to fill in.
    return '"' + escaped.replace("\\", "\\\\").replace("%", "%%") + '"'


def _define_agent(words: tuple[str, ...], home: PurePath) -> Definition:
    content = {
        "Label": LABEL,
        "ProgramArguments": list(words),
        "RunAtLoad": True,
        "LimitLoadToSessionType": "Aqua",
    }
    return Definition(
        file=home / "Library/LaunchAgents" / f"{LABEL}.plist",
        content=format_plist(content),
        install=(),
        uninstall=(),
    )
