"""Remembers sources until the test ends."""

from mydata_like.core.sources import Destination, Source


class MemoryRoll:
    """Keeps what each source became, and which are finished."""

    def __init__(self) -> None:
        self.destinations: dict[bytes, Destination] = {}
        self.finished: list[bytes] = []

    def find_destination(self, path: bytes) -> Destination | None:
        return self.destinations.get(path)

    def record_source(self, source: Source) -> None:
        self.destinations[source.path] = source.destination

    def finish_source(self, path: bytes) -> None:
        self.finished.append(path)
