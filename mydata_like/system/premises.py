"""The data directory as a place where files may be deleted: exactly those that were looked at.

Every folder on the way is opened from the one above it and no link is followed, so nothing that
is renamed or replaced meanwhile leads elsewhere.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, Self

from mydata_like.core.deletion import CleanupCandidate
from mydata_like.core.errors import FileChangedError, Problem, RunError, SettingsError
from mydata_like.core.formatting import format_path
from mydata_like.core.model import Entry
from mydata_like.core.openat import FOLDER, NO_LINK, open_at
from mydata_like.system.held import LINK, HeldFile, told

_FILE: Final = os.O_RDONLY | NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_AWAY = Problem(
    "free.gone", "The folder that the file was in is away.", "Check that its drive is connected."
)
_SPECIAL = Problem(
    "free.special", "This is no regular file.", "Only regular files are uploaded, and deleted."
)


class Premises:
    """A data directory, held open: what it is called meanwhile does not matter.

    Of a folder that is another source, `prefix` is what the keys of its files begin with.
    """

    def __init__(self, path: bytes, prefix: bytes = b"") -> None:
        if not NO_LINK or os.unlink not in os.supports_dir_fd:
            raise RunError(
                "This system offers no way to delete a file of which one can be sure.",
                hint="Delete files by hand; `mydata-like where` tells which are safe.",
                code="free.unsupported",
            )
        self.prefix = prefix
        try:
            self._top = os.open(path, FOLDER & ~NO_LINK)
        except OSError as error:
            raise SettingsError(
                f"The data directory {format_path(path)} is not available: {error.strerror}.",
                hint="Check data.directory, and that its drive is connected.",
                code="data.unavailable",
            ) from error

    def find(self, key: bytes) -> Iterator[CleanupCandidate]:
        """Yield a file, or all that is in a folder and below it; all there is for its own key."""
        local = key.removeprefix(self.prefix) if key != self.prefix.rstrip(b"/") else b""
        folder, _, name = local.rpartition(b"/")
        try:
            with self._folder(folder) as above:
                for found in _look(above, name, folder) if name else _walk(above, b""):
                    yield found._replace(key=self.prefix + found.key)
        except FileChangedError as error:
            yield CleanupCandidate(key, 0, error.problem)

    @contextmanager
    def hold(self, entry: Entry) -> Iterator[HeldFile]:
        """Open the file that a row of the ledger speaks of.

        Raises `FileChangedError` where it is another one, or a link.
        """
        folder, _, name = entry.key.removeprefix(self.prefix).rpartition(b"/")
        with ExitStack() as stack:
            above = stack.enter_context(self._folder(folder))
            with told(entry.key):
                descriptor = os.open(name, _FILE, dir_fd=above)
            stack.callback(os.close, descriptor)
            yield HeldFile(above, entry, descriptor)

    def close(self) -> None:
        os.close(self._top)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _folder(self, key: bytes) -> Iterator[int]:
        """Open a folder, from the top down; raises `FileChangedError` for a link on the way."""
        with ExitStack() as stack:
            here = self._top
            for part in filter(None, key.split(b"/")):
                with told(key):
                    here = open_at(here, part, FOLDER)
                stack.callback(os.close, here)
            yield here


class Grounds:
    """The data directory and all other sources; each file belongs to one of them."""

    def __init__(self, premises: Sequence[Premises]) -> None:
        self._premises = sorted(premises, key=lambda one: len(one.prefix), reverse=True)

    def find(self, key: bytes) -> Iterator[CleanupCandidate]:
        """Yield a file, or all that is in a folder and below it."""
        premises = self._choose(key)
        return premises.find(key) if premises else iter([CleanupCandidate(key, 0, _AWAY)])

    @contextmanager
    def hold(self, entry: Entry) -> Iterator[HeldFile]:
        """Open the file that a row of the ledger speaks of; raises as `Premises.hold`."""
        premises = self._choose(entry.key)
        if premises is None:
            raise FileChangedError(_AWAY.message, hint=_AWAY.hint, code=_AWAY.code)
        with premises.hold(entry) as held:
            yield held

    def _choose(self, key: bytes) -> Premises | None:
        """Return whose file it is; keys of the data directory are relative, all others not."""
        absolute = key.startswith(b"/")
        fitting = (one for one in self._premises if (key + b"/").startswith(one.prefix))
        return next((one for one in fitting if bool(one.prefix) == absolute), None)


def _look(above: int, name: bytes, folder: bytes) -> Iterator[CleanupCandidate]:
    """Yield a file of an open folder, or all that is in a folder of it."""
    key = folder + b"/" + name if folder else name
    with told(key):
        status = os.stat(name, dir_fd=above, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        with told(key):
            below = open_at(above, name, FOLDER)
        try:
            yield from _walk(below, key)
        finally:
            os.close(below)
    elif stat.S_ISREG(status.st_mode):
        yield CleanupCandidate(key, status.st_size)
    else:
        yield CleanupCandidate(key, 0, LINK if stat.S_ISLNK(status.st_mode) else _SPECIAL)


def _walk(folder: int, key: bytes) -> Iterator[CleanupCandidate]:
    """Yield what is in an open folder and below it, in the order of the names.

    The names of one folder are held in memory: files are deleted while we go through them.
    """
    with told(key):
        names = sorted(map(os.fsencode, os.listdir(folder)))
    for name in names:
        try:
            yield from _look(folder, name, key)
        except FileChangedError as error:
            yield CleanupCandidate(key + b"/" + name if key else name, 0, error.problem)
