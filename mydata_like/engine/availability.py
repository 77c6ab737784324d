"""Detection of a missing drive, as opposed to deleted files, in a data directory."""

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import islice
from typing import Final, Protocol

from mydata_like.core.errors import SettingsError
from mydata_like.core.file_access import system_path
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import FileGroup
from mydata_like.core.parsing import parse_json
from mydata_like.engine.data_root import status_of

logger = logging.getLogger(__name__)

_MOUNTS: Final = "mounts"  # ledger key of the mount points on which files were found
_EMPTIED: Final = "emptied"  # ledger key of the user's confirmation that there are no files

LOOKED_AT: Final = 1000  # known files that a short check examines

Freed = tuple[str, str]  # path as in events, and checksum


class KnownFolders(Protocol):
    """The files that earlier runs have found, as stored in the ledger."""

    def iter_known(self, below: bytes = b"") -> Iterator[tuple[bytes, str]]:
        """Yield the key and the checksum, if known, of each file of the data directory."""

    def find_meta(self, key: str) -> str | None: ...

    def record_meta(self, key: str, value: str) -> None: ...


# Work-around: CPython 3.11 raises AttributeError in `os.path.ismount` for bytes on Windows.
# https://github.com/powerline/powerline/issues/2221. Remove when it takes bytes there.
def _is_mount(path: bytes) -> bool:
    return os.path.ismount(os.fsdecode(path))


class Availability:
    """A comparison of what a run finds in the data directory with what earlier runs found.

    An empty mount point looks the same as an emptied folder. A folder counts as unavailable if all
    of its known files are missing. Files that this program deleted (`load_freed`) do not count as
    missing.
    """

    def __init__(
        self,
        memory: KnownFolders,
        load_freed: Callable[[], Set[Freed]],
        is_mount: Callable[[bytes], bool] = _is_mount,
    ) -> None:
        self._memory = memory
        self._load_freed = load_freed
        self._is_mount = is_mount
        self._seen: dict[tuple[bytes, int], bytes] = {}  # mount point by dataset folder and device

    def accept(self) -> None:
        """Record the user's confirmation of deleted files, valid until others are found."""
        self._memory.record_meta(_EMPTIED, "yes")
        self._memory.record_meta(_MOUNTS, "[]")

    def follow(self, root: bytes, groups: Iterable[FileGroup]) -> Iterator[FileGroup]:
        """Yield groups of the data directory, and record the mount points of their files."""
        own = _find_device(root)
        for group in groups:
            for device in group.devices - {own}:
                file = next(file for file in group.files if file.device == device)
                place = group.folder.path, device
                if place not in self._seen:
                    self._seen[place] = _find_mount(root, file)
            yield group

    def judge(self, root: bytes, found: int) -> SettingsError | None:
        """Return why the data directory is not available after all, once it was read to its end.

        `found` is the number of files found in it, excluded files counted.
        """
        before = self.load_mounts()
        suspects = self._find_suspects(root, before, empty=not found)
        if found and self._memory.find_meta(_EMPTIED):
            self._memory.record_meta(_EMPTIED, "")
        for folder in suspects:
            gone = self._count_missing(root, folder)
            if gone:
                return _away(_join(root, folder), gone)
        self._keep_mounts(root, before, found)
        return None

    def find_missing(self, root: bytes, *, empty: bool) -> bytes | None:
        """Return a folder that `judge` may report, based on a short check; nothing is recorded.

        `empty` states that the data directory has no entries at all.
        """
        suspects = self._find_suspects(root, self.load_mounts(), empty=empty)
        missing = (it for it in suspects if self._count_missing(root, it, most=LOOKED_AT))
        return next((_join(root, folder) for folder in missing), None)

    def load_mounts(self) -> set[bytes]:
        """Return the recorded mount points, relative to the data directory."""
        text = self._memory.find_meta(_MOUNTS)
        try:
            return {os.fsencode(name) for name in parse_json(text)} if text else set()
        except (ValueError, TypeError):  # not in our format: the mount points are recorded again
            logger.warning("The ledger's list of mount points is invalid and is ignored")
            return set()

    def _find_suspects(self, root: bytes, mounts: Set[bytes], *, empty: bool) -> list[bytes]:
        """Return the folders whose drive may be missing."""
        if not empty:
            return [mount for mount in sorted(mounts) if not self._is_mount(_join(root, mount))]
        return [] if self._memory.find_meta(_EMPTIED) else [b""]

    def _count_missing(self, root: bytes, folder: bytes, most: int | None = None) -> int:
        """Return how many known files of a folder are missing, or 0 if any of them exists.

        `most` limits how many are examined.
        """
        freed: Set[Freed] | None = None
        gone = 0
        for key, checksum in islice(self._memory.iter_known(folder), most):
            if _may_exist(_join(root, key)):
                return 0
            if freed is None:
                freed = self._load_freed()
            gone += (format_path(key), checksum) not in freed
        return gone

    def _keep_mounts(self, root: bytes, before: set[bytes], found: int) -> None:
        now = {mount for mount in self._seen.values() if mount}
        now |= {mount for mount in before if self._is_mount(_join(root, mount))}
        if found and self._is_mount(root):
            now.add(b"")
        if now != before:
            names = sorted(map(os.fsdecode, now))
            self._memory.record_meta(_MOUNTS, json.dumps(names))


def _find_mount(root: bytes, file: LocalFile) -> bytes:
    """Return the folder where a file's device begins.

    Empty if a link leads elsewhere, or a folder above the file has gone since it was found.
    """
    mount = b""
    folder = file.key.rpartition(b"/")[0]
    while folder:
        device = _find_device(_join(root, folder))
        if device is None:
            return b""
        if device != file.device:
            break
        mount, folder = folder, folder.rpartition(b"/")[0]
    return mount


def _find_device(path: bytes) -> int | None:
    """Return the device of a folder, None if it cannot be examined any more."""
    try:
        return status_of(path).st_dev
    except OSError:
        return None


def _may_exist(path: bytes) -> bool:
    """Return whether a file exists or cannot be examined."""
    try:
        os.lstat(system_path(path))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _join(root: bytes, key: bytes) -> bytes:
    return root.rstrip(b"/") + b"/" + key if key else root


def _away(folder: bytes, gone: int) -> SettingsError:
    files = f"the {gone:,} files that earlier runs found there are missing"
    if gone == 1:
        files = "the file that earlier runs found there is missing"
    return SettingsError(
        f"The data directory is not available: {format_path(folder)} is empty, and {files}.",
        hint="Check that its drive is connected. If the files were deleted on purpose, confirm "
        "it once: mydata-like run --accept-empty",
        code="data.unavailable",
    )
