"""Timed writes to a mounted folder, as a run makes them; for the speed test."""

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

from mydata_like.transfer.folder.folder_files import FolderFiles, open_files
from mydata_like.transfer.folder.staging_folder import StagingFolder

_PIECE: Final = 2**20  # bytes that are written at once
_MODE: Final = 0o700


def write_large(folder: StagingFolder, name: bytes, size: int) -> float:
    """Write a file of random bytes; return the seconds until it is durable."""
    content = memoryview(os.urandom(size))
    with _opened(folder, name) as files:
        file = files.open_file(folder.below(name))
        began = time.perf_counter()
        try:
            for begin in range(0, size, _PIECE):
                file.write(content[begin : begin + _PIECE])
        finally:
            file.close()
        return time.perf_counter() - began


def time_renames(folder: StagingFolder, name: bytes, count: int) -> tuple[float, ...]:
    """Write a file, and return the seconds of each of `count` renames after a first one."""
    path = folder.below(name)
    paths = (path, path + b"-renamed")
    seconds: list[float] = []
    with _opened(folder, name) as files:
        files.open_file(path).close()
        for turn in range(count + 1):
            began = time.perf_counter()
            files.replace(paths[turn % 2], paths[1 - turn % 2])
            seconds.append(time.perf_counter() - began)
    return tuple(seconds[1:])


@contextmanager
def _opened(folder: StagingFolder, name: bytes) -> Iterator[FolderFiles]:
    """Yield the folder, in which the directory of `name` exists."""
    with closing(open_files(folder)) as files:
        files.make_directories(folder.below(name).rpartition(b"/")[0], _MODE)
        yield files
