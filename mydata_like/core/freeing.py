"""What freeing space is about: local files, what becomes of them, and what it needs of the disk."""

from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from mydata_like.core.errors import Problem
from mydata_like.core.model import DatafileId, Entry
from mydata_like.core.ports import Cancel


class Found(NamedTuple):
    """A local file whose deletion is asked for; with a problem it is kept without a question."""

    key: bytes
    size: int
    problem: Problem | None = None


class Freed(NamedTuple):
    """A local file that was deleted, or would have been, and where its bytes are."""

    key: bytes
    size: int
    entry: Entry
    datafile: DatafileId


class Spared(NamedTuple):
    """A local file that stays, and why."""

    key: bytes
    size: int
    problem: Problem


class Held(Protocol):
    """One local file, open, whose name still leads to it."""

    def measure(self, cancel: Cancel) -> str:
        """Read it to its end and return the checksum; raises `ItemError` where it changed."""

    def delete(self) -> None:
        """Delete exactly this file, unless it has changed since `measure`; raises `ItemError`."""


class Disk(Protocol):
    """The local files."""

    def hold(self, entry: Entry) -> AbstractContextManager[Held]:
        """Open the file that the ledger speaks of; raises `ItemError` where it is another one."""


class Deeds(Protocol):
    """What lasts of every deletion."""

    def note(self, freed: Freed) -> None:
        """Keep that a file is about to be deleted."""

    def take_back(self, freed: Freed, problem: Problem) -> None:
        """Keep that it was not."""
