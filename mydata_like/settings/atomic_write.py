"""The program's own folders and files: private under any umask, and replaced atomically."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from mydata_like.core.errors import SettingsError
from mydata_like.core.parsing import LONGEST_FILE, parse_json

PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
_KINDS: Final[tuple[tuple[Callable[[int], bool], str], ...]] = (
    (stat.S_ISDIR, "folder"),
    (stat.S_ISFIFO, "named pipe"),
    (stat.S_ISSOCK, "socket"),
)


def make_private_folder(folder: Path) -> None:
    """Make a folder as `ensure_folder` does; raises SettingsError if it cannot be made."""
    try:
        ensure_folder(folder)
    except OSError as error:
        raise SettingsError(
            f"The folder {folder} cannot be created: {error.strerror or error}.",
            hint="Check the permissions of the parent folder.",
        ) from error


def ensure_folder(folder: Path) -> None:
    """Make a folder and its missing parents, each with mode 0700.

    An existing folder keeps its mode. Raises OSError if the folder cannot be made.
    """
    for missing in reversed([folder, *folder.parents]):
        if not missing.exists():
            missing.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is not a folder", str(folder))


def make_private_file(file: Path) -> None:
    """Make an empty file with mode 0600, or set that mode on an existing one.

    Its folder is made as well. Raises SettingsError if something other than a file has this path,
    OSError if the file cannot be made.
    """
    ensure_folder(file.parent)
    require_plain(file)
    file.touch(mode=PRIVATE_FILE)
    if os.name == "posix" and stat.S_IMODE(file.stat().st_mode) != PRIVATE_FILE:
        file.chmod(PRIVATE_FILE)


def require_plain(file: Path) -> None:
    """Raise SettingsError if a path is a named pipe, socket, device or folder.

    To open such a path could block forever. A link is followed.
    """
    try:
        mode = file.stat().st_mode
    except (OSError, ValueError):  # missing, or opening it reports the error
        return
    if stat.S_ISREG(mode):
        return
    kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "device")
    raise SettingsError(
        f"{file} is a {kind}, but the program needs a regular file.",
        hint="Move it away, or choose another place in the settings; then try again.",
        code="files.special",
    )


def read_plain(file: Path) -> bytes:
    """Return the content of a file; raises as `require_plain` and `open` do, and never blocks."""
    require_plain(file)
    return file.read_bytes()


def write_private(path: Path, content: bytes, mode: int = PRIVATE_FILE) -> None:
    """Replace a file atomically, with mode 0600 by default; makes its folder (0700).

    Raises SettingsError if the folder cannot be written, or if something other than a file has this
    path.
    """
    require_plain(path)
    try:
        ensure_folder(path.parent)
        _replace(path, content, mode)
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be written: {error.strerror or error}.",
            hint="Check the permissions of the folder and the free space of the disk.",
        ) from error


def _replace(path: Path, content: bytes, mode: int) -> None:
    import tempfile  # imported here: channel workers import this module without it

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if os.name == "posix" and mode != PRIVATE_FILE:
            Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a new name in it is durable."""
    if os.name == "nt":  # Windows cannot open folders, and does not need this
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def load_limited(path: Path, limit: int = LONGEST_FILE) -> bytes:
    """Return the content of a file of at most `limit` bytes.

    Raises as `require_plain` does, OSError if it cannot be read, ValueError if it is larger.
    """
    require_plain(path)
    with path.open("rb") as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it is larger than {limit} bytes")
    return content


def load_json(path: Path) -> Any:
    """Return the value of a small JSON file; raises as `load_limited` does."""
    return parse_json(load_limited(path))
