"""The port to the files of a destination that has no server: what its own system does with them."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, Protocol

from mydata_like.core.checksums import Algorithm
from mydata_like.core.errors import Problem
from mydata_like.core.formatting import format_path

OWN_FOLDER: Final = b".mydata-like"  # of this program, at the top of a destination
DESTINATION_MARKER: Final = b"destination.json"  # in it
SERVICE: Final = "service"  # the evidence of what was not read: the service told its checksum
OCCUPIED: Final = "destination.occupied"
EVIDENCE: Final = ("read-back-cached", "read-back", SERVICE, "host")  # from weak to strong
_PRIME: Final = 2**38 - 45  # the largest below 2**38
PART: Final = 500  # files of a part of a listing, if their paths do not divide it


class StoredFile(NamedTuple):
    """A regular file at the destination, as its system reports it; times are its system's own.

    `path` is relative to the destination. An object has a `tag`, its ETag without quotes, in place
    of ctime and inode.
    """

    path: bytes
    size: int
    modified_ns: int
    ctime_ns: int
    inode: int
    tag: str = ""

    @property
    def mark(self) -> int:
        """A number in 62 bits that differs whenever content or attributes of the file differ.

        That of two files differs as well.
        """
        path, size, modified_ns, ctime_ns, inode, tag = self
        if tag or not inode:
            text = f"{size} {modified_ns} {ctime_ns} {inode} {tag} ".encode()
            digest = hashlib.blake2b(text + path, digest_size=8).digest()
            return int.from_bytes(digest, "big") >> 2 or 1
        # A sum of products with random factors, modulo a prime, is a hash of four numbers. The time
        # comes first, since files that are placed one after the other are so found together.
        products = size * 262434859364 + modified_ns * 272285554506
        products += ctime_ns * 160932662784 + inode * 113060797247
        return ctime_ns // 10**9 % 2**24 << 38 | products % _PRIME or 1

    def is_as_placed(self, before: "StoredFile") -> bool:
        """Return whether this is that file with another name, which changes its ctime."""
        return (self.inode, self.size, self.modified_ns) == (
            before.inode,
            before.size,
            before.modified_ns,
        )


class ListedPart(NamedTuple):
    """A part of a listing: a digest of paths and attributes of its files, and their number.

    `read` returns the files. Another listing has a part with the same digest only if it has all of
    these files with the same attributes.
    """

    digest: bytes
    files: int
    read: Callable[[], Sequence[StoredFile]]


def divide_listing(files: Iterator[StoredFile]) -> Iterator[ListedPart]:
    """Yield a listing in parts."""
    while part := tuple(islice(files, PART)):
        text = repr([tuple(file) for file in part]).encode()
        yield ListedPart(digest_part(text), len(part), partial(tuple, part))


def digest_part(text: bytes) -> bytes:
    """Return the digest of what a listing says about some files."""
    return hashlib.blake2b(text, digest_size=16).digest()


class ProvenFile(NamedTuple):
    """A stored file, and the checksum of its bytes, computed there after our last write."""

    file: StoredFile
    checksum: str


class Placement(NamedTuple):
    """A temporary file that is to get its final name; both paths are relative to the destination.

    `mode` are its permissions then. `size` and `checksum` are those of the bytes that were sent,
    for `prove_and_place`, where an empty `final` means that the file has its name already.
    """

    temporary: bytes
    final: bytes
    mode: int = 0
    size: int = 0
    checksum: str = ""

    def is_right(self, proven: ProvenFile | None) -> bool:
        """Return whether these are the bytes that were sent."""
        return proven is not None and (proven.checksum, proven.file.size) == (
            self.checksum,
            self.size,
        )


def describe_occupied(path: bytes) -> Problem:
    """Return the problem of a name that is taken."""
    return Problem(
        OCCUPIED,
        f"Something else has the name {format_path(path)} at the destination.",
        "Nothing was replaced. Rename or delete one of the two.",
    )


class TreeFolder(NamedTuple):
    """A folder at the destination, with its permissions and modification time."""

    path: bytes
    mode: int
    modified_ns: int


class TreeLink(NamedTuple):
    """A symbolic link at the destination, and what it contains."""

    path: bytes
    target: bytes


HOLE: Final = bytes(1024 * 1024)  # a piece of a hole, which was not sent

# Takes what it can of the members of a tar stream, which begins somewhere in some bytes; returns
# how many bytes it has taken, and the paths.
Unpack = Callable[[bytes, int], tuple[int, Sequence[bytes]]]


class StoredContent(NamedTuple):
    """The bytes of a stored file, and what else is kept of it.

    `mode` are its permissions, if it has any. `modified_ns` is None unless the destination knows
    the time of the original better than the manifest. It is `sparse` if it has holes; some `pieces`
    may be `HOLE` then. Only the manifest tells how many bytes in `pieces` are right.
    """

    path: bytes
    pieces: Iterator[bytes]
    mode: int | None = None
    modified_ns: int | None = None
    sparse: bool = False


class DestinationFiles(Protocol):
    """The files of a destination: a folder, on a host or mounted here, or objects in a bucket.

    Paths are bytes as the system has them, relative to the destination, separated by `/`. Methods
    may be called from any thread; they raise `TransientError` or `ServerUnavailableError` while the
    destination is unavailable, and `StagingError` if only a person can help. Nothing outside of the
    destination is touched, and no symbolic link below it is followed.
    """

    algorithm: Algorithm = Algorithm.MD5  # of all checksums there; see `use`
    concurrent: int = 1  # calls at once that take less time than one after the other

    def use(self, algorithm: Algorithm) -> None:
        """Compute checksums with this algorithm from now on.

        Raises `StagingError` or `SettingsError` if it is not possible there.
        """
        self.algorithm = algorithm

    @property
    def evidence(self) -> str:
        """How `prove` learns checksums: `host`, `read-back`, `read-back-cached` or `service`."""

    @property
    def attributes_complete(self) -> bool:
        """Whether files have a ctime and an inode, or a tag.

        Without them, a file that was rewritten with the same size and time looks unchanged.
        """

    @property
    def is_near(self) -> bool:
        """Whether it is a host with a short round trip, as far as that is known."""
        return False

    @property
    def has_temporary_names(self) -> bool:
        """Whether files are sent under temporary names, and get their final ones by `place`.

        Objects appear under their final names, whole, and replace nothing.
        """
        return True

    def find_own(self, paths: Sequence[bytes]) -> list[bool]:
        """Return which files this program has put under these final names, in the order given.

        Where there are temporary names, it puts no file there that is not proven.
        """
        return [False] * len(paths)

    def recall(self, proven: Iterable[ProvenFile], evidence: str) -> None:
        """Learn from the manifest which checksums belong to the tags of objects."""
        return

    def open(self, *, create: bool) -> None:
        """Check that the destination is a folder that takes files; with `create`, make it."""

    def list_files(self, folder: bytes) -> Iterator[StoredFile]:
        """Yield all regular files below a folder, which may be missing; `b""` is the destination.

        What is below `.mydata-like` at the top of the destination is omitted.
        """

    def list_parts(self, folder: bytes) -> Iterator[ListedPart]:
        """Yield what `list_files` yields, in parts."""
        return divide_listing(self.list_files(folder))

    def look(self, paths: Sequence[bytes]) -> list[StoredFile | None]:
        """Return the attributes of files in the order given; None for what is no regular file."""

    def sync(self) -> None:
        """Return once everything that was written before is on stable storage."""

    def prove(self, paths: Sequence[bytes]) -> list[ProvenFile | None]:
        """Read and hash files where they lie, in the order given; None for one that is missing.

        The attributes are read before and after; if they differ, or the file is not a regular one
        or cannot be read, its result is None.
        """

    def place(self, placements: Sequence[Placement]) -> list[StoredFile | Problem]:
        """Give temporary files their final names, never replacing anything; in the order given.

        Missing folders are made. The problem of a name that is taken, also by a folder or link, has
        the code `destination.occupied`; of a folder on the way that is a link, `destination.link`;
        of a temporary file that is missing, `staging.missing`; of a name that the file system does
        not accept, `destination.name`; of a full one, `staging.full`; of a lack of permission,
        `destination.denied` or `destination.read-only`.

        If this raises, some may have been placed: after that, their temporary files are missing.
        """

    def prove_and_place(self, placements: Sequence[Placement]) -> list[ProvenFile | Problem | None]:
        """Prove files, and give those their final names whose bytes are right; in the order given.

        The result is None for one that is missing or whose bytes are wrong, and the problem, as of
        `place`, for one that did not get its name.
        """
        found = self.prove([it.temporary for it in placements])
        results: list[ProvenFile | Problem | None] = [
            proven if placement.is_right(proven) else None
            for placement, proven in zip(placements, found, strict=True)
        ]
        ready = [at for at, it in enumerate(placements) if it.final and results[at]]
        placed = self.place([placements[at] for at in ready]) if ready else []
        for at, result in zip(ready, placed, strict=True):
            before = found[at]
            assert before is not None
            if isinstance(result, Problem):
                results[at] = result
            elif result.is_as_placed(before.file):
                results[at] = before._replace(file=result)
            else:  # another file has taken its place
                results[at] = describe_occupied(placements[at].final)
        return results

    def set_mode(self, paths: Sequence[bytes], mode: int) -> None:
        """Set the permissions of regular files, as far as the destination allows it."""

    def remove(self, paths: Sequence[bytes]) -> None:
        """Remove files below `.mydata-like`; missing ones count as removed."""

    def read(self, path: bytes) -> bytes | None:
        """Return the content of a file below `.mydata-like`; None if it is missing."""

    def read_all(self, paths: Sequence[bytes]) -> Iterator[bytes | None]:
        """Yield the same for several files, of which some may be read in advance."""
        return map(self.read, paths)

    def open_content(
        self, path: bytes, offset: int = 0
    ) -> AbstractContextManager[StoredContent | None]:
        """Open a file for reading from an offset on; None for what is no regular file.

        Its pieces raise `RejectedError` if it cannot be read.
        """

    def open_contents(
        self, paths: Sequence[bytes], unpack: Unpack | None = None
    ) -> Iterator[StoredContent]:
        """Yield small files, each to be read before the next; some, or all, may be omitted.

        Those are to be opened alone. Where files come as a tar stream, `unpack` is offered all that
        has arrived, and what it takes is not yielded.
        """
        return iter(())

    def list_tree(self, folder: bytes) -> Iterator[TreeFolder | TreeLink]:
        """Yield a folder, and the folders and links below it; nothing where there are none.

        What is below `.mydata-like` at the top of the destination is omitted.
        """
        return iter(())

    def list_own(self, folder: bytes) -> list[bytes]:
        """Return the sorted paths of the files below a folder below `.mydata-like`, from there.

        A folder that is missing has none.
        """

    def write(self, path: bytes, content: bytes, *, replace: bool = False) -> bool:
        """Write a file below `.mydata-like` under a temporary name, flush it, and rename it.

        Unless it may `replace`, return False if the name is taken, and leave that file as it is.
        """

    def write_new(self, path: bytes, content: bytes, others: Sequence[tuple[bytes, bytes]]) -> bool:
        """Write a file unless its name is taken, and then others, which replace theirs.

        Return False if the name is taken; then nothing is written.
        """
        if not self.write(path, content):
            return False
        self.write_all(others)
        return True

    def write_all(self, files: Sequence[tuple[bytes, bytes]]) -> None:
        """Write several files below `.mydata-like`, given with their contents; see `write`.

        They replace those of their names. If this raises, some may have been written.
        """
        for path, content in files:
            self.write(path, content, replace=True)

    @property
    def has_python(self) -> bool:
        """Whether it is on a host that runs programs for Python 3.6; see `run_python`."""
        return False

    def run_python(self, program: bytes, stdin: bytes) -> bytes:
        """Return what such a program prints in the destination, up to a failure."""
        return b""

    def make_tree(self, folders: Sequence[TreeFolder], links: Sequence[TreeLink]) -> list[Problem]:
        """Make folders and links that are missing, set modes and times of these folders.

        Folders come after those that they are in. What cannot be made is returned.
        """

    def clear(self, folder: bytes) -> bool:
        """Remove the empty folders at and below a folder below `.mydata-like`.

        Return whether files may be left there.
        """

    def close(self) -> None: ...
