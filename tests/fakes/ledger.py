"""A ledger that forgets when the test ends."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

from mydata_like.core.archives import Archive
from mydata_like.core.model import (
    DatasetId,
    DatasetStats,
    Entry,
    EntryState,
    LocalFile,
    Replacement,
)

AGREED = (EntryState.VERIFIED, EntryState.CHANGED)


class MemoryLedger:
    """Keeps entries in a dict; `history` has every row that was ever recorded."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: dict[bytes, Entry] = {}
        self.history: list[Entry] = []
        self.archives: dict[tuple[DatasetId, str], Archive] = {}
        self.replacements: dict[bytes, Replacement] = {}
        self.record(list(entries))

    def find_entries(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        return {key: self.entries[key] for key in keys if key in self.entries}

    def find_open(self, dataset: DatasetId, files: Sequence[LocalFile]) -> set[bytes]:
        verified = {
            (entry.key, entry.size, entry.modified_ns)
            for entry in self.entries.values()
            if (entry.dataset, entry.state) == (dataset, EntryState.VERIFIED)
        }
        return {
            file.key for file in files if (file.key, file.size, file.modified_ns) not in verified
        }

    def open_room(self) -> dict[tuple[str, str], Any]:
        return {}

    def count_entries(self, dataset: DatasetId) -> DatasetStats:
        rows: list[Entry | Archive] = [
            entry
            for entry in list(self.entries.values())
            if entry.dataset == dataset and not entry.archive
        ]
        archives = self.find_archives(dataset).values()
        rows += [archive for archive in archives if archive.state is not EntryState.STAGED]
        return DatasetStats(len(rows), sum(row.state in AGREED for row in rows))

    def record(self, entries: Sequence[Entry]) -> None:
        self.history.extend(entries)
        self.entries.update((entry.key, entry) for entry in entries)

    def record_replacements(self, replacements: Sequence[Replacement]) -> None:
        self.replacements.update((it.key, it) for it in replacements)

    def find_replacements(self) -> list[Replacement]:
        return [self.replacements[key] for key in sorted(self.replacements)]

    def forget_replacements(self, replacements: Sequence[Replacement]) -> None:
        for it in replacements:
            if self.replacements.get(it.key, it).checksum == it.checksum:
                self.replacements.pop(it.key, None)

    def find_archives(self, dataset: DatasetId) -> dict[str, Archive]:
        found = {path: archive for (id_, path), archive in self.archives.items() if id_ == dataset}
        return dict(sorted(found.items()))

    def record_archive(self, archive: Archive, members: Sequence[Entry] | None = None) -> None:
        self.archives[archive.dataset, archive.path] = archive
        inside = {
            key: entry._replace(state=archive.state, datafile=archive.datafile)
            for key, entry in self.entries.items()
            if (entry.dataset, entry.archive) == (archive.dataset, archive.path)
        }
        if members is None:
            self.record(list(inside.values()))
            return
        for key in inside:
            del self.entries[key]
        self.record(members)

    def forget_archive(self, archive: Archive) -> None:
        self.record_archive(archive, [])
        del self.archives[archive.dataset, archive.path]

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
