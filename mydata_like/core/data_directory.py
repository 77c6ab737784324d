"""Shards of a data directory, the spelling of paths in it, and the lock files of runs."""

import hashlib
import os
import re
import sys
import unicodedata
import zlib
from pathlib import Path
from typing import Final, NamedTuple, Self

from mydata_like.core.model import DatasetFolder


class Shard(NamedTuple):
    """The part of a data directory that one of `total` runs uploads; numbers begin with 1."""

    number: int
    total: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `2/4`; raises ValueError for anything else, and for `0/4` and `5/4`."""
        if not re.fullmatch(r"[0-9]{1,9}/[0-9]{1,9}", text):
            raise ValueError(text)
        shard = cls(*map(int, text.split("/")))
        if not 1 <= shard.number <= shard.total:
            raise ValueError(text)
        return shard

    def __str__(self) -> str:
        """Return the shard in the form of the option; empty for the whole directory."""
        return "" if self.total == 1 else f"{self.number}/{self.total}"

    @property
    def place(self) -> str:
        """The folder of its ledger and lock in the state folder; empty for the whole directory."""
        return "" if self.total == 1 else f"shard-{self.number}-of-{self.total}"

    @property
    def leads(self) -> bool:
        """Whether this shard reports on what is outside all dataset folders."""
        return self.number == 1

    def has(self, folder: DatasetFolder) -> bool:
        """Return whether this dataset folder belongs to this shard; the same on every computer."""
        # Servers compare owners case-insensitively.
        unit = folder.owner.casefold() if folder.title is None else folder.title
        digest = hashlib.sha256(unit.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.total == self.number - 1

    def has_file(self, path: bytes) -> bool:
        """Return whether a file belongs to this shard, by its path below the folder of its source.

        The same on every computer, wherever the folder is mounted.
        """
        return zlib.crc32(path) % self.total == self.number - 1


WHOLE = Shard(1, 1)


_NAME: Final = re.compile(rb"\.mydata-like(-[0-9a-z-]+)?\.lock")
_SHARD: Final = re.compile(r"\.mydata-like-(\d+)-of-(\d+)\.lock")


def lock_name(shard: Shard) -> str:
    """Return the name of the lock file of a shard, or of the whole directory."""
    part = "" if shard == WHOLE else f"-{shard.number}-of-{shard.total}"
    return f".mydata-like{part}.lock"


def read_lock_name(name: str) -> Shard | None:
    """Return the shard that a file of this name locks, or None if it is not a lock file."""
    if name == lock_name(WHOLE):
        return WHOLE
    found = _SHARD.fullmatch(name)
    return Shard(int(found[1]), int(found[2])) if found else None


def is_lock_name(name: bytes) -> bool:
    """Return whether a name is that of a lock file, which is not data."""
    return _NAME.fullmatch(name) is not None


def spell_as_listed(root: Path, below: Path) -> Path:
    """Return a path below a folder as its folders list it, since scans report these names.

    Windows and macOS usually ignore the case of letters, and macOS the form of composed ones. Names
    that are not there stay as they are.
    """
    if sys.platform not in ("win32", "darwin"):
        return below
    spelled = Path()
    for name in below.parts:
        spelled /= _find_listed(root / spelled, name)
    return spelled


def find_key(root: Path, path: Path) -> bytes | None:
    """Return the ledger's key of a path in the data directory, None for a path outside.

    Links are not resolved; only the name of the path matters.
    """
    try:
        below = Path(os.path.normpath(Path.cwd() / path)).relative_to(os.path.normpath(root))
    except ValueError:
        return None
    return b"" if below == Path() else os.fsencode(spell_as_listed(root, below).as_posix())


def spell_completely(path: Path) -> Path:
    """Return a complete path as its folders list it, with the letter of a drive in upper case."""
    anchor = Path(path.anchor.upper() if path.drive.endswith(":") else path.anchor)
    return anchor / spell_as_listed(anchor, path.relative_to(path.anchor))


def _find_listed(folder: Path, name: str) -> str:
    if not os.path.lexists(folder / name):
        return name
    folded = _fold(name)
    try:
        alike = [listed.name for listed in folder.iterdir() if _fold(listed.name) == folded]
    except OSError:
        return name
    return name if name in alike or not alike else alike[0]


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
