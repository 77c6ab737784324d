"""The entries of open folders, many in one call of the library `core/folder_entries.c`.

Without the library they are read one after the other, which takes three times as long.
"""

import ctypes
import os
import stat
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from mydata_like.core import hashing

_NAME_SIZE: Final = 256  # bytes of the longest name in POSIX systems, with its zero byte
_LONGEST: Final = 2**63 - 1


class Entries(NamedTuple):
    """Entries of a folder: its regular files, and the names of all others.

    `facts` has four numbers for each file: size, time of content and of status in nanoseconds, and
    inode. A file for which one of these is longer than 64 bits with a sign is among the others, and
    so is what cannot be looked at. `newest_ns` is the latest time of a file's content.
    """

    names: list[bytes]
    facts: "array[int]"
    devices: "array[int]"
    modes: "array[int]"
    size: int
    newest_ns: int
    others: list[bytes]


class _Totals(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in ("files", "others", "file_names", "other_names", "size", "newest_ns")
    )


class EntryReader:
    """Memory for the entries of several folders, which one thread reads in turns."""

    def __init__(self, most: int, library: ctypes.CDLL | None = hashing.LOADED) -> None:
        """`most` is the largest number of entries that are read together."""
        # Any: functions of C
        self._library: Any = library if hasattr(library, "read_entries") else None
        if self._library is not None:
            self._files = ctypes.create_string_buffer(most * _NAME_SIZE)
            self._others = ctypes.create_string_buffer(most * _NAME_SIZE)
            self._facts = (ctypes.c_int64 * (4 * most))()
            self._devices = (ctypes.c_uint64 * most)()
            self._modes = (ctypes.c_uint32 * most)()
            self._totals = _Totals()

    def open(self, descriptor: int) -> "FolderEntries":
        """Return the entries of an open folder from its beginning; raises OSError.

        The descriptor stays open.
        """
        if self._library is None:
            scanned = os.scandir(descriptor)
            return FolderEntries(lambda most: _describe(list(islice(scanned, most))), scanned.close)
        opened = ctypes.c_void_p()
        _check(self._library.open_entries(descriptor, ctypes.byref(opened)))
        return FolderEntries(
            partial(self._read, opened), partial(self._library.close_entries, opened)
        )

    def _read(self, opened: ctypes.c_void_p, most: int) -> Entries:
        totals = self._totals
        names, numbers = (self._files, self._others), (self._facts, self._devices, self._modes)
        _check(
            self._library.read_entries(
                opened, ctypes.c_int64(most), *names, *numbers, ctypes.byref(totals)
            )
        )
        files = totals.files
        facts, devices, modes = array("q"), array("Q"), array("I")
        facts.frombytes(memoryview(self._facts).cast("B")[: 32 * files])
        devices.frombytes(memoryview(self._devices).cast("B")[: 8 * files])
        modes.frombytes(memoryview(self._modes).cast("B")[: 4 * files])
        return Entries(
            _split(self._files, totals.file_names),
            facts,
            devices,
            modes,
            totals.size,
            totals.newest_ns,
            _split(self._others, totals.other_names),
        )


class FolderEntries(NamedTuple):
    """The entries of an open folder.

    `read` returns at most so many further ones, none at the end; it raises OSError.
    """

    read: Callable[[int], Entries]
    close: Callable[[], object]


def _check(error: int) -> None:
    if error:
        raise OSError(error, os.strerror(error))


def _describe(entries: Sequence[os.DirEntry[str]]) -> Entries:
    """Return the description of entries as the library makes it."""
    names, statuses, others = [], [], []
    for entry in entries:
        name = os.fsencode(entry.name)
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            others.append(name)
            continue
        if _is_usual(status):
            names.append(name)
            statuses.append(status)
        else:
            others.append(name)
    facts = [(it.st_size, it.st_mtime_ns, it.st_ctime_ns, it.st_ino) for it in statuses]
    return Entries(
        names,
        array("q", chain.from_iterable(facts)),
        array("Q", [it.st_dev for it in statuses]),
        array("I", [it.st_mode for it in statuses]),
        sum(it.st_size for it in statuses),
        max((it.st_mtime_ns for it in statuses), default=0),
        others,
    )


def _is_usual(status: os.stat_result) -> bool:
    times = abs(status.st_mtime_ns), abs(status.st_ctime_ns)
    return stat.S_ISREG(status.st_mode) and max(*times, status.st_ino) <= _LONGEST


def _split(names: "ctypes.Array[ctypes.c_char]", end: int) -> list[bytes]:
    """Return names, each of which is followed by a zero byte."""
    return memoryview(names)[:end].tobytes().split(b"\0")[:-1]
