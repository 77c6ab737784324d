"""Settled local files, and a local staging area."""

import hashlib
import os
import random
from pathlib import Path

from mydata_like.transfer.worker_messages import Member
from tests.settled import settle

MODIFIED = 1_600_000_000


class Place:
    """A folder of local files, and a folder that serves as the staging area."""

    def __init__(self, root: Path) -> None:
        self.source = root / "source"
        self.location = root / "staging area's"
        self.source.mkdir()
        self._random = random.Random(1)

    def write(self, remote: str, size: int, content: bytes | None = None) -> Member:
        """Write a local file to send to `remote`; call `settle` before it is sent."""
        path = self.source / hashlib.sha256(remote.encode()).hexdigest()
        path.write_bytes(self._random.randbytes(size) if content is None else content)
        os.utime(path, (MODIFIED, MODIFIED))
        return self.member(path, remote)

    def member(self, path: Path, remote: str) -> Member:
        seen = path.stat()
        return Member(
            os.fsencode(path),
            seen.st_size,
            seen.st_mtime_ns,
            seen.st_dev,
            seen.st_ino,
            os.fsencode(remote),
        )

    def settle(self, *members: Member) -> list[Member]:
        settle(*(Path(os.fsdecode(member.path)) for member in members[-1:]))
        return list(members)

    def there(self, member: Member) -> Path:
        return self.location / os.fsdecode(member.remote)

    def arrived(self, member: Member) -> bool:
        """Return whether the member is in the staging area with the same bytes."""
        there = self.there(member)
        here = Path(os.fsdecode(member.path))
        return there.is_file() and there.read_bytes() == here.read_bytes()


def checksum(member: Member) -> str:
    return hashlib.md5(Path(os.fsdecode(member.path)).read_bytes()).hexdigest()
