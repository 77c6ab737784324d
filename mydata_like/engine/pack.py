"""Makes payloads of wanted files: large ones alone, tiny ones in batches."""

from collections.abc import Iterator
from itertools import count

from mydata_like.core.model import Payload, Registered, Staged, Wanted
from mydata_like.core.ports import Clock
from mydata_like.engine.workers import Source
from mydata_like.settings.schema import Transfer

Packed = Payload | list[Staged | Registered]

LINGER = 0.05  # seconds for which an open batch waits for more while a channel is idle


class Pack:
    """The stage that groups files; what needs no transfer passes it by.

    A batch is closed when it is full (bytes or files), when it is old, and when a channel
    waits for work while nothing more comes.
    """

    def __init__(self, settings: Transfer, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._ids = count(1)

    def __call__(self, source: Source[list[Wanted | Staged | Registered]]) -> Iterator[Packed]:
        batch: list[Wanted] = []
        size, born = 0, 0.0
        while not source.finished:
            items = source.poll(LINGER if batch else None)
            passing: list[Staged | Registered] = []
            for item in items or ():
                if not isinstance(item, Wanted):
                    passing.append(item)
                elif not self._is_tiny(item):
                    yield self._payload([item])
                else:
                    if batch and self._overflows(batch, size + item.file.size):
                        yield self._payload(batch)
                        batch, size = [], 0
                    born = born if batch else self._clock.monotonic()
                    batch.append(item)
                    size += item.file.size
            if passing:
                yield passing
            if batch and self._is_due(source, born, came=items is not None):
                yield self._payload(batch)
                batch, size = [], 0
        if batch:
            yield self._payload(batch)

    def _is_tiny(self, item: Wanted) -> bool:
        """Return whether the file may travel in a batch: never one whose name has a record."""
        return item.file.size < self._settings.batch_below and item.datafile is None

    def _overflows(self, batch: list[Wanted], size: int) -> bool:
        return len(batch) >= self._settings.batch_files or size > self._settings.batch_bytes

    def _is_due(self, source: Source[object], born: float, *, came: bool) -> bool:
        if self._clock.monotonic() - born >= self._settings.batch_age:
            return True
        return source.starving and not came

    def _payload(self, members: list[Wanted]) -> Payload:
        return Payload(next(self._ids), tuple(members), batched=len(members) > 1)
