"""The data directory itself, and which symbolic links below it are followed."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from mydata_like.core.errors import Problem, RunError, SettingsError
from mydata_like.core.formatting import format_path
from mydata_like.core.openat import OpenFolder, look

_SYMLINK = Problem(
    "skipped.symlink",
    "Symbolic links of this kind are not followed.",
    "Change filters.symlinks to follow more of them.",
)
_BROKEN_LINK = Problem(
    "skipped.symlink",
    "The symbolic link leads nowhere.",
    "Mend or delete the link.",
)
Identity = tuple[int, int]  # device and inode

_SEPARATOR = os.fsencode(os.sep)


class Root:
    """The data directory or a source, the same and reachable for as long as a scan lasts."""

    def __init__(
        self,
        path: bytes | Path,
        unavailable: Callable[[bytes, str], RunError] | None = None,
        *,
        may_be_link: bool = True,
    ) -> None:
        """`unavailable` makes the error of one that cannot be read, told why.

        The folders that lead to it may be links, and it may be one itself unless that is refused.
        """
        self._unavailable = unavailable or _data_unavailable
        self.path = os.fsencode(Path(os.fsdecode(path)).absolute())
        trusted = self.path if may_be_link else os.path.dirname(self.path)  # noqa: PTH120 - bytes
        self._top = len(trusted)
        self._identity = identity_of(self._status())
        self._real = os.path.realpath(self.path).rstrip(_SEPARATOR) + _SEPARATOR

    def check(self) -> None:
        """Raise where the folder has gone: its files have not."""
        if identity_of(self._status()) != self._identity:
            raise self.unavailable("another folder or drive has taken its place")

    def holds(self, real_path: bytes) -> bool:
        return real_path.startswith(self._real)

    def open(self, path: bytes) -> OpenFolder:
        """Open it or a folder below it.

        Raises OSError, ELOOP for a link on the way, and what `check` raises.
        """
        listing = OpenFolder.open(path, self.top_of(path))
        if path == self.path and identity_of(listing.status) != self._identity:
            listing.close()
            raise self.unavailable("another folder or drive has taken its place")
        return listing

    def top_of(self, path: bytes) -> int:
        """Return how much of a path is trusted as `core.openat` says: 0 where it lies elsewhere."""
        if path == self.path or path.startswith(self.path.rstrip(_SEPARATOR) + _SEPARATOR):
            return self._top
        return len(self._real.rstrip(_SEPARATOR)) or 1 if self.holds(path) else 0

    def _status(self) -> os.stat_result:
        try:
            status = self._look()
        except OSError as error:
            raise self.unavailable(reason(error)) from error
        if not stat.S_ISDIR(status.st_mode):
            raise self.unavailable("it is no folder")
        return status

    def _look(self) -> os.stat_result:
        return status_of(self.path) if self._top == len(self.path) else os.lstat(self.path)

    def unavailable(self, why: str) -> RunError:
        """Return the error of a folder that cannot be read."""
        return self._unavailable(self.path, why)


def _data_unavailable(path: bytes, why: str) -> RunError:
    return SettingsError(
        f"The data directory {format_path(path)} is not available: {why}.",
        hint="Check data.directory, and that its drive is connected.",
        code="data.unavailable",
    )


class Target(NamedTuple):
    """What a followed symbolic link leads to."""

    path: bytes
    status: os.stat_result


class Links:
    """The policy for symbolic links."""

    def __init__(self, policy: Literal["skip", "files", "within"], root: Root) -> None:
        self._policy = policy
        self._root = root

    def resolve(self, path: bytes) -> Target | Problem:
        """Return what a link leads to where it is to be followed, else why it is not."""
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
    """Return what the system says about a path, links followed; raises OSError."""
    return Path(os.fsdecode(path)).stat()


def identity_of(status: os.stat_result) -> Identity:
    """Return what tells a file or folder from all others of this computer."""
    return status.st_dev, status.st_ino


def is_junction(entry: os.DirEntry[str] | os.DirEntry[bytes]) -> bool:
    """Return whether a folder is one of Windows' junctions, which Python 3.12 can tell."""
    ask = getattr(entry, "is_junction", None)
    return ask is not None and bool(ask())


def reason(error: OSError) -> str:
    """Return the system's own words for what went wrong."""
    return (error.strerror or str(error)).rstrip(".").lower()
