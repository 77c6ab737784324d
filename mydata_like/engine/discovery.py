"""Keeps in the ledger which files were found and are not on the server, as early as possible."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, Protocol

from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.model import (
    CheckedGroup,
    FileGroup,
    FileToSend,
    FolderSums,
    LocalFile,
    OpenFiles,
    Registered,
    Staged,
)
from mydata_like.core.ports import CancelSignal, Clock

logger = logging.getLogger(__name__)

Compared = CheckedGroup | list[FileToSend | Registered]  # what is open, in a group or from several

HELD_UP: Final = 1.0  # seconds for which the flow takes no more files before it is looked ahead
TICK: Final = 0.25  # seconds after which that is looked at again
SHARE: Final = 0.25  # of a processor that looking ahead takes from a run that is at work


class FoundFileStore(Protocol):
    """Where found files are kept: the ledger."""

    def find_open(self, files: Sequence[LocalFile]) -> OpenFiles: ...

    def record_found(
        self, files: Sequence[LocalFile], since: datetime, *, unsent: bool = False
    ) -> int: ...

    def add_folders(self, folders: Sequence[FolderSums]) -> None:
        """Keep these folders, unless something is known of them already."""


class Discovery:
    """Keeps the files of a run as found, before anything else is done about them.

    A dry run keeps none. `find_inventory` waits until the inventory is open.
    """

    def __init__(
        self, find_inventory: Callable[[], FoundFileStore], clock: Clock, *, dry_run: bool = False
    ) -> None:
        self._find_inventory = find_inventory
        self._clock = clock
        self._dry_run = dry_run
        self._since = clock.now()
        self._held_since: float | None = clock.monotonic()  # nothing is taken before the run goes
        self._passed: set[bytes] = set()
        self._unsent: set[tuple[bytes, int]] = set()  # groups of which nothing is verified
        self.flowing = False  # whether the run has begun to read

    def pass_on(self, groups: Iterable[FileGroup]) -> Iterator[FileGroup]:
        """Yield the groups, each once its files are kept."""
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
        """Keep those files of a group that are not known as verified just as they are.

        Return the group with what is known of all of it, and of how many that is news.
        """
        if self._dry_run or not group.files:
            return group, 0
        inventory, folder = self._find_inventory(), group.folder
        seen = inventory.find_open(group.files)
        news = inventory.record_found(group.files, self._since) if seen.keys else 0
        if news:
            names = folder.path, folder.name, folder.title, folder.owner, folder.group_folder
            inventory.add_folders([FolderSums(*names)])
        whole = not seen.keys and len(seen.datasets) == 1
        known = next(iter(seen.datasets)) if whole else None
        return group._replace(known=known, new=not seen.datasets), news

    def pass_open(self, groups: Iterable[Compared]) -> Iterator[Compared]:
        """Yield what was checked or compared, once those files are kept that are not verified."""
        for compared in groups:
            self._record_open(compared)
            yield compared

    def _record_open(self, compared: Compared) -> None:
        """Keep what is open, whatever the ledger had known."""
        items: Sequence[FileToSend | Staged | Registered]
        if isinstance(compared, CheckedGroup):
            place = compared.group.folder.path, compared.group.number
            if place in self._unsent:
                self._unsent.remove(place)  # all of them are kept already
                return
            items = compared.open
        else:
            items = compared
        wanted = (item if isinstance(item, FileToSend) else item.wanted for item in items)
        files = [file for each in wanted for file in each.files]
        if files and not self._dry_run:
            self._find_inventory().record_found(files, self._since, unsent=True)

    def has_passed(self, folder: bytes) -> bool:
        """Return whether the run has read a dataset folder to its end."""
        return folder in self._passed

    def is_held_up(self) -> bool:
        """Return whether the run has taken no more files for a while."""
        since = self._held_since
        return since is not None and self._clock.monotonic() - since > HELD_UP


class Lookahead:
    """Finds all that a run is to carry, while the run itself is held up.

    A run reads only so many files in advance, and none before it has reached the server: what
    lies beyond would be unknown if it were cut off. Files are only looked at, never read.
    """

    def __init__(self, discovery: Discovery, clock: Clock, cancel: CancelSignal) -> None:
        self._discovery = discovery
        self._clock = clock
        self._cancel = cancel
        self._deadline: float | None = None
        self._stop: CancelSignal = cancel

    def work(self, find: Callable[[], Iterable[FileGroup]]) -> None:
        """Wait until the run is held up, or `finish`; then keep all that there is.

        What cannot be read is for the run to tell.
        """
        try:
            while self._deadline is None and not self._discovery.is_held_up():
                if self._cancel.wait(TICK):
                    return
            self._look(find())
        except Cancelled:
            return
        except UploaderError as error:
            logger.info("Looking ahead ended: %s", error)

    def finish(self, seconds: float, stop: CancelSignal) -> None:
        """Look ahead now, if that has not begun: for so many more seconds, or until `stop`."""
        self._stop = stop
        self._deadline = self._clock.monotonic() + seconds

    def _look(self, groups: Iterable[FileGroup]) -> None:
        began = self._clock.monotonic()
        for group in groups:
            self._discovery.record(group)
            now = self._clock.monotonic()
            if self._stop.is_set() or (self._deadline is not None and now > self._deadline):
                logger.info("There was no time to look at all that is there")
                return
            if self._discovery.flowing and self._cancel.wait((now - began) * (1 / SHARE - 1)):
                return
            began = self._clock.monotonic()
