"""Timed writes to a mounted folder, as a run makes them; for the speed test."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Final

from mydata_like.ssh.session import SmallFile
from mydata_like.transfer.folder_files import FolderFile, FolderFiles, open_files
from mydata_like.transfer.staging_folder import StagingFolder

_PIECE: Final = 2**20  # bytes that are written at once
_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o660


class FolderSpeed:
    """Writes test files below a folder and takes the time; nothing is removed.

    `write` does what was prepared, all of it at once. Only that is timed, not the making of content
    and of directories. Every method raises an `UploaderError`.
    """

    def __init__(self, folder: StagingFolder) -> None:
        self._folder = folder
        self._prepared: list[Callable[[], object]] = []

    def prepare_large(self, names: tuple[bytes, ...], size: int) -> None:
        """Open files with these paths below the folder, each to be written with `size` bytes."""
        with closing(open_files(self._folder)) as files:
            for name in names:
                path = self._folder.below(name)
                files.make_directories(path.rpartition(b"/")[0], _FOLDER_MODE)
                job = partial(_write_large, files.open_file(path), os.urandom(size))
                self._prepared.append(job)

    def prepare_tiny(self, names: tuple[bytes, ...], files: int, size: int) -> None:
        """Make these directories below the folder, each for `files` files of `size` bytes."""
        for name in names:
            directory = self._folder.below(name)
            opened = open_files(self._folder)
            opened.make_directories(directory, _FOLDER_MODE)
            tiny = [_describe(directory, number, size) for number in range(files)]
            self._prepared.append(partial(_write_tiny, opened, tiny))

    def write(self) -> float:
        """Write what was prepared; return the seconds until all of it is durable."""
        prepared, self._prepared = self._prepared, []
        with ThreadPoolExecutor(len(prepared)) as threads:
            began = time.perf_counter()
            for _ in threads.map(lambda job: job(), prepared):
                pass
            return time.perf_counter() - began

    def time_renames(self, name: bytes, count: int) -> tuple[float, ...]:
        """Write a file, and return the seconds of each of `count` renames after a first one."""
        path = self._folder.below(name)
        paths = (path, path + b"-renamed")
        seconds: list[float] = []
        with closing(open_files(self._folder)) as files:
            files.make_directories(path.rpartition(b"/")[0], _FOLDER_MODE)
            files.open_file(path).close()
            for turn in range(count + 1):
                began = time.perf_counter()
                files.replace(paths[turn % 2], paths[1 - turn % 2])
                seconds.append(time.perf_counter() - began)
        return tuple(seconds[1:])


def _write_large(file: FolderFile, content: bytes) -> None:
    try:
        for begin in range(0, len(content), _PIECE):
            file.write(memoryview(content)[begin : begin + _PIECE])
    finally:
        file.close()


def _write_tiny(files: FolderFiles, tiny: list[SmallFile]) -> None:
    with closing(files):
        for _, refusal in files.put_all(tiny):
            if refusal:
                raise refusal


def _describe(directory: bytes, number: int, size: int) -> SmallFile:
    path = b"%b/%d" % (directory, number)
    return SmallFile(path + b".part", path, os.urandom(size), _FILE_MODE, time.time())
