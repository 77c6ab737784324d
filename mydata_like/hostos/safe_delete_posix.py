"""Safe deletion where folders can be held open: Linux and macOS.

A file is renamed before it is deleted, so that a file that another program has put in its place at
that moment is noticed and restored.
"""

import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, Self

from mydata_like.core.deletion import CleanupCandidate
from mydata_like.core.errors import FileChangedError
from mydata_like.core.model import Entry
from mydata_like.core.openat import FOLDER, NO_LINK, open_at
from mydata_like.hostos.file_to_delete import (
    FileToDelete,
    Stamp,
    candidate,
    directory_opened,
    errors_translated,
)
from mydata_like.hostos.open_files import READ_ONLY, FileUse, WriteGuard

_ASIDE: Final = b".mydata-like-"  # begins the name of a file to delete; runs skip it
_OPEN_DELAY: Final = 0.001  # seconds in which a program may open a file that it has looked up


class _FileInFolder(FileToDelete):
    """A file and its folder, which stays open."""

    def __init__(self, folder: int, entry: Entry, descriptor: int) -> None:
        super().__init__(entry, descriptor)
        self._folder = folder
        self._name = entry.key.rpartition(b"/")[2]
        self.aside = (_ASIDE + secrets.token_hex(8).encode()).decode()

    def check_unused(self) -> None:
        with WriteGuard(self.descriptor) as guard:
            self._check_use(guard)

    def delete(self, confirm: Callable[[], None]) -> None:
        """Delete exactly this file; raises `FileChangedError` if it has changed.

        From before the last check until the deletion, other programs cannot open it for writing.
        If one is waiting to do so, the file is restored under its name.
        """
        with WriteGuard(self.descriptor) as guard:
            self._check_use(guard)
            self.check_unchanged(self.find_named())
            aside = self.aside.encode()
            with errors_translated(self.entry.key):
                os.rename(self._name, aside, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            try:
                confirm()
                self._check_aside(aside, guard)
                with errors_translated(self.entry.key):
                    os.unlink(aside, dir_fd=self._folder)
            except BaseException:
                if not _restore(self._folder, aside, self._name, self.entry.key):
                    name = aside.decode()
                    how = f"was replaced twice by another program; the first is now named {name}"
                    raise self.changed("free.aside", how) from None
                raise

    def _check_use(self, guard: WriteGuard) -> None:
        use = guard.find_use()
        if use is FileUse.OPEN:
            raise self.changed("free.open", "is open in a program that may write to it")
        if use is FileUse.LOCKED:
            raise self.changed("free.open", "is locked by a program that may write to it")
        if use is FileUse.UNKNOWN:
            raise self.changed(
                "free.other-account",
                "belongs to another account, so the system does not say whether a program is "
                "writing to it",
                "The file was kept. Free space as the account that owns it, or as administrator.",
            )

    def _check_aside(self, aside: bytes, guard: WriteGuard) -> None:
        """Check that the renamed file is ours, and that no program has changed or opened it.

        A program that looked up the old name may be about to open the file, so wait a moment
        for it.
        """
        first = self._find_states(aside)
        same = all(Stamp.of(state) == self.stamp for state in first)
        if not same or first[0].st_ctime_ns != first[1].st_ctime_ns:
            raise self.changed("free.changed", "was replaced or changed by another program")
        self._check_use(guard)
        time.sleep(_OPEN_DELAY)
        self._check_use(guard)
        for before, after in zip(first, self._find_states(aside), strict=True):
            if (Stamp.of(before), before.st_ctime_ns) != (Stamp.of(after), after.st_ctime_ns):
                raise self.changed("free.changed", "was changed by another program")

    def _find_states(self, name: bytes) -> tuple[os.stat_result, os.stat_result]:
        """Return the state of the open file, and of the file with this name now."""
        with errors_translated(self.entry.key):
            named = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
            return os.fstat(self.descriptor), named

    def find_named(self) -> os.stat_result:
        with errors_translated(self.entry.key):
            return os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)


