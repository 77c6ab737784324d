"""The names of the lock files that a run keeps in the data directory."""

import hashlib
import re
from typing import Final, NamedTuple, Self

from mydata_like.core.model import DatasetFolder


class Shard(NamedTuple):
    """The part of a data directory that one of `total` runs carries; the first is number 1."""

    number: int
    total: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `2/4`; raises ValueError for anything else, and for `0/4` and `5/4`."""
        if not re.fullmatch(r"[0-9]{1,9}/[0-9]{1,9}", text):
            raise ValueError(text)
        shard = cls(*map(int, text.split("/")))
        if not 1 <= shard.number <= shard.total:
            raise ValueError(text)
        return shard

    def __str__(self) -> str:
        """Return the shard as it is asked for; nothing for the whole."""
        return "" if self.total == 1 else f"{self.number}/{self.total}"

    @property
    def place(self) -> str:
        """The folder of its ledger and lock below that of the state; none for the whole."""
        return "" if self.total == 1 else f"shard-{self.number}-of-{self.total}"

    @property
    def leads(self) -> bool:
        """Whether this shard tells what lies above and beside all dataset folders."""
        return self.number == 1

    def has(self, folder: DatasetFolder) -> bool:
        """Return whether this dataset folder is of this shard, on whatever computer it is asked."""
        # Servers compare owners without regard to case.
        unit = folder.owner.casefold() if folder.title is None else folder.title
        digest = hashlib.sha256(unit.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.total == self.number - 1


WHOLE = Shard(1, 1)


_NAME: Final = re.compile(rb"\.mydata-like(-[0-9a-z-]+)?\.lock")
_SHARD: Final = re.compile(r"\.mydata-like-(\d+)-of-(\d+)\.lock")


def lock_name(shard: Shard) -> str:
    """Return the name of the lock file of a shard, or of the whole."""
    part = "" if shard == WHOLE else f"-{shard.number}-of-{shard.total}"
    return f".mydata-like{part}.lock"


def read_lock_name(name: str) -> Shard | None:
    """Return what a file of this name locks, None where it is no lock."""
    if name == lock_name(WHOLE):
        return WHOLE
    found = _SHARD.fullmatch(name)
    return Shard(int(found[1]), int(found[2])) if found else None


def is_lock_name(name: bytes) -> bool:
    """Return whether a file of this name is one of ours: it is no data."""
    return _NAME.fullmatch(name) is not None
