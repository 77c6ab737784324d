"""The port to a catalogue: where the records of files are, and what attests to their bytes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.errors import ItemError, Problem
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import (
    Batch,
    Datafile,
    DatafileId,
    Dataset,
    DatasetFolder,
    Entry,
    KeptCopy,
    Registration,
)
from mydata_like.engine.pipeline import StageInput

Stage = Callable[[StageInput[Batch]], Iterator[Batch]]


class FolderExcludedError(ItemError):
    """The settings exclude a folder because of what the catalogue knows about it."""


class FolderView(Protocol):
    """The records of one folder's dataset in one run; from any thread."""

    @property
    def dataset(self) -> Dataset: ...

    @property
    def folder(self) -> bytes: ...

    @property
    def above(self) -> int:
        """The number of bytes of keys that patterns ignore."""

    @property
    def requested(self) -> Mapping[DatafileId, Datafile | None]:
        """The records that were requested by id, None for missing ones."""

    @property
    def agrees(self) -> bool:
        """Whether the catalogue has exactly the records that the ledger knows."""

    @property
    def compared(self) -> datetime | None:
        """When all records were last compared with the ledger; None if that is in this run."""

    @property
    def knows_all(self) -> bool:
        """Whether a file that is not in the ledger has no record here."""

    @property
    def unread(self) -> bool:
        """Whether archives may have more members than are known now."""

    def settle(self) -> None:
        """Ensure that the ledger's rows of this dataset are correct."""

    def fetch(self, ids: Sequence[DatafileId]) -> None:
        """Request records that `find` is going to return, if `wants` returns true."""

    def wants(self, ids: Sequence[DatafileId]) -> bool:
        """Return whether requesting these records is the cheapest way to them."""

    def add(self, ids: Sequence[DatafileId], found: Iterable[Datafile]) -> None:
        """Add the records that were requested by these ids; `found` may have others as well."""

    def find(self, file: LocalFile) -> Datafile | None:
        """Return the record of this name."""

    def place(self, file: LocalFile) -> str:
        """Return where the transport puts the bytes of a file without a record."""

    def find_obstacle(self, record: Datafile) -> Problem | None:
        """Return why a file must not be replaced whose record has no replica in our storage box."""

    def is_archive(self, file: LocalFile) -> bool:
        """Return whether a local file has the name of an archive of other files."""

    def find_archive(self, path: str) -> tuple[ArchiveRecord | None, Datafile | None]:
        """Return an archive of the ledger, and the catalogue's record of it."""

    def find_verified(self, path: str) -> ArchiveRecord | None:
        """Return an archive whose bytes are verified, according to the ledger."""


class BroughtBack(NamedTuple):
    """What stands for kept bytes that are in their place again, and what is kept instead of them.

    The times of `newer` are still 0; it is None if nothing was in their place.
    """

    datafile: DatafileId
    newer: KeptCopy | None


class Catalogue(Protocol):
    """The catalogue of a run's destination; from any thread.

    Methods raise `ItemError` if only these files or records are concerned, and wait at the gate
    while the catalogue is unavailable.
    """

    verifiers: int  # workers of `verify`

    @property
    def contradicted(self) -> int:
        """The number of files known as verified that `audit` found not to be."""

    def look_up(self, folder: DatasetFolder) -> FolderView:
        """Return the records of a folder's dataset, which is created if it is missing.

        Raises `FolderExcludedError` for a folder to be excluded.
        """

    @property
    def register(self) -> Stage:
        """The stage that creates or changes the records of files whose bytes have arrived.

        Files that are registered already pass. What cannot be registered is reported by events.
        """

    @property
    def verify(self) -> Stage:
        """The stage that waits for the proof of bytes.

        It yields proven files, and in batches of their own those to be sent or registered again.
        What is not proven in time is reported by events.
        """

    def fetch_records(self, ids: Sequence[DatafileId], *, sure: bool = False) -> list[Datafile]:
        """Return those of these records that exist; with `sure`, all of these are returned.

        Otherwise missing permissions may be the reason why one is not.
        """

    def withdraw(self, remotes: Sequence[str]) -> None:
        """Say nothing more about the bytes at these places, which are about to be replaced.

        That is durable when this returns.
        """

    def bring_back(self, copy: KeptCopy) -> BroughtBack | None:
        """Put kept bytes in their place again, and keep the present ones instead.

        None if that needs a channel, and a change of the record. Raises `ItemError` if these bytes
        are not what was kept, or cannot be put there; nothing is lost then.
        """

    def change_records(self, changes: Sequence[Registration]) -> None:
        """Change existing records in one request."""

    def request_verification(self, ids: Sequence[DatafileId]) -> None:
        """Request that the bytes of these records are verified again."""

    def note_new(self, entries: Sequence[Entry]) -> None:
        """Let `audit` check some of these rows, whose records were new to the ledger."""

    def audit(self) -> None:
        """Do one step of checking records that the ledger believes without having seen more."""

    def finish_audit(self) -> None:
        """Wait for results of `audit` for a limited time, at the end of a run."""
