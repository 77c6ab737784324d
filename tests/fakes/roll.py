"""A record of sources in memory."""

from datetime import UTC, datetime

from mydata_like.core.extra_sources import Destination, ExtraSource, KnownSource

ADDED = datetime(2026, 1, 1, tzinfo=UTC)


class MemoryRoll:
    """A record of the destination of each source, and of the finished ones."""

    def __init__(self) -> None:
        self.destinations: dict[bytes, Destination] = {}
        self.finished: list[bytes] = []

    def find_destination(self, path: bytes) -> Destination | None:
        return self.destinations.get(path)

    def record_source(self, source: ExtraSource) -> None:
        self.destinations[source.path] = source.destination
        self.finished = [path for path in self.finished if path != source.path]

    def find_sources(self) -> list[KnownSource]:
        ended = {path: ADDED for path in self.finished}
        return [
            KnownSource(path, destination, ADDED, ended.get(path))
            for path, destination in sorted(self.destinations.items())
        ]

    def finish_source(self, path: bytes) -> None:
        self.finished.append(path)
