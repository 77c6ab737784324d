"""Opening files and folders below a trusted folder without following links.

Each folder is opened relative to the one above it (`openat` with `O_NOFOLLOW`, POSIX 2008), so that
a path renamed or replaced in the meantime cannot lead elsewhere. Windows has no such call: there, a
path is opened, and refused if it contains a link or a junction, or if it now leads to another file.

The first `top` bytes of a path are trusted: links in them are followed, because the user named
them. If `top` is 0, everything but the last name is trusted.

On Windows, names may have any length and form, and open files may be renamed and deleted.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Self

from mydata_like.core.file_access import open_shared, system_path
from mydata_like.core.folder_entries import Entries, EntryReader, FolderEntries

NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
FOLDER: Final = (
    os.O_RDONLY | NO_LINK | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
)  # for listing

# For traversal only: Linux then needs no permission to list it.
_WAY: Final = FOLDER | getattr(os, "O_PATH", 0)
_SEPARATOR: Final = os.fsencode(os.sep)
BY_DESCRIPTOR: Final = (
    NO_LINK > 0
    and hasattr(os, "O_DIRECTORY")
    and {os.open, os.stat} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
)


class FolderCache:
    """Opens files; keeps the folders of the last file open for the files that follow."""

    def __init__(self, *, by_descriptor: bool = BY_DESCRIPTOR) -> None:
        self._by_descriptor = by_descriptor
        self._folder: tuple[bytes, int] | None = None
        self._base = b""  # the trusted part of the folder,
        self._names: list[bytes] = []  # the names below it,
        self._chain: list[int] = []  # and the descriptors of all of them

    def open(self, path: bytes, top: int, flags: int) -> int:
        """Return a descriptor of a path; raises OSError, with ELOOP for any link."""
        if not self._by_descriptor:
            return _open_by_path(path, top, flags)
        if len(path) <= top:
            return os.open(path, flags & ~NO_LINK)
        folder, _, name = path.rpartition(_SEPARATOR)
        if (folder, top) != self._folder:
            self._enter(folder, top)
        return open_at(self._chain[-1], name, flags)

    def enter(self, folder: bytes, top: int) -> int | None:
        """Return the descriptor of a folder for `dir_fd` parameters, valid until the next call.

        On Windows, the path is only checked, and None is returned. Raises OSError, with ELOOP for
        any link.
        """
        if not self._by_descriptor:
            check_path(folder, top)
            return None
        if (folder, top) != self._folder:
            self._enter(folder, top)
        return self._chain[-1]

    def close(self) -> None:
        """Close all folders; the cache can be used again."""
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
    """An open folder with its entries, which opens the folders in it.

    `status` is that of the folder. Raises OSError, with ELOOP for any link on the path. Names may
    be text; `os.fsencode` returns their bytes. Entries are read one by one, or by `read`.
    """

    __slots__ = ("_close_scanned", "_descriptor", "_read", "_scanned", "path", "status", "top")

    def __init__(self, path: bytes, top: int, descriptor: int | None) -> None:
        """Take ownership of a descriptor; without one, open the folder by its path."""
        self.path = path
        self.top = top
        self._descriptor = descriptor
        self._read: FolderEntries | None = None
        self._scanned: Iterator[os.DirEntry[str] | os.DirEntry[bytes]] | None = None
        self._close_scanned: Callable[[], None] = lambda: None
        try:
            if descriptor is None:
                scanned = os.scandir(system_path(path))
                self._scanned, self._close_scanned = scanned, scanned.close
                self.status = check_path(path, top)
            else:
                self.status = os.fstat(descriptor)
        except OSError:
            self.close()
            raise

    @property
    def entries(self) -> Iterator[os.DirEntry[str] | os.DirEntry[bytes]]:
        """The entries that were not read yet."""
        if self._scanned is None:
            scanned = os.scandir(self._descriptor)
            self._scanned, self._close_scanned = scanned, scanned.close
        return self._scanned

    @classmethod
    def open(cls, path: bytes, top: int, *, by_descriptor: bool = BY_DESCRIPTOR) -> Self:
        """Open a folder by its path."""
        if not by_descriptor:
            return cls(path, top, None)
        with FolderCache() as folders:
            return cls(path, top, folders.open(path, top, FOLDER))

    def read(self, reader: EntryReader, most: int) -> Entries:
        """Return at most so many further entries, none at the end; raises OSError.

        Only where folders are opened by their descriptors.
        """
        if self._read is None:
            assert self._descriptor is not None
            self._read = reader.open(self._descriptor)
        return self._read.read(most)

    def look(self, name: bytes) -> "NamedEntry":
        """Return an entry by its name; the same."""
        assert self._descriptor is not None
        return NamedEntry(name, self._descriptor)

    def open_below(self, name: bytes) -> Self:
        """Open a folder in this one."""
        path = join(self.path, name)
        if self._descriptor is None:
            return type(self)(path, self.top, None)
        return type(self)(path, self.top, open_at(self._descriptor, name, FOLDER))

    def close(self) -> None:
        self._close_scanned()
        if self._read is not None:
            self._read.close()
            self._read = None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NamedEntry(NamedTuple):
    """An entry of an open folder, as `os.DirEntry`."""

    name: bytes
    folder: int

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return its status; raises OSError."""
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=follow_symlinks)


def look(path: bytes, top: int) -> os.stat_result:
    """Return the status of a path, also if it is a link; raises OSError."""
    if not BY_DESCRIPTOR:
        return check_path(path, top, last=False)
    folder, _, name = path.rpartition(_SEPARATOR)
    with FolderCache() as folders:
        above = folders.open(folder or _SEPARATOR, top or len(folder) or 1, _WAY)
    try:
        return os.stat(name, dir_fd=above, follow_symlinks=False)
    finally:
        os.close(above)


def open_at(folder: int, name: bytes, flags: int) -> int:
    """Open an entry of an open folder; raises OSError, with ELOOP for a link."""
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        # A link in place of a folder raises ENOTDIR.
        if error.errno == errno.ENOTDIR and _is_link_at(folder, name):
            raise _link() from error
        raise


def check_path(path: bytes, top: int, *, last: bool = True) -> os.stat_result:
    """Return the status of a path; raises OSError, with ELOOP for a link below `top`.

    With `last` false, the last name may be a link.
    """
    if os.altsep:  # Windows
        path = path.replace(os.fsencode(os.altsep), _SEPARATOR)
    names = path[top:].split(_SEPARATOR) if top else path.rsplit(_SEPARATOR, 1)[1:]
    place = path[: len(path) - len(_SEPARATOR.join(names))]
    for number, name in enumerate(names, start=1):
        place = join(place, name)
        if (last or number < len(names)) and name and is_link(os.lstat(system_path(place))):
            raise _link()
    place = system_path(path)
    return os.lstat(place) if len(path) > top else os.stat(place)  # noqa: PTH116 - bytes


def is_link(status: os.stat_result) -> bool:
    """Return whether a status is that of a link or of a junction of Windows."""
    tag = getattr(status, "st_reparse_tag", 0)
    return stat.S_ISLNK(status.st_mode) or tag == getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1)


def join(folder: bytes, name: bytes) -> bytes:
    """Return the path of an entry of a folder."""
    return folder + name if folder.endswith(_SEPARATOR) else folder + _SEPARATOR + name


def _open_by_path(path: bytes, top: int, flags: int) -> int:
    """Open a path, then check that it leads to the same file without a link."""
    try:
        descriptor = open_shared(path, flags)
    except PermissionError as error:  # Windows opens no folders
        if stat.S_ISDIR(check_path(path, top).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)) from error
        raise
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
