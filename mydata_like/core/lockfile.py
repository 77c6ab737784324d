"""The names of the lock files that a run keeps in the data directory."""

import re
from typing import Final

from mydata_like.core.shards import WHOLE, Shard

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