def _restore(folder: int, aside: bytes, name: bytes, key: bytes) -> bool:
    """Restore the name of a renamed file; return false if another file has the name by now."""
    here = {"src_dir_fd": folder, "dst_dir_fd": folder}
    try:
        found = os.stat(aside, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            os.rename(aside, name, **here)
            return True
        os.link(aside, name, **here, follow_symlinks=False)
        os.unlink(aside, dir_fd=folder)
    except FileExistsError:
        return False
    except OSError:  # the file system has no hard links
        if _is_taken(folder, name):
            return False
        with errors_translated(key):
            os.rename(aside, name, **here)
    return True


def _is_taken(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


class SafeDirectory:
    """A data directory, held open so that renaming it makes no difference.

    For an extra source, `prefix` is the beginning of the keys of its files.
    """

    def __init__(self, path: bytes, prefix: bytes = b"") -> None:
        self.prefix = prefix
        with directory_opened(path):
            self._top = os.open(path, FOLDER & ~NO_LINK)

    def find(self, key: bytes) -> Iterator[CleanupCandidate]:
        """Yield a file, or all files in and below a folder; for our own key, all files."""
        local = key.removeprefix(self.prefix) if key != self.prefix.rstrip(b"/") else b""
        folder, _, name = local.rpartition(b"/")
        try:
            with self._folder(folder) as above:
                for found in _find_below(above, name, folder) if name else _walk(above, b""):
                    yield found._replace(key=self.prefix + found.key)
        except FileChangedError as error:
            yield CleanupCandidate(key, 0, error.problem)

    @contextmanager
    def hold(self, entry: Entry) -> Iterator[FileToDelete]:
        """Open the file that a ledger entry describes.

        Raises `FileChangedError` if it is another file, or a link.
        """
        folder, _, name = entry.key.removeprefix(self.prefix).rpartition(b"/")
        with ExitStack() as stack:
            above = stack.enter_context(self._folder(folder))
            with errors_translated(entry.key):
                descriptor = os.open(name, READ_ONLY, dir_fd=above)
            stack.callback(os.close, descriptor)
            yield _FileInFolder(above, entry, descriptor)

    def restore(self, key: bytes, aside: bytes) -> bool:
        """Restore the name of a file that a killed process had renamed; return whether it did."""
        folder, _, name = key.removeprefix(self.prefix).rpartition(b"/")
        with self._folder(folder) as above:
            return _is_taken(above, aside) and _restore(above, aside, name, key)

    def close(self) -> None:
        os.close(self._top)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _folder(self, key: bytes) -> Iterator[int]:
        """Open a folder, from the top down; raises `FileChangedError` for a link on its path."""
        with ExitStack() as stack:
            here = self._top
            for part in filter(None, key.split(b"/")):
                with errors_translated(key):
                    here = open_at(here, part, FOLDER)
                stack.callback(os.close, here)
            yield here


def _find_below(above: int, name: bytes, folder: bytes) -> Iterator[CleanupCandidate]:
    """Yield a file in an open folder, or all files in one of its folders."""
    key = folder + b"/" + name if folder else name
    with errors_translated(key):
        status = os.stat(name, dir_fd=above, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        with errors_translated(key):
            below = open_at(above, name, FOLDER)
        try:
            yield from _walk(below, key)
        finally:
            os.close(below)
    else:
        yield candidate(key, status)


def _walk(folder: int, key: bytes) -> Iterator[CleanupCandidate]:
    """Yield the files in and below an open folder, sorted by name.

    The names of one folder are held in memory, since files are deleted during the iteration.
    """
    with errors_translated(key):
        names = sorted(map(os.fsencode, os.listdir(folder)))
    for name in names:
        try:
            yield from _find_below(folder, name, key)
        except FileChangedError as error:
            yield CleanupCandidate(key + b"/" + name if key else name, 0, error.problem)
