"""The order in which waiting files are sent: as they were found, or what the user prefers first."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice, starmap
from typing import Final, NamedTuple, Protocol

from mydata_like.core.formatting import format_path
from mydata_like.core.model import Batch, FileRecord, Payload
from mydata_like.engine.pipeline import Lock

Packed = Payload | Batch

LISTED: Final = (
    100  # files that wait here rather than in earlier stages, to be listed and preferred
)
PREFERRED: Final = 2000  # the same, once the user prefers any


class PackedQueue(Protocol):
    """The payloads that wait for a channel."""

    def order_by(self, rank: Callable[[Packed], int]) -> None:
        """Sort the items by rank, the highest first, now and when others are added."""

    def peek(self) -> list[Packed]:
        """Return the items in their order, and those that wait for room; they stay."""


class WaitingFile(NamedTuple):
    """A file that waits; `path` is its key, or that of its archive."""

    path: bytes
    size: int


class SendOrder:
    """The files that wait to be packed, in the order in which they are sent; for any thread.

    A preferred path is a text as in events. The path of a folder stands for all of its files,
    including those found later. Of several preferences, the latest comes first. A file that is
    taken still counts as waiting until it is packed.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._preferences: dict[str, int] = {}  # rank by path
        self._ahead: deque[tuple[int, FileRecord]] = deque()  # rank and file, the highest first
        self._rest: deque[FileRecord] = deque()
        self._taken: dict[bytes, FileRecord] = {}  # by key
        self._reordered = False  # since the last call of `put_back`
        self._queue: PackedQueue | None = None

    def __len__(self) -> int:
        return len(self._ahead) + len(self._rest)

    @property
    def has_room(self) -> bool:
        """Whether more files should wait here, so that the user can see and prefer them."""
        return len(self) < (PREFERRED if self._preferences else LISTED)

    @property
    def prefers_any(self) -> bool:
        """Whether preferred files wait here."""
        return bool(self._ahead)

    def prefer(self, paths: Sequence[str]) -> None:
        """Send the files at or below these paths before all others, in the order of the paths."""
        with self._lock:
            ranks = count(max(self._preferences.values(), default=0) + 1)
            latest = zip((path.rstrip("/") for path in reversed(paths)), ranks, strict=False)
            self._preferences = {**self._preferences, **dict(latest)}
            self._sort_all()
            self._reordered = True
            if self._queue is not None:
                self._queue.order_by(self._rank_packed)

    @property
    def is_reordered(self) -> bool:
        """Whether the user has preferred files since the last call of `put_back`."""
        return self._reordered

    def put_back(self) -> None:
        """Let the files that are taken and not packed wait here again."""
        with self._lock:
            self._reordered = False
            taken = [*self._taken.values()]
            self._taken.clear()
            self._sort_all(taken)

    def follow(self, queue: PackedQueue) -> None:
        """Sort these payloads, too, from now on."""
        with self._lock:
            self._queue = queue
            if self._preferences:
                queue.order_by(self._rank_packed)

    def add(self, files: Iterable[FileRecord]) -> None:
        """Add files to those that wait."""
        with self._lock:
            if self._preferences:
                self._sort_in(files)
            else:
                self._rest.extend(files)

    def take(self) -> FileRecord:
        """Return the next file, to pack it; there must be one."""
        with self._lock:
            file = self._ahead.popleft()[1] if self._ahead else self._rest.popleft()
            self._taken[file.file.key] = file
            return file

    def note_packed(self, files: Iterable[FileRecord]) -> None:
        """Note that files that were taken are in a payload now."""
        with self._lock:
            for file in files:
                self._taken.pop(file.file.key, None)

    def list_next(self, most: int, is_left: Callable[[FileRecord], bool]) -> list[WaitingFile]:
        """Return up to so many of the files that are sent next, except for those that are left."""
        with self._lock:
            packed = self._queue.peek() if self._queue is not None else []
            payloads = (it for it in packed if isinstance(it, Payload))
            ranked = [(self._rank_packed(it), file) for it in payloads for file in it.members]
            ranked += [(self._rank(file), file) for file in self._taken.values()]
            ranked += self._ahead
            ranked.sort(key=_by_rank)  # the first to be packed may overtake what is packed
            waiting = chain((file for _, file in ranked), self._rest)
            # A payload that waits for room is in the queue and in `_taken`.
            sizes = {it.file.key: it.file.size for it in waiting if not is_left(it)}
            return list(starmap(WaitingFile, islice(sizes.items(), most)))

    def _sort_all(self, first: Iterable[FileRecord] = ()) -> None:
        """Sort these files and then all that wait, by rank and otherwise as they are."""
        waiting = [*first, *(file for _, file in self._ahead), *self._rest]
        self._ahead.clear()
        self._rest.clear()
        self._sort_in(waiting)

    def _sort_in(self, files: Iterable[FileRecord]) -> None:
        ranked = [(self._rank(file), file) for file in files]
        self._rest.extend(file for rank, file in ranked if not rank)
        ahead = [*self._ahead, *(it for it in ranked if it[0])]
        self._ahead = deque(sorted(ahead, key=_by_rank))

    def _rank(self, wanted: FileRecord) -> int:
        """Return the highest rank of a file, or of any file in an archive; 0 if not preferred."""
        if not self._preferences:
            return 0
        return max(max(self._ranks(format_path(key)), default=0) for key in wanted.keys)

    def _ranks(self, path: str) -> Iterator[int]:
        while path:
            yield self._preferences.get(path, 0)
            path = path.rpartition("/")[0]

    def _rank_packed(self, packed: Packed) -> int:
        members = packed.members if isinstance(packed, Payload) else ()
        return max(map(self._rank, members), default=0)


def _by_rank(ranked: tuple[int, FileRecord]) -> int:
    """Return the key that sorts the highest rank first."""
    return -ranked[0]
