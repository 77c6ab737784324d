"""The input of a stage without threads: items, and pauses that move the clock."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from tests.fakes.clock import FakeClock

T = TypeVar("T")


class ListSource(Generic[T]):
    """A source of items in order; None is a poll without a result. `starving` is a fixed value."""

    def __init__(self, items: list[T | None], clock: FakeClock, *, starving: bool = False) -> None:
        self._items = list(items)
        self._clock = clock
        self.starving = starving

    def __iter__(self) -> Iterator[T]:
        while not self.finished:
            item = self.poll(None)
            if item is not None:
                yield item

    def poll(self, timeout: float | None) -> T | None:
        item = self._items.pop(0) if self._items else None
        if item is None:
            self._clock.move(timeout or 0.0)
        return item

    def take_ready(self, most: int) -> list[T]:
        ready = []
        while len(ready) < most and self._items and self._items[0] is not None:
            ready.append(self._items.pop(0))
        return ready

    @property
    def finished(self) -> bool:
        return not self._items

    def wait_for_room(self, item: object) -> bool:
        return True
