"""Safe deletion of local files: a file is held open, checked, and only then deleted."""

import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from mydata_like.core.deletion import CleanupCandidate
from mydata_like.core.errors import FileChangedError, Problem
from mydata_like.core.model import Entry
from mydata_like.hostos.file_to_delete import FileToDelete

if sys.platform == "win32":
    from mydata_like.hostos.safe_delete_windows import SafeDirectory
else:
    from mydata_like.hostos.safe_delete_posix import SafeDirectory

__all__ = ["SafeDirectories", "SafeDirectory"]

logger = logging.getLogger(__name__)

_ASIDE: Final = re.compile(r"\.mydata-like-[0-9a-f]{16}")
_MISSING: Final = Problem(
    "free.gone", "The folder of the file does not exist.", "Check that its drive is connected."
)


class SafeDirectories:
    """The data directory and all extra sources; each file belongs to one of them."""

    def __init__(self, directories: Sequence[SafeDirectory]) -> None:
        self._directories = sorted(directories, key=lambda one: len(one.prefix), reverse=True)

    def find(self, key: bytes) -> Iterator[CleanupCandidate]:
        """Yield a file, or all that is in a folder and below it."""
        directory = self._choose(key)
        return directory.find(key) if directory else iter([CleanupCandidate(key, 0, _MISSING)])

    @contextmanager
    def hold(self, entry: Entry) -> Iterator[FileToDelete]:
        """Open the file that a ledger entry describes; raises like `SafeDirectory.hold`."""
        directory = self._choose(entry.key)
        if directory is None:
            raise FileChangedError(_MISSING.message, hint=_MISSING.hint, code=_MISSING.code)
        with directory.hold(entry) as held:
            yield held

    def restore(self, key: bytes, aside: str) -> bool:
        """Restore the name of a file that a killed process had renamed; return whether it did."""
        directory = self._choose(key) if _ASIDE.fullmatch(aside) else None
        try:
            return directory is not None and directory.restore(key, aside.encode())
        except FileChangedError as error:
            logger.warning("%s, left by an earlier process, stays: %s", aside, error)
            return False

    def _choose(self, key: bytes) -> SafeDirectory | None:
        """Return the directory of a file; the empty key stands for the whole data directory.

        Only keys in the data directory are relative.
        """
        absolute = bool(key) and os.path.isabs(key + b"/")  # noqa: PTH117 - of bytes; a drive of Windows is `E:`
        fitting = (one for one in self._directories if (key + b"/").startswith(one.prefix))
        return next((one for one in fitting if bool(one.prefix) == absolute), None)
