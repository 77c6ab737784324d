"""SFTP without a server: its operations on local files, for systems without a POSIX shell."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mydata_like.core.errors import RejectedError
from mydata_like.ssh.session import RemoteEntry, SmallFile


@contextmanager
def refusals() -> Iterator[None]:
    """Raise what the file system refuses as a server does."""
    try:
        yield
    except OSError as error:
        raise RejectedError(str(error), code="staging.denied") from error


class LocalFile:
    """A local file that is written; `allow` returns how much of a write arrives."""

    def __init__(self, path: Path, allow: Callable[[int], int], *, keep: bool) -> None:
        self._allow = allow
        with refusals():
            self._file = path.open("r+b" if keep and path.exists() else "wb")

    def move_to(self, offset: int) -> None:
        self._file.seek(offset)

    def write(self, data: bytes | memoryview) -> None:
        self._allow(len(data))
        self._file.write(data)

    def close(self) -> None:
        self._file.close()


class LocalSftp:
    """Performs each operation at once, on local files."""

    round_trip = 0.0

    def __init__(self, allow: Callable[[int], int]) -> None:
        self._allow = allow

    def put_all(self, puts: Iterable[SmallFile]) -> Iterator[tuple[int, RejectedError | None]]:
        for index, put in enumerate(puts):
            self._allow(len(put.content))
            path(put.part).write_bytes(put.content)
            self.set_attributes(put.part, mode=put.mode, modified=put.modified)
            self.replace(put.part, put.target)
            yield index, None

    def open_file(self, name: bytes, *, keep: bool = False) -> LocalFile:
        return LocalFile(path(name), self._allow, keep=keep)

    def read_file(self, name: bytes) -> bytes:
        return path(name).read_bytes() if path(name).exists() else b""

    def make_directories(self, name: bytes, mode: int) -> None:
        with refusals():
            path(name).mkdir(mode, parents=True, exist_ok=True)

    def find_size(self, name: bytes) -> int | None:
        return path(name).stat().st_size if path(name).exists() else None

    def find_modified(self, name: bytes) -> int:
        return int(path(name).stat().st_mtime)

    def find_free(self, name: bytes) -> int | None:
        return None

    def list_files(self, name: bytes) -> list[RemoteEntry]:
        files = [each for each in path(name).iterdir() if each.is_file()]
        return [
            RemoteEntry(os.fsencode(each.name), each.stat().st_size, int(each.stat().st_mtime))
            for each in files
        ]

    def replace(self, source: bytes, target: bytes) -> None:
        with refusals():
            path(source).replace(path(target))

    def link(self, source: bytes, target: bytes) -> bool:
        path(target).hardlink_to(path(source))
        return True

    def set_attributes(self, name: bytes, *, mode: int, modified: float) -> None:
        path(name).chmod(mode)
        os.utime(path(name), (modified, modified))

    def remove(self, name: bytes) -> None:
        path(name).unlink(missing_ok=True)

    def remove_directory(self, name: bytes) -> None:
        path(name).rmdir()

    def close(self) -> None: ...


def path(name: bytes) -> Path:
    return Path(os.fsdecode(name))
