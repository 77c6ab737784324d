"""A ledger that forgets when the test ends."""

from collections.abc import Iterable, Sequence
from typing import Self

from mydata_like.core.model import DatasetId, DatasetStats, Entry, EntryState


class MemoryLedger:
    """Keeps entries in a dict; `history` has every row that was ever recorded."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: dict[bytes, Entry] = {}
        self.history: list[Entry] = []
        self.record(list(entries))

    def find_entries(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        return {key: self.entries[key] for key in keys if key in self.entries}

    def count_entries(self, dataset: DatasetId) -> DatasetStats:
        rows = [entry for entry in list(self.entries.values()) if entry.dataset == dataset]
        return DatasetStats(len(rows), sum(row.state is EntryState.VERIFIED for row in rows))

    def record(self, entries: Sequence[Entry]) -> None:
        self.history.extend(entries)
        self.entries.update((entry.key, entry) for entry in entries)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
