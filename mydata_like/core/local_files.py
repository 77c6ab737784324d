"""What the disk has, as it travels to the channel workers: files, and what came of reading them.

Apart from `core.model`, which is known to everything else: a worker starts a fifth faster
without what is only needed in the engine.
"""

from typing import NamedTuple

from mydata_like.core.errors import Problem


class LocalFile(NamedTuple):
    """What the disk has: one regular file, as it was when it was seen."""

    path: bytes  # absolute
    key: bytes  # relative to the data directory, absolute outside of it; the ledger's key
    directory: bytes  # of the file, relative to its dataset folder, b"" at the top
    name: bytes
    size: int
    modified_ns: int
    device: int
    inode: int
    ctime_ns: int = 0  # when the system last noted a change of content or attributes
    top: int = 0  # how much of its path is trusted, as `core.openat` says


def signed(inode: int) -> int:
    """Return an inode as the ledger keeps it, in 63 bits; Windows may have longer ones."""
    return inode & 0x7FFF_FFFF_FFFF_FFFF


def bounded_ns(moment_ns: int) -> int:
    """Return a file's time as the ledger keeps it, in 64 bits: the years from 1678 to 2261.

    File systems have others: NTFS begins in 1601, ext4 ends in 2446.
    """
    return min(max(moment_ns, -(2**63)), 2**63 - 1)


class ArchiveMember(NamedTuple):
    """One local file of an archive, and the name that it has there."""

    file: LocalFile
    name: bytes
    checksum: str = ""  # empty until it has been read


class Reading(NamedTuple):
    """What came of reading one file: its checksum, or why what was read is worthless."""

    checksum: str
    problem: Problem | None = None
