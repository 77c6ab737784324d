"""Safe deletion on Windows.

A file is opened for deletion in a way that lets no other program write to it, rename it or delete
it. It is deleted only if this is the file that was read, and its path has no links. The functions
are `SetFileInformationByHandle` and `GetFinalPathNameByHandleW` of
https://learn.microsoft.com/windows/win32/api/fileapi/.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import filterfalse
from typing import Final, Self

from mydata_like.core.data_directory import is_lock_name
from mydata_like.core.deletion import CleanupCandidate
from mydata_like.core.errors import FileChangedError
from mydata_like.core.file_access import system_path
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import Entry
from mydata_like.core.openat import check_path, is_link, join
from mydata_like.hostos.file_to_delete import (
    FileToDelete,
    candidate,
    directory_opened,
    errors_translated,
)
from mydata_like.hostos.open_files import FileWriters

if sys.platform == "win32":
    import msvcrt
    from ctypes import wintypes

    from mydata_like.core.file_access import GENERIC_READ, SHARE_ALL, open_handle

    _DELETE: Final = 0x10000
    _SHARE_READ: Final = 0x1
    _BACKUP: Final = 0x2000000  # FILE_FLAG_BACKUP_SEMANTICS: also folders
    _DISPOSITION: Final = 4  # FileDispositionInfo
    _NO_VOLUME: Final = 4  # VOLUME_NAME_NONE: the path without its drive
    _LONGEST: Final = 32768  # characters of a path

    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    _close = _kernel.CloseHandle
    _close.argtypes = (wintypes.HANDLE,)
    _final_path = _kernel.GetFinalPathNameByHandleW
    _final_path.argtypes = (wintypes.HANDLE, wintypes.LPWSTR, wintypes.DWORD, wintypes.DWORD)
    _set_information = _kernel.SetFileInformationByHandle
    _set_information.argtypes = (
        wintypes.HANDLE,
        ctypes.c_int,
        ctypes.POINTER(wintypes.BOOLEAN),
        wintypes.DWORD,
    )

    class _FileByPath(FileToDelete):
        """A file, and the path to it from a directory."""

        def __init__(self, directory: "SafeDirectory", entry: Entry, descriptor: int) -> None:
            directory.require_no_link(entry.key, descriptor)
            super().__init__(entry, descriptor)
            self._directory = directory

        def check_unused(self) -> None:
            key, stamp = self.entry.key, self.stamp
            file = LocalFile(self._directory.path_of(key), key, b"", b"", *stamp[2:], *stamp[:2])
            if found := FileWriters()([file]):
                raise self.changed("free.open", f"is open in a program ({found[key]})")

        def delete(self, confirm: Callable[[], None]) -> None:
            """Delete exactly this file; raises `FileChangedError` if it has changed.

            Fails if another program has opened it for writing. From before the last check until
            the deletion, none can, and none can rename it.
            """
            key = self.entry.key
            with (
                errors_translated(key),
                _opened(self._directory.path_of(key), GENERIC_READ | _DELETE, _SHARE_READ) as alone,
            ):
                self._directory.require_no_link(key, alone)
                self.check_unchanged(os.fstat(alone))
                confirm()
                _delete(alone)

        def find_named(self) -> os.stat_result:
            key = self.entry.key
            with (
                errors_translated(key),
                _opened(self._directory.path_of(key), GENERIC_READ, SHARE_ALL) as named,
            ):
                return os.fstat(named)

    class SafeDirectory:
        """A data directory, held open so that another one that gets its name is noticed.

        For an extra source, `prefix` is the beginning of the keys of its files.
        """

        def __init__(self, path: bytes, prefix: bytes = b"") -> None:
            self.prefix = prefix
            self._path = path = join(path, b"")  # `E:` alone would be the drive's current folder
            with directory_opened(path):
                self._handle = open_handle(path, GENERIC_READ, SHARE_ALL, _BACKUP)
                self._status = os.stat(system_path(path))  # noqa: PTH116 - bytes

        def find(self, key: bytes) -> Iterator[CleanupCandidate]:
            """Yield a file, or all files in and below a folder; for our own key, all files."""
            yield from self._find_below(key)

        @contextmanager
        def hold(self, entry: Entry) -> Iterator[FileToDelete]:
            """Open the file that a ledger entry describes.

            Raises `FileChangedError` if it is another file, or a link.
            """
            with ExitStack() as stack:
                with errors_translated(entry.key):
                    opened = _opened(self.path_of(entry.key), GENERIC_READ, SHARE_ALL)
                    descriptor = stack.enter_context(opened)
                    held = _FileByPath(self, entry, descriptor)
                yield held

        def path_of(self, key: bytes) -> bytes:
            """Return the path of a file or folder."""
            local = self._local(key)
            return join(self._path, local.replace(b"/", b"\\")) if local else self._path

        def require_no_link(self, key: bytes, descriptor: int) -> None:
            """Raise OSError if the path that an open file was reached by has a link.

            Also if the directory was renamed, since its name may then lead to another one.
            """
            local = os.fsdecode(self._local(key)).replace("/", "\\")
            top = _find_path(self._handle).rstrip("\\")
            found = _find_path(msvcrt.get_osfhandle(descriptor))
            named = os.stat(system_path(self._path))  # noqa: PTH116 - bytes
            same = os.path.samestat(named, self._status)
            if not same or found.casefold() != f"{top}\\{local}".casefold():
                raise OSError(errno.ELOOP, "A link has taken the place of a folder or file")

        def restore(self, key: bytes, aside: bytes) -> bool:
            """Return that nothing was restored: files keep their names until they are deleted."""
            return False

        def close(self) -> None:
            _close(self._handle)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            self.close()

        def _local(self, key: bytes) -> bytes:
            """Return a key relative to the directory."""
            return (key + b"/").removeprefix(self.prefix).rstrip(b"/")

        def _find_below(self, key: bytes) -> Iterator[CleanupCandidate]:
            """Yield a file, or all files in a folder, sorted by name.

            The names of one folder are held in memory, since files are deleted during the
            iteration.
            """
            try:
                with errors_translated(key):
                    path = self.path_of(key)
                    status = check_path(path, len(self._path), last=False)
                    is_folder = stat.S_ISDIR(status.st_mode) and not is_link(status)
                    names = os.listdir(system_path(path)) if is_folder else []
            except FileChangedError as error:
                yield CleanupCandidate(key, 0, error.problem)
                return
            if not is_folder:
                yield candidate(key, status)
            # The lock file of a run is in the data directory, and a killed run leaves it there.
            for name in sorted(filterfalse(is_lock_name, map(os.fsencode, names))):
                yield from self._find_below(key + b"/" + name if key else name)

    @contextmanager
    def _opened(path: bytes, access: int, sharing: int) -> Iterator[int]:
        """Yield a descriptor of a file, or of the target of a link; raises OSError."""
        handle = open_handle(path, access, sharing, 0)
        descriptor = msvcrt.open_osfhandle(handle, os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _find_path(handle: int) -> str:
        """Return the path that leads to an open file or folder, without links and its drive."""
        path = ctypes.create_unicode_buffer(_LONGEST)
        if not _final_path(handle, path, _LONGEST, _NO_VOLUME):
            raise ctypes.WinError(ctypes.get_last_error())
        return path.value

    def _delete(descriptor: int) -> None:
        """Delete an open file; it is gone when nobody has it open any more."""
        handle, wanted = msvcrt.get_osfhandle(descriptor), wintypes.BOOLEAN(1)
        size = ctypes.sizeof(wanted)
        if not _set_information(handle, _DISPOSITION, ctypes.byref(wanted), size):
            raise ctypes.WinError(ctypes.get_last_error())
