"""Values exchanged with channel workers: local files, and the results of reading them.

They are separate from `core.model`, because a worker starts a fifth faster without what only the
engine needs.
"""

from typing import NamedTuple

from mydata_like.core.errors import Problem


class LocalFile(NamedTuple):
    """One regular file on the disk, as it was when it was scanned."""

    path: bytes  # absolute
    key: bytes  # relative to the data directory, or absolute outside it; the ledger's key
    directory: bytes  # of the file, relative to its dataset folder, b"" at the top
    name: bytes
    size: int
    modified_ns: int
    device: int
    inode: int
    ctime_ns: int = 0  # when the system last recorded a change of content or attributes
    top: int = 0  # how many bytes of its path are trusted, see `core.openat`
    mode: int = 0  # type and permissions; 0 if they are unknown


_FIRST_NS, _LAST_NS = -(2**63), 2**63 - 1


def signed(inode: int) -> int:
    """Return an inode as stored in the ledger, in 63 bits; inodes of Windows may be longer."""
    return inode & 0x7FFF_FFFF_FFFF_FFFF


def bounded_ns(moment_ns: int) -> int:
    """Return a file's time as stored in the ledger, in 64 bits: the years 1678 to 2261.

    File systems have a wider range: NTFS begins in 1601, ext4 ends in 2446.
    """
    if _FIRST_NS <= moment_ns <= _LAST_NS:  # faster than `min` and `max`, and it is for each file
        return moment_ns
    return _FIRST_NS if moment_ns < 0 else _LAST_NS


class ArchiveMember(NamedTuple):
    """One local file of an archive, and its name in the archive."""

    file: LocalFile
    name: bytes
    checksum: str = ""  # empty until it has been read


class Reading(NamedTuple):
    """The result of reading one file: its checksum, or why the bytes read are invalid."""

    checksum: str
    problem: Problem | None = None
