"""Takes files out of archives: below one folder, and never over what is there."""

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from mydata_like.core.archives import Indexed
from mydata_like.core.errors import ArchiveError
from mydata_like.core.formatting import format_path
from mydata_like.transfer.unarchive import ArchiveFile

_FLAGS: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)
_PART: Final = ".mydata-part-"  # a file has its name only once its checksum is known to be right


def verify_member(archive: ArchiveFile, member: Indexed) -> None:
    """Read a member; raises `ArchiveError` where its bytes are not those of its checksum."""
    _check_known(member)
    for _ in archive.content(member):
        pass


def extract_member(archive: ArchiveFile, member: Indexed, target: Path) -> None:
    """Write a member below a folder, with the folders above it and its time.

    Links on the way are not followed, and what exists stays as it is. Raises `ArchiveError`.
    """
    _check_known(member)
    place = _find_place(member.name, target)
    part = place.with_name(_PART + secrets.token_hex(8))  # short: its name may have all 255 bytes
    try:
        _make_folders(place.parent, target)
        if os.path.lexists(place):
            raise FileExistsError(None, "it exists already")
        _write(archive, member, part, place)
    except OSError as error:
        raise ArchiveError(
            f"{format_path(member.name)} cannot be written: {error.strerror or error}.",
            hint="Choose an empty folder on a disk with room.",
            code="archive.unwritable",
        ) from error


def _check_known(member: Indexed) -> None:
    if not member.checksum:
        raise ArchiveError(
            f"{format_path(member.name)} changed while it was put into the archive.",
            hint="A later archive or datafile of its dataset has it.",
            code="archive.changed-member",
        )


def _find_place(name: bytes, target: Path) -> Path:
    """Return where a member goes; its name is known to be relative, of plain components."""
    if os.sep != "/" and (b"\\" in name or b":" in name):
        raise ArchiveError(
            f"{format_path(name)} is no name that this system can give to a file.",
            hint="Extract the archive on another system.",
            code="archive.unwritable",
        )
    return target.joinpath(*map(os.fsdecode, name.split(b"/")))


def _make_folders(folder: Path, target: Path) -> None:
    """Make the folders from the target on; raises OSError for what is there and no folder."""
    target.mkdir(parents=True, exist_ok=True)
    path = target
    for name in folder.relative_to(target).parts:
        path = path / name
        path.mkdir(exist_ok=True)
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise NotADirectoryError(None, f"{path.name} is no folder")


def _write(archive: ArchiveFile, member: Indexed, part: Path, place: Path) -> None:
    """Write a member under a temporary name, of which nothing is left, then give it its own."""
    descriptor = os.open(part, _FLAGS, 0o666)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - it is open already
            for chunk in archive.content(member):
                file.write(chunk)
        os.utime(part, ns=(member.modified_ns, member.modified_ns))
        part.rename(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
