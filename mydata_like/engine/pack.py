"""Makes payloads of wanted files: large ones alone, tiny ones in batches."""

from collections.abc import Iterator
from itertools import count

from mydata_like.core.archives import ArchiveFormat
from mydata_like.core.model import FileToSend, Payload, Registered, Staged
from mydata_like.core.ports import Clock
from mydata_like.engine.pipeline import StageInput
from mydata_like.engine.user_overrides import UserOverrides
from mydata_like.settings.schema import Transfer

Packed = Payload | list[Staged | Registered]

GLANCE = 0.5  # seconds after which it is looked whether files are wanted again
LINGER = 0.05  # seconds for which an open batch waits for more while a channel is idle


class Pack:
    """The stage that groups files; what needs no transfer passes it by.

    A batch is closed when it is full (bytes or files), when it is old, and when a channel
    waits for work while nothing more comes. Files that a person wants again join the others.
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
            items = source.poll(LINGER if batch.members else GLANCE)
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
        """Yield what can travel now: a large file, or the batch which this one overflows."""
        if not self._is_tiny(item):
            yield [self._fit(item)]
            return
        if not batch.has_room(item):
            yield from batch.take()
        batch.add(item)

    def _fit(self, item: FileToSend) -> FileToSend:
        """Return what is sent; how large an archive is depends on the members that it has now."""
        if not item.members:
            return item
        size = self._form.measure(item.file.name, item.members)
        return item._replace(file=item.file._replace(size=size))

    def _is_tiny(self, item: FileToSend) -> bool:
        """Return whether this may travel in a batch: no archive, no name that has a record."""
        tiny = item.file.size < self._settings.batch_below
        return tiny and item.datafile is None and not item.members

    def _payload(self, members: list[FileToSend]) -> Payload:
        return Payload(next(self._ids), tuple(members), batched=len(members) > 1)


class _Batch:
    """Tiny files that wait for company, bounded by number, bytes and age."""

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
        """Yield the members, if there are any, and begin anew."""
        if self.members:
            members, self.members, self._size = self.members, [], 0
            yield members
