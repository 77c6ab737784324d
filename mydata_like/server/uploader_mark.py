"""What the server remembers of a run over a data directory into which nothing can be written.

It is a setting of the uploader, renewed while the run lasts. Every uploader sees those of all
others, so who reaches the same data another way learns that somebody is at work on it. The same
data are known by the file ids of the folders in the data directory, which the file server gives.
"""

import hashlib
import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Final, NamedTuple, Self

from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.parsing import parse_json
from mydata_like.server.responses import plain

KEY: Final = "mydata_like_at_work"  # what the names of these settings begin with
EXPIRY: Final = timedelta(minutes=5)  # after which one that was not renewed counts no longer
_FOLDERS: Final = 8  # that are told of; one that both know is enough
_WHO: Final = 160


class UploaderMark(NamedTuple):
    """Digests of folders, who is at work on them, on which computer, and on which shard.

    `renewals` grows, so that the server takes note of each renewal.
    """

    folders: frozenset[str]
    who: str
    host: str
    shard: Shard = WHOLE
    renewals: int = 0

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the mark of a setting; None for what nobody can read, or for none."""
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
    """Return what tells a folder from others: its file id, with names and ids of those in it."""
    texts = (f"{folder} {number} ".encode() + name for name, number in sorted(inside)[:_FOLDERS])
    return frozenset(hashlib.sha256(text).hexdigest()[:16] for text in texts)
