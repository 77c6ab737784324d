"""Opening files so that, on Windows too, their paths have any form and others may rename them.

The interface and its constants are those of the Windows API: `CreateFileW`
(https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew), its paths
(https://learn.microsoft.com/windows/win32/fileio/naming-a-file) and `FILE_BASIC_INFO`
(https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_basic_info).
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
# FILE_ATTRIBUTE_OFFLINE, FILE_ATTRIBUTE_RECALL_ON_OPEN, FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS:
# https://learn.microsoft.com/windows/win32/fileio/file-attribute-constants
_REMOTE: Final = 0x1000 | 0x40000 | 0x400000
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


def is_remote(status: os.stat_result) -> bool:
    """Return whether reading a file would first get its content from elsewhere.

    Windows marks files of cloud storage, such as OneDrive, and of archives on tape that way.
    """
    return bool(getattr(status, "st_file_attributes", 0) & _REMOTE)


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


def stat_open(descriptor: int) -> os.stat_result:
    """Return the status of an open file; `st_ctime` is the time of its last change.

    On Windows, `os.fstat` returns the time of creation there, which stays the same when a program
    writes to the file and then sets the time of modification back. Raises OSError.
    """
    if sys.platform == "win32":
        return _with_change_time(descriptor, os.fstat(descriptor))
    return os.fstat(descriptor)


if sys.platform == "win32":
    GENERIC_READ: Final = 0x80000000
    _FILE_APPEND_DATA: Final = 0x4
    SHARE_ALL: Final = 0x1 | 0x2 | 0x4  # reading, writing, and renaming or deleting
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

    def open_handle(path: bytes, access: int, sharing: int, flags: int) -> int:
        """Return a handle of what exists at a path; the numbers are those of `CreateFileW`."""
        name = os.fsdecode(verbatim(path))
        handle: int = _create_file(name, access, sharing, None, _OPEN_EXISTING, flags, None)
        if handle == _INVALID:
            error = ctypes.WinError(ctypes.get_last_error())
            error.filename = os.fsdecode(path)
            raise error
        return handle

    def _open_by_handle(path: bytes, flags: int) -> int:
        access = _FILE_APPEND_DATA if flags & os.O_APPEND else GENERIC_READ
        handle = open_handle(path, access, SHARE_ALL, _SEQUENTIAL)
        append = flags & os.O_APPEND
        return msvcrt.open_osfhandle(handle, append | os.O_BINARY | os.O_NOINHERIT)

    _BASIC_INFO: Final = 0  # FileBasicInfo
    _FILETIME_EPOCH: Final = 116_444_736_000_000_000  # 1970 in units of 100 ns since 1601
    _STATUS_FIELDS: Final = tuple(name for name in dir(os.stat_result) if name.startswith("st_"))

    class _BasicInfo(ctypes.Structure):
        _fields_ = (
            ("creation", ctypes.c_int64),
            ("access", ctypes.c_int64),
            ("write", ctypes.c_int64),
            ("change", ctypes.c_int64),
            ("attributes", wintypes.DWORD),
        )

    _get_information = ctypes.WinDLL("kernel32", use_last_error=True).GetFileInformationByHandleEx
    _get_information.restype = wintypes.BOOL
    _get_information.argtypes = (
        wintypes.HANDLE,
        ctypes.c_int,
        ctypes.POINTER(_BasicInfo),
        wintypes.DWORD,
    )

    def _with_change_time(descriptor: int, status: os.stat_result) -> os.stat_result:
        """Return a status with the time of change; FAT has none."""
        info = _BasicInfo()
        handle = msvcrt.get_osfhandle(descriptor)
        if not _get_information(handle, _BASIC_INFO, ctypes.byref(info), ctypes.sizeof(info)):
            raise ctypes.WinError(ctypes.get_last_error())
        if not info.change:
            return status
        changed_ns = (info.change - _FILETIME_EPOCH) * 100
        fields = {name: getattr(status, name) for name in _STATUS_FIELDS}
        fields |= {"st_ctime": changed_ns / 10**9, "st_ctime_ns": changed_ns}
        return os.stat_result((*status[:9], changed_ns // 10**9), fields)
