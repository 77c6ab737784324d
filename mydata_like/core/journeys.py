"""What is known of one local file or folder, from the disk to the server."""

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from mydata_like.core.errors import Problem
from mydata_like.core.model import Entry


class Here(StrEnum):
    """What the disk says of a file that the ledger knows, or does not know."""

    SAME = "same"
    CHANGED = "changed"  # since it was sent
    GONE = "gone"
    NEW = "new"  # the ledger has never heard of it


class Unknown(StrEnum):
    """Why nothing is known of a path."""

    OUTSIDE = "outside"  # of the data directory, and of all that was dropped
    UNSEEN = "unseen"  # it is there, and no run has come across it
    ABSENT = "absent"  # neither the disk nor the ledger has it


class Times(NamedTuple):
    """When a file reached each step, in seconds since 1970; None where nobody knows."""

    staged: int | None = None
    registered: int | None = None
    verified: int | None = None


class Ill(NamedTuple):
    """What is not well, as the last run found it; of a folder it concerns all below."""

    kind: str
    problem: Problem
    at: int
    path: bytes = b""


class FileJourney(NamedTuple):
    """One local file; `size` and `modified_ns` are the disk's, else the ledger's."""

    path: Path
    key: bytes
    here: Here
    size: int
    modified_ns: int
    entry: Entry | None = None
    times: Times = Times()
    ill: Ill | None = None
    unknown: Unknown | None = None
    web: str = ""  # the page of its dataset on the server


class Amount(NamedTuple):
    """So many files, of so many bytes."""

    files: int = 0
    bytes: int = 0


class FolderJourney(NamedTuple):
    """A folder with all below it, by sums; `states` are those of the ledger, and kinds of ill."""

    path: Path
    key: bytes
    states: dict[str, Amount]
    ill: Ill | None = None
    unknown: Unknown | None = None
    web: str = ""  # where all of it is in one dataset: that one's page

    @property
    def known(self) -> Amount:
        """All files of which something is known."""
        return Amount(*map(sum, zip(*self.states.values(), strict=True))) if self.states else NONE

    @property
    def verified(self) -> Amount:
        return self.states.get("verified", NONE)


NONE = Amount()
Journey = FileJourney | FolderJourney


class Suggestion(NamedTuple):
    """A file or folder whose name has what a person has typed so far."""

    key: bytes
    size: int
    state: str
    folder: bool = False
