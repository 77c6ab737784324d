"""Another umask, and the modes of files."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Set the umask during the context."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes_below(folder: Path) -> dict[str, str]:
    """Return the modes of all files below a folder in the format of `ls -l`."""
    return {
        str(path.relative_to(folder)): stat.filemode(path.lstat().st_mode)
        for path in folder.rglob("*")
    }


posix_modes = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")


def has_mode(path: Path, mode: int) -> bool:
    """Return whether a file has these permissions; on Windows they come from its folder."""
    return os.name == "nt" or stat.S_IMODE(path.stat().st_mode) == mode
