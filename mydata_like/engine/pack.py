"""The stage that packs wanted files into payloads: large ones alone, tiny ones in batches."""

from collections.abc import Iterator
from itertools import count

from mydata_like.core.archives import ArchiveFormat
from mydata_like.core.model import FileToSend, Payload, Registered, Staged
from mydata_like.core.ports import Clock
from mydata_like.engine.pipeline import StageInput
from mydata_like.engine.user_overrides import UserOverrides
from mydata_like.settings.schema import Transfer

Packed = Payload | list[Staged | Registered]

CHECK_INTERVAL = 0.5  # seconds between checks for files to be sent again
LINGER = 0.05  # seconds for which an open batch waits for more files while a channel is idle


class Pack:
    """The stage that groups files; what needs no transfer passes through.

    A batch is closed when it is full (bytes or files), when it reaches its maximum age, or when a
    channel is idle and no more files arrive. Files that the user retries join the others.
    """

    def __init__(
        self, settings: Transfer, clock: Clock, choices: UserOverrides, form: ArchiveFormat
    ) -> None:
        self._form = form
        self._settings = settings
        self._clock = clock
        self._choices = choices
        self._ids = count(1)

    def __call__(
        self, source: StageInput[list[FileToSend | Staged | Registered]]
    ) -> Iterator[Packed]:
        batch = _Batch(self._settings, self._clock)
        while not source.finished:
            items = source.poll(LINGER if batch.members else CHECK_INTERVAL)
            passing = [item for item in items or () if not isinstance(item, FileToSend)]
            if passing:
                yield passing
            for item in (*(items or ()), *self._choices.take_again()):
                if isinstance(item, FileToSend):
                    yield from map(self._payload, self._sort_in(item, batch))
            if batch.is_old or (items is None and source.starving):
                yield from map(self._payload, batch.take())
        yield from map(self._payload, batch.take())

    def _sort_in(self, item: FileToSend, batch: "_Batch") -> Iterator[list[FileToSend]]:
        """Yield what can be sent now: a large file, or the batch that this file would overfill."""
        if not self._is_tiny(item):
            yield [self._fit(item)]
            return
        if not batch.has_room(item):
            yield from batch.take()
        batch.add(item)

    def _fit(self, item: FileToSend) -> FileToSend:
        """Return the file to send; the size of an archive depends on its current members."""
        if not item.members:
            return item
        size = self._form.measure(item.file.name, item.members)
        return item._replace(file=item.file._replace(size=size))

    def _is_tiny(self, item: FileToSend) -> bool:
        """Return whether this may be in a batch: no archive, and no file that is sent again."""
        return item.file.size < self._settings.batch_below and not item.round and not item.members

    def _payload(self, members: list[FileToSend]) -> Payload:
        return Payload(next(self._ids), tuple(members), batched=len(members) > 1)


class _Batch:
    """A growing batch of tiny files, bounded by number, bytes and age."""

    def __init__(self, settings: Transfer, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.members: list[FileToSend] = []
        self._size = 0
        self._born = 0.0

    @property
    def is_old(self) -> bool:
        age = self._clock.monotonic() - self._born
        return bool(self.members) and age >= self._settings.batch_age

    def has_room(self, item: FileToSend) -> bool:
        if not self.members:
            return True
        full = len(self.members) >= self._settings.batch_files
        return not full and self._size + item.file.size <= self._settings.batch_bytes

    def add(self, item: FileToSend) -> None:
        if not self.members:
            self._born = self._clock.monotonic()
        self.members.append(item)
        self._size += item.file.size

    def take(self) -> Iterator[list[FileToSend]]:
        """Yield the members, if any, and start a new batch."""
        if self.members:
            members, self.members, self._size = self.members, [], 0
            yield members
