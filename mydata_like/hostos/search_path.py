"""A folder on the search path of Windows (PATH), for one account or for all.

The path is read and written in the registry, in full and as it is: `setx` would cut off what is
longer than 1,024 characters, and installers have similar limits.
"""

import ctypes
import sys
from typing import Final

from mydata_like.core.errors import SettingsError

if sys.platform == "win32":
    import winreg

LONGEST: Final = 32_767 - len("Path=\0")  # characters; the limit of an environment variable
_MACHINE: Final = r"SYSTEM\CurrentControlSet\Control\Session Manager\Environment"
_BROADCAST: Final = 0xFFFF
_SETTING_CHANGED: Final = 0x1A
_ABORT_IF_HUNG: Final = 0x2
_PATIENCE: Final = 5000  # milliseconds that a program has to take notice


def add_folder(path: str, folder: str) -> str:
    """Return the path with the folder at its end, once.

    Raises `SettingsError` if it would be too long for Windows.
    """
    if _contains(path, folder):
        return path
    longer = f"{path.rstrip(';')};{folder}".lstrip(";")
    if len(longer) > LONGEST:
        raise SettingsError(
            f"The search path of Windows would be longer than {LONGEST:,} characters.",
            hint="Remove folders from the environment variable Path that are not needed.",
        )
    return longer


def remove_folder(path: str, folder: str) -> str:
    """Return the path without the folder, and otherwise unchanged."""
    if not _contains(path, folder):
        return path
    return ";".join(part for part in path.split(";") if not _is_same(part, folder))


def change_search_path(folder: str, *, present: bool, everyone: bool) -> bool:
    """Add the folder to the search path in the registry, or remove it; return whether it changed.

    Raises `SettingsError` if the path would be too long, OSError without the permission.
    """
    if sys.platform == "win32":
        root = winreg.HKEY_LOCAL_MACHINE if everyone else winreg.HKEY_CURRENT_USER
        access = winreg.KEY_READ | winreg.KEY_WRITE
        with winreg.CreateKeyEx(root, _MACHINE if everyone else "Environment", 0, access) as key:
            try:  # variables in it are expanded or not, as the type of the value says
                path, kind = winreg.QueryValueEx(key, "Path")
            except FileNotFoundError:
                path, kind = "", winreg.REG_EXPAND_SZ
            changed = (add_folder if present else remove_folder)(path, folder)
            if changed == path:
                return False
            if changed:
                winreg.SetValueEx(key, "Path", 0, kind, changed)
            else:
                winreg.DeleteValue(key, "Path")
        ctypes.windll.user32.SendMessageTimeoutW(
            _BROADCAST, _SETTING_CHANGED, 0, "Environment", _ABORT_IF_HUNG, _PATIENCE, None
        )
        return True
    return False


def _contains(path: str, folder: str) -> bool:
    return any(_is_same(part, folder) for part in path.split(";"))


def _is_same(part: str, folder: str) -> bool:
    return part.strip().strip('"').rstrip("\\").lower() == folder.rstrip("\\").lower()
