"""Archives for tests, made of settled local files."""

import hashlib
import os
from pathlib import Path

from mydata_like.core.local_files import ArchiveMember, LocalFile
from mydata_like.transfer.archive_writer import ArchiveSource
from tests.settled import settle

NAME = b"Set 1-0123abcd-0001.tar"
MODIFIED_NS = 1_600_000_000_123_456_700  # in units of 100 ns, as NTFS stores it


def a_member(folder: Path, name: bytes, content: bytes) -> ArchiveMember:
    path = folder / hashlib.sha256(name).hexdigest()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(MODIFIED_NS, MODIFIED_NS))
    seen = path.stat()
    file = LocalFile(
        os.fsencode(path), b"", b"", b"", len(content), MODIFIED_NS, seen.st_dev, seen.st_ino
    )
    return ArchiveMember(file, name)


def members_of(folder: Path, contents: dict[bytes, bytes]) -> list[ArchiveMember]:
    members = [a_member(folder, name, content) for name, content in sorted(contents.items())]
    if members:
        settle(Path(os.fsdecode(members[-1].file.path)))
    return members


def write(members, size=256 * 1024, name=NAME) -> tuple[bytes, ArchiveSource, str]:
    source = ArchiveSource(name, MODIFIED_NS, members)
    content = b"".join(bytes(chunk) for chunk in source.chunks(bytearray(size)))
    return content, source, source.finish()
