"""Opening files so that, on Windows too, their paths have any form and others may rename them.

The interface and its constants are those of the Windows API: `CreateFileW`
(https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew) and its paths
(https://learn.microsoft.com/windows/win32/fileio/naming-a-file).
"""

import os
import re
import sys
from typing import Final

if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

_VERBATIM: Final = b"\\\\?\\"  # such a path is neither shortened nor interpreted
_DEVICE: Final = b"\\\\.\\"
_SEPARATORS: Final = re.compile(rb"[\\/]+")
_NETWORK: Final = re.compile(rb"[\\/]{2}")
_IN_USE: Final = (32, 33)  # ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION


def system_path(path: bytes) -> bytes:
    """Return a path as the functions of this system take it."""
    return verbatim(path) if sys.platform == "win32" else path


def verbatim(path: bytes) -> bytes:
    """Return a complete path of Windows in the form in which every name is taken as it is.

    Otherwise Windows refuses paths of more than 260 characters, and does not find names that end
    with a dot or a space, or that are those of devices, such as `con`. Other paths are returned
    unchanged.
    """
    if path.startswith((_VERBATIM, _DEVICE)):
        return path
    plain = _SEPARATORS.sub(rb"\\", path)
    if _NETWORK.match(path):
        return _VERBATIM + b"UNC" + plain
    return _VERBATIM + plain if plain[1:3] == b":\\" else path


def is_in_use(error: OSError) -> bool:
    """Return whether another program has opened a file so that nobody else may."""
    return getattr(error, "winerror", None) in _IN_USE


def open_shared(path: bytes, flags: int) -> int:
    """Return a descriptor for reading a file, or with `O_APPEND` for adding to one.

    Others may write, rename and delete the file; with Python's own functions, Windows lets nobody
    rename or delete an open file. Each write to a file opened with `O_APPEND` goes to its end, also
    if several processes write. Raises OSError.
    """
    if sys.platform == "win32":
        return _open_by_handle(path, flags)
    return os.open(path, flags)


def open_shared_text(path: str, flags: int) -> int:
    """Return the same for a path that is text: an `opener` for `open`."""
    return open_shared(os.fsencode(path), flags)


if sys.platform == "win32":
    _GENERIC_READ: Final = 0x80000000
    _FILE_APPEND_DATA: Final = 0x4
    _SHARE_ALL: Final = 0x1 | 0x2 | 0x4  # reading, writing, and renaming or deleting
    _OPEN_EXISTING: Final = 3
    _SEQUENTIAL: Final = 0x08000000
    _INVALID: Final = wintypes.HANDLE(-1).value

    _create_file = ctypes.WinDLL("kernel32", use_last_error=True).CreateFileW
    _create_file.restype = wintypes.HANDLE
    _create_file.argtypes = (
        wintypes.LPCWSTR,
        wintypes.DWORD,
        wintypes.DWORD,
        wintypes.LPVOID,
        wintypes.DWORD,
        wintypes.DWORD,
        wintypes.HANDLE,
    )

    def _open_by_handle(path: bytes, flags: int) -> int:
        name = os.fsdecode(verbatim(path))
        access = _FILE_APPEND_DATA if flags & os.O_APPEND else _GENERIC_READ
        handle = _create_file(name, access, _SHARE_ALL, None, _OPEN_EXISTING, _SEQUENTIAL, None)
        if handle == _INVALID:
            error = ctypes.WinError(ctypes.get_last_error())
            error.filename = os.fsdecode(path)
            raise error
        append = flags & os.O_APPEND
        return msvcrt.open_osfhandle(handle, append | os.O_BINARY | os.O_NOINHERIT)
