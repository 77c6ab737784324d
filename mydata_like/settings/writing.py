"""Replacing a file of ours at once, readable by its owner only."""

import contextlib
import os
import tempfile
from pathlib import Path

from mydata_like.core.errors import SettingsError


def write_private(path: Path, content: bytes) -> None:
    """Replace a file wholly or not at all, with mode 0600; makes its folder (0700).

    Raises SettingsError where the folder cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, content)
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be written: {error.strerror or error}.",
            hint="Check the rights to the folder and the free space of the disk.",
        ) from error


def _replace(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open folders and needs no such call
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
