"""A file on its way: its temporary name, and its chunks, none of which makes a torn file whole."""

import hashlib
from collections.abc import Iterable, Iterator

from mydata_like.transfer.archive import ArchiveSource, Told
from mydata_like.transfer.protocol import Member, Moving
from mydata_like.transfer.reading import Source


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


class Sealed:
    """The chunks of a source, the last only once the file is known to have stayed the same."""

    def __init__(self, source: Source | ArchiveSource, chunks: Iterator[memoryview]) -> None:
        self._source = source
        self._chunks = chunks
        self._checksum = ""

    @property
    def told(self) -> Told:
        """What reading told, after the last chunk."""
        return Told(self._checksum or self._source.finish(), self._source.inside)

    def __iter__(self) -> Iterator[memoryview]:
        for chunk in self._chunks:
            if not self._source.remaining and not self._checksum:
                self._checksum = self._source.finish()
            yield chunk


def alive(chunks: Iterable[memoryview], moving: Moving) -> Iterator[memoryview]:
    """Pass chunks on; even empty ones are signs of life."""
    for chunk in chunks:
        moving(0)
        yield chunk
