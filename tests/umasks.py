"""Work under another umask, and the modes of what it leaves."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Take these rights from all that is made meanwhile."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes_below(folder: Path) -> dict[str, str]:
    """Return kinds and rights of all below a folder, as `ls -l` shows them."""
    return {
        str(path.relative_to(folder)): stat.filemode(path.lstat().st_mode)
        for path in folder.rglob("*")
    }
