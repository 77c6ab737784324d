"""What the manifest of a destination lists, in memory: all files, with their newest lines."""

import struct
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from mydata_like.catalogues.manifest.segments import (
    MARKER,
    DestinationMarker,
    Manifest,
    read_marker,
)
from mydata_like.core.destination_files import DestinationFiles
from mydata_like.core.errors import Problem, StagingError
from mydata_like.core.local_files import bounded_ns

_LINE: Final = struct.Struct(">QIq")  # size, number of the segment, time; the checksum follows


@dataclass(slots=True)
class Segment:
    """A segment of the manifest, and its chosen files that a check has left or found wrong."""

    name: str
    at: int
    left: int = 0
    wrong: int = 0


class Listing:
    """What the manifest lists: about 190 bytes of memory and the path for each file.

    The files are in the order of their segments.
    """

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self._lines: dict[bytes, bytes] = {}

    def read(self, manifest: Manifest, wanted: Collection[bytes] | None = None) -> Iterator[int]:
        """Read the manifest, or only what it has of some files; yield how many are known."""
        for name, listed in manifest.read_segments():
            number = len(self.segments)
            self.segments.append(Segment(name, 0))
            for it in listed:
                self.segments[number].at = it.at
                if wanted is not None and it.path not in wanted:
                    continue
                line = self._lines.get(it.path)
                if line is not None:
                    if self.segments[_LINE.unpack_from(line)[1]].at > it.at:
                        continue
                    del self._lines[it.path]  # so that it comes after those of earlier segments
                file, checksum = it.proven
                line = _LINE.pack(file.size, number, bounded_ns(file.modified_ns))
                self._lines[it.path] = line + bytes.fromhex(checksum)
            yield len(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, path: bytes) -> bool:
        return path in self._lines

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._lines)

    def find(self, path: bytes) -> tuple[str, int, Segment]:
        """Return the checksum, size and segment of a listed file."""
        line = self._lines[path]
        size, number, _ = _LINE.unpack_from(line)
        return line[_LINE.size :].hex(), size, self.segments[number]

    def find_modified(self, path: bytes) -> int:
        """Return when a listed file was modified, as its system told when it was proven."""
        return int(_LINE.unpack_from(self._lines[path])[2])


def require_marker(files: DestinationFiles, name: str) -> DestinationMarker:
    """Return the marker of a destination, whose algorithm is used from now on.

    Raises `StagingError` if it has none that this version understands.
    """
    marker = read_marker(files.read(MARKER))
    if not marker.id:
        raise StagingError(
            f"{name} is not a destination of mydata-like copy: it has no marker.",
            hint="Check the path, and that its disk is mounted. Destinations have a folder "
            ".mydata-like.",
            code="destination.unmarked",
        )
    files.use(marker.algorithm)
    return marker


def read_listing(
    files: DestinationFiles,
    name: str,
    damaged: list[Problem],
    report: Callable[[int], None],
) -> Listing:
    """Return what the manifest lists; its `damaged` segments are added to the list.

    `report` is called with the number of files that are known so far. Raises `StagingError` for a
    manifest that lists nothing.
    """
    listing = Listing()
    for known in listing.read(Manifest(files, "", damaged.append)):
        report(known)
    if not len(listing) and not damaged:
        raise StagingError(
            f"The manifest of {name} lists no files.",
            hint="mydata-like copy lists files once they are proven: run it again.",
            code="destination.no-manifest",
        )
    return listing
