"""The locations of the program's own files on each system."""

import os
import sys
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from platformdirs import PlatformDirs
from platformdirs.api import PlatformDirsABC

from mydata_like.core.frozen import frozen
from mydata_like.settings.atomic_write import make_private_folder

HOME: Final = "MYDATA_LIKE_HOME"  # names a folder for all of the program's own files
_NAME = "mydata-like"


@frozen(kw_only=True)
class StatePaths:
    """The files and folders of one installation; they may not exist yet."""

    config_file: Path
    managed_file: Path  # for the whole machine, written by its administrators
    secrets_file: Path
    key_file: Path
    known_hosts: Path
    state: Path
    logs: Path

    @classmethod
    def chosen(cls, environment: Mapping[str, str], config: Path | None = None) -> Self:
        """Return the paths that the user chose by the environment and by a settings file."""
        home = environment.get(HOME)
        places = cls.below(Path(home).absolute()) if home else cls.standard()
        return places.with_config(config.absolute()) if config else places

    @classmethod
    def standard(cls) -> Self:
        """Return the standard paths of the current account."""
        return cls.on(PlatformDirs(_NAME, appauthor=False, roaming=False))

    @classmethod
    def in_home(cls, home: Path) -> Self:
        """Return the standard paths of another account of a Linux computer, by its home folder.

        A service of that account has no XDG variables.
        """
        state = home / ".local/state" / _NAME
        config, data = home / ".config" / _NAME, home / ".local/share" / _NAME
        return cls._in(config, data, state, state / "log")

    @classmethod
    def on(cls, folders: PlatformDirsABC) -> Self:
        """Return the paths according to the conventions of a system."""
        config, data = folders.user_config_path, folders.user_data_path
        return cls._in(config, data, folders.user_state_path, folders.user_log_path)

    @classmethod
    def below(cls, folder: Path) -> Self:
        """Return paths below one folder; the managed file stays that of the machine."""
        return cls._in(folder, folder, folder / "state", folder / "logs")

    @classmethod
    def _in(cls, config: Path, data: Path, state: Path, logs: Path) -> Self:
        return cls(
            config_file=config / "settings.toml",
            managed_file=_managed_folder() / "managed.toml",
            secrets_file=config / "secrets.toml",
            key_file=data / "ssh" / "id_ed25519",
            known_hosts=data / "ssh" / "known_hosts",
            state=state,
            logs=logs,
        )

    def with_config(self, config_file: Path) -> Self:
        """Return the same paths with another settings file, and a secrets file next to it."""
        return replace(
            self, config_file=config_file, secrets_file=config_file.with_name("secrets.toml")
        )

    def folders(self, state: Path) -> frozenset[Path]:
        """Return the folders that a run needs; `state` is the state folder of the settings."""
        files = (self.config_file, self.secrets_file, self.key_file, self.known_hosts)
        return frozenset((state, self.logs, *(path.parent for path in files)))

    def make_private(self, state: Path) -> None:
        """Make these folders, readable only by their owner."""
        for folder in self.folders(state):
            make_private_folder(folder)


def is_protected(path: Path) -> bool:
    """Return whether only administrators can change this file; always true on Windows."""
    if os.name == "nt":
        return True
    try:
        parts = [entry.stat() for entry in (path, path.parent)]
    except OSError:
        return True
    return all(part.st_uid == 0 and not part.st_mode & 0o022 for part in parts)


def _managed_folder() -> Path:
    # Not that of platformdirs: environment variables would move the file and so remove the locks.
    if sys.platform == "win32":
        return _find_program_data() / _NAME
    if sys.platform == "darwin":
        return Path("/Library/Application Support") / _NAME
    return Path("/etc/xdg") / _NAME


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _COMMON_APPDATA: Final = 0x23  # CSIDL_COMMON_APPDATA

    def _find_program_data() -> Path:
        name = ctypes.create_unicode_buffer(wintypes.MAX_PATH)
        ctypes.windll.shell32.SHGetFolderPathW(None, _COMMON_APPDATA, None, 0, name)
        return Path(name.value or r"C:\ProgramData")


API_KEY: Final = "MYDATA_LIKE_API_KEY"
S3_KEY: Final = "MYDATA_LIKE_S3_SECRET"
_SECRETS: Final = (API_KEY, S3_KEY)
KEY_LOG: Final = "SSLKEYLOGFILE"  # where OpenSSL writes the keys of every connection, if it is set
# The names of secrets, with commas between them, that are the first lines of standard input: for
# the engine process of the window.
KEY_ON_INPUT: Final = "MYDATA_LIKE_API_KEY_ON_INPUT"
_LONGEST: Final = 4096  # bytes of that line
_taken: dict[str, str] = {}


def take_private() -> None:
    """Remove these variables from `os.environ`, before anything is imported or started."""
    for name in (*_SECRETS, KEY_LOG):
        if text := os.environ.pop(name, ""):
            _taken[name] = text
    for name in filter(None, os.environ.pop(KEY_ON_INPUT, "").split(",")):
        _taken[name] = os.fsdecode(_read_line())


def environment() -> Mapping[str, str]:
    """Return the original environment, including the secrets in it."""
    private = {name: text for name, text in _taken.items() if name in _SECRETS}
    return MappingProxyType(ChainMap(private, os.environ))


def hand_over() -> tuple[Mapping[str, str], bytes]:
    """Return the variables and the input that pass the secrets to a child process."""
    names = [name for name in _SECRETS if name in _taken]
    if not names:
        return {}, b""
    lines = b"".join(os.fsencode(_taken[name]) + b"\n" for name in names)
    return {KEY_ON_INPUT: ",".join(names)}, lines


def list_ignored() -> tuple[str, ...]:
    """Return the names of variables that were set but are ignored."""
    return (KEY_LOG,) if KEY_LOG in _taken else ()


def _read_line() -> bytes:
    """Read exactly one line from standard input; the bytes after it are for other readers."""
    line = bytearray()
    while len(line) < _LONGEST and (piece := os.read(0, 1)) not in (b"", b"\n"):
        line += piece
    return bytes(line)
