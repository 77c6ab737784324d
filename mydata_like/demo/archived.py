"""What archives on the server hold, read with Python's own tarfile: another reader than ours."""

import hashlib
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_NAME = re.compile(r".+-[0-9a-f]{8}-[0-9]{4,}\.tar", re.DOTALL)


class ArchivedFile(NamedTuple):
    """A file within an archive; `sound` says that its bytes are those of its checksum."""

    directory: str  # below its dataset
    filename: str
    size: int
    md5sum: str
    modified_ns: int
    sound: bool


def is_archive(filename: str) -> bool:
    """Return whether a datafile is an archive, by its name."""
    return _NAME.fullmatch(filename) is not None


def list_archived(path: Path) -> Iterator[ArchivedFile]:
    """Yield the files of an archive, without those that its index calls changed."""
    with tarfile.open(path) as archive:
        *members, last = archive.getmembers()
        index = json.loads(_read(archive, last))
        for member, told in zip(members, index["members"], strict=True):
            _, _, below = member.name.partition("/")
            directory, _, filename = below.rpartition("/")
            if "md5" in told:
                md5sum = hashlib.md5(_read(archive, member), usedforsecurity=False).hexdigest()
                sound = (told["name"], told["offset"]) == (member.name, member.offset_data)
                yield ArchivedFile(
                    directory,
                    filename,
                    member.size,
                    told["md5"],
                    told["modified_ns"],
                    sound and md5sum == told["md5"],
                )


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file else b""
