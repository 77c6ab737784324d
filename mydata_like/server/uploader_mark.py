"""The mark on the server of a run over a data directory that is read-only.

The mark is a setting of the uploader, renewed during the run. Every uploader can read the marks of
all others, so another computer that reaches the same data notices the run. The same data is
recognized by the file ids of the folders in the data directory, which the file server assigns.
"""

import hashlib
import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Final, NamedTuple, Self

from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.parsing import parse_json
from mydata_like.server.responses import plain

KEY: Final = "mydata_like_at_work"  # the prefix of the names of these settings
EXPIRY: Final = timedelta(minutes=5)  # after which a mark that was not renewed is invalid
_FOLDERS: Final = 8  # in a mark; one common folder is enough
_WHO: Final = 160


class UploaderMark(NamedTuple):
    """Digests of folders, and who works on them, on which computer and on which shard.

    `renewals` grows, so that each renewal changes the setting on the server.
    """

    folders: frozenset[str]
    who: str
    host: str
    shard: Shard = WHOLE
    renewals: int = 0

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the mark in a setting; None if it is empty or cannot be parsed."""
        try:
            found = parse_json(text)
            return cls(
                frozenset(map(str, found["folders"])),
                plain(found["who"], _WHO),
                str(found["host"]),
                Shard(*map(int, found["shard"])),
                int(found["renewals"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def format(self) -> str:
        """Return the setting."""
        return json.dumps(self._asdict() | {"folders": sorted(self.folders)})

    @property
    def key(self) -> str:
        """The setting's name."""
        return KEY + (f"_{self.shard.number}_of_{self.shard.total}" if str(self.shard) else "")

    def overlaps(self, other: Self) -> bool:
        """Return whether both work on some of the same files."""
        apart = self.shard.total == other.shard.total and self.shard != other.shard
        return bool(self.folders & other.folders) and not apart


def digest_folders(folder: int, inside: Iterable[tuple[bytes, int]]) -> frozenset[str]:
    """Return digests that identify a folder: its file id, with names and ids of its subfolders."""
    texts = (f"{folder} {number} ".encode() + name for name, number in sorted(inside)[:_FOLDERS])
    return frozenset(hashlib.sha256(text).hexdigest()[:16] for text in texts)
