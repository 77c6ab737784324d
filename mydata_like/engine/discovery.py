"""The early record in the ledger of files that were found and are not on the server yet."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import (
    Batch,
    CheckedGroup,
    DatasetId,
    FileGroup,
    FolderSums,
    OpenFiles,
)
from mydata_like.core.ports import CancelSignal, Clock
from mydata_like.core.scanned_files import is_named_like_archive

logger = logging.getLogger(__name__)

Compared = CheckedGroup | Batch  # what is not verified

HELD_UP: Final = 1.0  # seconds without new files after which the lookahead starts
TICK: Final = 0.25  # seconds between checks for that
SHARE: Final = 0.25  # share of a processor that the lookahead may use during an active run


class FoundFileStore(Protocol):
    """The storage for found files: the ledger."""

    def find_open(self, files: Sequence[LocalFile]) -> OpenFiles: ...

    def find_open_parts(
        self, parts: Sequence[tuple[bytes, Sequence[LocalFile]]]
    ) -> Sequence[OpenFiles]: ...

    def find_known(self, digests: Sequence[bytes]) -> Mapping[bytes, DatasetId]: ...

    def record_found(
        self, files: Sequence[LocalFile], since: datetime, *, unsent: bool = False
    ) -> int: ...

    def add_folders(self, folders: Sequence[FolderSums]) -> None:
        """Record these folders unless they are recorded already."""


class Discovery:
    """The recorder of a run's found files, before anything else happens to them.

    A dry run records none. `find_inventory` waits until the inventory is open.
    """

    def __init__(
        self, find_inventory: Callable[[], FoundFileStore], clock: Clock, *, dry_run: bool = False
    ) -> None:
        self._find_inventory = find_inventory
        self._clock = clock
        self._dry_run = dry_run
        self._since = clock.now()
        self._held_since: float | None = clock.monotonic()  # blocked before the run starts
        self._passed: set[bytes] = set()
        self._unsent: set[tuple[bytes, int]] = set()  # groups without verified files
        self.flowing = False  # whether the run has begun to read

    def pass_on(self, groups: Iterable[FileGroup]) -> Iterator[FileGroup]:
        """Yield the groups, each after its files are recorded."""
        self.flowing, self._held_since = True, None
        for group in groups:
            recorded, news = self.record(group)
            if news and news == len(group.files):
                self._unsent.add((group.folder.path, group.number))
            self._held_since = self._clock.monotonic()
            yield recorded
            self._held_since = None
            if group.last and not self._dry_run:
                self._passed.add(group.folder.path)

    def record(self, group: FileGroup) -> tuple[FileGroup, int]:
        """Record the files of a group that are not known as verified in their current state.

        Return the group with what is known about all of its files, and the number of new ones.
        """
        if self._dry_run or not group.files:
            return group, 0
        inventory, folder = self._find_inventory(), group.folder
        unknown, datasets = _find_unknown(inventory, group)
        new, wanted = list[LocalFile](), list[LocalFile]()
        for seen, (_, files) in zip(inventory.find_open_parts(unknown), unknown, strict=True):
            datasets |= seen.datasets
            new += [it for it in files if it.key in seen.keys]
            wanted += [it for it in files if it.key in seen.keys or is_named_like_archive(it)]
        news = inventory.record_found(new, self._since) if new else 0
        if news:
            names = folder.path, folder.name, folder.title, folder.owner, folder.group_folder
            inventory.add_folders([FolderSums(*names)])
        known = next(iter(datasets)) if len(datasets) == 1 else None
        return group._replace(known=known, open=wanted, new=not datasets), news

    def list_open(self, group: FileGroup) -> list[LocalFile]:
        """Return the files of a group that are not known as verified in their current state."""
        inventory, found = self._find_inventory(), list[LocalFile]()
        for _, files in _find_unknown(inventory, group)[0]:
            keys = inventory.find_open(files).keys
            found += [it for it in files if it.key in keys] if keys else ()
        return found

    def pass_open(self, groups: Iterable[Compared]) -> Iterator[Compared]:
        """Yield checked or compared files, after the unverified ones are recorded."""
        for compared in groups:
            self._record_open(compared)
            yield compared

    def _record_open(self, compared: Compared) -> None:
        """Record unverified files, whatever the ledger had stored."""
        items: Batch
        if isinstance(compared, CheckedGroup):
            place = compared.group.folder.path, compared.group.number
            if place in self._unsent:
                self._unsent.remove(place)  # all of them are recorded already
                return
            items = compared.open
        else:
            items = compared
        files = [file for each in items for file in each.files]
        if files and not self._dry_run:
            self._find_inventory().record_found(files, self._since, unsent=True)

    def has_passed(self, folder: bytes) -> bool:
        """Return whether the run has read a dataset folder to its end."""
        return folder in self._passed

    def is_held_up(self) -> bool:
        """Return whether the run has taken no new files for a while."""
        since = self._held_since
        return since is not None and self._clock.monotonic() - since > HELD_UP


def _find_unknown(
    inventory: FoundFileStore, group: FileGroup
) -> tuple[list[tuple[bytes, Sequence[LocalFile]]], set[DatasetId]]:
    """Return the parts of a group that have to be compared, and the datasets of the others."""
    parts = group.parts
    known = inventory.find_known([digest for digest, _ in parts if digest])
    return [part for part in parts if part[0] not in known], set(known.values())


class Lookahead:
    """A scan of all files that a run has to upload, while the run itself is blocked.

    A run reads only a limited number of files in advance, and none before it has reached the
    server. If it were interrupted, the others would be unknown. The lookahead never reads the
    content of files.
    """

    def __init__(self, discovery: Discovery, clock: Clock, cancel: CancelSignal) -> None:
        self._discovery = discovery
        self._clock = clock
        self._cancel = cancel
        self._deadline: float | None = None
        self._stop: CancelSignal = cancel

    def work(self, find: Callable[[], Iterable[FileGroup]]) -> None:
        """Wait until the run is blocked or `finish` is called; then record all files.

        The run itself reports what cannot be read.
        """
        try:
            while self._deadline is None and not self._discovery.is_held_up():
                if self._cancel.wait(TICK):
                    return
            self._look(find())
        except Cancelled:
            return
        except UploaderError as error:
            logger.info("The lookahead ended: %s", error)

    def finish(self, seconds: float, stop: CancelSignal) -> None:
        """Start now unless started already; stop after so many seconds, or when `stop` is set."""
        self._stop = stop
        self._deadline = self._clock.monotonic() + seconds

    def _look(self, groups: Iterable[FileGroup]) -> None:
        began = self._clock.monotonic()
        for group in groups:
            self._discovery.record(group)
            now = self._clock.monotonic()
            if self._stop.is_set() or (self._deadline is not None and now > self._deadline):
                logger.info("The lookahead ended before it had seen all files")
                return
            if self._discovery.flowing and self._cancel.wait((now - began) * (1 / SHARE - 1)):
                return
            began = self._clock.monotonic()
