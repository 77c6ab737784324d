"""Reads small files completely, and ahead of their turn."""

import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import repeat
from typing import Final, NamedTuple

from mydata_like.core.errors import FileChangedError
from mydata_like.core.openat import FolderCache
from mydata_like.transfer import page_cache
from mydata_like.transfer.file_source import Seen, changed, check_unchanged, open_seen, translated

TINY: Final = 64 * 1024  # read_tiny's callers keep whole files of up to this size

_TOGETHER: Final = 32  # tiny files that are open at once, at most


class PrefetchedFile(NamedTuple):
    """A tiny file that was opened in advance; the caller closes it."""

    descriptor: int
    before: os.stat_result
    started: int


def fetch_ahead(
    files: Sequence[Seen],
    folders: FolderCache,
    count_fetched: Callable[[], int] = page_cache.count_fetched,
) -> Generator[PrefetchedFile | None, None, None]:
    """Yield for each file what `read_tiny` may want of it: None where it opens the file itself.

    Where the first of some files came from a disk, the others are fetched together, which
    takes a fraction of the waiting, even for a disk without moving parts.
    """
    for begin in range(0, len(files), _TOGETHER):
        before = count_fetched()
        yield None
        waited = count_fetched() > before
        others = files[begin + 1 : begin + _TOGETHER]
        yield from _fetch_all(others, folders) if waited else repeat(None, len(others))


def _fetch_all(files: Sequence[Seen], folders: FolderCache) -> Iterator[PrefetchedFile | None]:
    fetched = deque(_fetch(seen, folders) for seen in files)
    try:
        while fetched:
            yield fetched.popleft()
    finally:
        for left in filter(None, fetched):
            os.close(left.descriptor)


def _fetch(seen: Seen, folders: FolderCache) -> PrefetchedFile | None:
    """Open a tiny file that can be opened, and have the system fetch it."""
    if seen.size > TINY:
        return None
    started = time.time_ns()
    try:
        descriptor, before = open_seen(seen, folders)
    except FileChangedError:  # to be found out at its turn
        return None
    page_cache.fetch(descriptor)
    return PrefetchedFile(descriptor, before, started)


def read_tiny(
    seen: Seen,
    folders: FolderCache,
    fetched: PrefetchedFile | None = None,
    read: Callable[[int, int], bytes] = os.read,
) -> tuple[bytes, str]:
    """Return the bytes and the checksum of a small file, with all the care of a `Source`.

    `read` reads from a descriptor, as the system does: at most so many bytes, none at the end.
    """
    if fetched:
        descriptor, before, started = fetched
    else:
        started = time.time_ns()
        descriptor, before = open_seen(seen, folders)
    try:
        content = read(descriptor, seen.size + 1)
        if len(content) < seen.size:
            content = _read_on(descriptor, seen.size, content, read)
        after = os.fstat(descriptor)
    except OSError as error:
        raise translated(seen.path, error) from error
    finally:
        os.close(descriptor)
    if len(content) != seen.size:
        raise changed(seen.path)
    check_unchanged(seen.path, before, after, started)
    return content, hashlib.md5(content, usedforsecurity=False).hexdigest()


def _read_on(
    descriptor: int, size: int, content: bytes, read: Callable[[int, int], bytes]
) -> bytes:
    """Return all of a file of which a part came: the next read tells why it was only a part.

    Before a bad sector the system gives what it could read, and the error afterwards.
    """
    while len(content) < size and (more := read(descriptor, size + 1 - len(content))):
        content += more
    return content
