"""Another umask, and the modes of created files."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
