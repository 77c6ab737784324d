"""Files and dataset folders that were renamed since they were sent."""

import os
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from mydata_like.core.errors import Problem
from mydata_like.core.events import Notice
from mydata_like.core.file_access import system_path
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import LocalFile, signed
from mydata_like.core.model import Entry, EntryState, FileGroup
from mydata_like.core.ports import Emit, Ledger
from mydata_like.engine.pipeline import Lock

_SAMPLE: Final = 20  # files of a new folder that are looked for in the earlier ones


class FoldersOfEarlierRuns(Protocol):
    """What the ledger knows of earlier runs."""

    def list_folders(self) -> list[bytes]:
        """Return the keys of all dataset folders of the last complete run, and of later ones."""

    def find_entries(self, keys: Sequence[bytes]) -> Mapping[bytes, Entry]: ...


class RenamedFolders:
    """The search for the earlier name of a new dataset folder; it is reported once.

    A renamed folder has the same files, with the same size, times and inode. `root` is the data
    directory.
    """

    def __init__(self, ledger: FoldersOfEarlierRuns, root: bytes, emit: Emit) -> None:
        self._ledger = ledger
        self._root = root
        self._emit = emit
        self._gone: list[bytes] | None = None
        self._looked: set[bytes] = set()

    def report(self, group: FileGroup) -> None:
        """Report the earlier name of the folder of a group of new files, if it had one."""
        folder = group.folder.path
        if folder in self._looked or not group.files:
            return
        self._looked.add(folder)
        earlier = next((gone for gone in self._list_gone() if self._is_same(group, gone)), None)
        if earlier is not None:
            self._emit(Notice(problem=_renamed(earlier, folder)))

    def _list_gone(self) -> list[bytes]:
        """Return the folders of earlier runs that no longer exist."""
        if self._gone is None:
            folders = self._ledger.list_folders()
            self._gone = [it for it in folders if not os.path.lexists(self._path(it))]
        return self._gone

    def _path(self, folder: bytes) -> bytes:
        return os.path.join(self._root, folder)  # noqa: PTH118 - of bytes

    def _is_same(self, group: FileGroup, gone: bytes) -> bool:
        start = len(group.folder.path)
        files = {gone + file.key[start:]: file for file in group.files[:_SAMPLE]}
        known = self._ledger.find_entries([*files])
        return len(known) == len(files) and all(
            entry.state is EntryState.VERIFIED
            and entry.inode == signed(files[key].inode)
            and entry.is_of(files[key])
            for key, entry in known.items()
        )


def _renamed(earlier: bytes, folder: bytes) -> Problem:
    return Problem(
        "folder.renamed",
        f"{format_path(folder)} was {format_path(earlier)} before: its files are sent again, as "
        "another dataset.",
        "The dataset with the earlier name stays on the server. Rename the folder back if this was "
        "not intended.",
    )


class RenamedFiles:
    """The search for the rows of new files under the names that they had before.

    Such a file has inode, size and time of the row, whose name is gone on the same file system.
    Only its content shows whether it is that file, unless its ctime is the same as well: then
    nothing but a folder above it was renamed. A row is returned once; `root` is the data directory.
    Safe to call from any thread.
    """

    def __init__(self, ledger: Ledger, root: bytes) -> None:
        self._ledger = ledger
        self._root = root
        self._lock = Lock()
        self._taken: set[bytes] = set()  # keys of rows; hard links have one inode

    def __call__(self, files: Sequence[LocalFile]) -> dict[bytes, Entry]:
        """Return the rows of renamed files by the keys that the files have now."""
        file_by_inode = {signed(file.inode): file for file in files if file.inode}
        renamed: dict[bytes, Entry] = {}
        with self._lock:
            for row in self._ledger.find_of_inodes(list(file_by_inode)):
                file = file_by_inode[row.inode or 0]
                if file.key not in renamed and self._is_former(row, file):
                    self._taken.add(row.key)
                    renamed[file.key] = row
        return renamed

    def _is_former(self, row: Entry, file: LocalFile) -> bool:
        same = (row.size, row.modified_ns) == (file.size, file.modified_ns)
        # Both may be one name where upper and lower case, or ways to write an accent, count alike.
        if not same or row.key in self._taken or _fold(row.key) == _fold(file.key):
            return False
        return _is_gone(os.path.join(self._root, row.key), file.device)  # noqa: PTH118 - bytes


def _fold(key: bytes) -> str:
    text = key.decode("utf-8", "surrogateescape")
    return unicodedata.normalize("NFKC", text).casefold()


def _is_gone(path: bytes, device: int) -> bool:
    """Return whether nothing has a name, on a file system that is still mounted there."""
    try:
        os.lstat(system_path(path))
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError:
        return False
    else:
        return False
    while (above := os.path.dirname(path)) != path:  # noqa: PTH120 - bytes
        path = above
        try:
            return os.stat(system_path(path)).st_dev == device  # noqa: PTH116 - bytes
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return False
    return False
