"""The stage that packs wanted files into payloads: large ones alone, tiny ones in batches."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
from math import inf
from typing import TypeVar

from mydata_like.core.archives import ArchiveFormat
from mydata_like.core.model import Batch, EntryState, FileRecord, Payload
from mydata_like.core.ports import Clock
from mydata_like.engine.pipeline import StageInput
from mydata_like.engine.send_order import Packed, SendOrder
from mydata_like.engine.user_overrides import UserOverrides
from mydata_like.settings.schema import Transfer

T = TypeVar("T")

CHECK_INTERVAL = 0.5  # seconds between checks for files to be sent again
LINGER = 0.05  # seconds for which an open batch waits for more files while a channel is idle


class Pack:
    """The stage that groups files; what needs no transfer passes through.

    A batch is closed when it is full (files, or bytes, of which there are fewer on a slow line),
    when it reaches its maximum age, when a channel is idle and no more files arrive, or when it has
    the last file that the user prefers. Files that the user retries join the others.
    """

    def __init__(
        self,
        settings: Transfer,
        clock: Clock,
        choices: UserOverrides,
        form: ArchiveFormat,
        find_size: Callable[[], float] = lambda: inf,
    ) -> None:
        """Create the stage; `find_size` returns how many bytes of a batch arrive soon."""
        self._form = form
        self._find_size = find_size
        self._settings = settings
        self._clock = clock
        self._choices = choices
        self._ids = count(1)

    def __call__(self, source: StageInput[Batch]) -> Iterator[Packed]:
        order, batch = self._choices.order, _Batch(self._settings, self._clock, self._find_size)
        while order or order.is_reordered or not source.finished:
            if order.is_reordered:
                order.put_back()
                batch = _Batch(self._settings, self._clock, self._find_size)
            first = None if order else source.poll(LINGER if batch.members else CHECK_INTERVAL)
            is_idle = first is None and not order
            ready = () if is_idle else _take_ready(source, order)
            yield from _take_in(chain([] if first is None else [first], ready), order)
            order.add(self._choices.take_again())
            yield from self._place(self._take(order, batch), source)
            if not order.is_reordered and (batch.is_old or (is_idle and source.starving)):
                yield from self._place(batch.take(), source)
        yield from self._place(batch.take(), source)

    def _place(
        self,
        ready: Iterable[list[FileRecord]],
        source: StageInput[Batch],
    ) -> Iterator[Packed]:
        """Yield payloads, each once there is room for it; more files are taken in until then."""
        order = self._choices.order
        for members in ready:
            payload = self._payload(members)
            passing: list[Batch] = []
            while not source.wait_for_room(payload):
                passing += _take_in(_take_ready(source, order), order)
            order.note_packed(members)
            yield payload
            yield from passing

    def _take(self, order: SendOrder, batch: "_Batch") -> Iterator[list[FileRecord]]:
        """Yield what can be sent next; sending it takes time, in which the order may change."""
        while order:
            preferred = order.prefers_any
            ready = list(self._sort_in(order.take(), batch))
            if preferred and not order.prefers_any:
                ready += batch.take()
            for members in ready:
                yield members
                if order.is_reordered:  # the others are put back
                    return
            if ready:
                return

    def _sort_in(self, item: FileRecord, batch: "_Batch") -> Iterator[list[FileRecord]]:
        """Yield what can be sent now: a large file, or the batch that this file would overfill."""
        if not self._is_tiny(item):
            yield [self._fit(item)]
            return
        if not batch.has_room(item):
            yield from batch.take()
        batch.add(item)

    def _fit(self, item: FileRecord) -> FileRecord:
        """Return the file to send; the size of an archive depends on its current members."""
        if not item.members:
            return item
        size = self._form.measure(item.file.name, item.members)
        item.file = item.file._replace(size=size)
        return item

    def _is_tiny(self, item: FileRecord) -> bool:
        """Return whether this may be in a batch: no archive, and no file that is sent again."""
        return item.file.size < self._settings.batch_below and not item.round and not item.members

    def _payload(self, members: list[FileRecord]) -> Payload:
        return Payload(next(self._ids), tuple(members), batched=len(members) > 1)


def _take_in(groups: Iterable[Batch], order: SendOrder) -> Iterator[Batch]:
    """Add what is to be sent to the order, and yield what needs no transfer."""
    for each in groups:
        if passing := [item for item in each if item.state is not EntryState.FOUND]:
            yield passing
        order.add(item for item in each if item.state is EntryState.FOUND)


def _take_ready(source: StageInput[T], order: SendOrder) -> Iterator[T]:
    """Yield what is available of a source as long as more files should wait in the order."""
    while order.has_room and (ready := source.take_ready(1)):
        yield from ready


class _Batch:
    """A growing batch of tiny files, bounded by number, bytes and age."""

    def __init__(self, settings: Transfer, clock: Clock, find_size: Callable[[], float]) -> None:
        self._find_size = find_size
        self._most = 0.0  # bytes
        self._settings = settings
        self._clock = clock
        self.members: list[FileRecord] = []
        self._size = 0
        self._born = 0.0

    @property
    def is_old(self) -> bool:
        age = self._clock.monotonic() - self._born
        return bool(self.members) and age >= self._settings.batch_age

    def has_room(self, item: FileRecord) -> bool:
        if not self.members:
            return True
        full = len(self.members) >= self._settings.batch_limit
        return not full and self._size + item.file.size <= self._most

    def add(self, item: FileRecord) -> None:
        if not self.members:
            self._born = self._clock.monotonic()
            self._most = min(self._settings.batch_bytes, self._find_size())
        self.members.append(item)
        self._size += item.file.size

    def take(self) -> Iterator[list[FileRecord]]:
        """Yield the members, if any, and start a new batch."""
        if self.members:
            members, self.members, self._size = self.members, [], 0
            yield members
