"""The data directory itself, and the symbolic links below it that are followed."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from mydata_like.core.errors import Problem, RunError, SettingsError
from mydata_like.core.file_access import system_path
from mydata_like.core.formatting import format_path
from mydata_like.core.openat import OpenFolder, look

_SYMLINK = Problem(
    "skipped.symlink",
    "The settings exclude symbolic links of this kind.",
    "Change filters.symlinks to follow more links.",
)
_BROKEN_LINK = Problem(
    "skipped.symlink",
    "The symbolic link is broken.",
    "Fix or delete the link.",
)
Identity = tuple[int, int]  # device and inode

_SEPARATOR = os.fsencode(os.sep)


class Root:
    """The data directory or a source; it must stay the same and available during a scan."""

    def __init__(
        self,
        path: bytes | Path,
        unavailable: Callable[[bytes, str], RunError] | None = None,
        *,
        may_be_link: bool = True,
    ) -> None:
        """Open the folder; `unavailable` makes the error for a path and a reason if that fails.

        Its parent folders may be links; the folder itself only if `may_be_link` is set.
        """
        self._unavailable = unavailable or _data_unavailable
        self.path = os.fsencode(Path(os.fsdecode(path)).absolute())
        trusted = self.path if may_be_link else os.path.dirname(self.path)  # noqa: PTH120 - bytes
        self._top = len(trusted)
        self._identity = identity_of(self._status())
        self._real = os.path.realpath(self.path).rstrip(_SEPARATOR) + _SEPARATOR

    def check(self) -> None:
        """Raise an error if the folder is unavailable; its files may still exist."""
        if identity_of(self._status()) != self._identity:
            raise self.unavailable("another folder or drive has taken its place")

    def holds(self, real_path: bytes) -> bool:
        return real_path.startswith(self._real)

    def open(self, path: bytes) -> OpenFolder:
        """Open it or a folder below it.

        Raises OSError (ELOOP for a link in the path), and the errors of `check`.
        """
        listing = OpenFolder.open(path, self.top_of(path))
        if path == self.path and identity_of(listing.status) != self._identity:
            listing.close()
            raise self.unavailable("another folder or drive has taken its place")
        return listing

    def top_of(self, path: bytes) -> int:
        """Return the length of a path's trusted part, as in `core.openat`; 0 if outside."""
        if path == self.path or path.startswith(self.path.rstrip(_SEPARATOR) + _SEPARATOR):
            return self._top
        return len(self._real.rstrip(_SEPARATOR)) or 1 if self.holds(path) else 0

    def _status(self) -> os.stat_result:
        try:
            status = self._look()
        except OSError as error:
            raise self.unavailable(reason(error)) from error
        if not stat.S_ISDIR(status.st_mode):
            raise self.unavailable("it is not a folder")
        return status

    def _look(self) -> os.stat_result:
        path = system_path(self.path)
        return status_of(path) if self._top == len(self.path) else os.lstat(path)

    def unavailable(self, why: str) -> RunError:
        """Return the error for a folder that cannot be read."""
        return self._unavailable(self.path, why)


def _data_unavailable(path: bytes, why: str) -> RunError:
    return SettingsError(
        f"The data directory {format_path(path)} is not available: {why}.",
        hint="Check data.directory, and that its drive is connected.",
        code="data.unavailable",
    )


class Target(NamedTuple):
    """The target of a followed symbolic link."""

    path: bytes
    status: os.stat_result


class Links:
    """The policy for symbolic links."""

    def __init__(self, policy: Literal["skip", "files", "within", "all"], root: Root) -> None:
        self._policy = policy
        self._root = root

    def resolve(self, path: bytes) -> Target | Problem:
        """Return the target of a link that is to be followed, else why it is not."""
        if self._policy == "skip":
            return _SYMLINK
        try:
            real = os.path.realpath(path, strict=True)
            inside = self._root.holds(real)
            if self._policy == "within" and not inside:
                return _SYMLINK
            status = look(real, self._root.top_of(real)) if inside else status_of(real)
        except OSError:
            return _BROKEN_LINK
        if self._policy == "files" and stat.S_ISDIR(status.st_mode):
            return _SYMLINK
        return Target(real, status)


def status_of(path: bytes) -> os.stat_result:
    """Return the status of a path, following links; raises OSError."""
    return Path(os.fsdecode(path)).stat()


def identity_of(status: os.stat_result) -> Identity:
    """Return the identity of a file or folder, unique on this computer."""
    return status.st_dev, status.st_ino


def is_junction(entry: object) -> bool:
    """Return whether a folder is a Windows junction; only Python 3.12 and later can tell."""
    # Work-around: Python 3.11 cannot recognize a junction.
    # https://github.com/python/cpython/issues/99547. Remove when Python 3.12 is required.
    ask = getattr(entry, "is_junction", None)
    return ask is not None and bool(ask())


def reason(error: OSError) -> str:
    """Return the system's own text for an error."""
    return (error.strerror or str(error)).rstrip(".").lower()
