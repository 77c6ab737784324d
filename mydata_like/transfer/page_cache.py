"""Keeps our reads from filling the page cache of the system.

Other programs of the instrument need that memory more than we do: each byte is read once. So
the pages of a large file go as soon as they were read, unless somebody had them there before
us. Linux is advised page by page; macOS once for each open file; Windows by the flag
O_SEQUENTIAL with which all files are opened.
"""

import os
import sys
from contextlib import suppress
from typing import Final

if sys.platform == "darwin":
    import fcntl
elif sys.platform == "linux":
    import resource

LARGE: Final = 8 * 1024 * 1024  # smaller files leave too little to care about


class PageCacheTrail:
    """The pages of one open file behind the place up to which we have read it.

    To be made just before the first read: asking what is there already leaves traces.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._dropped = 0
        if size < LARGE:
            self._ours = False
            return
        self._ours = not _is_cached(descriptor, size)
        if sys.platform == "darwin":
            with suppress(OSError):  # it is advice: what is in memory already is used, and stays
                fcntl.fcntl(descriptor, fcntl.F_NOCACHE, 1)
        _advise(descriptor, 0, 0, "POSIX_FADV_SEQUENTIAL")

    def drop(self, position: int, *, end: bool) -> None:
        """Let go of what lies behind a position, now and then and at the end."""
        length = position - self._dropped
        if self._ours and (length >= LARGE or end):
            _advise(self._descriptor, self._dropped, length, "POSIX_FADV_DONTNEED")
            self._dropped = position


def count_fetched() -> int:
    """Return how many blocks a disk had to read for this thread so far; 0 where nobody counts."""
    if sys.platform == "linux":
        return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock
    return 0


def fetch(descriptor: int) -> None:
    """Have the system fetch a small file, without waiting for it."""
    _advise(descriptor, 0, 0, "POSIX_FADV_WILLNEED")


def _is_cached(descriptor: int, size: int) -> bool:
    """Return whether a file is in memory, as its begin, middle and end show.

    Asking for a page makes the system fetch it. Of a file that is not there, which is the
    common case, that is the begin, to be read next anyway: no disk has to seek for our question.
    """
    return all(_is_there(descriptor, offset) for offset in (0, size // 2, size - 1))


def _is_there(descriptor: int, offset: int) -> bool:
    """Return whether a byte can be read without waiting; False where the system cannot tell."""
    if sys.platform != "linux" or not hasattr(os, "RWF_NOWAIT"):  # Python built on an old system
        return False
    try:
        return os.preadv(descriptor, [bytearray(1)], offset, os.RWF_NOWAIT) == 1
    except OSError:  # BlockingIOError where it is not, others from file systems that do not know
        return False


def _advise(descriptor: int, offset: int, length: int, advice: str) -> None:
    """Tell the system how a file is read; nothing where it cannot be told, or does not listen."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, offset, length, getattr(os, advice))
