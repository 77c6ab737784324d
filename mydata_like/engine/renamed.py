"""Dataset folders that were renamed since their files were sent."""

import os
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from mydata_like.core.errors import Problem
from mydata_like.core.events import Notice
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import signed
from mydata_like.core.model import Entry, EntryState, FileGroup
from mydata_like.core.ports import Emit

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
