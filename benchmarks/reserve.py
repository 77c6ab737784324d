"""Reserved memory for the files that contestants write.

A virtual machine may return free memory to its host within seconds. It gets it back page by page,
more slowly than anything that is measured here.
"""

import os
from pathlib import Path
from threading import Event, Thread

from benchmarks.machine import is_in_memory

_PIECE = bytes(2**20)
_AT_HAND = 256 * 2**20  # bytes of recently used memory that are always free
_PACE = 0.005  # seconds between two checks


class Reserve:
    """A file in memory that shrinks as other files of its file system grow; a context manager.

    On a file system that is not in memory, it does nothing.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "reserve"
        self._is_wanted = is_in_memory(directory)
        self._ended = Event()
        self._thread: Thread | None = None

    def __enter__(self) -> "Reserve":
        return self

    def __exit__(self, *_: object) -> None:
        self._release()

    def renew(self, size: int) -> None:
        """Reserve `size` bytes, and leave `_AT_HAND` further bytes free."""
        self._release()
        if not self._is_wanted:
            return
        with self._path.open("wb") as file:
            for _ in range(0, size + _AT_HAND, len(_PIECE)):
                file.write(_PIECE)
        os.truncate(self._path, size)
        self._ended.clear()
        self._thread = Thread(target=self._shrink, args=(size,), name="reserve", daemon=True)
        self._thread.start()

    def _shrink(self, size: int) -> None:
        """Shrink by the bytes that other files take, until nothing is left.

        Memory that others free is not reserved again.
        """
        before = self._find_used()
        while size and not self._ended.wait(_PACE):
            taken = min(size, max(0, self._find_used() - before))
            if taken:
                size -= taken
                os.truncate(self._path, size)
            before = self._find_used()

    def _find_used(self) -> int:
        """Return the bytes in use on the reserve's file system."""
        found = os.statvfs(self._path)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def _release(self) -> None:
        if self._thread:
            self._ended.set()
            self._thread.join()
            self._thread = None
        self._path.unlink(missing_ok=True)
