"""Temporary names, and the last chunk that is held back until a file is known to be unchanged."""

import hashlib
from collections.abc import Iterable, Iterator

from mydata_like.transfer.archive_writer import ArchiveSource
from mydata_like.transfer.file_source import FileSource
from mydata_like.transfer.worker_messages import Member


def part_name(member: Member) -> bytes:
    """Return the temporary name of a file: the same for every attempt to send the same bytes.

    It begins with the mark of the uploader that sends it.
    """
    text = b"%b\0%d\0%d" % (member.remote, member.size, member.modified_ns)
    digest = hashlib.sha256(text).hexdigest().encode()
    return b".mydata-%b.part" % (member.mark + digest)[:32]


def owner_mark(owner: str) -> bytes:
    """Return the mark of an uploader, of which the uuid is given: eight hexadecimal digits."""
    return hashlib.sha256(owner.encode()).hexdigest()[:8].encode() if owner else b""


def hold_back(
    source: FileSource | ArchiveSource, chunks: Iterable[memoryview]
) -> Iterator[memoryview]:
    """Yield chunks of a source, the last only once the file is known to have stayed the same."""
    for chunk in chunks:
        if not source.remaining:
            source.finish()
        yield chunk
