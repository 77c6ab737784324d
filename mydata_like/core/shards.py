"""Splits a data directory among runs that do not talk to one another.

The unit is what becomes one experiment: a server lets two programs that look at the same time
make the same experiment twice, so all its datasets are one shard's. Experiments whose titles are
the same stay together, since only the server knows whether their owners are.
"""

import hashlib
import re
from typing import NamedTuple, Self

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
