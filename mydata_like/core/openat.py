"""Opens files and folders below a trusted folder; no link on the way is followed.

Each folder is opened from the one above it (`openat` with `O_NOFOLLOW`, POSIX 2008), so nothing
that is renamed or replaced meanwhile leads elsewhere. Windows has no such call: a path is opened
there, and then refused if a link or a junction lies on it, or if it leads to something else by now.

A path is trusted up to its first `top` bytes: links in them are followed, since the user named
them. With 0 all of it is trusted but its last name.
"""

import errno
import os
import stat
from collections.abc import Iterator
from typing import Final, Self

NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
FOLDER: Final = (
    os.O_RDONLY | NO_LINK | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
)  # to be listed

# To be passed: Linux asks for no permission to list it then.
_WAY: Final = FOLDER | getattr(os, "O_PATH", 0)
_SEPARATOR: Final = os.fsencode(os.sep)
_BY_DESCRIPTOR: Final = (
    NO_LINK > 0
    and hasattr(os, "O_DIRECTORY")
    and {os.open, os.stat} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
)


class FolderCache:
    """Opens files; keeps the folders open that led to the last one, for those that follow."""

    def __init__(self, *, by_descriptor: bool = _BY_DESCRIPTOR) -> None:
        self._by_descriptor = by_descriptor
        self._folder: tuple[bytes, int] | None = None
        self._base = b""  # of the folder, what is trusted,
        self._names: list[bytes] = []  # what is not,
        self._chain: list[int] = []  # and the descriptors of all of it

    def open(self, path: bytes, top: int, flags: int) -> int:
        """Return a descriptor of what lies at a path; raises OSError, ELOOP for any link."""
        if not self._by_descriptor:
            return _open_by_path(path, top, flags)
        if len(path) <= top:
            return os.open(path, flags & ~NO_LINK)
        folder, _, name = path.rpartition(_SEPARATOR)
        if (folder, top) != self._folder:
            self._enter(folder, top)
        return open_at(self._chain[-1], name, flags)

    def close(self) -> None:
        """Let go of all folders; the next file is found all the same."""
        self._folder = None
        while self._chain:
            os.close(self._chain.pop())
        self._names.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enter(self, folder: bytes, top: int) -> None:
        base = folder[:top] if top else folder
        names = [name for name in folder[top:].split(_SEPARATOR) if name] if top else []
        if base != self._base or not self._chain:
            self.close()
            self._chain.append(os.open(base or _SEPARATOR, _WAY & ~NO_LINK))
            self._base = base
        self._folder = None
        while self._names != names[: len(self._names)]:
            self._names.pop()
            os.close(self._chain.pop())
        for name in names[len(self._names) :]:
            self._chain.append(open_at(self._chain[-1], name, _WAY))
            self._names.append(name)
        self._folder = folder, top


class OpenFolder:
    """An open folder: what is in it, and the way to what lies below.

    `status` is that of the folder. Raises OSError, ELOOP for any link on the way. Names may be
    text: `os.fsencode` has them as the bytes they are.
    """

    __slots__ = ("_descriptor", "close_entries", "entries", "path", "status", "top")

    def __init__(self, path: bytes, top: int, descriptor: int | None) -> None:
        """Take over a descriptor; without one the folder is opened by its path."""
        self.path = path
        self.top = top
        self._descriptor = descriptor
        self.entries: Iterator[os.DirEntry[str] | os.DirEntry[bytes]]
        try:
            if descriptor is None:
                by_path = os.scandir(path)
                self.entries, self.close_entries = by_path, by_path.close
                self.status = check_path(path, top)
            else:
                self.status = os.fstat(descriptor)
                opened = os.scandir(descriptor)
                self.entries, self.close_entries = opened, opened.close
        except OSError:
            self.close()
            raise

    @classmethod
    def open(cls, path: bytes, top: int, *, by_descriptor: bool = _BY_DESCRIPTOR) -> Self:
        """Open a folder by its path."""
        if not by_descriptor:
            return cls(path, top, None)
        with FolderCache() as folders:
            return cls(path, top, folders.open(path, top, FOLDER))

    def open_below(self, name: bytes) -> Self:
        """Open a folder that is in this one."""
        path = join(self.path, name)
        if self._descriptor is None:
            return type(self)(path, self.top, None)
        return type(self)(path, self.top, open_at(self._descriptor, name, FOLDER))

    def close(self) -> None:
        if hasattr(self, "close_entries"):
            self.close_entries()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def look(path: bytes, top: int) -> os.stat_result:
    """Return what the system says of what lies at a path, be it a link; raises OSError."""
    if not _BY_DESCRIPTOR:
        return check_path(path, top, last=False)
    folder, _, name = path.rpartition(_SEPARATOR)
    with FolderCache() as folders:
        above = folders.open(folder or _SEPARATOR, top or len(folder) or 1, _WAY)
    try:
        return os.stat(name, dir_fd=above, follow_symlinks=False)
    finally:
        os.close(above)


def open_at(folder: int, name: bytes, flags: int) -> int:
    """Open what has a name in an open folder; raises OSError, ELOOP for a link."""
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        # A link in the place of a folder is called "no folder".
        if error.errno == errno.ENOTDIR and _is_link_at(folder, name):
            raise _link() from error
        raise


def check_path(path: bytes, top: int, *, last: bool = True) -> os.stat_result:
    """Return the status of what lies at a path; raises OSError, ELOOP for a link below `top`.

    Without `last` it may be a link itself.
    """
    names = path[top:].split(_SEPARATOR) if top else path.rsplit(_SEPARATOR, 1)[1:]
    place = path[: len(path) - len(_SEPARATOR.join(names))]
    for number, name in enumerate(names, start=1):
        place = join(place, name)
        if (last or number < len(names)) and name and is_link(os.lstat(place)):
            raise _link()
    return os.lstat(path) if len(path) > top else os.stat(path)  # noqa: PTH116 - bytes


def is_link(status: os.stat_result) -> bool:
    """Return whether this, by its own status, is a link or one of Windows' junctions."""
    tag = getattr(status, "st_reparse_tag", 0)
    return stat.S_ISLNK(status.st_mode) or tag == getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1)


def join(folder: bytes, name: bytes) -> bytes:
    """Return the path of what has a name in a folder."""
    return folder + name if folder.endswith(_SEPARATOR) else folder + _SEPARATOR + name


def _open_by_path(path: bytes, top: int, flags: int) -> int:
    """Open a path, then see that it leads there without links; while it is open, none may move."""
    descriptor = os.open(path, flags)
    try:
        there, opened = check_path(path, top), os.fstat(descriptor)
        if there.st_ino and opened.st_ino and not os.path.samestat(there, opened):
            raise _link()
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_link_at(folder: int, name: bytes) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _link() -> OSError:
    return OSError(errno.ELOOP, "A symbolic link has taken the place of a folder")
